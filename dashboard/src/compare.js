// SPDX-License-Identifier: BSD-2-Clause

// Compares zones of the same name on several nodes.  `ngx-bloom status` compares
// the same values; docs/fleet.md describes which, and why.

import { problems } from './health.js';


// Compares what nodes have told: [{ node, zones, now, failure }].  `before` has
// the rows of the comparison before this one.  Returns { rows, findings }: a row
// is { zone, node, told, marks }, where `marks` names the columns that stand
// out.

export function compare(nodes, before) {
    const findings = [];
    const rows = [];

    for (const { node, zones, now, failure } of nodes) {
        if (failure !== undefined) {
            findings.push({ level: 'bad', text: `${node}: ${failure}.` });
            continue;
        }

        for (const told of zones) {
            const row = { zone: told.name, node, told, marks: new Set() };

            for (const { level, text } of problems(told, now)) {
                if (level === 'bad') {
                    row.marks.add('state');
                    findings.push({ level,
                        text: `Zone ${told.name} on ${node}: ${text}` });
                }
            }

            rows.push(row);
        }
    }

    rows.sort((a, b) => a.zone === b.zone ? 0 : a.zone < b.zone ? -1 : 1);

    const answering = nodes.filter(({ failure }) => failure === undefined);

    for (const zone of new Set(rows.map((row) => row.zone))) {
        const group = rows.filter((row) => row.zone === zone);
        const without = answering.filter(({ node }) =>
            !group.some((row) => row.node === node));

        if (without.length > 0) {
            findings.push({ level: 'bad', text: `Zone ${zone} does not exist on `
                + `${without.map(({ node }) => node).join(', ')}.` });
        }

        for (const trait of traits) {
            judge(trait, group, before, findings);
        }
    }

    return { rows, findings };
}


// A trait of a zone: its value as text, or null if it is not compared.  A moving
// one changes all the time, and nodes are not asked at the same instant: it is
// compared only if it has not changed since the last comparison.  `among` says
// which zones can be compared with each other.  The bits and the removed keys of
// a zone with a source depend on how the changes were batched: there the digest
// is compared instead.

const traits = [
    { column: 'image', what: 'the build id',
      advice: 'load the same image on all nodes',
      value: (zone) => startsEmpty(zone) ? null : zone.image?.build_id },
    { column: 'image', what: 'the number of keys in the image',
      advice: 'load the same image on all nodes',
      value: (zone) => startsEmpty(zone) ? null : zone.image?.items },
    { column: 'filter', what: 'the filter',
      advice: 'use the same image and the same configuration',
      value: ({ image, filter }) => image && filter
          ? `${image.form}, ${image.layout}, ${image.hash}, `
            + `${filter.parts[0].bits} bits`
          : null },
    { column: 'filter', what: 'the number of keys with room',
      advice: 'use the same image, and the same capacity= or max_keys=',
      value: ({ filter }) => filter?.max_items },
    { column: 'filter', what: 'how long keys live',
      advice: 'use the same expire=',
      value: ({ expire }) => expire === null
          ? 'for ever' : `${expire.seconds} seconds` },
    { column: 'removed', what: 'the room for removed keys',
      advice: 'use the same removals=',
      value: ({ removals }) => removals.limit },
    { column: 'journal', what: 'whether there is a journal',
      advice: 'use the same directives',
      value: ({ journal }) => journal.enabled ? 'on' : 'off' },
    { column: 'source', what: 'the source',
      advice: 'use the same source=',
      value: ({ source }) => source?.name ?? 'none' },
    { column: 'source', what: 'the digest of the changes', moving: true,
      advice: 'see whether their followers read the same stream, and load a '
              + 'newer image on all nodes',
      among: ({ source }) => `${source?.digest_since} ${source?.position}`,
      value: ({ source }) => source?.digest },
    { column: 'bits', what: 'the number of bits that are set', moving: true,
      advice: 'send all changes to all nodes, or load an image that has them',
      among: ({ image }) => image?.build_id,
      value: (zone) => startsEmpty(zone) || zone.source || zone.expire
                       || zone.filter?.layers > 0
          ? null : zone.filter?.bits_set },
    { column: 'removed', what: 'the number of removed keys', moving: true,
      advice: 'send all removals to all nodes, or load a newer image',
      among: ({ image }) => image?.build_id,
      value: ({ removals, source, expire }) =>
          source || expire || removals.excepted > 0 ? null : removals.count },
];

const startsEmpty = ({ file, image }) => file === null && !image?.uploaded;


function judge({ column, what, advice, moving, among, value }, group, before,
               findings)
{
    const kinds = new Map();

    for (const row of group) {
        const now = value(row.told) ?? null;
        const was = before?.find((old) =>
            old.zone === row.zone && old.node === row.node);

        if (now === null
            || (moving && (was === undefined || value(was.told) !== now)))
        {
            continue;
        }

        const kind = among?.(row.told) ?? '';

        kinds.set(kind, [...kinds.get(kind) ?? [], { row, now }]);
    }

    for (const told of kinds.values()) {
        const values = byValue(told);

        if (values.size < 2) {
            continue;
        }

        // If most nodes agree, only the others stand out.

        const most = [...values.values()].find((some) =>
            some.length > told.length / 2) ?? [];

        for (const { row } of told) {
            if (!most.some((one) => one.row === row)) {
                row.marks.add(column);
            }
        }

        findings.push({ level: 'bad', text: `Zone ${group[0].zone}: ${what} `
            + `differs: ${[...values].map(([one, some]) => `${one} on `
                + some.map(({ row }) => row.node).join(', ')).join('; ')}. `
            + `${advice[0].toUpperCase()}${advice.slice(1)}.` });
    }
}


// Returns the rows of each value.

function byValue(told) {
    const values = new Map();

    for (const one of told) {
        values.set(one.now, [...values.get(one.now) ?? [], one]);
    }

    return values;
}
