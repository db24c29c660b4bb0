// SPDX-License-Identifier: BSD-2-Clause

// Looks up a key that is typed in, in all zones, and says what the rules do
// about it: "Why is this blocked?"

import { get, zonePath } from './api.js';
import { bitGrids } from './bits.js';
import { h } from './dom.js';
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
            found.length > 0 ? list('effects', found, effect) : undefined,
            rest.length > 0
                ? folded(found.length > 0,
                         'Rules that act although their zone does not find '
                         + `the key: ${number(rest.length)}`,
                         list('effects', rest, effect))
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


// Returns the rules that do something about the key, as the summary of the
// answer has them: { rule, places, zone, does, finds }.

function effects({ lists, zones }) {
    const byName = new Map(zones.map((zone) => [zone.name, zone]));

    return lists.flatMap(({ places, rules }) => rules.map((rule, i) => {
        const zone = byName.get(rule.zone);
        const late = rules.slice(0, i).some((one) =>
            one.key === rule.key && one.decides
            && (one.if === undefined || one.if === rule.if));
        const refusing = zone.answer !== 'unknown' ? undefined
            : places.find((place) => place.unknown !== 'pass'
                                     && !place.dry_run);

        return {
            rule, places, zone,
            does: places.length === 0 || late ? null
                : rule.fires ? action(rule)
                : refusing ? action({ action: refusing.unknown, status: 503,
                                      to: refusing.to })
                : null,
            finds: rule.fires && rule.condition === 'present'
                   && zone.answer === 'present',
        };
    })).filter(({ does }) => does !== null);
}


function action({ action: word, status, to }) {
    return { word, text: word === 'reject' ? `Rejected with ${status}`
                       : word === 'route' ? `Routed to ${to}` : 'Passed' };
}


// Returns the expressions that a rule looks up.

const asked = ({ expressions }, { exact }) =>
    exact ? expressions.filter(({ whole }) => whole) : expressions;


function effect({ rule, places, zone, does, finds }) {
    const dry = rule.dry_run || places.every((place) => place.dry_run);
    const seen = asked(zone, rule).find(({ present }) => present);

    return h('li', { class: dry ? 'dry' : does.word },
        h('p', { class: 'verdict' },
            h('strong', {}, dry ? `In dry run: ${does.text}` : does.text),
            ' because zone ', zoneLink(zone),
            ...finds ? [' finds ', code(seen.key)]
                : zone.answer === 'invalid' ? [' calls the key invalid']
                : zone.answer === 'unknown' ? [' cannot tell']
                : [' does not find it', ...except(zone, rule)]),
        h('p', { class: 'hint' },
            rule.rule === rule.at ? 'By the rule at ' : 'By rule ',
            rule.rule === rule.at ? undefined : code(rule.rule),
            rule.rule === rule.at ? undefined : ' at ',
            code(rule.at), ', if ', code(rule.key), ' is this key',
            ...rule.if === undefined ? []
                : [' and ', code(`if=${rule.if}`), ' holds']),
        places.length === 1
            ? h('p', { class: 'hint' }, ...place(places[0]))
            : folded(true, `In ${plural(places.length, 'place')}`,
                     list('places', places, (one) =>
                         h('li', { class: 'hint' }, ...place(one)))));
}


// Says why a key is absent although its bits are set.

function except(zone, rule) {
    const one = zone.answer !== 'absent' ? undefined
        : asked(zone, rule).find(exception);

    return one === undefined ? []
        : [': ', code(one.key), ' ', exception(one)];
}


function exception({ removed, excepted, image_excepted: built }) {
    return removed ? 'was removed'
        : excepted ? 'is an excepted key: the backend did not know it'
        : built ? 'is an exception that the builder of the image chose'
        : undefined;
}


const place = ({ server, server_at: at, location, dry_run: dry }) => [
    'In ',
    ...location === null ? [] : ['location ', code(location), ' of '],
    'server ', code(server ?? at),
    ...dry ? [', in dry run'] : [],
];


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
