// SPDX-License-Identifier: BSD-2-Clause

// Starts the browser that tests the page and takes its screenshots, and sends
// requests to nginx.

import { existsSync } from 'node:fs';

import { chromium } from 'playwright-core';

const program = ['/usr/bin/chromium', '/usr/bin/chromium-browser',
                 '/usr/bin/google-chrome'].find((path) => existsSync(path));


// Runs `work` with a browser that has a new profile, and then ends the browser.

export async function withBrowser(work) {
    if (program === undefined) {
        throw new Error('there is no chromium; run: make deps');
    }

    const browser = await chromium.launch({
        executablePath: program,
        args: ['--no-sandbox', '--disable-gpu', '--disable-quic',
               '--no-first-run', '--disable-background-networking',
               '--disable-component-update', '--disable-sync',
               '--disable-dev-shm-usage'],
    });

    try {
        await work(browser);

    } finally {
        await browser.close();
    }
}


// Sends requests that the zones decide about: `n` of each kind, and of some
// more kinds if `bad` is set.

export async function traffic(address, n, from = 0, bad = false) {
    const paths = [];

    for (let i = from; i < from + n; i++) {
        paths.push(`/item?id=id${1 + i % 60_000}`, `/item?id=none${i}`,
                   `/item?id=id${1 + 7 * i % 60_000}`,
                   `/go?url=http://host${i}.test/`,
                   `/seen?k=${i % 900}`);

        if (bad) {
            paths.push(`/token?id=none${i}`, `/lost?id=t${1 + i % 900}`,
                       `/customer?id=id${i}`);
        }

        if (i % 5 === 0) {
            paths.push('/go?url=http://evil.example/');
        }
    }

    await Promise.all(paths.map(async (path) => {
        await (await fetch(address + path)).arrayBuffer();
    }));
}
