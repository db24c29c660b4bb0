// SPDX-License-Identifier: BSD-2-Clause

// browser.mjs [--seed N] [--count N] [--show N] [--program FILE]
//             [--parser node|chromium] [--tool FILE]
//
// Generates spellings of listed hosts, pages and directories that try to get
// past a list.  For each, it asks a parser of URLs where the spelling leads:
// Node's URL, the parser of WHATWG's URL Standard, or that of Chromium, in a page
// without a window.  It asks the core by which expressions the key forms "url" and
// "host" look the spelling up.
//
//   - The expressions contain the host and each listed entry that the spelling
//     leads to.  With --tool, `ngx-bloom build` makes an image of the entries, and
//     `ngx-bloom test` finds these spellings in it.
//   - A spelling whose whole key is that of a listed page, in all its readings, as
//     a rule with "exact" asks, leads to that page and nowhere else.
//   - A URL that leads to a host can be added to a list, unless a tab or a line end
//     is within it; and the host of a URL that can be added is one that the parser
//     takes.
//
// Prints the spellings for which this does not hold (--show, 20).  Then prints for
// each kind how many spellings were generated, how many of them lead to a host and
// to something listed, and the other counts.  Exits with 1 if a spelling passes or
// is wrongly allowed, added or refused.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
    parser: { type: 'string', default: 'node' },
    tool: { type: 'string' },
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

const pages = [
    'http://evil.example/files/malware.exe', 'http://evil.example/get.php?id=7',
    'http://hosting.example/good', 'http://hosting.example/1/2/3/4/5/6.html',
    'http://a.b.c.d.example/a%2Fb', 'http://xn--bcher-kva.example/\u00fc/\u4e2d',
    'http://192.0.2.7/100%/x', 'http://[2001:db8::1]/~user/index.php?f=..%2Fx&g=/',
    'http://x.co/', 'http://under_score.example/a;b=1/x y.zip',
    'http://odd.example/c%3Fd', 'http://odd.example/m/%252e%252e/x',
    'http://odd.example/..%2F', 'http://odd.example/a%5Cb%00?%23%3f',
];

// A lookup asks about the first four directories, of which one is the root.

const directories = [
    'http://hosting.example/mallory/', 'http://hosting.example/1/2/3/',
    'http://evil.example/wp-content/', 'http://a.b.c.d.example/a/b%20c/',
    'http://xn--fa-hia.example/\u00fc/', 'http://10.0.0.1/cgi-bin/',
    'http://[::1]/pub/', 'http://intranet/a%2Fb/', 'http://odd.example/c%3Fd/',
    'http://odd.example/m/%252e%252e/', 'http://odd.example/100%/...;/',
];

const dots = ['.', '.', '.', '.', '\u3002', '\uff0e', '\uff61', '%2e', '%2E',
              '%E3%80%82', '%ef%bc%8e', '%EF%BD%A1'];

// code points that UTS #46 drops

const dropped = ['\u00ad', '\u200b', '\u2060', '\ufeff', '\u034f', '\ufe0f',
                 '\u180b', '\u{e0100}', '\u2064', '\u{1bca0}'];

// Blocks to which no character was added after Unicode 14, which is what the
// oldest libidn2 in use knows; without U+1E9E, which is "ss" up to Unicode 15.0 and
// U+00DF since; and without `newer`, which Chromium maps or ignores, and Node
// refuses or keeps.

const newer = new RegExp('[\\u04c0\\u061d\\u115f\\u1160\\u2061-\\u2063'
                         + '\\u206a-\\u206f\\u2132\\u2183\\u3164\\uffa0'
                         + '\\u{2f868}\\u{2f874}\\u{2f91f}\\u{2f95f}'
                         + '\\u{2f9bf}]', 'u');

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
const plainly = ['http://', 'https://', 'HTTP:/', 'wss:\\\\', '//', 'ftp:',
                 'http://user@', 'https:\t//x%2f@'];
const schemes = [...fetched, 'file:', 'foo:', 'javascript:', 'data:', 'mailto:',
                 'http', 'http%3a', 'evil.example:', 'view-source:http:'];

const behind = ['', '', '/', '/x', '\\x', '//good.example/', '://good.example/',
                '/@good.example', '\\@good.example', '?@good.example/',
                '#@good.example/', '?http://good.example/', '/a/../b', '/%00',
                '/\0', '/%2e%2e/%2F', '/a?b#c', '/x:80', '/\u00fc', '\t/x'];

// steps of a path; what the Standard takes for "." and ".."; and what a server
// takes for ".." that unescapes first

const steps = [
    'x', 'files', 'index.html', 'a%2Fb', 'a%2fb%2Fc', 'a%5Cb', 'a%3Fb', 'a%253Fb',
    'a%252fb', 'a%255Cb', '%2f', '%5C', '%3f', '%23', '%2523', 'a%2F..%2Fb', '%2f..',
    '%252e%252e', '%252E', '%25252e%25252E', '%2e%252e', '..%5c..', '..%00', '%00',
    '%zz', '%', '%2', '100%', 'a%25', '...', '..;', '.a', 'a.', '. ', '%20', 'a%0ab',
    '\u00fc', '\u{1f600}', '%ff', '%C3%BC', '%c0%ae%c0%ae', '\uff0e\uff0e',
    '\u2024\u2024', '\uff0f', 'a;b=c', 'a&b', '@', 'a:b', '~', '"<|^{}`>', "'", '*',
    '[', ':80', 'http:', 'evil.example',
];

const here = ['.', '.', '%2e', '%2E'];
const above = ['..', '..', '..', '.%2e', '%2E.', '%2e%2E', '%2e%2e'];
const escaping = ['%252e%252e/', '%252E./', '..%2f', '..%5C', '%2e%2E%2f',
                  '..%252f', '.%252e/', 'x%2f..%2f', '%25252e.%5c', '%2f../'];

const queries = ['', '', '', '?x', '?', '??', '?a/../b', '?%2F..%2f', '?%3F', '?\\',
                 '?x=http://good.example/', '#', '#x', '#/../..', '?x#?', '?%',
                 '?\u00fc', '?%00', '?%2523'];

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
    const c = String.fromCodePoint(from + below(to - from + 1));

    return c === '\u1e9e' || newer.test(c) ? '\u00df' : c;
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
                             .map((byte) => below(6) ? byte : number(byte))
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

function host(name = one(listed)) {
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

// a path, spelled in another way

const slash = () => one(['/', '/', '/', '/', '/', '\\', '/\t', '\n/']);

function step() {
    return below(4) ? one(steps) : times(1 + below(3), () => one(steps));
}

// Leads to where it begins, for a browser.

function detour() {
    return one([
        () => one(here) + slash(),
        () => step() + slash() + one(above) + slash(),
        () => step() + slash() + one(above) + slash(),
        () => step() + slash() + step() + slash() + one(above) + slash()
              + one(above) + slash(),
        () => slash() + one(above) + slash(),
    ])();
}

function escapedDeeply(c) {
    let text = escaped(c);

    for (let n = below(4) ? 0 : below(3); n > 0; n--) {
        text = below(2) ? text.replaceAll('%', '%25') : escaped(text);
    }

    return text;
}

function stepSpelled(text) {
    const often = 2 + below(12);

    return [...text].map((c) => ({ 0: escapedDeeply(c),
                                   1: one(['\t', '\r', '\n']) + c })[below(often)]
                                ?? c).join('');
}

function path(pathname) {
    const plain = below(2);
    const names = pathname.slice(1).split('/')
        .map((text) => plain ? text : stepSpelled(text));
    const detours = () => below(4) ? '' : times(1 + below(2), detour);

    return slash()
        + (below(6) ? '' : times(1 + below(3), () => one(above) + slash()))
        + (below(8) ? '' : step() + slash() + one(escaping))
        + names.map((name, i) => (i ? slash() : '') + detours() + name).join('');
}

function split(entry) {
    const [, name, pathname, query]
        = /^http:\/\/([^/]+)([^?]*)(.*)$/.exec(entry);

    return { name, pathname, query };
}

// Mostly with what is plain before the path: it is about the path.

function at(entry, behindIt) {
    const { name, pathname, query } = split(entry);

    return url((below(4) ? one(plainly) : begin())
               + (below(2) ? host(name) : (/^[\d[]/.test(name) || below(2)
                                           ? '' : 'www.') + name),
               path(pathname) + behindIt(query));
}

const page = () => at(one(pages), (query) => query === '' ? one(queries)
    : query[0] + (below(2) ? query.slice(1) : stepSpelled(query.slice(1)))
      + one(['', '', '', '#', '#?x', '&']));

const directory = () => at(one(directories), () =>
    times(below(4), () => one([detour, detour, () => step() + slash(),
                               () => one(escaping)])())
    + one(['', step(), step(), one(escaping), one(above), one(here)])
    + one(queries));

function begin() {
    const scheme = [...one(below(6) ? fetched : schemes)]
        .map((c) => below(6) ? c : c.toUpperCase())
        .join(below(8) ? '' : one(['\t', '\n']));
    const slashes = below(3) ? '//'
        : times(below(5), () => one(['/', '\\']) + (below(6) ? '' : '\t'));
    const user = below(3) ? '' : one(users) + '@';

    return scheme + slashes + user;
}

function url(where = begin() + host(), rest = one(behind)) {
    return changed((below(6) ? '' : times(1 + below(3), () => one(around)))
                   + where + one(ports) + rest
                   + (below(6) ? '' : times(1 + below(3), () => one(around))));
}

function authority() {
    return changed((below(6) ? '' : one(users) + '@') + host() + one(ports));
}


// ---- where it leads ----

// A parser returns for each text and each page [protocol, hostname, pathname,
// search]; or nothing, if the text is no URL.

const parse = (texts, bases) => texts.map((text) => bases.map((base) => {
    try {
        const { protocol, hostname, pathname, search } = new URL(text, base);

        return [protocol, hostname, pathname, search];
    } catch {
        return undefined;
    }
}));

const parsers = {
    node: (work) => work(parse),

    chromium: async (work) => {
        const { withBrowser } = await import('../../dashboard/test/browser.mjs');

        await withBrowser(async (browser) => {
            const window = await browser.newPage();

            await work((texts, bases) => window.evaluate(
                `(${parse})(${JSON.stringify(texts)}, `
                + `[${bases.map((base) => JSON.stringify(base) ?? 'undefined')}])`));
        });
    },
};


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

// bytes, of which no two stand for the same thing to a server that unescapes

function unescaped(text) {
    const once = text.replace(/%([0-9a-f]{2})/gi, (_, digits) =>
        String.fromCharCode(parseInt(digits, 16)));

    return once === text ? text : unescaped(once);
}

// The page that a browser fetches.  The dots that are left are names of
// directories to it.

function fetchedPage([, hostname, pathname, search]) {
    return {
        hostname, name: written(hostname), raw: pathname + search,
        path: unescaped(pathname).replaceAll('\\', '/').replace(/\/+/g, '/'),
        query: unescaped(search),
    };
}

const leads = (parsed) => parsed
    .filter((url) => url && /^(?:https?|wss?|ftp):$/.test(url[0]) && url[1]
                     && url[1] !== 'page.example')
    .map(fetchedPage);

// What ends a host is not in one.

const asks = {
    url: { bases: PAGES, text: (key) => key },
    host: { bases: [undefined], text: (key) => /[\/\\?#]/.test(key)
                                               ? '' : 'http://' + key },
};

// DNS has no longer names, and none with an empty label

const resolves = (hostname) => hostname.startsWith('[')
    || (hostname.length <= 253
        && hostname.replace(/\.$/, '').split('.')
                   .every((part) => part !== '' && part.length <= 63));

// Node, unlike browsers, stops checking a label behind the first ZERO WIDTH
// (NON-)JOINER that is in its place.

const joined = (hostname) => options.parser === 'node'
    && /[\u200c\u200d][^.]*[\u200c\u200d]/.test(domainToUnicode(hostname));

// Chromium escapes a space and an asterisk in a host, which no DNS name has.

const exact = ({ hostname }) => resolves(hostname) && !joined(hostname)
    && !hostname.includes('%');

const asKey = { url: (name) => name + '/',
                host: (name) => name.replace(/^\[(.*)\]$/, '$1') };


// ---- what is listed ----

// A top-level domain is listed for itself alone.

const covers = (entry, name) => name === entry
    || (entry.includes('.') && name.endsWith('.' + entry));

const samePage = (entry, page) => page.path === entry.path
    && page.query === entry.query;

const kinds = {
    host: () => true,
    page: (entry, page) => page.path === entry.path
        && (entry.query === '' || page.query === entry.query),
    directory: (entry, page) => page.path.startsWith(entry.path),
};

// [the kind, a text for a list of URLs]

const entries = [
    ...listed.map((name) => ['host', name]),
    ...pages.map((url) => ['page', url]),
    ...directories.map((url) => ['directory', url]),
];

async function readEntries(parser) {
    const texts = entries.map(([, text]) => text);
    const answers = expanded(FORM.url, texts);
    const parsed = await parser(texts.map((text) =>
        text.replace(/^(?!http:)/, 'http://')), [undefined]);

    return entries.map(([kind, text], i) => {
        if (!answers[i].canBeAdded) {
            throw new Error(`${text} cannot be added`);
        }

        return { kind, text, key: answers[i].expressions[0],
                 ...leads(parsed[i])[0] };
    });
}


// ---- the core ----

function run(program, args, input, ...good) {
    const { stdout, status, stderr, error }
        = spawnSync(program, args, { input, maxBuffer: 2 ** 30 });

    if (error || !good.includes(status)) {
        throw new Error(`${program}: ${error ?? stderr}`);
    }

    return stdout.toString('latin1').split('\n');
}

function expanded(form, keys) {
    const lines = run(options.program, [], Buffer.concat(keys.flatMap((key) => {
        const bytes = Buffer.from(key);

        return [Buffer.from([form, bytes.length & 255, bytes.length >> 8]),
                bytes];
    })), 0);

    if (lines.length !== keys.length + 1) {
        throw new Error(`${options.program}: ${lines.length - 1} answers for `
                        + `${keys.length} keys`);
    }

    return lines.slice(0, -1).map((line) => {
        const words = line.split(' ');

        return line.startsWith('! ')
            ? { line, expressions: [] }
            : { line, expressions: words.slice(0, -2),
                whole: [words[0], words[words.at(-2)]],
                canBeAdded: words.at(-1) === '+' };
    });
}

// Keys that `ngx-bloom test` does not find in an image of the entries.

function notInImage(image, keys) {
    const lines = keys.filter((key) => !/[\r\n]/.test(key));
    const rest = keys.filter((key) => /[\r\n]/.test(key) && !/\0/.test(key));

    return [['\n', lines], ['\0', rest]].flatMap(([end, some]) => {
        if (some.length === 0) {
            return [];
        }

        const answers = run(options.tool,
            ['test', '--json', ...end === '\0' ? ['-0'] : [], '-f', '-', image],
            some.map((key) => key + end).join(''), 0, 1);

        if (answers.length !== some.length + 1) {
            throw new Error(`${options.tool}: ${answers.length - 1} answers for `
                            + `${some.length} keys`);
        }

        return some.filter((_, i) => !answers[i].includes('"answer":"present"'));
    });
}


// ---- the comparison ----

let shown = 0;

function show(wrong, what, key, why, line) {
    if (wrong && shown++ < Number(options.show)) {
        console.log(`${what} ${JSON.stringify(key)}\n    ${why}\n`
                    + `    is looked up by ${line.slice(0, 400)}`);
    }
}

// a tab or a line end within a key

const gap = /[^\0-\x20].*[\t\r\n].*[^\0-\x20]/s;

const shownPage = ({ name, raw }) => name + raw;

async function compare(parser, form, listedOnes, image, keys, count) {
    const { bases, text } = asks[form];
    const parsed = await parser(keys.map(text), bases);
    const answers = expanded(FORM[form], keys);

    // The parser checks the punycode of a label, and the core does not.

    const hosts = answers.map(({ expressions }) =>
        expressions[0]?.replace(/\/.*/s, '') ?? '');
    const taken = await parser(hosts.map((name) => 'http://' + name),
                               [undefined]);
    const good = [];

    keys.forEach((key, i) => {
        const { line, expressions, whole, canBeAdded } = answers[i];
        const has = new Set(expressions);
        const found = leads(parsed[i]);
        const hits = listedOnes.filter((entry) => found.some((page) =>
            covers(entry.name, page.name) && kinds[entry.kind](entry, page)));
        const missed = hits.filter((entry) => !has.has(entry.key));
        const passed = found.filter((page) => exact(page)
            && !has.has(asKey[form](page.name)));
        const bad = missed.length + passed.length !== 0;

        count.generated++;
        count.led += found.length !== 0;
        count.listed += hits.length !== 0;
        count.strictly += hits.some((entry) => found.some((page) =>
            entry.kind === 'directory' ? page.raw.startsWith(entry.raw)
            : entry.kind === 'page' && (page.raw === entry.raw
                                        || page.raw.startsWith(entry.raw + '?'))));
        count.found += hits.length !== 0 && !bad;
        count.missed += bad;
        show(bad, form, key, `leads to ${found.map(shownPage).join(', ')}; missed: `
             + [...missed.map((entry) => entry.text),
                ...passed.map((page) => page.name)].join(', '), line);

        if (hits.length !== 0 && !bad) {
            good.push(key);
        }

        if (form !== 'url') {
            return;
        }

        const allows = listedOnes.filter((entry) => entry.kind === 'page');
        const allowed = whole?.every((one) =>
            allows.some((entry) => entry.key === one));
        const opened = allowed ? found.filter((page) => !allows.some((entry) =>
            entry.name === page.name && samePage(entry, page))) : [];
        const refused = canBeAdded === false && !gap.test(key)
                        && found.some(exact);
        const forbidden = canBeAdded === true && !taken[i][0]
                          && !/(?:^|\.)xn--/.test(hosts[i]);

        count.allowed += allowed === true;
        count.opened += opened.length !== 0;
        count.added += canBeAdded === true;
        count.wrong += refused || forbidden;
        show(opened.length !== 0, 'allowed', key,
             `leads to ${opened.map(shownPage).join(', ')}`, line);
        show(refused, form, key, 'cannot be added', line);
        show(forbidden, form, key, 'can be added, and the parser refuses its host',
             line);
    });

    if (image) {
        const lost = notInImage(image, good);

        count.missed += lost.length;
        lost.forEach((key) => show(true, form, key, 'is not found in the image',
                                   answers[keys.indexOf(key)].line));
    }
}

async function compareAll(parser, place) {
    const all = await readEntries(parser);
    const hostsOnly = all.filter(({ kind }) => kind === 'host')
        .map((entry) => ({ ...entry, key: asKey.host(entry.text) }));
    const image = options.tool && join(place, 'image');
    const total = Number(options.count);
    let failed = false;

    if (image) {
        const list = join(place, 'list');

        writeFileSync(list, all.map(({ text }) => text + '\n').join(''));
        run(options.tool, ['build', '-q', '--form', 'url', '-p', '1e-9', '-o',
                           image, list], '', 0);
    }

    for (const [name, form, make] of [
        ['hosts', 'url', url], ['pages', 'url', page],
        ['directories', 'url', directory], ['hosts', 'host', authority],
    ]) {
        const count = { generated: 0, led: 0, listed: 0, strictly: 0, found: 0,
                        missed: 0, added: 0, wrong: 0, allowed: 0, opened: 0 };

        for (let left = Math.ceil(total / 4); left > 0; left -= BATCH) {
            await compare(parser, form, form === 'url' ? all : hostsOnly,
                          form === 'url' && image,
                          Array.from({ length: Math.min(left, BATCH) },
                                     () => make()), count);
        }

        console.log(`${form}, ${name}: ${count.generated} generated, `
            + `${count.led} lead to a host, ${count.listed} to a listed one, `
            + `${count.strictly} as listed, ${count.found} found, `
            + `${count.missed} missed, ${count.added} added, ${count.wrong} wrong, `
            + `${count.allowed} allowed, ${count.opened} opened`);
        failed ||= count.missed || count.wrong || count.opened;
    }

    return failed;
}

const temporary = mkdtempSync(join(tmpdir(), 'spellings-'));

try {
    await parsers[options.parser](async (parser) => {
        process.exitCode = await compareAll(parser, temporary) ? 1 : 0;
    });
} finally {
    rmSync(temporary, { recursive: true });
}
