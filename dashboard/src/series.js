// What each zone decided, per second, over the last minutes: made from the
// counters of one poll and the next.

const KEPT = 150;                     // samples; five minutes

export const decisions = [
    { name: 'absent', label: 'absent' },
    { name: 'present', label: 'maybe present' },
    { name: 'unknown', label: 'unknown' },
    { name: 'rejected', label: 'rejected' },
    { name: 'routed', label: 'routed' },
];


export class Series {
    times = [];                       // s, as charts want them
    values = decisions.map(() => []);
    latest = null;                    // by name, with `checks`; null: unknown

    #last = null;

    // `at` in ms.  Counters that went back began anew; after a gap there is
    // nothing to draw between.

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

        if (this.times.length > KEPT) {
            this.times.shift();
            this.values.forEach((column) => column.shift());
        }
    }

    get data() {
        return [this.times, ...this.values];
    }
}
