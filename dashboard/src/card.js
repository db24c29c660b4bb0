// SPDX-License-Identifier: BSD-2-Clause

// Shows a zone's card: what one should see at a glance.

import { h, setAttribute, setChildren, setText } from './dom.js';
import { ago, bitsSet, bytes, duration, perSecond, plural, rate, short }
    from './format.js';
import { gauge } from './gauge.js';
import { overFull, worst } from './health.js';
import { sparkline } from './charts.js';
import { life, slices } from './slices.js';


export class Card {
    constructor(name) {
        this.link = h('a', { href: `#zone=${encodeURIComponent(name)}` }, name);
        this.state = h('span', { class: 'state' });
        this.file = h('p', { class: 'file' });
        this.problems = h('ul', { class: 'problems' });
        this.gauge = gauge();
        this.slices = slices(false);
        this.life = h('p', { class: 'life', hidden: true });
        this.keys = h('span');
        this.spark = h('div', { class: 'spark', 'aria-hidden': 'true' });
        this.chart = sparkline(this.spark);

        this.facts = Object.fromEntries(
            ['decisions', 'estimated', 'target', 'measured', 'image',
             'generation', 'load', 'memory']
                .map((name) => [name, h('dd')]));

        this.node = h('li', {},
            h('article', { class: 'card' },
                h('div', { class: 'head' }, h('h3', {}, this.link), this.state),
                this.file,
                this.problems,
                h('div', { class: 'fill' }, this.keys, this.gauge.node,
                  this.life, this.slices.node),
                h('dl', {}, Object.entries(this.facts).map(([name, dd]) =>
                    h('div', {}, h('dt', {}, labels[name]), dd))),
                this.spark));
    }

    update(zone, found, series, now) {
        const { image, filter, memory, load } = zone;
        const level = worst(found);
        const state = level === 'good' || zone.state !== 'serving'
            ? zone.state.replace('_', ' ') : 'serving, needs attention';

        setText(this.state, state);
        setAttribute(this.state, 'class', `state ${level}`);
        setAttribute(this.node.firstChild, 'class', `card ${level}`);
        setText(this.file, zone.label === null
            ? source(zone) : `${zone.label}: ${source(zone)}`);
        setChildren(this.problems, found, problem);

        setText(this.keys, filter === null ? 'no filter'
            : `${short(filter.estimated_items)} of ${short(filter.max_items)} `
              + `keys${bitsSet(filter)}`
              + (filter.layers > 0
                    ? `, ${plural(filter.layers, 'layer')}` : ''));
        this.life.hidden = zone.expire === null;
        setText(this.life, zone.expire === null ? '' : life(zone, now));
        this.slices.update(zone, now);
        this.gauge.update(filter?.estimated_items ?? 0, filter?.max_items ?? 0,
                          overFull(zone));

        const facts = this.facts;

        setText(facts.decisions, series.latest === null ? '–'
            : `${perSecond(series.latest.checks)}, `
              + (series.latest.unknown > 0
                    ? `${perSecond(series.latest.unknown)} unknown`
                    : `${perSecond(series.latest.absent)} absent`));
        setText(facts.estimated, filter === null ? '–'
            : rate(filter.estimated_fpr));
        setText(facts.target, filter === null ? '–'
            : rate(filter.promised_fpr));
        setText(facts.measured, measured(zone));
        setText(facts.image, freshness(image, now));
        setText(facts.generation, String(zone.generation));
        setText(facts.load, lastLoad(load, now));
        setText(facts.memory, `${bytes(memory.filter_bytes)} of `
                              + bytes(memory.zone_bytes));

        this.chart.draw(series.data);
    }

    select(selected) {
        if (selected) {
            this.link.setAttribute('aria-current', 'true');

        } else {
            this.link.removeAttribute('aria-current');
        }
    }
}


const labels = {
    decisions: 'Decisions',
    estimated: 'False positives',
    target: 'Target',
    measured: 'Measured',
    image: 'Image',
    generation: 'Generation',
    load: 'Last load',
    memory: 'Memory',
};


export const problem = ({ level, text }) =>
    h('li', { class: `problem ${level}` }, text);


export function source(zone) {
    return zone.image?.uploaded ? 'an uploaded image'
         : zone.file ?? 'starts empty';
}


export function measured({ feedback }) {
    const { measured_fpr: p, false_positives: n, absent } = feedback;

    return p === null ? 'not measured'
         : n === 0 ? `none of ${short(absent)}`
         : `${rate(p)}, ${plural(n, 'case')}`;
}


export function freshness(image, now) {
    if (image === null) {
        return 'none';
    }

    if (image.as_of !== null) {
        return `keys as of ${ago(image.as_of, now)}`;
    }

    return image.created === null ? 'age not known'
                                  : `built ${ago(image.created, now)}`;
}


export function lastLoad(load, now) {
    if (load.in_progress) {
        return 'in progress';
    }

    if (load.result === null) {
        return 'at start';
    }

    return `${load.result.replace('_', ' ')}, ${ago(load.started_at, now)}, `
           + `took ${duration(load.duration_ms)}`;
}
