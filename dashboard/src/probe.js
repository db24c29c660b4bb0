// SPDX-License-Identifier: BSD-2-Clause

// Looks up a key that is typed in, and explains the answer.

import { get, zonePath } from './api.js';
import { bitGrids } from './bits.js';
import { h } from './dom.js';
import { number } from './format.js';


export class Probe {
    constructor(name, zone) {
        this.name = name;
        this.zone = zone;             // returns the zone's current state

        this.input = h('input', { id: 'key', name: 'key', autocomplete: 'off',
                                  autocapitalize: 'off', spellcheck: 'false',
                                  required: true, maxlength: '65535' });
        this.result = h('div', { class: 'result', 'aria-live': 'polite' });

        this.node = h('section', { class: 'panel',
                                   'aria-labelledby': 'try-title' },
            h('h3', { id: 'try-title' }, 'Try a key'),
            h('form', { class: 'row', onsubmit: (event) => this.#ask(event) },
                h('label', { for: 'key' }, 'Key'),
                this.input,
                h('button', { type: 'submit' }, 'Look up')),
            this.result);
    }

    async #ask(event) {
        event.preventDefault();

        const query = encodeURIComponent(this.input.value);

        try {
            const { answer } =
                await get(`${zonePath(this.name)}/keys?key=${query}`);

            this.result.replaceChildren(...explained(answer, this.zone()));

        } catch (failure) {
            this.result.replaceChildren(
                h('p', { class: 'problem bad' },
                  `The key was not looked up: ${failure.message}.`));
        }
    }
}


const words = {
    absent: 'Absent: definitely not in the filter',
    present: 'Maybe present',
    unknown: 'Unknown',
    invalid: 'Invalid key',
};


function explained(answer, zone) {
    const { canonical, expressions, bits, set } = answer;

    return [
        h('p', { class: `answer ${answer.answer}` }, words[answer.answer]),

        h('dl', { class: 'facts' },
            fact('Key', answer.key),
            answer.key_form && fact('Key form', answer.key_form),
            canonical !== undefined ? fact('Canonical', canonical) : undefined,
            answer.reason && fact('Why invalid', `it ${answer.reason}`)),

        expressions.length > 0 ? h('h4', {}, 'Expressions looked up')
                               : undefined,
        expressions.length > 0
            ? h('ul', { class: 'expressions' }, expressions.map((one) =>
                h('li', {},
                    h('code', {}, one.key),
                    ' ',
                    h('span', { class: one.present ? 'yes' : 'no' },
                      one.present ? 'maybe present' : 'absent'))))
            : undefined,

        bits.length > 0 && zone.image !== null
            ? h('div', { class: 'grids' },
                h('h4', {}, 'Bits of the canonical key'),
                h('div', { class: 'lines' }, bitGrids(zone.image, bits, set)),
                h('p', { class: 'hint' }, legend(set)),
                h('details', {},
                    h('summary', {}, 'Bit numbers'),
                    h('p', { class: 'numbers' }, bits.map((bit, i) =>
                        `${number(bit)} ${set[i] ? 'set' : 'not set'}`)
                        .join(', '))))
            : undefined,
    ].filter((node) => node !== undefined);
}


const fact = (name, text) =>
    h('div', {}, h('dt', {}, name), h('dd', {}, h('code', {}, text)));


function legend(set) {
    const clear = set.filter((bit) => !bit).length;

    return clear === 0
        ? 'All bits are set, by this key or by others, so the key may be '
          + 'present.'
        : `${clear === 1 ? 'One bit is' : `${clear} bits are`} not set, so `
          + 'this key is absent.';
}
