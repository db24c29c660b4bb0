// SPDX-License-Identifier: BSD-2-Clause

// Formats numbers, sizes, rates and times for people.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const number = (n) => whole.format(n);


export function short(n) {
    for (const [limit, unit] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'],
                                 [1e4, 'k']]) {
        if (n >= limit) {
            return digits(n / (unit === 'k' ? 1e3 : limit)) + ' ' + unit;
        }
    }

    return number(n);
}


// Labels of an axis, all in the unit of the greatest number

export function numberTicks(values) {
    const greatest = Math.max(...values);
    const [size, unit] = [[1e12, ' T'], [1e9, ' G'], [1e6, ' M'], [1e4, ' k']]
        .find(([limit]) => greatest >= limit) ?? [1, ''];
    const divisor = unit === ' k' ? 1e3 : size;

    return values.map((n) => n === 0 ? '0' : digits(n / divisor) + unit);
}


export function bytes(n) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;

    while (n >= 1024 && unit < units.length - 1) {
        n /= 1024;
        unit++;
    }

    return (unit === 0 ? number(n) : digits(n)) + ' ' + units[unit];
}


// Rounds to three significant digits.

export function digits(n) {
    return Number(n.toPrecision(3)).toLocaleString('en',
        { maximumSignificantDigits: 3 });
}


// Says how many bits of a filter or a part are set.  A fuse base does not fill.

export const bitsSet = ({ fill_ratio: fill }) =>
    fill === null ? '' : `, ${rate(fill)} of the bits`;


// Formats a share in percent, or as "1 in N" if it is below 0.001 %.

export function rate(p) {
    if (p === 0) {
        return '0 %';
    }

    return p < 1e-5 ? `1 in ${short(1 / p)}` : `${digits(100 * p)} %`;
}


// Formats the labels of an axis of rates, all in percent or all as "1 in N". A
// null has no label.

export function rateTicks(values) {
    const small = values.some((p) => p !== null && p > 0 && p < 1e-5);

    return values.map((p) => p === null ? ''
        : small ? `1 in ${short(1 / p)}` : `${digits(100 * p)} %`);
}


// Formats a number that may be a fraction.

export const few = (n) => n < 100 && n > 0 ? digits(n) : short(n);

export const perSecond = (n) => few(n) + '/s';


export function duration(ms) {
    const s = ms / 1000;

    if (s < 1) {
        return `${Math.round(ms)} ms`;
    }

    for (const [unit, size] of [['d', 86400], ['h', 3600], ['min', 60]]) {
        if (s >= 2 * size) {
            return `${Math.floor(s / size)} ${unit}`;
        }
    }

    return `${Math.floor(s)} s`;
}


// Formats how long ago a time is, by the server's clock.

export function ago(text, now) {
    const ms = now - Date.parse(text);

    if (ms < -1000) {
        return `in ${duration(-ms)}`;
    }

    return ms < 1000 ? 'now' : `${duration(ms)} ago`;
}


export function clock(ms) {
    return new Date(ms).toLocaleTimeString('en-GB');
}


export function moment(text) {
    return text === null ? 'none'
                         : text.replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC');
}


// Shows the characters that a browser obeys instead of showing them: controls,
// and what changes the direction of text.

export function visible(text) {
    return text.replace(hidden, (c) =>
        `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const hidden = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;


export function plural(n, one, many = one + 's') {
    return `${number(n)} ${n === 1 ? one : many}`;
}
