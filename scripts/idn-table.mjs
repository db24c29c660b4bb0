// SPDX-License-Identifier: BSD-2-Clause

// idn-table.mjs
//
// Prints src/core/bloom_idn_table.c: how UTS #46 of today's Unicode differs
// from that of Unicode 12.1, so that every libidn2 since does what browsers do.
// The packages "tr46" and "tr46-oldest" of dashboard/package.json have both
// mappings.  Node's own Unicode has the pairs of characters that compose.

import { createRequire } from 'node:module';

const require = createRequire(new URL('../dashboard/', import.meta.url));

// The older version has numbers for two more statuses, of characters that only
// UseSTD3ASCIIRules refuses: they are valid or mapped for browsers.

const { STATUS_MAPPING: is } = require('tr46-oldest/lib/statusMapping.js');

function mapping(name) {
    const of = [];

    for (const [range, status, to] of require(name
                                              + '/lib/mappingTable.json'))
    {
        const [first, last] = [range].flat();

        for (let c = first; c <= (last ?? first); c++) {
            of[c] = { status, to: [...to ?? ''].map((s) => s.codePointAt(0)) };
        }
    }

    return of;
}

const now = mapping('tr46');
const oldest = mapping('tr46-oldest');
const hex = (c) => `0x${c.toString(16)}`;


// Browsers refuse a host with one of these.  They refuse "<" and ">", too, but
// not with a stroke behind it, with which it composes.

const isForbidden = (c) => /[\0-\x20\x7f#%/:?@[\\\]^|]/
    .test(String.fromCodePoint(c));


// ---- ranges ----

const ranges = [];

function put(c, to, then) {
    const range = ranges.at(-1);

    if (range?.last === c - 1 && then === 0 && range.then === 0
        && to === (range.to === 0 ? 0 : range.to + c - range.first))
    {
        range.last = c;
        return;
    }

    ranges.push({ first: c, last: c, to, then });
}

for (let c = 0x80; c <= 0x10ffff; c++) {
    const { status, to } = now[c];

    if (status === is.ignored) {
        put(c, 0, 0);

    } else if (to.some(isForbidden)) {
        put(c, to.find(isForbidden), 0);

    } else if (status === is.valid && oldest[c].status === is.disallowed) {
        put(c, c, 0);

    } else if (status === is.mapped && String(oldest[c].to) !== String(to)) {
        if (to.length > 2) {
            throw new Error(`U+${c.toString(16)} becomes more than two `
                            + 'characters, for which a range has no room');
        }

        put(c, to[0], to[1] ?? 0);

    } else if (status === is.valid && oldest[c].to.length !== 0) {
        throw new Error(`U+${c.toString(16)} was changed by older versions`);
    }
}


// ---- compositions of two characters, one of which is new ----

const pairs = [];

for (let c = 0x80; c <= 0x10ffff; c++) {
    const text = now[c].status === is.valid ? String.fromCodePoint(c) : '';
    const parts = [...text.normalize('NFD')];

    if (parts.length > 1 && text.normalize('NFC') === text
        && oldest[c].status === is.disallowed)
    {
        const behind = parts.pop();

        pairs.push([parts.join('').normalize('NFC'), behind, text]
                   .map((s) => s.codePointAt(0)));
    }
}


// ---- output ----

// Returns lines of at most 80 columns with as many items as fit.

function lines(items) {
    const all = [''];

    for (const item of items) {
        if (all.at(-1).length + item.length + 5 > 80) {
            all.push('');
        }

        all.push(all.pop() + ' ' + item + ',');
    }

    return all.map((line) => '   ' + line).join('\n');
}

const [version, oldestVersion] = ['tr46', 'tr46-oldest']
    .map((name) => require(name + '/package.json').unicodeVersion);

process.stdout.write(`/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tables say how UTS #46 differs between two versions of Unicode,
 * ${version} and ${oldestVersion}.  scripts/idn-table.mjs prints this file; do not
 * edit it.
 */

#include "bloom_idn_table.h"


const bloom_idn_range_t  bloom_idn_range[] = {
${lines(ranges.map(({ first, last, to, then }) =>
    `{ ${[first, last, to, then].map(hex).join(', ')} }`))}
};

const unsigned  bloom_idn_ranges = sizeof(bloom_idn_range)
                                   / sizeof(bloom_idn_range[0]);


const bloom_idn_pair_t  bloom_idn_pair[] = {
${lines(pairs.map((pair) => `{ ${pair.map(hex).join(', ')} }`))}
};

const unsigned  bloom_idn_pairs = sizeof(bloom_idn_pair)
                                  / sizeof(bloom_idn_pair[0]);
`);
