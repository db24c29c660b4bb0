// SPDX-License-Identifier: BSD-2-Clause

// screenshots.mjs ADDRESS DIRECTORY good|bad: takes screenshots of the page.

import { join } from 'node:path';

import { traffic, withBrowser } from './browser.mjs';

const SAMPLES = 110;                  // in the charts, two seconds each

const [address, directory, day] = process.argv.slice(2);

const pictures = day === 'bad'
    ? [{ name: 'bad-day', scheme: 'light', width: 1280, zone: 'tokens',
         height: 900 }]
    : [{ name: 'light', scheme: 'light', width: 1280, zone: 'bad-urls',
         key: 'http://Phish.example/login?next=/', full: true },
       { name: 'dark', scheme: 'dark', width: 1280, zone: 'items',
         key: 'id4711', full: true },
       { name: 'phone', scheme: 'light', width: 390, zone: 'items',
         height: 844 }];

await withBrowser(async (browser) => {
    const pages = [];

    for (const picture of pictures) {
        const context = await browser.newContext({
            colorScheme: picture.scheme,
            reducedMotion: 'reduce',
            viewport: { width: picture.width, height: picture.height ?? 900 },
            deviceScaleFactor: picture.width < 500 ? 2 : 1,
        });
        const page = await context.newPage();

        // the page's clock runs as fast as nginx answers

        await page.clock.install();
        await page.goto(`${address}/bloom/#zone=${picture.zone}`);
        await page.locator('.card').first().waitFor();
        await page.clock.pauseAt(Date.now() + 3000);
        pages.push({ page, ...picture });
    }

    for (let i = 0; i < SAMPLES; i++) {
        await traffic(address, Math.round(14 + 5 * Math.sin(i / 9)
                                             + 4 * Math.sin(i / 2.3)), 20 * i,
                      day === 'bad');

        await Promise.all(pages.map(async ({ page }) => {
            const answer = page.waitForResponse(/\/zones$/);

            await page.clock.runFor(2000);
            await answer;
        }));
    }

    for (const { page, name, key, full } of pages) {
        if (key !== undefined) {
            await page.getByLabel('Key', { exact: true }).fill(key);
            await page.getByRole('button', { name: 'Look up' }).click();
            await page.locator('#why .answers').first().waitFor();
            await page.evaluate('document.activeElement.blur()');
        }

        await page.clock.runFor(100);
        await page.screenshot({ path: join(directory, `${name}.png`),
                                fullPage: full ?? false });
    }
});
