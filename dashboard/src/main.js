// SPDX-License-Identifier: BSD-2-Clause

// Asks for the zones every two seconds and shows their state, below the box
// "Why is this blocked?".

import { get } from './api.js';
import { Card } from './card.js';
import { Detail } from './detail.js';
import { byId, setText } from './dom.js';
import { clock, plural } from './format.js';
import { problems, worst } from './health.js';
import { Series } from './series.js';
import { Why } from './why.js';

const PERIOD = 2000;                  // ms between two polls
const PATIENCE = 10_000;              // most, while there is no answer

const cards = new Map();              // by the zone's name
const series = new Map();
const order = ['bad', 'warn', 'good'];

let write = null;                     // whether the endpoint takes changes
let detail = null;                    // of the chosen zone
let state = null;                     // the last answer: { zones, now }
let answered = 0;                     // when it arrived, in ms
let failures = 0;                     // polls without an answer since then
let gap = true;                       // the last poll is long ago, or failed
let timer = null;
let looking = false;
let paused = false;


async function look() {
    clearTimeout(timer);

    if (looking || paused || document.hidden) {
        return;
    }

    looking = true;

    try {
        if (write === null || failures > 0) {
            write = (await get('')).answer.write;
        }

        const { answer, now } = await get('zones');

        state = { zones: answer.zones, now };
        answered = Date.now();
        failures = 0;
        show();
        gap = false;

    } catch (failure) {
        failures++;
        gap = true;
        complain(failure);
    }

    looking = false;
    clearTimeout(timer);
    timer = setTimeout(look, Math.min(PERIOD * 2 ** Math.max(0, failures - 1),
                                      PATIENCE));
}


function complain(failure) {
    if (!(failure instanceof Error) || failure.constructor === TypeError) {
        console.error(failure);
    }

    const trouble = byId('trouble');

    setText(trouble, `The endpoint does not answer: ${failure.message}. `
        + (state === null ? 'The page tries again.'
                          : 'The values below are from '
                            + `${clock(answered)}.`));
    trouble.hidden = false;
    document.body.classList.add('old');
    document.title = 'No answer – Bloom filters';
}


function show() {
    const { zones, now } = state;

    byId('trouble').hidden = true;
    setText(byId('trouble'), '');
    document.body.classList.remove('old');
    byId('none').hidden = zones.length > 0;

    for (const zone of zones) {
        const found = problems(zone, now);

        if (!cards.has(zone.name)) {
            cards.set(zone.name, new Card(zone.name));
            series.set(zone.name, new Series());
        }

        zone.found = found;
        zone.level = worst(found);

        series.get(zone.name).add(zone.counters, answered, gap);
        cards.get(zone.name).update(zone, found, series.get(zone.name), now);
    }

    for (const name of [...cards.keys()]) {
        if (!zones.some((zone) => zone.name === name)) {
            cards.get(name).node.remove();
            cards.delete(name);
            series.delete(name);
        }
    }

    zones.sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level));
    arrange(zones.map(({ name }) => cards.get(name).node));
    summarise(zones.map(({ level }) => level));
    setText(byId('updated'), `as of ${clock(answered)}`);
    choose();
}


// Puts the zones in the worst state first.  No card moves while the pointer is
// over the list, and a card that moves keeps the focus.

function arrange(nodes) {
    const list = byId('zones');
    const focus = document.activeElement;

    if (list.children.length === nodes.length && list.matches(':hover')) {
        return;
    }

    if (nodes.some((node, i) => list.children[i] !== node)) {
        list.replaceChildren(...nodes);
        focus.focus({ preventScroll: true });
    }
}


function summarise(levels) {
    const summary = byId('summary');
    const level = order.find((one) => levels.includes(one)) ?? 'good';
    const ill = levels.filter((one) => one !== 'good').length;

    summary.className = level;
    setText(summary, ill === 0
        ? `${plural(levels.length, 'zone')}, all well`
        : `${ill} of ${plural(levels.length, 'zone')} `
          + `${ill === 1 ? 'needs' : 'need'} attention`);

    document.title = (ill === 0 ? '' : `(${ill}) `) + 'Bloom filters';
}


// Shows the zone that the address names, or the worst one.

function choose() {
    if (state === null) {
        return;
    }

    const { zones, now } = state;
    const asked = new URLSearchParams(location.hash.slice(1)).get('zone');
    const zone = zones.find(({ name }) => name === (asked ?? detail?.name))
                 ?? zones[0];
    const place = byId('detail');

    place.hidden = zone === undefined;

    if (zone === undefined) {
        detail = null;
        place.replaceChildren();
        return;
    }

    if (detail?.name !== zone.name || detail.write !== write) {
        detail = new Detail(zone.name, write, look);
        detail.write = write;
        place.replaceChildren(...detail.nodes);
    }

    for (const [name, card] of cards) {
        card.select(name === zone.name);
    }

    detail.update(zone, zone.found, series.get(zone.name), now);
}


function reveal() {
    byId('detail').scrollIntoView();
    byId('detail').focus({ preventScroll: true });
}


function pause() {
    paused = !paused;
    byId('pause').setAttribute('aria-pressed', String(paused));
    document.body.classList.toggle('paused', paused);
    gap = true;
    look();
}


setText(byId('where'), location.host + location.pathname);

// In a filter that has grown, the bits of a key are those of the last layer; if
// keys expire, those of the open slice.  They are counted from the beginning of
// the filter.

function lastPart(name) {
    const zone = state?.zones.find((one) => one.name === name);

    if (zone?.image && zone.expire !== null) {
        return { slice: true, lines: zone.image.lines,
                 bits: 8 * zone.memory.filter_bytes };
    }

    if (!zone?.image || !(zone.filter?.layers > 0)) {
        return zone?.image;
    }

    return {
        layer: zone.filter.layers,
        lines: zone.filter.parts.at(-1).lines,
        bits: 8 * zone.memory.filter_bytes,
    };
}

const why = new Why(lastPart, () => write, look);

byId('why').append(...why.nodes);

byId('pause').addEventListener('click', pause);

addEventListener('hashchange', () => {
    choose();

    if (location.hash.startsWith('#zone=')) {
        reveal();
    }
});

// a click on the zone that is chosen already scrolls to it, too

byId('zones').addEventListener('click', ({ target }) => {
    if (target.hash && target.hash === location.hash) {
        reveal();
    }
});

document.addEventListener('visibilitychange', () => {
    gap = true;
    look();
});

look();
