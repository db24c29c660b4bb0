// SPDX-License-Identifier: BSD-2-Clause

// Looks up a key that is typed in, in all zones, and shows what the rules do
// about it: "Why is this blocked?"

import { get, zonePath } from './api.js';
import { bitGrids } from './bits.js';
import { h } from './dom.js';
import { effects, place } from './effects.js';
import { moment, number, plural, visible } from './format.js';
import { Remove } from './remove.js';


export class Why {
    constructor(part, write, changed) {
        this.part = part;             // returns the part of a zone's filter that
                                      // the bits of a key are in
        this.write = write;           // returns whether changes are allowed
        this.changed = changed;       // called after a change

        this.input = h('input', { id: 'key', name: 'key', autocomplete: 'off',
                                  autocapitalize: 'off', spellcheck: 'false',
                                  required: true, maxlength: '65535',
                                  'aria-describedby': 'key-hint' });
        this.result = h('div', { class: 'result', 'aria-live': 'polite' });

        this.nodes = [
            h('h2', { id: 'why-title' }, 'Why is this blocked?'),
            h('form', { class: 'row', onsubmit: (event) => this.#ask(event) },
                h('label', { for: 'key' }, 'Key'),
                this.input,
                h('button', { type: 'submit' }, 'Look up')),
            h('p', { class: 'hint', id: 'key-hint' },
              'A URL, a host, an ID: what a rule takes from the request. All '
              + 'zones are asked.'),
            this.result,
        ];
    }

    #ask(event) {
        event.preventDefault();
        this.#look(encodeURIComponent(this.input.value));
    }

    // `said` is what was done before.

    async #look(query, said) {
        try {
            const { answer } = await get(`keys?key=${query}`);

            this.result.replaceChildren(
                ...said === undefined ? []
                    : [h('p', { class: 'said' }, said)],
                ...this.#explained(answer, query));

        } catch (failure) {
            this.result.replaceChildren(
                h('p', { class: 'problem bad' },
                  `The key was not looked up: ${failure.message}.`));
        }
    }

    #explained(answer, query) {
        const all = effects(answer);
        const found = all.filter(({ finds }) => finds);
        const rest = all.filter(({ finds }) => !finds);
        const told = answer.zones.filter((zone) => zone.answer !== 'absent');
        const absent = answer.zones.filter((zone) => zone.answer === 'absent');
        const zone = (one) => this.#zone(one, query);

        return [
            all.length === 0
                ? h('p', { class: 'answer' }, 'No rule fires on this key.')
                : undefined,
            found.length > 0 ? list('effects', found, shown) : undefined,
            rest.length > 0
                ? folded(found.length > 0,
                         'Rules that act although their zone does not find '
                         + `the key: ${number(rest.length)}`,
                         list('effects', rest, shown))
                : undefined,

            told.length > 0 ? list('answers', told, zone) : undefined,
            absent.length > 0
                ? folded(told.length > 0,
                         `Absent: definitely not in ${absent.length === 1
                             ? `zone ${absent[0].name}`
                             : plural(absent.length, 'zone')}`,
                         list('answers', absent, zone))
                : undefined,
        ].filter((node) => node !== undefined);
    }

    // Returns what a zone says about the key.  Its bits take a request of their
    // own, which is sent when they are opened.

    #zone(one, query) {
        const { name, answer, expressions } = one;
        const found = answer === 'present'
            ? expressions.filter(({ present }) => present) : [];
        const bits = h('div', { class: 'grids' });

        const how = h('details', {},
            h('summary', {}, `How zone ${name} looked it up`),
            expressions.length > 0 ? h('h4', {}, 'Expressions') : undefined,
            h('ul', { class: 'expressions' }, expressions.map(expression)),
            bits);

        how.addEventListener('toggle', () => {
            if (how.open && bits.children.length === 0) {
                this.#bits(name, query, bits);
            }
        });

        return h('li', {},
            h('h3', {}, zoneLink(one), ' ',
              h('span', { class: `answer ${answer}` }, words[answer])),
            h('dl', { class: 'facts' },
                found.length > 0
                    ? fact('Found', ...between(found.map(({ key }) =>
                        this.#found(name, key, query))))
                    : undefined,
                one.expires ? fact('Expires', expiry(one.expires))
                            : undefined,
                one.state && fact('State', one.state.replace('_', ' ')),
                one.reason && fact('Why invalid', `it ${one.reason}`),
                one.canonical !== undefined
                    ? fact('Canonical', code(one.canonical)) : undefined,
                one.form && fact('Key form', one.form)),
            how);
    }

    #found(zone, key, query) {
        if (!this.write()) {
            return code(key);
        }

        return h('span', {}, code(key), ' ',
                 new Remove(zone, key, (said) => {
                     this.#look(query, said);
                     this.changed();
                 }).node);
    }

    async #bits(name, query, place) {
        const part = this.part(name);

        try {
            const { answer } =
                await get(`${zonePath(name)}/keys?key=${query}`);

            if (answer.bits.length > 0 && part) {
                place.replaceChildren(...drawn(part, answer));
            }

        } catch (failure) {
            place.replaceChildren(
                h('p', { class: 'problem bad' },
                  `The bits were not looked up: ${failure.message}.`));
        }
    }
}


const expiry = ({ from, until }) =>
    moment(from) === moment(until) ? `at ${moment(from)}`
        : `between ${moment(from)} and ${moment(until)}`;


const words = {
    absent: 'absent',
    present: 'maybe present',
    unknown: 'unknown',
    invalid: 'invalid key',
};


const shown = ({ word, dry, verdict: [does, ...why], by, places }) =>
    h('li', { class: dry ? 'dry' : word },
        h('p', { class: 'verdict' }, h('strong', {}, does), ...nodes(why)),
        h('p', { class: 'hint' }, ...nodes(by)),
        places.length === 1
            ? h('p', { class: 'hint' }, ...nodes(place(places[0])))
            : folded(true, `In ${plural(places.length, 'place')}`,
                     list('places', places, (one) =>
                         h('li', { class: 'hint' }, ...nodes(place(one))))));

const nodes = (sentence) => sentence.map((part) =>
    part.code !== undefined ? code(part.code)
        : part.zone !== undefined ? zoneLink(part.zone) : part);


const kinds = ({ removed, excepted, image_excepted: built }) =>
    [removed && 'removed', excepted && 'excepted',
     built && 'chosen by the builder of the image'].filter(Boolean);

const expression = (one) =>
    h('li', {}, code(one.key), ' ',
      h('span', { class: one.present ? 'yes' : 'no' },
        one.present ? 'maybe present'
            : ['absent', ...kinds(one)].join(', ')));


function drawn(part, { bits, set }) {
    const clear = set.filter((bit) => !bit).length;
    const where = part.slice ? ' of the open slice'
        : part.layer > 0 ? ` of layer ${part.layer}` : '';

    return [
        h('h4', {}, 'Bits of the canonical key'),
        h('div', { class: 'lines' }, bitGrids(part, bits, set)),
        h('p', { class: 'hint' }, clear === 0
            ? `All bits${where} are set, by this key or by others, so the key `
              + 'may be present.'
            : `${clear === 1 ? 'One bit' : `${clear} bits`}${where} `
              + `${clear === 1 ? 'is' : 'are'} not set, so `
              + (part.slice
                    ? 'this slice lacks the key. An older one may have it.'
                    : part.layer > 0
                    ? 'this layer lacks the key. An earlier part may have it.'
                    : 'this key itself is absent.')),
        h('details', {},
            h('summary', {}, 'Bit numbers'),
            h('p', { class: 'numbers' }, bits.map((bit, i) =>
                `${number(bit)} ${set[i] ? 'set' : 'not set'}`).join(', '))),
    ];
}


const zoneLink = ({ name, label }) =>
    h('span', {},
      h('a', { href: `#zone=${encodeURIComponent(name)}` }, name),
      label === null ? undefined : ` (${label})`);

const code = (text) => h('code', {}, visible(text));

const fact = (name, ...content) =>
    h('div', {}, h('dt', {}, name), h('dd', {}, ...content));

const list = (name, data, make) => h('ul', { class: name }, data.map(make));

const between = (nodes) =>
    nodes.flatMap((node, i) => i === 0 ? [node] : [', ', node]);

const folded = (fold, summary, content) =>
    h('details', { open: !fold }, h('summary', {}, summary), content);
