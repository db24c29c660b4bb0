// SPDX-License-Identifier: BSD-2-Clause

// Draws a gauge of the number of keys, with a mark at the capacity.

import { h, setAttribute } from './dom.js';
import { number } from './format.js';

const SCALE = 1.25;                   // length of the bar, in capacities


export function gauge() {
    const bar = h('span', { class: 'bar' });
    const node = h('div', { class: 'gauge', role: 'meter',
                            'aria-label': 'keys and capacity',
                            'aria-valuemin': '0' },
                   bar, h('span', { class: 'mark' }));

    return {
        node,

        update(items, capacity, full) {
            const share = capacity > 0 ? items / capacity : 0;

            bar.style.width = `${100 * Math.min(share / SCALE, 1)}%`;
            node.classList.toggle('full', full);

            setAttribute(node, 'aria-valuemax', String(capacity));
            setAttribute(node, 'aria-valuenow',
                         String(Math.min(items, capacity)));
            setAttribute(node, 'aria-valuetext',
                         `${number(items)} of ${number(capacity)} keys`);
        },
    };
}
