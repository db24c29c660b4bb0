// SPDX-License-Identifier: BSD-2-Clause

// Offers to remove a key that a zone finds.  A button asks for confirmation in
// its own place, so that the answer above it stays in view.

import { remove, zonePath } from './api.js';
import { h } from './dom.js';
import { visible } from './format.js';


export class Remove {
    constructor(zone, key, done) {
        this.zone = zone;
        this.key = key;
        this.done = done;             // called with a text after a removal

        this.node = h('span', { class: 'remove' });
        this.button = h('button', {
            type: 'button',
            'aria-label': `Remove ${visible(key)} from zone ${zone}`,
            onclick: () => this.#confirm(),
        }, 'Remove');

        this.node.append(this.button);
    }

    #confirm() {
        const key = visible(this.key);
        const no = h('button', { type: 'button',
                                 onclick: () => this.#back() }, 'Cancel');
        const yes = h('button', { type: 'button', class: 'primary',
                                  onclick: () => this.#remove() },
                      'Remove it');

        const question = `No request finds ${key} in zone ${this.zone} any `
            + `more, in this nginx, from now on until ${key} is added again or `
            + 'a newer image has it.';

        this.node.replaceChildren(
            h('span', { role: 'group', 'aria-label': question },
              h('span', { class: 'question' }, question),
              h('span', { class: 'buttons' }, no, yes)));
        no.focus();
    }

    #back() {
        this.node.replaceChildren(this.button);
        this.button.focus();
    }

    async #remove() {
        for (const button of this.node.querySelectorAll('button')) {
            button.disabled = true;
        }

        const query = encodeURIComponent(this.key);

        try {
            const { answer } = await remove(
                `${zonePath(this.zone)}/keys?key=${query}&durable=true`);

            this.done(result(this.zone, visible(this.key), answer));

        } catch (failure) {
            this.node.replaceChildren(
                this.button,
                h('span', { class: 'problem bad', role: 'alert' },
                  `The key was not removed: ${failure.message}.`));
        }
    }
}


function result(zone, key, { still_present: still }) {
    return still.length === 0
        ? `${key} is absent in zone ${zone} now.`
        : `${key} is removed, but zone ${zone} still finds it by `
          + `${still.map(visible).join(', ')}.`;
}
