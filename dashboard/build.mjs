// SPDX-License-Identifier: BSD-2-Clause

// Builds the page into one HTML document, which contains everything it needs.
//
//     node build.mjs OUTPUT.html
//
// The same sources and locked packages give the same bytes.

import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import * as esbuild from 'esbuild';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

const [output, ...more] = process.argv.slice(2);

if (output === undefined || more.length > 0) {
    console.error('usage: node build.mjs OUTPUT.html');
    process.exit(2);
}

const script = await bundle('src/main.js', 'iife');
const style = await bundle('src/style.css');
const licence = await readFile(here('node_modules/uplot/LICENSE'), 'utf8');

// A browser ignores frame-ancestors here: the module sends it in a header.

const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    'img-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
].join('; ');

const page = (await readFile(here('src/index.html'), 'utf8'))
    .replace(/<!--(?!licence).*?-->/gs, '')
    .replace(/>\s+</g, '><')
    .trim()
    .replace('POLICY', () => policy)
    .replace('<!--licence-->', () => `<!--\nuPlot is in this page:\n\n${licence.trim()}\n-->`)
    .replace('<style></style>', () => `<style>${style}</style>`)
    .replace('<script></script>', () => `<script>${script}</script>`)
    + '\n';

await writeFile(output, page);


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
