// SPDX-License-Identifier: BSD-2-Clause

// Computes the decisions per second of a zone over the last minutes, from the
// counters of successive polls.

const SAMPLES = 150;                  // five minutes

export const decisions = [
    { name: 'absent', label: 'absent' },
    { name: 'present', label: 'maybe present' },
    { name: 'unknown', label: 'unknown' },
    { name: 'rejected', label: 'rejected' },
    { name: 'routed', label: 'routed' },
];


export class Series {
    times = [];                       // in s, for the charts
    values = decisions.map(() => []);
    latest = null;                    // the last rates by name, and `checks`;
                                      // null: not known

    #last = null;

    // Adds the counters of a poll at `at`, in ms.  The line is interrupted
    // after a gap, and when the counters have restarted at 0.

    add(counters, at, gap) {
        const last = gap ? null : this.#last;
        const seconds = last === null ? 0 : (at - last.at) / 1000;
        const began = last !== null && decisions.some(({ name }) =>
            counters[name] < last.counters[name]);

        this.#last = { counters, at };

        if (seconds <= 0 || began) {
            this.latest = null;
            this.#push(at, decisions.map(() => null));
            return;
        }

        const of = (name) => (counters[name] - last.counters[name]) / seconds;

        this.latest = { checks: of('checks') };
        this.#push(at, decisions.map(({ name }) =>
            this.latest[name] = of(name)));
    }

    #push(at, row) {
        this.times.push(at / 1000);
        row.forEach((value, i) => this.values[i].push(value));

        if (this.times.length > SAMPLES) {
            this.times.shift();
            this.values.forEach((column) => column.shift());
        }
    }

    get data() {
        return [this.times, ...this.values];
    }
}
