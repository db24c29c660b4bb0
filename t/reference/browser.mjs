// SPDX-License-Identifier: BSD-2-Clause

// browser.mjs [--seed N] [--count N] [--show N] [--program FILE]
//
// Generates spellings of listed hosts that try to get past a list.  For each,
// it asks Node's URL, the parser of WHATWG's URL Standard that browsers use, to
// which host the spelling leads, and the core, by which expressions the key
// forms "url" and "host" look it up.  The expressions must contain that host
// and the listed host above it.  A URL that leads to a host can be added to a
// list, unless a tab or a line end is within it; and the host of a URL that can
// be added is one that URL takes.
//
// Prints the spellings that are missed (--show, 20).  Then prints for each form
// how many spellings were generated, led to some host, led to a listed one,
// were found, and were missed or wrongly refused or added.  Exits with 1 if any
// was.

import { spawnSync } from 'node:child_process';
import { domainToUnicode } from 'node:url';
import { parseArgs } from 'node:util';

const BATCH = 10000;
const FORM = { host: 2, url: 3 };
const PAGES = [undefined, 'http://page.example/dir/x',
               'https://page.example/dir/x'];

const options = parseArgs({ options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '100000' },
    show: { type: 'string', default: '20' },
    program: { type: 'string', default: 'build/reference/expressions' },
} }).values;


// ---- what is drawn ----

const listed = [
    'evil.example', 'ads.evil-site.example', 'a--b.example', '-x-.example',
    'under_score.example', 'intranet', 'x.co', 'a.b.c.d.example',
    'xn--bcher-kva.example', 'xn--fa-hia.example', 'xn--n3h.example',
    'xn--fiqs8s.example', 'xn--ab---3ra.example', 'xn--fa-hia4b4405a.example',
    'xn--q9jyb4c', '192.0.2.7', '10.0.0.1', '255.255.255.255', '[2001:db8::1]',
    '[::1]', '[2001:db8:0:1:1:1:1:1]', '[::102:304]',
];

const dots = ['.', '.', '.', '.', '\u3002', '\uff0e', '\uff61', '%2e', '%2E',
              '%E3%80%82', '%ef%bc%8e', '%EF%BD%A1'];

// code points that UTS #46 drops

const dropped = ['\u00ad', '\u200b', '\u2060', '\ufeff', '\u034f', '\ufe0f',
                 '\u180b', '\u{e0100}', '\u2064', '\u{1bca0}'];

// Blocks to which no character was added after Unicode 14, which is what the
// oldest libidn2 in use knows; and without U+1E9E, which is "ss" up to Unicode
// 15.0 and U+00DF since.

const blocks = [
    [0xa0, 0x2af], [0x300, 0x36f], [0x370, 0x3ff], [0x400, 0x52f],
    [0x591, 0x5f4], [0x600, 0x6ff], [0x900, 0x97f], [0xe01, 0xe5b],
    [0x1100, 0x11ff], [0x1e00, 0x1eff], [0x1f00, 0x1fff], [0x2000, 0x209c],
    [0x2100, 0x218b], [0x2460, 0x24ff], [0x2600, 0x27bf], [0x3000, 0x30ff],
    [0x3131, 0x318e], [0x3200, 0x33ff], [0x4e00, 0x9ffc], [0xac00, 0xd7a3],
    [0xf900, 0xfad9], [0xfb00, 0xfb4f], [0xfe00, 0xfe6f], [0xff00, 0xffef],
    [0x1d400, 0x1d7ff], [0x1f100, 0x1f251], [0x1f300, 0x1f64f],
    [0x2f800, 0x2fa1d],
];

// what stands for an ASCII character, by that character

const alike = new Map();

for (const [from, to] of blocks) {
    for (let c = from; c <= to; c++) {
        const as = String.fromCodePoint(c).normalize('NFKC').toLowerCase();

        if (/^[!-~]$/.test(as)) {
            alike.set(as, [...alike.get(as) ?? [], String.fromCodePoint(c)]);
        }
    }
}

const labels = [
    'www', 'WWW', 'ab--c', '-a', 'b\u00fccher', 'Stra\u00dfe', '\u2603\u00df',
    'ab--\u00fc', 'a-', '-', '--', 'a_b', '!', '*', '~t', 'x=y',
    'a+b', ';', "it's", 'b\u00fccher', 'STRASSE', 'Stra\u00dfe', '\u2603\u00df',
    '\u03c3\u03c2', 'ab--\u00fc', '-\u00fc-', '!\u00fc', '\u0643\u062a',
    '\u05d0', '\u0915\u094d\u200d\u0937', 'a\u200db', 'a\u0338', '=\u0338',
    'xn--bcher-kva', 'XN--BCHER-KVA', 'xn--a', 'xn--', 'xn--\u00fc', '\u00ad',
    '\u0308a', 'a-\u0308', '1', '0x1', '\uff11', 'a b', 'a%20b', 'a<b', 'a^b',
    '\u2488', '\u33c2', '\u2100', '\u3200', '\ufffd', '%ff', '%C3%BC', '%00',
    'a%3ab', 'x'.repeat(63), '\u00fc'.repeat(40), 'a-'.repeat(20) + '\u00fc',
];

const users = ['user', 'user:password', 'good.example', 'good.example:80', ':',
               '', 'a@b', '%40', 'good.example%2f', 'good.example%5c', 'a%3a',
               'http:', '[::1]', '\u3002', 'good.example%23', 'a b', '\0'];

const fetched = ['http:', 'https:', 'ws:', 'wss:', 'ftp:', '', ''];
const schemes = [...fetched, 'file:', 'foo:', 'javascript:', 'data:', 'mailto:',
                 'http', 'http%3a', 'evil.example:', 'view-source:http:'];

const behind = ['', '', '/', '/x', '\\x', '//good.example/', '://good.example/',
                '/@good.example', '\\@good.example', '?@good.example/',
                '#@good.example/', '?http://good.example/', '/a/../b', '/%00',
                '/\0', '/%2e%2e/%2F', '/a?b#c', '/x:80', '/\u00fc', '\t/x'];

const ports = ['', '', '', '', '', '', ':', ':80', ':443', ':0080', ':65535',
               ':8\t0', ':99999', ':8o', ':%38', ':\uff18', '::80'];

const around = [' ', '\t', '\n', '\r', '\0', '\x01', '\x1f', '\f'];

const anything = [
    ...'/\\?#@:.[]%&=;~+-_|^<>"\'`{}!$*(), \t\r\n\0\x01\x1f\x7f0x19aZ',
    '//', '\\\\', '/\\', '%2f', '%5C', '%23', '%3F', '%40', '%3a', '%00', '%2e',
    '%25', '%2', '%zz', '%ff', '..', 'xn--', '--', 'http:', 'http://', 'foo:',
    '@good.example', '://', ':80', '\u3002', '\uff0e', '\uff61', '\u2024',
    '\u00df', '\u03c2', '\u200c', '\u200d', '\uff0d', '\ufe63', '\uff05',
    '\uff0f', '\u2100', '\u0308', '\u05d0', '\u{1f600}', ...dropped,
];


// ---- how it is drawn: xorshift, Marsaglia 2003, so that a seed says all ----

let state = (Number(options.seed) * 2654435761 + 12345) >>> 0 || 1;

function below(n) {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;

    return (state >>> 3) % n;
}

const one = (of) => of[below(of.length)];
const times = (n, make) => Array.from({ length: n }, make).join('');
const escaped = (text) => [...Buffer.from(text)].map((byte) => '%'
    + byte.toString(16).padStart(2, '0')[below(2) ? 'toUpperCase'
                                                  : 'toLowerCase']()).join('');

function character() {
    const [from, to] = one(blocks);
    const c = from + below(to - from + 1);

    return c === 0x1e9e ? '\u00df' : String.fromCodePoint(c);
}


// ---- a host, spelled in another way ----

const spellings = {
    1: (c) => c.toUpperCase(),
    2: (c) => one(alike.get(c.toLowerCase()) ?? [c]),
    3: (c) => escaped(c),
    4: (c) => c + one(dropped),
    5: (c) => c + one(['\t', '\r', '\n']),
    6: (c) => c.normalize('NFD'),
    7: (c) => escaped(one(alike.get(c.toLowerCase()) ?? [c])),
    8: (c) => one(dropped) + c,
    9: (c) => c.toUpperCase().normalize('NFD'),
};

function spelled(text) {
    const often = 1 + below(24);

    return [...text].map((c) => c === '.'
                                ? one(dots)
                                : (spellings[below(often) + 1] ?? String)(c))
                    .join('');
}

function number(value) {
    return one([(n) => n, (n) => n, (n) => '0' + n.toString(8),
                (n) => '0x' + n.toString(16), (n) => '0X' + n.toString(16),
                (n) => '000' + n.toString(8),
                (n) => '0x00' + n.toString(16)])(value);
}

function ipv4(address) {
    const bytes = address.split('.').map(Number);
    const alone = below(4);
    const last = bytes.slice(alone).reduce((n, byte) => n * 256 + byte, 0);

    return spelled([...bytes.slice(0, alone).map(number), number(last)]
                   .join('.'));
}

function ipv6(address) {
    if (!below(3)) {
        return address.replace(/[a-f]/g, (c) => below(2) ? c.toUpperCase() : c);
    }

    const groups = [];
    const [left, right] = address.slice(1, -1).split('::')
                                 .map((half) => half ? half.split(':') : []);

    groups.push(...left);

    if (right) {
        groups.push(...Array(8 - left.length - right.length).fill('0'),
                    ...right);
    }

    const written = groups.map((group) => group.padStart(1 + below(4), '0'));

    if (!below(3)) {
        const [high, low] = groups.slice(6).map((group) => parseInt(group, 16));

        written.splice(6, 2, [high >> 8, high & 255, low >> 8, low & 255]
                             .join('.'));
    }

    return '[' + written.join(':') + ']';
}

function label() {
    return one([() => one(labels), () => one(labels), () => spelled('www'),
                () => times(1 + below(6), character),
                () => times(1 + below(4), () => one([character(), 'a', '-'])),
               ])();
}

function host() {
    const name = one(listed);

    if (name.startsWith('[')) {
        return ipv6(name);
    }

    if (/^[\d.]+$/.test(name)) {
        return ipv4(name) + one(['', '', '', '.', '\u3002']);
    }

    return times(below(4) ? below(2) : below(5), () => label() + one(dots))
           + spelled(below(2) ? domainToUnicode(name) || name : name)
           + one(['', '', '', '', '.', '\uff61', '%2e', '..']);
}

function changed(text) {
    const key = [...text];

    for (let n = below(4) ? 0 : 1 + below(2); n > 0; n--) {
        const at = below(Math.min(key.length, 40) + 1);

        one([() => key.splice(at, 0, one(anything)),
             () => key.splice(at, 1),
             () => key.splice(at, 1, one(anything)),
             () => key.splice(at, 0, ...key.slice(at, at + 1 + below(6)))])();
    }

    return key.join('');
}

function url() {
    const scheme = [...one(below(6) ? fetched : schemes)]
        .map((c) => below(6) ? c : c.toUpperCase())
        .join(below(8) ? '' : one(['\t', '\n']));
    const slashes = below(3) ? '//'
        : times(below(5), () => one(['/', '\\']) + (below(6) ? '' : '\t'));
    const user = below(3) ? '' : one(users) + '@';

    return changed((below(6) ? '' : times(1 + below(3), () => one(around)))
                   + scheme + slashes + user + host() + one(ports) + one(behind)
                   + (below(6) ? '' : times(1 + below(3), () => one(around))));
}

function authority() {
    return changed((below(6) ? '' : one(users) + '@') + host() + one(ports));
}


// ---- where it leads ----

// As the forms write a host: no dots at the ends, no two in a row; an IPv6
// address that stands for one of IPv4 is that one.

function written(hostname) {
    const groups = hostname
        .match(/^\[(?:::ffff|64:ff9b:):([0-9a-f]+):([0-9a-f]+)\]$/)
        ?.slice(1).map((digits) => parseInt(digits, 16));

    return groups
        ? groups.map((group) => `${group >> 8}.${group & 255}`).join('.')
        : hostname.replace(/\.+/g, '.').replace(/^\.|\.$/g, '');
}

function led(text, page) {
    try {
        const { protocol, hostname } = new URL(text, page);

        return /^(?:https?|wss?|ftp):$/.test(protocol)
               && hostname !== 'page.example' ? hostname : '';
    } catch {
        return '';
    }
}

const leads = {
    url: (key) => PAGES.map((page) => led(key, page)),

    // what ends a host is not in one

    host: (key) => [/[\/\\?#]/.test(key) ? '' : led('http://' + key)],
};

// DNS has no longer names, and none with an empty label

const resolves = (hostname) => hostname.startsWith('[')
    || (hostname.length <= 253
        && hostname.replace(/\.$/, '').split('.')
                   .every((part) => part !== '' && part.length <= 63));

// Node, unlike browsers, stops checking a label behind the first ZERO WIDTH
// (NON-)JOINER that is in its place.

const joined = (hostname) => /[\u200c\u200d][^.]*[\u200c\u200d]/
    .test(domainToUnicode(hostname));

// a top-level domain is listed for itself alone

const listedFor = (name) => listed.filter((entry) =>
    name === entry || (entry.includes('.') && name.endsWith('.' + entry)));

const exact = (hostname) => resolves(hostname) && !joined(hostname);

const asKey = { url: (name) => name + '/',
                host: (name) => name.replace(/^\[(.*)\]$/, '$1') };


// ---- the comparison ----

let shown = 0;

function show(wrong, form, key, what, line) {
    if (wrong && shown++ < Number(options.show)) {
        console.log(`${form} ${JSON.stringify(key)}\n    ${what}\n`
                    + `    is looked up by ${line.slice(0, 200)}`);
    }
}

// a tab or a line end within a key

const gap = /[^\0-\x20].*[\t\r\n].*[^\0-\x20]/s;

// URL checks the punycode of a label, and the core does not.

const taken = (key) => {
    const host = key.replace(/\/.*/s, '');

    return /(?:^|\.)xn--/.test(host) || URL.canParse('http://' + host);
};

function compare(form, keys, count) {
    const input = Buffer.concat(keys.flatMap((key) => {
        const bytes = Buffer.from(key);

        return [Buffer.from([FORM[form], bytes.length & 255,
                             bytes.length >> 8]), bytes];
    }));

    const { stdout, status, stderr, error }
        = spawnSync(options.program, { input, maxBuffer: 2 ** 30 });

    if (error || status !== 0) {
        throw new Error(`${options.program}: ${error ?? stderr}`);
    }

    const lines = stdout.toString('latin1').split('\n');

    if (lines.length !== keys.length + 1) {
        throw new Error(`${options.program}: ${lines.length - 1} answers for `
                        + `${keys.length} keys`);
    }

    keys.forEach((key, i) => {
        const answer = lines[i].split(' ');
        const expressions = new Set(answer);
        const hosts = leads[form](key).filter(Boolean);
        const entries = hosts.map(written).flatMap(listedFor);
        const missed = [...new Set([...hosts.filter(exact).map(written),
                                    ...entries])]
            .filter((name) => !expressions.has(asKey[form](name)));

        count.generated++;
        count.led += hosts.length !== 0;
        count.listed += entries.length !== 0;
        count.found += entries.length !== 0 && missed.length === 0;
        count.missed += missed.length !== 0;
        show(missed.length !== 0, form, key, `leads to ${missed.join(', ')}`,
             lines[i]);

        if (form !== 'url') {
            return;
        }

        const added = answer.at(-1) === '+';
        const refused = answer.at(-1) === '-' && !gap.test(key)
                        && hosts.some(exact);
        const forbidden = added && !taken(answer[0]);

        count.added += added;
        count.wrong += refused || forbidden;
        show(refused, form, key, 'cannot be added', lines[i]);
        show(forbidden, form, key, 'can be added, and URL refuses its host',
             lines[i]);
    });
}

const count = {};
const total = Number(options.count);

for (const [form, make, share] of [['url', url, 3], ['host', authority, 1]]) {
    let left = Math.ceil(total * share / 4);

    count[form] = { generated: 0, led: 0, listed: 0, found: 0, missed: 0,
                    added: 0, wrong: 0 };

    while (left > 0) {
        const n = Math.min(left, BATCH);

        compare(form, Array.from({ length: n }, make), count[form]);
        left -= n;
    }

    const { generated, led: some, listed: to, found, missed, added, wrong }
        = count[form];

    console.log(`${form}: ${generated} generated, ${some} lead to a host, `
                + `${to} to a listed one, ${found} found, ${missed} missed, `
                + `${added} added, ${wrong} wrong`);
}

process.exitCode = Object.values(count)
    .some(({ missed, wrong }) => missed || wrong) ? 1 : 0;
