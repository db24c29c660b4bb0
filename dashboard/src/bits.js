// SPDX-License-Identifier: BSD-2-Clause

// Draws the bits of a key.  In a blocked filter they are in lines of 512 bits,
// and each line is drawn bit by bit.  Any other filter is drawn as a whole, in
// cells that stand for many bits each.

import { h, svg } from './dom.js';
import { number, plural } from './format.js';

const LINE = 512;
const COLUMNS = 32;
const CELL = 10;


export function bitGrids(part, bits, set) {
    const all = bits.map((bit, i) => ({ bit, set: set[i] }));

    if (part.lines > 0) {
        return [...byLine(all)].map(([line, some]) =>
            grid(`Line ${number(line)} of ${number(part.bits / LINE)}`, LINE,
                 some.map((one) => ({ ...one, cell: one.bit % LINE }))));
    }

    const cells = Math.min(LINE, part.bits);

    return [
        grid(`All ${number(part.bits)} bits`, cells, all.map((one) => ({
            ...one, cell: Math.floor(one.bit / part.bits * cells),
        }))),
    ];
}


function byLine(bits) {
    const lines = new Map();

    for (const one of bits) {
        const line = Math.floor(one.bit / LINE);

        lines.set(line, [...lines.get(line) ?? [], one]);
    }

    return lines;
}


function grid(title, cells, marks) {
    const rows = Math.ceil(cells / COLUMNS);
    const width = COLUMNS * CELL + 1;
    const height = rows * CELL + 1;
    const lit = marks.filter(({ set }) => set).length;
    let path = '';

    for (let x = 0; x <= COLUMNS; x++) {
        path += `M${x * CELL + .5} 0V${height}`;
    }

    for (let y = 0; y <= rows; y++) {
        path += `M0 ${y * CELL + .5}H${width}`;
    }

    return h('figure', {},
        svg('svg', { class: 'bits', viewBox: `0 0 ${width} ${height}`,
                     role: 'img',
                     'aria-label': `${title}: ${plural(marks.length, 'bit')} `
                                   + `of the key, ${lit} set` },
            svg('path', { d: path }),
            marks.map(({ bit, set, cell }) =>
                svg('rect', {
                    class: set ? 'set' : 'clear',
                    x: cell % COLUMNS * CELL + 1.5,
                    y: Math.floor(cell / COLUMNS) * CELL + 1.5,
                    width: CELL - 2,
                    height: CELL - 2,
                }, svg('title', {},
                       `bit ${number(bit)}: ${set ? 'set' : 'not set'}`)))),
        h('figcaption', {},
          `${title}: ${lit} of ${plural(marks.length, 'bit')} set`));
}
