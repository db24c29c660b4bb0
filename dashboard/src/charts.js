// SPDX-License-Identifier: BSD-2-Clause

// Draws the charts: decisions per second, and false-positive rates by number of
// keys.  The code that uses a chart also describes it in words.

import uPlot from 'uplot';

import { numberTicks, perSecond, rate, rateTicks, short } from './format.js';
import { decisions } from './series.js';

const dashes = { rejected: [6, 4], routed: [2, 3] };

const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`)
        .trim();


// A chart as wide as `place`, in the current colour scheme.  `make` returns its
// options.  `draw` takes the data, and the index of the values that the legend
// shows while the pointer is not over the chart.

class Chart {
    #place;
    #make;
    #data = null;
    #shown = null;
    #plot = null;
    #height;

    constructor(place, height, make) {
        this.#place = place;
        this.#height = height;
        this.#make = make;

        new ResizeObserver(() => this.#resize()).observe(place);

        matchMedia('(prefers-color-scheme: dark)')
            .addEventListener('change', () => this.#remake());
    }

    draw(data, shown = data[0].length - 1) {
        this.#data = data;
        this.#shown = shown;

        if (this.#plot === null) {
            this.#remake();

        } else {
            this.#plot.setData(data);
            this.#legend();
        }
    }

    // Fills in the legend.  uPlot empties it when the pointer leaves the chart,
    // and when the chart is new or has another size.

    #legend() {
        if (this.#plot?.legend.show && this.#plot.cursor.idx == null) {
            this.#plot.setLegend({ idx: this.#shown });
        }
    }

    #remake() {
        this.#plot?.destroy();
        this.#plot = null;

        const width = this.#place.clientWidth;

        if (width > 0 && this.#data !== null) {
            const options = this.#make();

            this.#plot = new uPlot({
                width,
                height: this.#height,
                ...options,
                hooks: { ...options.hooks, setCursor: [() => this.#legend()] },
            }, this.#data, this.#place);

            this.#legend();
        }
    }

    #resize() {
        if (this.#plot === null) {
            this.#remake();

        } else if (this.#place.clientWidth > 0
                   && this.#place.clientWidth !== this.#plot.width)
        {
            this.#plot.setSize({ width: this.#place.clientWidth,
                                 height: this.#height });
        }
    }
}


const axis = (more) => ({
    stroke: colour('muted'),
    grid: { stroke: colour('grid'), width: 1 },
    ticks: { stroke: colour('grid'), width: 1, size: 4 },
    font: '12px system-ui, sans-serif',
    ...more,
});

const legend = () => ({
    markers: { width: 3, stroke: (chart, i) => chart.series[i].stroke(chart, i)
                                               ?? chart.series[i].marker },
});

const fromZero = (chart, min, max) => [0, Math.max(max ?? 0, 1) * 1.1];


export function sparkline(place) {
    return new Chart(place, 48, () => ({
        legend: { show: false },
        cursor: { show: false },
        axes: [{ show: false }, { show: false }],
        padding: [4, 0, 2, 0],
        scales: { y: { range: fromZero } },
        series: [{}, ...decisions.map(({ name }) => ({
            stroke: colour(name),
            dash: dashes[name],
            width: 1.5,
            points: { show: false },
        }))],
    }));
}


export function history(place) {
    return new Chart(place, 240, () => ({
        cursor: { y: false, drag: { x: false, y: false } },
        legend: legend(),
        axes: [
            axis({ values: (chart, times) => times.map((s) =>
                new Date(1000 * s).toLocaleTimeString('en-GB')), space: 80 }),
            axis({ values: (chart, ticks) => numberTicks(ticks), size: 56 }),
        ],
        scales: { y: { range: fromZero } },
        series: [
            { label: 'time', value: (chart, s) => s === null ? '–'
                : new Date(1000 * s).toLocaleTimeString('en-GB') },
            ...decisions.map(({ name, label }) => ({
                label,
                stroke: colour(name),
                dash: dashes[name],
                width: 2,
                points: { show: false },
                value: (chart, n) => n === null ? '–' : perSecond(n),
            })),
        ],
    }));
}


// The data are: numbers of keys, the curve, the target, the current point, the
// measured point.  `limits` returns the range of the axis and the capacity.

export function curve(place, limits) {
    return new Chart(place, 240, () => ({
        cursor: { y: false, drag: { x: false, y: false } },
        legend: legend(),
        axes: [
            axis({ scale: 'x', values: (chart, ticks) => numberTicks(ticks),
                   space: 70 }),
            axis({ values: (chart, ticks) => rateTicks(ticks), size: 76 }),
        ],
        scales: {
            x: { time: false },
            y: { distr: 3, range: () => limits().range },
        },
        hooks: { draw: [(chart) => drawCapacity(chart, limits().capacity)] },
        series: [
            { label: 'keys', value: (chart, n) => n === null ? '–' : short(n) },
            line('estimated', 'absent', { spanGaps: true }),
            line('target', 'good', { dash: [6, 4], spanGaps: true }),
            point('now', 'accent'),
            point('measured', 'rejected'),
        ],
    }));
}


const shown = (chart, p) => p === null || p === undefined ? '–' : rate(p);

const line = (label, name, more) => ({
    label,
    stroke: colour(name),
    width: 2,
    points: { show: false },
    value: shown,
    ...more,
});

const point = (label, name) => ({
    label,
    stroke: colour(name),
    width: 0,
    paths: () => null,
    points: { show: true, size: 12, fill: colour(name), stroke: colour('card') },
    value: shown,
});


function drawCapacity({ ctx, bbox, valToPos }, capacity) {
    const x = valToPos(capacity, 'x', true);

    if (!(x >= bbox.left && x <= bbox.left + bbox.width)) {
        return;
    }

    ctx.save();
    ctx.strokeStyle = colour('muted');
    ctx.fillStyle = colour('muted');
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textAlign = 'right';
    ctx.fillText('capacity', x - 5 * devicePixelRatio,
                 bbox.top + bbox.height - 8 * devicePixelRatio);
    ctx.restore();
}
