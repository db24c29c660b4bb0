// SPDX-License-Identifier: BSD-2-Clause

// Builds the page into one HTML document, and writes that as a C file.
//
//     node build.mjs [--page FILE] OUTPUT.c
//
// The document contains everything it needs.  --page also writes it as HTML.
// The same sources and locked packages give the same bytes.

import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import * as esbuild from 'esbuild';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

const { values, positionals } = parseArgs({
    options: { page: { type: 'string' } },
    allowPositionals: true,
});

if (positionals.length !== 1) {
    console.error('usage: node build.mjs [--page FILE] OUTPUT.c');
    process.exit(2);
}

const script = await bundle('src/main.js', 'iife');
const style = await bundle('src/style.css');
const licence = await readFile(here('node_modules/uplot/LICENSE'), 'utf8');

const page = (await readFile(here('src/index.html'), 'utf8'))
    .replace(/<!--(?!licence).*?-->/gs, '')
    .replace(/>\s+</g, '><')
    .trim()
    .replace('<!--licence-->', () => `<!--\nuPlot is in this page:\n\n${licence.trim()}\n-->`)
    .replace('<style></style>', () => `<style>${style}</style>`)
    .replace('<script></script>', () => `<script>${script}</script>`)
    + '\n';

const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    'img-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
].join('; ');

if (values.page !== undefined) {
    await writeFile(values.page, page);
}

await writeFile(positionals[0], source(page, policy));


async function bundle(name, format) {
    const result = await esbuild.build({
        absWorkingDir: here('.'),
        entryPoints: [name],
        bundle: true,
        minify: true,
        write: false,
        format,
        target: ['es2022', 'chrome111', 'firefox113', 'safari16.4'],
        legalComments: 'none',
        charset: 'utf8',
        logLevel: 'warning',
    });

    return result.outputFiles[0].text.trim();
}


// Returns the hash of an element's text for Content-Security-Policy.

function hash(text) {
    return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}


function source(document, csp) {
    const bytes = Buffer.from(document);
    const tag = createHash('sha256').update(bytes).update(csp).digest('hex')
        .slice(0, 32);

    return `/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Generated from dashboard/ by "make dashboard": do not edit.
 */

#include "ngx_http_bloom_page_html.h"


const char    ngx_http_bloom_page_etag[] = "\\"${tag}\\"";

const size_t  ngx_http_bloom_page_size = ${bytes.length};

const char    ngx_http_bloom_page_csp[] =
${literal(Buffer.from(csp))};

const char    ngx_http_bloom_page_html[] =
${literal(bytes)};
`;
}


// Returns string literals of C, in lines of up to 80 columns.

function literal(bytes) {
    const lines = [];
    let line = '';

    for (const byte of bytes) {
        const next = escaped(byte);

        if (line.length + next.length > 74) {
            lines.push(line);
            line = '';
        }

        line += next;

        if (byte === 0x0a) {
            lines.push(line);
            line = '';
        }
    }

    if (line !== '') {
        lines.push(line);
    }

    return lines.map((text) => `    "${text}"`).join('\n');
}


function escaped(byte) {
    switch (byte) {
    case 0x0a: return '\\n';
    case 0x22: return '\\"';
    case 0x3f: return '\\?';                  // no trigraphs
    case 0x5c: return '\\\\';
    }

    return byte >= 0x20 && byte < 0x7f
        ? String.fromCharCode(byte)
        : `\\${byte.toString(8).padStart(3, '0')}`;
}
