// SPDX-License-Identifier: BSD-2-Clause

// Shows everything about the chosen zone.

import { get, zonePath } from './api.js';
import { Actions } from './actions.js';
import { freshness, lastLoad, measured, problem, source } from './card.js';
import { curve, history } from './charts.js';
import { h, setChildren, setText } from './dom.js';
import { bitsSet, bytes, duration, moment, number, perSecond, rate }
    from './format.js';
import { decisions } from './series.js';
import { life, sliceRows, slices } from './slices.js';


export class Detail {
    constructor(name, write, changed) {
        this.name = name;
        this.zone = null;
        this.rates = null;            // the curve of the filter in ratesOf
        this.ratesOf = '';

        this.problems = h('ul', { class: 'problems' });
        this.historyPlace = h('div', { class: 'chart', role: 'img' });
        this.historyText = h('p', { class: 'hint' });
        this.history = history(this.historyPlace);
        this.curvePlace = h('div', { class: 'chart', role: 'img' });
        this.curveText = h('p', { class: 'hint' });
        this.curve = curve(this.curvePlace, () => this.#limits());
        this.slices = slices(true);
        this.slicesText = h('p', { class: 'hint' });
        this.slicesPanel = panel('slices-title', 'Slices, oldest first',
                                 this.slices.node, this.slicesText);
        this.facts = h('div', { class: 'tables' });

        const zone = () => this.zone;

        this.nodes = [
            h('h2', { id: 'detail-title' }, name),
            this.problems,
            h('div', { class: 'panels' },
                panel('history-title', 'Decisions per second',
                      this.historyPlace, this.historyText),
                panel('curve-title', 'False positives by number of keys',
                      this.curvePlace, this.curveText),
                this.slicesPanel,
                write ? new Actions(name, zone, changed).node : undefined,
                panel('facts-title', 'All values', this.facts)),
        ];
    }

    update(zone, found, series, now) {
        this.zone = zone;

        setChildren(this.problems, found, problem);

        const said = decided(series.latest);

        setText(this.historyText, said);
        this.historyPlace.setAttribute('aria-label', said);
        this.history.draw(series.data);

        this.#updateCurve();

        this.slicesPanel.hidden = zone.expire === null || zone.filter === null;
        this.slices.update(zone, now);
        setText(this.slicesText, zone.expire === null ? '' : life(zone, now));

        setChildren(this.facts, tables(zone, now), table);
    }

    // Asks for the curve only if the filter has changed.

    async #updateCurve() {
        const { zone } = this;
        const of = `${zone.generation}/${zone.image?.build_id}/`
                   + `${zone.filter?.max_items}/`
                   + (zone.filter?.estimated_items > zone.filter?.max_items
                        ? Math.round(Math.log(zone.filter.estimated_items) * 20)
                        : '');

        if (of !== this.ratesOf) {
            this.ratesOf = of;
            this.rates = null;

            try {
                const { answer } = await get(`${zonePath(this.name)}/rates`);

                this.rates = answer.rates;

            } catch {
                this.ratesOf = '';    // request it again after the next poll
            }
        }

        this.#drawCurve();
    }

    #drawCurve() {
        const { image, filter, feedback } = this.zone;

        if (image === null || this.rates === null || this.rates.length === 0) {
            this.curvePlace.hidden = true;
            setText(this.curveText, image === null ? 'Nothing is loaded.' : '');
            return;
        }

        this.curvePlace.hidden = false;

        const least = this.#limits().range[0];
        const now = filter.estimated_items;
        const rows = this.rates.map(([n, p]) => [n, p, null, null]);

        rows.push([now, filter.estimated_fpr, filter.estimated_fpr,
                   feedback.measured_fpr]);
        rows.sort((a, b) => a[0] - b[0]);

        const shown = (p) => p === null || p < least ? null : p;

        this.curve.draw([
            rows.map(([n]) => n),
            rows.map(([, p]) => shown(p)),
            rows.map(() => filter.promised_fpr),
            rows.map(([, , p]) => shown(p)),
            rows.map(([, , , p]) => shown(p)),
        ], rows.findIndex(([, , p]) => p !== null));

        const said = `With about ${number(now)} keys, the estimated `
            + `false-positive rate is ${rate(filter.estimated_fpr)}; the `
            + `target is ${rate(filter.promised_fpr)} with `
            + `${number(filter.max_items)} keys.`
            + (feedback.measured_fpr === null ? ''
                : ` Measured: ${measured(this.zone)}.`);

        setText(this.curveText, said);
        this.curvePlace.setAttribute('aria-label', said);
    }

    // Returns the range of the axis, from a thousandth of the target to the
    // greatest rate, and the capacity.

    #limits() {
        const { filter, feedback } = this.zone;
        const target = filter.promised_fpr;
        const top = Math.max(target, filter.estimated_fpr,
                             feedback.measured_fpr ?? 0,
                             ...(this.rates ?? []).map(([, p]) => p));

        return { range: [target / 1000, Math.min(1, 2 * top)],
                 capacity: filter.max_items };
    }
}


const panel = (id, title, ...content) =>
    h('section', { class: 'panel', 'aria-labelledby': id },
      h('h3', { id }, title), content);


function decided(latest) {
    if (latest === null) {
        return 'Decisions are counted between two updates: wait a moment.';
    }

    return `${perSecond(latest.checks)} checked: `
           + decisions.map(({ name, label }) =>
               `${perSecond(latest[name])} ${label}`).join(', ') + '.';
}


function tables(zone, now) {
    const { image, filter, memory, journal, load, helper } = zone;
    const list = [];

    list.push(['Image', image === null ? [['State', 'nothing is loaded']] : [
        ['Source', source(zone)],
        ['Fresh', freshness(image, now)],
        ['Keys as of', moment(image.as_of)],
        ['Built', moment(image.created)],
        ['Build id', image.build_id],
        ['Layout', image.lines > 0
            ? `${image.layout}, ${image.lines} line${image.lines > 1 ? 's' : ''}`
            : image.layout],
        ['Hash', image.hash],
        ['Key form', image.form],
        [image.layout === 'fuse' ? 'Slots per key' : 'Bits per key',
         number(image.k)],
        ['Capacity', number(image.capacity)],
        ['Keys built in', `${image.items_estimated ? 'about ' : ''}`
                          + number(image.items)],
        ['Exceptions', image.excepted === 0 ? 'none'
            : `${number(image.excepted)}, chosen by the builder`],
    ]]);

    list.push(['Filter', [
        ['Generation', number(zone.generation)],
        ...(filter === null ? [] : [
            ['Bits', number(filter.parts.reduce(
                (sum, part) => sum + part.bits, 0))],
            ...(filter.fill_ratio === null ? [] : [
                ['Bits set', `${number(filter.bits_set)}, `
                             + rate(filter.fill_ratio)],
            ]),
            ['Keys', `about ${number(filter.estimated_items)}`],
            ['False positives', `${rate(filter.estimated_fpr)} estimated`],
            ['Measured', measuredBoth(zone)],
            ['Target', `${rate(filter.promised_fpr)} with `
                       + `${number(filter.max_items)} keys`],
            ['Layers', number(filter.layers)],
        ]),
        ['Removed and excepted keys', `${number(zone.removals.count)} of at `
                                     + `most ${number(zone.removals.limit)}`],
        ['Excepted keys', `${number(zone.removals.excepted)} of at most `
                         + number(zone.removals.excepted_limit)],
        ['Last load', lastLoad(load, now)],
        ['Helper’s last sign of life', moment(helper.heartbeat)],
    ]]);

    if (zone.expire !== null) {
        list.push(['Keys expire', sliceRows(zone)]);
    }

    if (zone.source) {
        const { source } = zone;

        list.push(['Source', [
            ['Name', source.name],
            ['Position', source.position],
            ['State', source.state],
            ['Last sign of life', source.lag_ms === null
                ? 'none' : `${duration(source.lag_ms)} ago`],
            ['Lag allowed', source.max_lag_ms === null
                ? 'any' : duration(source.max_lag_ms)],
        ]]);
    }

    if (filter?.layers > 0) {
        list.push(['Parts', filter.parts.map((part, i) => [
            i === 0 ? 'Base' : `Layer ${i}`,
            `about ${number(part.estimated_items)} of `
            + `${number(part.capacity)} keys, ${bytes(part.bits / 8)}`
            + bitsSet(part),
        ])]);
    }

    list.push(['Memory and journal', [
        ...rows(memory, bytes),
        ['Journal', journal.enabled ? bytes(journal.bytes) : 'none'],
        ...(journal.enabled ? [
            ['Not on disk yet', bytes(journal.unsynced_bytes)],
            ['Replayed by the next start', bytes(journal.replay_bytes)],
            ['Workers that keep keys', number(journal.owing_workers)],
            ['Lost keys', number(journal.lost_keys)],
        ] : []),
    ]]);

    list.push(['Counters', rows(zone.counters, number)]);
    list.push(['Feedback', rows(zone.feedback, number)]);
    list.push(['Audit', rows(zone.audit, number)]);

    return list;
}


// Returns the measured rate, and what it would be without excepted keys.

function measuredBoth(zone) {
    const { feedback } = zone;

    return feedback.excepted_rejected === 0 ? measured(zone)
        : `${rate(feedback.measured_fpr)} now, `
          + `${rate(feedback.measured_fpr_without_excepted)} without excepted `
          + 'keys';
}


// Lists all members of an object by their names, so that a new member needs no
// change here.  `shown` formats all numbers except rates.

function rows(object, shown) {
    return Object.entries(object).map(([name, value]) => [
        (name[0].toUpperCase() + name.slice(1)).replaceAll('_', ' ')
            .replace(/ bytes$/, '').replace(/ fpr\b/, ' rate'),
        value === null ? 'none'
            : typeof value === 'object' ? rows(value, shown)
                .map((row) => row.join(': ')).join(', ')
            : typeof value !== 'number' ? String(value)
            : /_fpr(_|$)/.test(name) ? rate(value) : shown(value),
    ]);
}


const table = ([title, rows]) =>
    h('div', {},
      h('h4', {}, title),
      h('dl', { class: 'facts' }, rows.map(([name, value]) =>
          h('div', {}, h('dt', {}, name), h('dd', {}, value)))));
