// SPDX-License-Identifier: BSD-2-Clause

// Shows the slices of a zone whose keys expire: a row of bars, the oldest slice
// first, each as high as the slice is full.

import { h, setAttribute, setText } from './dom.js';
import { ago, bytes, duration, moment, number, plural, rate } from './format.js';


const FULL = 1.25;                    // of its capacity, from which on a slice is
                                      // over-full: it is closed a few keys late


// Returns the row.  If `labels` is set, each bar has its age below it.

export function slices(labels) {
    const node = h('ul', { class: labels ? 'slices' : 'slices small',
                           hidden: true });

    return {
        node,

        update(zone, now) {
            node.hidden = zone.expire === null || zone.filter === null;

            const parts = node.hidden ? [] : zone.filter.parts;

            while (node.children.length > parts.length) {
                node.lastChild.remove();
            }

            while (node.children.length < parts.length) {
                node.append(slice(labels));
            }

            parts.forEach((part, i) => show(node.children[i], part, now));
        },
    };
}


function slice(labels) {
    return h('li', {},
        h('span', { class: 'level', 'aria-hidden': 'true' },
          h('span', { class: 'bar' })),
        h('span', { class: labels ? 'age' : 'hidden' }),
        h('span', { class: 'hidden' }));
}


function show(node, part, now) {
    const [level, age, words] = node.children;
    const full = part.estimated_items > FULL * part.capacity;
    const share = Math.min(part.estimated_items / part.capacity, 1);

    level.firstChild.style.height = `${100 * share}%`;
    setAttribute(node, 'class', part.open ? 'open' : full ? 'full' : 'closed');
    setAttribute(node, 'title', described(part));
    setText(age, (part.open ? 'open' : '')
                 + (part.open && part.opened_at !== null ? ', ' : '')
                 + (part.opened_at === null ? '' : ago(part.opened_at, now)));
    setText(words, `: ${filled(part)}`
                   + (part.open ? '' : `, ${dropped(part)}`));
}


const filled = (part) =>
    `about ${number(part.estimated_items)} of ${number(part.capacity)} keys`;

const dropped = (part) =>
    part.expires_at === null ? 'closed just now'
                             : `dropped at ${moment(part.expires_at)}`;

const described = (part) =>
    `${part.open ? 'Open, ' : ''}${filled(part)}, `
    + (part.opened_at === null ? 'no key yet'
                               : `first key at ${moment(part.opened_at)}`)
    + (part.open ? '' : `, ${dropped(part)}`);


// Says how long keys live, and when the next ones are dropped.

export function life({ expire, filter }, now) {
    const lives = `Keys live ${span(expire.seconds)} to `
        + `${span(expire.seconds + expire.slice_seconds)}.`;
    const next = filter?.parts.find((part) => part.expires_at !== null);

    return lives + (filter === null ? ''
        : ` ${plural(expire.live, 'live slice')}, ${number(expire.ready)} ready.`
          + (next === undefined ? ' No slice is dropped before the open one is '
                                  + 'closed.'
              : ` The next slice is dropped ${ago(next.expires_at, now)}.`));
}


// Formats a number of seconds without losing any.

function span(seconds) {
    const parts = [];
    let rest = seconds;

    for (const [unit, size] of [['d', 86400], ['h', 3600], ['min', 60]]) {
        if (rest >= size) {
            parts.push(`${Math.floor(rest / size)} ${unit}`);
            rest %= size;
        }
    }

    if (rest > 0 || parts.length === 0) {
        parts.push(`${Number(rest.toFixed(3))} s`);
    }

    return parts.join(' ');
}


// Returns the rows of a table: the life of a key, and each slice.

export function sliceRows({ expire, filter }) {
    return [
        ['A key lives', `${span(expire.seconds)} or longer`],
        ['A slice', `${span(expire.slice_seconds)} or `
                    + `${number(expire.slice_capacity)} keys`],
        ['Slices of a life', number(expire.slices)],
        ['Live slices', number(expire.live)],
        ['Ready slices', number(expire.ready)],
        ['The clock is behind', duration(1000 * expire.clock_behind_seconds)],
        ...(filter?.parts ?? []).map((part, i) => [
            part.open ? 'Open slice' : `Slice ${i + 1}`,
            `${filled(part)}, ${bytes(part.bits / 8)}, `
            + `${rate(part.fill_ratio)} of the bits, from `
            + `${part.opened_at === null ? 'its first key on'
                                         : moment(part.opened_at)}`
            + (part.open ? '' : `, ${dropped(part)}`),
        ]),
    ];
}
