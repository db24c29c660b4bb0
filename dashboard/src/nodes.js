// SPDX-License-Identifier: BSD-2-Clause

// Shows the zones of several nodes side by side, and in what they disagree.
//
// The page may ask only its own server, so a node is a path there, behind which
// nginx passes requests on to the endpoint of another machine.

import { get } from './api.js';
import { compare } from './compare.js';
import { h, setChildren, setText } from './dom.js';
import { duration, plural, rate, short } from './format.js';

const HERE = 'this endpoint';


export class Nodes {
    constructor(changed) {
        this.changed = changed;       // called with the paths after a change
        this.paths = [];
        this.rows = null;             // of the last comparison

        this.input = h('input', { id: 'nodes-paths', autocomplete: 'off',
                                  autocapitalize: 'off', spellcheck: 'false',
                                  'aria-describedby': 'nodes-hint' });
        this.said = h('p', { class: 'answer', role: 'status' });
        this.findings = h('ul', { class: 'problems' });
        this.body = h('tbody');
        this.table = h('div', { class: 'wide', tabindex: '0', role: 'region',
                                'aria-label': 'Zones of all nodes' },
            h('table', {},
                h('thead', {}, h('tr', {}, columns.map(({ title }) =>
                    h('th', { scope: 'col' }, title)))),
                this.body));

        this.nodes = [
            h('h2', { id: 'nodes-title' }, 'Nodes'),
            h('form', { class: 'row', onsubmit: (event) => this.#ask(event) },
                h('label', { for: 'nodes-paths' }, 'Paths'),
                this.input,
                h('button', { type: 'submit' }, 'Compare')),
            h('p', { class: 'hint', id: 'nodes-hint' },
              'Paths on this server that lead to the endpoints of other nodes, '
              + 'such as /node2/bloom/ /node3/bloom/. Their zones are compared '
              + 'with those of this endpoint.'),
            this.said,
            this.findings,
            this.table,
        ];

        this.#clear();
    }

    // Takes paths that are separated by spaces or commas.

    set(text) {
        const paths = text.split(/[\s,]+/).filter((path) => path !== '');
        const wrong = paths.find((path) => !isPath(path));

        this.input.value = paths.join(' ');
        this.#clear();

        if (wrong !== undefined) {
            this.paths = [];
            setText(this.said, `“${wrong}” is not a path on this server: a path `
                               + 'begins with one slash.');
            return;
        }

        this.paths = [...new Set(paths.map((path) =>
            path.replace(/\/*$/, '/')))];
    }

    // Compares `here`, the state of this endpoint, with the other nodes.

    async update(here) {
        const { paths } = this;

        if (paths.length === 0) {
            return;
        }

        const others = await Promise.all(paths.map(ask));

        if (paths !== this.paths) {
            return;
        }

        const { rows, findings } = compare(
            [{ node: HERE, zones: here.zones, now: here.now }, ...others],
            this.rows);

        this.rows = rows;
        this.table.hidden = false;
        setText(this.said, findings.length === 0
            ? `${plural(paths.length + 1, 'node')} answer, and nothing differs.`
            : `${plural(findings.length, 'finding')}:`);
        setChildren(this.findings, findings, ({ level, text }) =>
            h('li', { class: `problem ${level}` }, text));
        setChildren(this.body, rows.map(shown), (cells) =>
            h('tr', {}, cells.map(cell)));
    }

    #ask(event) {
        event.preventDefault();
        this.set(this.input.value);
        this.changed(this.paths);
    }

    #clear() {
        this.rows = null;
        this.table.hidden = true;
        setText(this.said, '');
        setChildren(this.findings, [], () => undefined);
        setChildren(this.body, [], () => undefined);
    }
}


// Says whether a text is a path on this server, and no address of another one.

export function isPath(text) {
    try {
        return text.startsWith('/')
               && new URL(text, location.origin).origin === location.origin
               && !/[?#\\]/.test(text);

    } catch {
        return false;
    }
}


async function ask(path) {
    try {
        const { answer, now } = await get('zones', path);

        if (!Array.isArray(answer.zones)) {
            return { node: path, failure: 'the answer is not that of an '
                                          + 'endpoint' };
        }

        return { node: path, zones: answer.zones, now };

    } catch (failure) {
        return { node: path, failure: failure.message };
    }
}


// The columns; `mark` is what the comparison calls a value.

const columns = [
    { title: 'Zone', value: ({ zone }) => zone },
    { title: 'Node', value: ({ node }) => node },
    { title: 'State', mark: 'state',
      value: ({ told }) => told.state.replace('_', ' ') },
    { title: 'Generation', value: ({ told }) => short(told.generation) },
    { title: 'Image', mark: 'image',
      value: ({ told }) => told.image?.build_id.slice(0, 8) ?? 'none' },
    { title: 'Keys', mark: 'filter',
      value: ({ told }) => told.filter === null ? '–'
          : short(told.filter.estimated_items) },
    { title: 'Fill',
      value: ({ told }) => (told.filter?.fill_ratio ?? null) === null ? '–'
          : rate(told.filter.fill_ratio) },
    { title: 'Bits set', mark: 'bits',
      value: ({ told }) => told.filter === null ? '–'
          : String(told.filter.bits_set) },
    { title: 'Removed', mark: 'removed',
      value: ({ told }) => String(told.removals.count) },
    { title: 'Journal', mark: 'journal',
      value: ({ told }) => !told.journal.enabled ? 'off'
          : told.journal.error === null ? 'on' : 'fails' },
    { title: 'Source', mark: 'source',
      value: ({ told: { source } }) => source === null ? '–'
          : `${source.name} ${source.position}` },
    { title: 'Lag', value: ({ told: { source } }) =>
          source === null ? '–'
          : source.lag_ms === null ? 'no sign' : duration(source.lag_ms) },
    { title: 'Digest', mark: 'source',
      value: ({ told: { source } }) => source?.digest ?? '–' },
];


const shown = (row) => columns.map(({ value, mark }) =>
    ({ text: value(row), marked: mark !== undefined && row.marks.has(mark) }));

// A star says what colour says, too.

const cell = ({ text, marked }) =>
    h('td', marked ? { class: 'marked' } : {}, marked ? `${text} *` : text);
