// SPDX-License-Identifier: BSD-2-Clause

// Offers the actions that change a zone.  Each asks for confirmation.

import { post, zonePath } from './api.js';
import { byId, h, setText } from './dom.js';
import { duration, number, plural } from './format.js';


export class Actions {
    constructor(name, zone, changed) {
        this.name = name;
        this.zone = zone;
        this.changed = changed;       // called after a change

        this.keys = h('textarea', { id: 'keys', rows: '4', spellcheck: 'false',
                                    autocapitalize: 'off',
                                    'aria-describedby': 'keys-hint' });
        this.durable = h('input', { id: 'durable', type: 'checkbox' });
        this.result = h('p', { class: 'result', role: 'status' });
        this.buttons = [
            h('button', { type: 'button', onclick: () => this.#add() },
              'Add keys'),
            h('button', { type: 'button', onclick: () => this.#reload() },
              'Reload the file'),
            h('button', { type: 'button', onclick: () => this.#checkpoint() },
              'Save a checkpoint'),
            h('button', { type: 'button', onclick: () => this.#restore() },
              'Restore removed keys'),
            h('button', { type: 'button', onclick: () => this.#forget() },
              'Forget excepted keys'),
            h('button', { type: 'button', onclick: () => this.#clear() },
              'Clear'),
        ];

        this.node = h('section', { class: 'panel',
                                   'aria-labelledby': 'change-title' },
            h('h3', { id: 'change-title' }, 'Change'),
            h('label', { for: 'keys' }, 'Keys to add'),
            this.keys,
            h('p', { class: 'hint', id: 'keys-hint' },
              'One key per line.'),
            h('p', { class: 'check' }, this.durable,
              h('label', { for: 'durable' },
                'wait until the keys are on disk')),
            h('p', { class: 'buttons' }, this.buttons),
            this.result);
    }

    #add() {
        const keys = this.keys.value.split(/\r?\n/).filter((key) => key !== '');

        if (keys.length === 0) {
            this.#say('bad', 'There is no key to add. Enter one above.');
            this.keys.focus();
            return;
        }

        this.#do({
            title: `Add ${plural(keys.length, 'key')} to ${this.name}?`,
            text: this.zone().expire === null
                ? 'Added keys stay until you remove them, or load an image '
                  + 'without them that is complete as of more than an hour '
                  + 'later.'
                : 'Added keys stay until they expire, or you remove them. A key '
                  + 'that the zone has already lives longer.',
            yes: `Add ${plural(keys.length, 'key')}`,
            path: `keys${this.durable.checked ? '?durable=true' : ''}`,
            body: keys.join('\n') + '\n',
            failed: 'Not all keys were added',
            done: (answer) => {
                this.keys.value = '';
                return counts(answer);
            },
        });
    }

    #reload() {
        const { file } = this.zone();

        this.#do({
            title: `Reload the file of ${this.name}?`,
            text: file === null
                ? 'This zone starts empty: it has no file to load.'
                : `The helper process loads ${file}. Until it is done, the `
                  + 'current filter keeps serving. If an uploaded image '
                  + 'serves, the file replaces it.',
            yes: 'Load it',
            path: 'reload',
            failed: 'The file was not loaded',
            done: ({ generation, duration_ms }) =>
                `Generation ${number(generation)} serves. The load took `
                + `${duration(duration_ms)}.`,
        });
    }

    #checkpoint() {
        this.#do({
            title: `Save a checkpoint of ${this.name}?`,
            text: 'The helper process writes the filter into the state '
                  + 'directory, so that the next start has less to replay. '
                  + 'Nothing else changes.',
            yes: 'Save it',
            path: 'checkpoint',
            failed: 'The checkpoint was not saved',
            done: ({ generation, duration_ms }) =>
                `Generation ${number(generation)} is saved. The checkpoint `
                + `took ${duration(duration_ms)}.`,
        });
    }

    #restore() {
        this.#do({
            title: `Restore all removed keys of ${this.name}?`,
            text: 'The filter alone decides about these keys again: keys that '
                  + 'it has become present. Nothing else changes.',
            yes: 'Restore them',
            path: 'clear?only=removed',
            failed: 'The removed keys were not restored',
            done: () => 'No key is removed any more.',
        });
    }

    #forget() {
        this.#do({
            title: `Forget all excepted keys of ${this.name}?`,
            text: 'These keys are false positives that the backend did not '
                  + 'know. They become present again, so requests for them '
                  + 'reach the backend, until the zone excepts them again. '
                  + 'Nothing else changes.',
            yes: 'Forget them',
            path: 'clear?only=excepted',
            failed: 'The excepted keys were not forgotten',
            done: () => 'The excepted keys are forgotten.',
        });
    }

    #clear() {
        const { file } = this.zone();

        this.#do({
            title: `Clear ${this.name}?`,
            text: 'All keys that were added are lost, removed keys count '
                  + 'again, excepted keys are forgotten, and an uploaded image '
                  + 'is dropped. '
                  + (file === null ? 'The zone becomes empty.'
                                   : `Only the image in ${file} is left.`)
                  + ' This cannot be undone.',
            word: this.name,
            yes: 'Clear the zone',
            path: 'clear',
            failed: 'The zone was not cleared',
            done: ({ generation, duration_ms }) =>
                `Generation ${number(generation)} serves. The clear took `
                + `${duration(duration_ms)}.`,
        });
    }

    async #do({ title, text, word, yes, path, body, failed, done }) {
        this.#say('', '');

        if (!await confirmed(title, text, yes, word)) {
            this.#say('', 'Nothing was changed.');
            return;
        }

        this.#say('', 'In progress …');
        this.#enable(false);

        try {
            const { answer } = await post(`${zonePath(this.name)}/${path}`,
                                          body);

            this.#say('good', done(answer));

        } catch (failure) {
            const { answer } = failure;

            this.#say('bad', `${failed}: ${failure.message}. `
                + (answer?.received !== undefined ? counts(answer) : ''));
        }

        this.#enable(true);
        this.changed();
    }

    #say(level, text) {
        this.result.className = `result ${level}`;
        setText(this.result, text);
    }

    #enable(enabled) {
        for (const button of this.buttons) {
            button.disabled = !enabled;
        }
    }
}


function counts({ received, added, already_present: present, invalid,
                  first_invalid: first, durable })
{
    return `${plural(received, 'key')} received: ${number(added)} added, `
           + `${number(present)} already present`
           + (invalid > 0
                ? `, ${number(invalid)} left out as invalid in the zone’s key `
                  + `form (the first, number ${number(first.number)}, `
                  + `${first.reason})`
                : '')
           + (durable ? '; all are on disk.' : '.');
}


// Asks a question in a dialog, which keeps the focus until it is answered.  If
// `word` is given, the answer is yes only if that word is typed.

function confirmed(title, text, yes, word) {
    const dialog = byId('confirm');
    const typed = byId('confirm-word');

    byId('confirm-type').hidden = word === undefined;
    setText(byId('confirm-label'), `Type ${word} to confirm`);
    typed.value = '';
    typed.oninput = () => {
        byId('confirm-yes').disabled = word !== undefined
                                       && typed.value !== word;
    };
    typed.oninput();

    setText(byId('confirm-title'), title);
    setText(byId('confirm-text'), text);
    setText(byId('confirm-yes'), yes);

    byId('confirm-yes').onclick = () => dialog.close('yes');
    byId('confirm-no').onclick = () => dialog.close();

    dialog.returnValue = '';
    dialog.showModal();
    byId('confirm-no').focus();

    return new Promise((resolve) => {
        dialog.addEventListener('close',
            () => resolve(dialog.returnValue === 'yes'), { once: true });
    });
}
