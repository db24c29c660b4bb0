// SPDX-License-Identifier: BSD-2-Clause

// codepoints.mjs [--every N] [--show N] [--program FILE] [--no-browser]
//
// Writes each code point in several places of a host's name, and asks two
// implementations of UTS #46 to which host the name leads: the package "tr46",
// and Chromium, if it is installed.  The core must look the name up by that
// host, in the key forms "host" and "url".
//
// With --every N, only each Nth code point is compared, and all that the core's
// table names.  Prints the names that are missed (--show, 20), then how many
// names each implementation took, and how many the core missed.  Exits with 1
// if it missed any.

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

const root = new URL('../../', import.meta.url);
const require = createRequire(new URL('dashboard/', root));

const tr46 = require('tr46');
const table = require('tr46/lib/mappingTable.json');
const { STATUS_MAPPING: is } = require('tr46/lib/statusMapping.js');

const BATCH = 4096;                          // code points
const FORM = { host: 2, url: 3 };
const LAST = 0x10ffff;

const options = parseArgs({ options: {
    every: { type: 'string', default: '1' },
    show: { type: 'string', default: '20' },
    program: { type: 'string', default: 'build/reference/expressions' },
    'no-browser': { type: 'boolean', default: false },
} }).values;

const every = Number(options.every);


// ---- which code points ----

const status = new Uint8Array(LAST + 1);

for (const [range, what] of table) {
    const [first, last] = [range].flat();

    status.fill(what, first, (last ?? first) + 1);
}

const ranges = [...readFileSync(new URL('src/core/bloom_idn_table.c', root),
                                'utf8')
                .matchAll(/\{ 0x(\w+), 0x(\w+), 0x\w+, 0x\w+ \}/g)]
    .map(([, first, last]) => [parseInt(first, 16), parseInt(last, 16)])
    .filter(([first, last]) => last - first < 64);

const named = new Set(ranges.flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, i) => first + i)));

const chosen = [];

for (let c = 0x80; c <= LAST; c++) {
    if ((c < 0xd800 || c > 0xdfff) && (c % every === 0 || named.has(c))) {
        chosen.push(c);
    }
}


// ---- where they are written ----

// The letter before each code point is mostly one of its own script.

function withLetters(points) {
    let letter = 0xe0;
    let next = 0x80;

    return points.map((c) => {
        for ( ; next < c; next++) {
            if (status[next] === is.valid
                && /\p{L}/u.test(String.fromCodePoint(next)))
            {
                letter = next;
            }
        }

        return [String.fromCodePoint(c), String.fromCodePoint(letter)];
    });
}

// A stroke behind the code point may compose with it.  The core does not put
// several combining marks in NFC's order, if it has them from its table.

const places = (c, letter) => [
    c,
    c + 'vil',
    'evi' + c,
    'E' + c + 'il',
    letter + c,
    'B\u00dc-' + c + '1',
    'b\u00df' + c.normalize('NFD') + '\u00c9',
    'xn--bcher-kv' + c,
    'b' + c + (/\p{M}/u.test(c) ? '' : '\u0338'),
];


// ---- to which host they lead ----

// The URL Standard refuses these in a host.  Chromium takes a space, which no
// list and no DNS has.

const forbidden = /[\0-\x20\x7f#%\/:<>?@[\\\]^|]/;

const ofPackage = (name) =>
    tr46.toASCII(name, { checkBidi: true, checkJoiners: true }) ?? '';

async function launched() {
    const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser',
                     '/usr/bin/google-chrome'].find((name) => existsSync(name));

    if (options['no-browser'] || program === undefined) {
        return undefined;
    }

    const { chromium } = require('playwright-core');

    return chromium.launch({
        executablePath: program,
        args: ['--no-sandbox', '--disable-gpu', '--no-first-run',
               '--disable-background-networking', '--disable-dev-shm-usage'],
    });
}

// DNS has no longer names, and none with an empty label.

const resolves = (host) => host.length <= 253 && !forbidden.test(host)
    && host.split('.').every((label) => label !== '' && label.length <= 63);


// ---- by what the core looks them up ----

const key = {
    host: (name) => name,
    url: (name) => 'https://' + encodeURIComponent(name) + '/page',
};

const entry = { host: (host) => host, url: (host) => host + '/' };

function expressions(form, names) {
    const input = Buffer.concat(names.flatMap((name) => {
        const bytes = Buffer.from(key[form](name));

        return [Buffer.from([FORM[form], bytes.length & 255,
                             bytes.length >> 8]), bytes];
    }));

    const { stdout, status: exit, stderr, error }
        = spawnSync(options.program, { input, maxBuffer: 2 ** 30 });

    if (error || exit !== 0) {
        throw new Error(`${options.program}: ${error ?? stderr}`);
    }

    const lines = stdout.toString('latin1').split('\n');

    if (lines.length !== names.length + 1) {
        throw new Error(`${options.program}: ${lines.length - 1} answers for `
                        + `${names.length} names`);
    }

    return lines.map((line) => line.split(' '));
}


// ---- the comparison ----

const browser = await launched();
const page = await browser?.newPage();

const count = { names: 0, tr46: 0, browser: 0, missed: 0 };

for (let from = 0; from < chosen.length; from += BATCH) {
    const points = chosen.slice(from, from + BATCH);
    const all = withLetters(points)
        .flatMap(([c, letter]) => places(c, letter))
        .map((label) => label + '.example');
    const known = points.flatMap((c) =>
        Array(all.length / points.length).fill(status[c] !== is.disallowed));
    const browsers = await page?.evaluate((names) => names.map((name) => {
        try {
            return new URL(`http://${name}/`).hostname;
        } catch {
            return '';
        }
    }), all);

    const asked = all.map((name, i) => ({
        name,
        hosts: [known[i] ? ofPackage(name) : '', browsers?.[i] ?? '']
            .map((host) => resolves(host) ? host : ''),
    })).filter(({ hosts }) => hosts.some(Boolean));
    const names = asked.map((one) => one.name);

    count.names += all.length;
    count.tr46 += asked.filter(({ hosts }) => hosts[0]).length;
    count.browser += asked.filter(({ hosts }) => hosts[1]).length;

    for (const form of names.length === 0 ? [] : Object.keys(FORM)) {
        const lines = expressions(form, names);

        asked.forEach(({ name, hosts }, i) => {
            const missed = new Set(hosts.filter((host) =>
                host && !lines[i].includes(entry[form](host))));

            count.missed += missed.size !== 0;

            if (missed.size !== 0 && count.missed <= Number(options.show)) {
                console.log(`${form} ${JSON.stringify(name)} (`
                            + name.replace(/[^ -~]/gu, (c) => 'U+'
                                  + c.codePointAt(0).toString(16) + ' ')
                            + `)\n    leads to ${[...missed].join(', ')}\n`
                            + `    is looked up by ${lines[i].join(' ')}`);
            }
        });
    }
}

await browser?.close();

console.log(`${chosen.length} code points in ${count.names} names: `
            + `${count.tr46} taken by tr46, `
            + (browser ? `${count.browser} by Chromium ${browser.version()}`
                       : 'Chromium was not asked')
            + `, ${count.missed} missed`);

process.exitCode = count.missed === 0 ? 0 : 1;
