// SPDX-License-Identifier: BSD-2-Clause

// drive.mjs ADDRESS: tests everything that the page does, in a browser.
//
// Prints "ok WHAT" or "not ok WHAT: WHY" for each check.  Prints "do WORD" to
// have t/api/page-browser.t do something to nginx, and waits for its answer.

import { AsyncLocalStorage } from 'node:async_hooks';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

import { effects, place } from '../src/effects.js';
import { numberTicks, rateTicks, visible } from '../src/format.js';
import { problems } from '../src/health.js';
import { traffic, withBrowser } from './browser.mjs';

const WAIT = 20_000;

const [address] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core'),
                         'utf8');

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const where = new AsyncLocalStorage();     // a prefix of the names of checks
let added = 0;


function check(what, good, why = '') {
    console.log(`${good ? 'ok' : 'not ok'} ${where.getStore() ?? ''}${what}`
                + (good ? '' : `: ${why}`.replaceAll('\n', ' ')));
}

const is = (got, wanted, what) =>
    check(what, got === wanted, `got "${got}", wanted "${wanted}"`);

const like = (got, pattern, what) =>
    check(what, pattern.test(got), `"${got}" is not like ${pattern}`);


async function nginx(word) {
    console.log(`do ${word}`);
    await answers.next();
}


// A page whose errors and requests to other sites are collected in `bad`.
// `during` ignores those that match a pattern while `work` runs.

class Watched {
    constructor(page) {
        this.page = page;
        this.bad = [];
        this.excused = [/Canvas2D: Multiple readback/];  // caused by charts()

        page.on('pageerror', (error) => this.#note(`error: ${error}`));
        page.on('console', (message) => {
            if (['error', 'warning'].includes(message.type())) {
                this.#note(`console: ${message.text()}`);
            }
        });
        page.on('request', (request) => {
            if (!request.url().startsWith(`${address}/`)
                && !request.url().startsWith('data:'))
            {
                this.#note(`asks elsewhere: ${request.url()}`);
            }
        });
    }

    #note(text) {
        const i = this.excused.findIndex((pattern) => pattern.test(text));

        if (i < 0) {
            this.bad.push(text);
        }
    }

    async during(pattern, work) {
        this.excused.push(pattern);
        await work();
        await this.page.waitForTimeout(100);
        this.excused.pop();
    }

    quiet(what) {
        is(this.bad.join('; '), '', what);
        this.bad = [];
    }
}


async function open(browser, path, options) {
    const context = await browser.newContext({
        viewport: { width: 1280, height: 900 },
        reducedMotion: 'reduce',      // moving elements are hard to click
        ...options,
    });
    const page = await context.newPage();
    const watched = new Watched(page);

    await page.addInitScript(() => {
        addEventListener('securitypolicyviolation', (event) =>
            console.error(`policy: ${event.violatedDirective} `
                          + event.blockedURI));
    });

    page.setDefaultTimeout(WAIT);
    await page.goto(address + path);
    await page.locator('.card').first().waitFor();

    return { context, page, watched };
}


const card = (page, name) =>
    page.locator('.card').filter({ has: page.getByRole('link', { name }) });

const press = (page, name) => page.getByRole('button', { name }).click();


// Chooses a zone by its card

async function choose(page, name) {
    await page.locator('#zones').getByRole('link', { name, exact: true })
        .click();
    await page.getByRole('heading', { level: 2, name, exact: true }).waitFor();
}


async function lookUp(page, key) {
    const result = page.locator('#why .result');

    await result.evaluate((node) => node.replaceChildren());
    await page.getByLabel('Key', { exact: true }).fill(key);
    await press(page, 'Look up');
    await result.locator('> *').first().waitFor();
}


// Opens all that is folded about the key that was looked up, and waits for the
// bits of a zone.  Returns what the page says about the key in that zone.

async function inZone(page, zone) {
    const item = page.locator('#why .answers > li').filter({
        has: page.getByRole('link', { name: zone, exact: true,
                                      includeHidden: true }),
    });

    await page.locator('#why .result').evaluate((result) => {
        for (const details of result.querySelectorAll('details')) {
            details.open = true;
        }
    });

    return item;
}

const text = async (node) => (await node.innerText()).replace(/\s+/g, ' ');


// Returns a value of the tables about the chosen zone.

async function fact(page, name) {
    const row = page.locator('#detail .facts div').filter({
        has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }),
    });

    return text(row.locator('dd').first());
}


// Returns the result of a change as soon as there is one.

async function outcome(page) {
    const result = page.locator('p.result');

    await page.waitForFunction(() => {
        const text = document.querySelector('p.result').textContent;
        return text !== '' && !text.startsWith('In progress');
    });

    return result.innerText();
}


async function accessible(page, what) {
    await page.evaluate(axe);

    const found = await page.evaluate(async () => {
        const { violations } = await globalThis.axe.run(document);

        return violations.map(({ id, nodes }) =>
            `${id} at ${nodes.map(({ target }) => target).join(' and ')}`);
    });

    is(found.join('; '), '', `axe objects to nothing: ${what}`);
}


const fits = async (page, what) =>
    is(await page.evaluate(() => document.documentElement.scrollWidth
                                 - document.documentElement.clientWidth), 0,
       `the page is no wider than the window: ${what}`);


// ---- words, without a browser ----

// A zone in good order, but for what is given

function zoneWith(changes) {
    const zone = {
        state: 'serving',
        file: null,
        expire: null,
        helper: { heartbeat: '2026-05-05T12:00:00.000Z' },
        load: { result: null, message: null, in_progress: false },
        image: { capacity: 1000, uploaded: false },
        filter: { estimated_items: 900, estimated_fpr: 0.001,
                  max_items: 1000, promised_fpr: 0.001, layers: 0,
                  parts: [part(900, 14400)] },
        removals: { limit: 100, count: 80, excepted: 40, excepted_limit: 50 },
        journal: { error: null, lost_keys: 0, owing_workers: 0 },
        audit: { audited: 10, wrong_absent: 0, last_wrong_absent: null },
        feedback: { false_positives: 0, measured_fpr: null },
    };

    for (const [name, value] of Object.entries(changes)) {
        zone[name] = typeof value === 'object' && zone[name] !== null
            ? { ...zone[name], ...value } : value;
    }

    return zone;
}

const part = (items, bits) => ({ k: 10, bits, estimated_items: items });

// A filter with so many of the keys that it can grow to.

const grown = (items, layers) => ({
    filter: { estimated_items: items, estimated_fpr: 0.001, max_items: 31000,
              layers, parts: [part(1000, 14400), part(items - 1000, 432000)] },
});

const NOW = Date.parse('2026-05-05T12:00:01Z');

function said(changes) {
    return problems(zoneWith(changes), NOW)
        .map(({ level, text }) => `${level}: ${text}`).join(' ');
}


function words() {
    const wrong = (last) =>
        said({ audit: { wrong_absent: 2, last_wrong_absent: last } });

    is(said({}), '', 'a zone in good order has no problem');
    like(wrong('2026-05-05T11:59:00.000Z'),
         /^bad: The audit found 2 wrong “absent” in 10 audited requests: .* last at 2026-05-05 11:59:00 UTC\. Add the keys/,
         'a wrong absent of today is a problem');
    like(wrong('2026-05-04T12:00:02.000Z'), /^bad: The audit/,
         'a wrong absent is a problem for 24 hours');
    is(wrong('2026-05-04T12:00:00.000Z'), '',
       'a wrong absent of the day before is no problem any more');

    is(said(grown(24000, 3)), '', 'a zone that has grown a little has no problem');
    like(said(grown(25000, 3)),
         /^warn: Nearly full: the filter has about 25,000 keys, and can grow to 31,000\. Raise/,
         'a zone that has grown to more than four fifths is nearly full');
    is(said({ filter: { estimated_items: 999 } }), '',
       'a zone that does not grow may be full');
    like(said(grown(24000, 4)),
         /^note: Grown by 4 layers: .* Raise the zone’s capacity above 24,000\.$/,
         'a zone with four layers says what they cost');
    is(said(grown(31400, 3)).slice(0, 16), 'warn: Nearly ful',
       'a zone is not over-full within the error of the estimate');

    // the keys of a zone expire

    const expire = { seconds: 86400, slices: 8, slice_seconds: 10800,
                     slice_capacity: 125, live: 9, ready: 1,
                     clock_behind_seconds: 0 };

    is(said({ expire, ...grown(30000, 0) }), '',
       'a zone whose keys expire may be nearly full');

    const full = { filter: { estimated_items: 2000, estimated_fpr: 0.05 } };
    const remedies = [
        ['a zone that is not loaded', { state: 'not_loaded' },
         /and what to do\.$/],
        ['a stale zone', { state: 'stale' }, /Build an image with --as-of/],
        ['a damaged zone', { state: 'damaged' },
         /more than an hour after the loss, and load it\.$/],
        ['a zone that is behind', { state: 'behind' },
         /and at the disk of bloom_state_path\.$/],
        ['a zone that waits for its source',
         { state: 'late', source: { state: 'waiting' } },
         /^bad: The source has given no sign of life .* its log\.$/],
        ['a zone whose source is late',
         { state: 'late', source: { state: 'late' } },
         /^bad: The last sign of life .* max_lag allows: .* its log\.$/],
        ['a zone with a gap', { state: 'late', source: { state: 'gap' } },
         /^bad: The source has lost changes .* after the gap\.$/],
        ['a silent helper',
         { helper: { heartbeat: '2026-05-05T11:00:00.000Z' } },
         /restart nginx if they are gone\.$/],
        ['an over-full zone that starts empty', full,
         /Raise the zone’s capacity\.$/],
        ['an over-full zone that grows',
         { filter: { ...grown(62000, 4).filter, estimated_fpr: 0.05 } },
         /but capacity for 31,000\. .* 50 times the target\. Raise the zone’s max_keys\./],
        ['a zone with a file that has grown',
         { ...grown(25000, 3), file: '/ids.bloom' },
         /Build the next image with all keys and -n over 25,000, or raise max_keys=\.$/],
        ['an over-full zone with a file', { ...full, file: '/ids.bloom' },
         /Build the next image with -n greater than its number of keys\.$/],
        ['an over-full zone with an upload',
         { ...full, image: { uploaded: true } },
         /Build the next image with -n greater than its number of keys\.$/],
        ['a zone that is nearly full of removed keys',
         { removals: { count: 81 } },
         /has 81, and room for 100\. .* or raise removals=\.$/],
        ['a zone that is nearly full of excepted keys',
         { removals: { excepted: 41 } },
         /has 41, and excepts up to 50\. Load a newer image.* siphash\.$/],
        ['a zone whose slices are all in use',
         { expire: { ...expire, ready: 0 } },
         /^warn: All slices are in use: .* If this lasts, raise max_keys=, which/],
        ['an over-full zone whose keys expire',
         { expire, filter: { ...full.filter } },
         /about 2,000 keys that have not expired, but .*Raise the zone’s capacity\.$/],
        ['an over-full zone whose keys expire, with max_keys=',
         { expire, image: { capacity: 500 }, filter: { ...full.filter } },
         /Raise the zone’s max_keys\.$/],
        ['a damaged zone whose keys expire', { expire, state: 'damaged' },
         /until the lost ones would have expired\. Clear/],
        ['removed keys, if keys expire', { expire, removals: { count: 81 } },
         /room for 100\. Raise removals=\.$/],
        ['excepted keys, if keys expire', { expire, removals: { excepted: 41 } },
         /up to 50\. Raise removals=\. .* use hash=siphash\.$/],
        ['lost keys', { journal: { lost_keys: 3 } }, /add the keys again\.$/],
        ['workers that keep keys', { journal: { owing_workers: 3 } },
         /3 workers keep .* stopped process .* disk of bloom_state_path\.$/],
        ['false positives',
         { feedback: { false_positives: 30, measured_fpr: 0.1 } },
         /deleted keys .* remove them\. .*hash=siphash\.$/],
    ];

    for (const [what, changes, remedy] of remedies) {
        like(said(changes), remedy, `the page says what to do about ${what}`);
    }

    const axes = [
        [numberTicks, [0, 500, 1000], '0|500|1,000'],
        [numberTicks, [0, 5000, 10000], '0|5 k|10 k'],
        [numberTicks, [0, 500000, 1e6, 1.5e6], '0|0.5 M|1 M|1.5 M'],
        [numberTicks, [0, 0.5, 1], '0|0.5|1'],
        [rateTicks, [1e-5, null, 0.001, 1], '0.001 %||0.1 %|100 %'],
        [rateTicks, [1e-6, 0.001, 0.1], '1 in 1 M|1 in 1,000|1 in 10'],
    ];

    is(visible('a\x1b\x9b\u061c\u202e\u2066ä€😀'),
       'a\\u001b\\u009b\\u061c\\u202e\\u2066ä€😀',
       'characters that a browser obeys are shown');

    for (const [ticks, values, wanted] of axes) {
        is(ticks(values).join('|'), wanted,
           `an axis has one unit: ${wanted}`);
    }
}


// ---- all features, in one colour scheme and size ----

async function everything(browser, options) {
    const { context, page, watched } = await open(browser, '/bloom/', options);

    is(await page.title(), '(3) Bloom filters',
       'the title counts the zones in trouble');
    is(await page.locator('#where').innerText(),
       `${address.replace('http://', '')}/bloom/`,
       'the page says where the endpoint is');
    is((await page.locator('.card h3').allInnerTexts()).slice(0, 3).sort()
           .join(' '),
       'customers leaked tokens', 'zones in trouble come first');
    is((await page.locator('.card h3').allInnerTexts()).slice(3).join(' '),
       'items bad-urls seen grown recent',
       'the other zones come after those in trouble');

    await looks(page);
    await charts(page);
    await keys(page);
    await growth(page);
    await expiry(page);
    await changes(page, watched);
    await keyboard(page);

    for (const zone of ['items', 'seen', 'tokens', 'recent']) {
        await choose(page, zone);
        await fits(page, zone);
    }

    await lookUp(page, 'http://a.b.evil.example/x/y?q');
    await fits(page, 'with a short answer');
    await accessible(page, 'the page with a short answer');
    await inZone(page, 'bad-urls');
    await page.locator('#why .bits').first().waitFor();
    await fits(page, 'with a long answer');
    await accessible(page, 'the page with a long answer');

    watched.quiet('the page has no error and asks no other site');
    await context.close();
}


async function looks(page) {
    const items = card(page, 'items');
    const words = await text(items);

    like(words, /^items serving /, 'a card has the state of its zone');
    like(words, /items\.bloom/, 'a card has the file of its zone');
    like(await text(card(page, 'bad-urls')), /URLhaus: .*urls\.bloom/,
         'a card has the label of its zone');
    like(words, /6[12](\.\d)? k of 100 k keys/,
         'a card has the keys and the capacity');
    like(words, /Target 0\.1 %/, 'a card has the target');
    like(words, /False positives 0\.00\d+ %/, 'a card has the estimated rate');
    like(words, /Generation \d/, 'a card has the generation');
    like(words, /Image keys as of 2 h ago/, 'a card says how fresh the image is');
    like(words, /Memory 192 KiB of/, 'a card has the memory');
    like(words, /Last load (at start|ok|in progress)/,
         'a card has the last load');

    const meter = items.getByRole('meter');

    is(await meter.getAttribute('aria-valuemax'), '100000',
       'a card has a gauge up to the capacity');
    const width = await items.locator('.gauge .bar').evaluate((bar) =>
        bar.getBoundingClientRect().width
        / bar.parentNode.getBoundingClientRect().width);
    check('the gauge of a half-full filter is half full',
          width > .45 && width < .55, `is ${width}`);

    like(await card(page, 'customers').innerText(),
         /stale[^]*older than max_age/, 'the card of a stale zone says so');
    like(await card(page, 'tokens').innerText(),
         /Over-full: the filter has about 2,\d\d\d keys/,
         'the card of an over-full zone says so');
    like(await card(page, 'leaked').innerText(),
         /The last load was refused: [^]*damaged/,
         'the card of a zone with a bad image says so');
    like(await card(page, 'leaked').innerText(),
         /audit found 3 wrong “absent” in 3 audited requests: [^]*; last at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\. Add the keys /,
         'the card of a zone that lacks keys says so');
    like(await card(page, 'tokens').innerText(),
         /positives are measured at \d[\d.]* %; the target is 0\.1 %[^]*Measured\s+\d[\d.]* %, \d+ cases/,
         'the card of a zone with feedback has the measured rate');
    is(await page.locator('.card.bad').count(), 3,
       'cards of zones in trouble are marked');
    is(await page.locator('#summary').innerText(),
       '3 of 8 zones need attention',
       'the summary counts the zones in trouble');
    like(await card(page, 'tokens').innerText(), /serving, needs attention/,
         'the state of a zone in trouble that serves says so');
}


async function charts(page) {
    await choose(page, 'items');

    // something is drawn, in the colours of the series

    const drawn = () => page.locator('#detail canvas').evaluateAll((all) =>
        all.map((canvas) => {
            const { data } = canvas.getContext('2d')
                .getImageData(0, 0, canvas.width, canvas.height);
            let n = 0;

            for (let i = 0; i < data.length; i += 4) {
                n += data[i + 3] > 200
                     && Math.max(data[i], data[i + 1], data[i + 2])
                        - Math.min(data[i], data[i + 1], data[i + 2]) > 90;
            }

            return n > 100;
        }).join());

    const words = /^([1-9][\d.]*|0\.\d+)\/s checked: [\d.]+\/s absent, /;
    let lines = '';
    let said = '';

    for (let i = 0; i < 40 && !(lines === 'true,true' && words.test(said)); i++)
    {
        await traffic(address, 5);
        await page.waitForTimeout(250);
        lines = await drawn();
        said = await page.locator('#detail .chart').first()
            .getAttribute('aria-label');
    }

    is(lines, 'true,true', 'both charts have lines in them');
    like(said, words, 'the chart of decisions is described in words');

    like(await page.locator('#detail .chart').nth(1).getAttribute('aria-label'),
         /^With about 6\d,\d{3} keys, the estimated false-positive rate is 0\.00\d+ %; .* 0\.1 % with 100,000 keys/,
         'the curve is described in words');
    like(await page.locator('#detail .u-legend').nth(1).innerText(),
         /now:?\s*0\.00\d+ %/, 'the curve has the present point');

    await choose(page, 'seen');
    like(await page.locator('#detail .u-legend').first().innerText(),
         /absent/, 'another zone has a chart of its own');
}


async function keys(page) {
    const result = page.locator('#why .result');
    const verdict = result.locator('.verdict');

    is(await page.getByRole('heading', { level: 2 }).first().innerText(),
       'Why is this blocked?', 'the first box says why a key is blocked');

    // a listed URL

    await lookUp(page, 'http://WWW.Evil.example:80/a/../b?<script>');
    is(await text(verdict.first()),
       'Rejected with 403 because zone bad-urls (URLhaus) finds evil.example/',
       'the page says first what happens to a listed URL, and why');
    like(await text(result.locator('.effects > li').first()),
         /By the rule at \S+\/nginx\.conf:\d+, if \$arg_url is this key and if=\$reads holds In location \/go of server \S+:\d+$/,
         'the page says which rule decides, and where it is');
    is(await verdict.count() > 1 && await verdict.last().isVisible(), false,
       'rules that do not find the key are folded');

    const urls = await inZone(page, 'bad-urls');

    like(await text(urls),
         /^bad-urls \(URLhaus\) maybe present Found evil\.example\/ Remove Canonical http:\/\/www\.evil\.example\/b\?<script> Key form url /,
         'the zone has what it found, the canonical key and the key form');
    like(await text(verdict.last()), /because zone \S+ does not find it$/,
         'a rule on absent keys says that its zone does not find the key');

    const expressions = await urls.locator('.expressions li').allInnerTexts();

    check('a URL has five expressions or more', expressions.length >= 5,
          expressions.join());
    is(expressions.filter((one) => /maybe present/.test(one)).join()
           .replace(/\s+/g, ' '),
       'evil.example/ maybe present',
       'a URL has the expression that is present');
    await urls.locator('.bits').first().waitFor();
    is(await urls.locator('.bits').count(), 2,
       'the bits of a URL are in two lines');

    await urls.getByRole('link', { name: 'bad-urls' }).click();
    await page.getByRole('heading', { level: 2, name: 'bad-urls' }).waitFor();
    check('the name of a zone leads to its details', true);

    // an ID, in each of several zones

    await lookUp(page, 'id17');

    const items = await inZone(page, 'items');

    like(await text(items), /^items maybe present Found id17 Remove /,
         'a present key is maybe present');
    await items.locator('.bits').waitFor();
    is(await items.locator('.bits').count(), 1, 'the line of a key is drawn');
    is(await items.locator('.bits .set').count(), 8,
       'the bits of a key are drawn');
    is(await items.locator('.bits .clear').count(), 0,
       'all bits of a present key are set');
    like(await items.locator('.bits').getAttribute('aria-label'),
         /^Line [\d,]+ of 3,072: 8 bits of the key, 8 set$/,
         'the bits of a key are described in words');
    await items.getByText('Bit numbers').waitFor();
    await (await inZone(page, 'items')).locator('.numbers').waitFor();
    is((await items.locator('.numbers').innerText()).split(', ').length, 8,
       'the numbers of the bits of a key are listed');

    const seen = await inZone(page, 'seen');

    like(await text(seen), /^seen absent /,
         'the same key is absent from another zone');
    await seen.locator('.bits').waitFor();
    like(await seen.locator('.bits').getAttribute('aria-label'),
         /^All [\d,]+ bits: 7 bits of the key, \d set$/,
         'the bits of a classic filter are described as a whole');
    like(await text(await inZone(page, 'customers')),
         /^customers unknown State stale /,
         'every key of a stale zone is unknown, and the page says why');

    await lookUp(page, 'nobody');

    const nobody = await inZone(page, 'items');

    like(await text(nobody), /^items absent /, 'an absent key is absent');
    await nobody.locator('.bits').waitFor();
    check('not all bits of an absent key are set',
          await nobody.locator('.bits .clear').count() > 0);
    like(await text(verdict.first()),
         /^Rejected with 404 because zone \S+ does not find it$/,
         'the page says why an absent key is rejected');

    // a key of --except

    await lookUp(page, 'chosen');
    like(await text(await inZone(page, 'items')),
         /^items absent .*chosen absent, chosen by the builder of the image/,
         'the page says that a key is an exception that the builder chose');
    is(await text(verdict.filter({ hasText: 'zone items' }).first()),
       'Rejected with 404 because zone items does not find it: chosen is an '
       + 'exception that the builder of the image chose',
       'the page says why such a key is rejected');
    await choose(page, 'items');
    is(await fact(page, 'Exceptions'), '1, chosen by the builder',
       'the details have the number of exceptions of the image');
    await choose(page, 'bad-urls');
    is(await fact(page, 'Exceptions'), 'none',
       'the details say that an image has no exceptions');
    await lookUp(page, 'nobody');

    await result.evaluate((node) => node.replaceChildren());
    await page.getByLabel('Key', { exact: true }).press('Enter');
    await result.locator('> *').first().waitFor();
    like(await text(await inZone(page, 'items')), /^items absent/,
         'Enter looks a key up');

    // a key is always shown as text

    for (const key of ['<script>document.title = "taken"</script>',
                       '<img src=x onerror="document.title = \'taken\'">',
                       '"><svg onload=alert(1)>', '%3Cb%3E&amp;+ ä€😀',
                       '\u202eelpmaxe.live'])
    {
        await lookUp(page, key);

        const one = await inZone(page, 'items');

        is(await one.locator('dd code').first().textContent(), visible(key),
           `the key ${visible(key)} is shown as text`);
        is(await result.locator('script, img, b, svg:not(.bits)').count(), 0,
           `the key ${visible(key)} becomes no element`);
    }

    check('no key is run as a script', !(await page.title()).includes('taken'));

    await lookUp(page, 'http://a<b>.example:no/');
    like(await text(await inZone(page, 'bad-urls')),
         /^bad-urls \(URLhaus\) invalid key Why invalid it /,
         'the page says why a URL is an invalid key');
}


// The zone "grown" can grow from 100 keys to 3,100, and has 2,001.

async function growth(page) {
    const grown = card(page, 'grown');
    const words = await text(grown);

    like(words, /^grown serving /, 'a zone that has grown is in good order');
    like(words, / (1,9|2,0)\d\d of 3,100 keys, [\d.]+ % of the bits, 4 layers /,
         'the card of a zone that has grown has what it can grow to');
    like(words, /Grown by 4 layers: .* Raise the zone’s capacity above \d,\d{3}\./,
         'the card of a zone that has grown says what to do');
    like(words, /Target 0\.(0999?|1) %/, 'the target is that of all parts');
    is(await grown.getByRole('meter').getAttribute('aria-valuemax'), '3100',
       'the gauge goes to what the zone can grow to');

    await choose(page, 'grown');

    const detail = page.locator('#detail');

    like(await text(detail), /Parts Base about \d+ of 100 keys, .* Layer 4 about [\d,]+ of 1,600 keys, [\d.]+ KiB, [\d.]+ % of the bits /,
         'the details list the parts');

    // the curve takes a request of its own

    await detail.getByText(/the target is/).waitFor();
    like(await text(detail), /the target is 0\.(0999?|1) % with 3,100 keys\./,
         'the curve has the target of all parts');

    const found = async (key) => {
        await lookUp(page, key);

        const zone = await inZone(page, 'grown');

        await zone.locator('.bits').first().waitFor();
        return text(zone);
    };

    like(await found('new'), /^grown maybe present .* All bits of layer 4 are set/,
         'the bits of a key are those in the last layer');

    // the parts before it have 72 of the 141 lines

    const [, line, all] = /Line (\d+) of (\d+): /.exec(await found('new')) ?? [];

    check('their lines are counted from the beginning of the filter',
          +all === 141 && +line < 141 && +line >= 72,
         `is ${line} of ${all}`);
    like(await found('key1'), /^grown maybe present .* of layer 4 (is|are) not set, so this layer lacks the key\. An earlier part may have it\./,
         'a key that the base has is present, though its bits in the last layer'
         + ' are not set');
}


// The keys of zone "recent" expire after a day.  It has 6,000, which came at once
// and have filled two slices of eight.

async function expiry(page) {
    const recent = card(page, 'recent');
    const words = await text(recent);

    like(words, /^recent serving /, 'a zone whose keys expire is in good order');
    like(words, / (5,9|6,0)\d\d of 20 k keys, [\d.]+ % of the bits /,
         'its card has the keys that live');
    like(words, /Keys live 1 d to 1 d 3 h\. 3 live slices, 14 ready\. The next slice is dropped in 2[34] h\./,
         'its card says how long keys live, and when the next are dropped');
    is(await recent.locator('.slices li').count(), 3,
       'its card has a bar for each live slice');
    is(await card(page, 'items').locator('.slices').isVisible(), false,
       'the card of another zone has no bars');

    await choose(page, 'recent');

    const slices = page.locator('#detail .slices li');
    const all = await slices.allInnerTexts();

    is(all.length, 3, 'the details have a bar for each live slice');
    is(await slices.evaluateAll((nodes) =>
           nodes.map((node) => node.className).join(' ')),
       'closed closed open', 'the open slice is the last, and is marked');
    like(all[0].replace(/\s+/g, ' '),
         /^(now|\d+ \w+ ago) ?: about 2,[45]\d\d of 2,500 keys, dropped at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/,
         'a bar is described in words');
    like(all[2].replace(/\s+/g, ' '),
         /^open, (now|\d+ \w+ ago) ?: about [89]\d\d of 2,500 keys$|^open, (now|\d+ \w+ ago) ?: about 1,0\d\d of 2,500 keys$/,
         'so is that of the open slice');

    const heights = await slices.locator('.bar').evaluateAll((bars) =>
        bars.map((bar) => bar.getBoundingClientRect().height
                          / bar.parentNode.clientHeight));

    check('the bars of full slices are full',
          heights[0] > .9 && heights[1] > .9, heights.join());
    check('the bar of the open slice is as high as the slice is full',
          heights[2] > .3 && heights[2] < .5, heights.join());

    const detail = await text(page.locator('#detail'));

    like(detail, /Keys expire A key lives 1 d or longer A slice 3 h or 2,500 keys Slices of a life 8 Live slices 3 Ready slices 14 The clock is behind 0 ms /,
         'the details have the life of a key');
    like(detail, /Slice 1 about 2,[45]\d\d of 2,500 keys, [\d.]+ KiB, [\d.]+ % of the bits, from \d{4}-.* UTC, dropped at \d{4}-.* Open slice about /,
         'the details have the slices in words');
    await accessible(page, 'a zone whose keys expire');
    await fits(page, 'a zone whose keys expire');

    const found = async (key) => {
        await lookUp(page, key);

        const zone = await inZone(page, 'recent');

        await zone.locator('.bits').first().waitFor();
        return text(zone);
    };

    like(await found('r6000'), /^recent maybe present .* Expires between \d{4}-\S+ \S+ UTC and \d{4}-\S+ \S+ UTC .* All bits of the open slice are set/,
         'the page says between when a key of the open slice expires');
    like(await found('r1'), /^recent maybe present .* Expires at \d{4}-\S+ \S+ UTC .* this slice lacks the key\. An older one may have it\./,
         'and when one of a closed slice does');

    await page.getByLabel('Keys to add').fill('r1');
    await press(page, 'Add keys');
    like(await page.locator('#confirm-text').innerText(),
         /^Added keys stay until they expire, or you remove them\./,
         'the question says that added keys expire');
    await press(page, 'Cancel');
    await page.getByLabel('Keys to add').fill('');

    await press(page, 'Save a checkpoint');
    await press(page, 'Save it');
    like(await outcome(page), /^Generation \d+ is saved\. The checkpoint took /,
         'a checkpoint of the slices is saved');

    await choose(page, 'items');
    is(await page.getByRole('heading', { name: 'Slices, oldest first' })
           .isVisible(), false, 'the details of another zone have no bars');
}


async function changes(page, watched) {
    const dialog = page.getByRole('dialog');
    const count = () => card(page, 'seen').getByRole('meter')
        .getAttribute('aria-valuenow').then(Number);

    // keys

    await choose(page, 'seen');
    await press(page, 'Add keys');
    like(await outcome(page), /no key to add/, 'adding no key is refused');

    const mine = ++added;             // other runs add keys at the same time
    const hostile = `<script>document.title = "taken"</script>${mine}`;
    const before = await count();

    await page.getByLabel('Keys to add').fill(`key${mine}\n\n${hostile}\n`);
    await press(page, 'Add keys');
    is(await dialog.getByRole('heading').innerText(), 'Add 2 keys to seen?',
       'the page asks before it adds keys');
    is(await page.evaluate(() => document.activeElement.textContent), 'Cancel',
       'the question has the focus on Cancel');
    await accessible(page, 'a question');
    await press(page, 'Cancel');
    is(await outcome(page), 'Nothing was changed.', 'Cancel changes nothing');

    await press(page, 'Add keys');
    await page.keyboard.press('Escape');
    is(await outcome(page), 'Nothing was changed.', 'Escape changes nothing');
    await lookUp(page, hostile);
    like(await text(await inZone(page, 'seen')), /^seen absent/,
         'a key that was not added is absent');

    await press(page, 'Add keys');
    await press(page, 'Add 2 keys');
    is(await outcome(page), '2 keys received: 2 added, 0 already present.',
       'the result counts the added keys');
    is(await page.getByLabel('Keys to add').inputValue(), '',
       'added keys are gone from the box');
    await lookUp(page, hostile);
    like(await text(await inZone(page, 'seen')), /^seen maybe present/,
         'an added key is maybe present');

    await page.waitForFunction((n) => [...document.querySelectorAll('.card')]
        .some((one) => /^seen/.test(one.innerText)
                       && one.querySelector('.gauge')
                           .getAttribute('aria-valuenow') > n), before);
    check('the gauge moves when keys are added', await count() > before);

    await removals(page, hostile, mine);

    await choose(page, 'items');
    await page.getByLabel('Keys to add').fill(`new${mine}`);
    await page.getByLabel('wait until the keys are on disk').check();
    await press(page, 'Add keys');
    await press(page, 'Add 1 key');
    is(await outcome(page),
       '1 key received: 1 added, 0 already present; all are on disk.',
       'the result says that a durable key is on disk');

    await choose(page, 'bad-urls');
    await page.getByLabel('Keys to add')
        .fill(`http://bad${mine}.example/\nhttp://no.example:<b>/\n`);
    await press(page, 'Add keys');
    await press(page, 'Add 2 keys');
    like(await outcome(page),
         /^2 keys received: 1 added, 0 already present, 1 left out .* number 2, /,
         'the result names an invalid key');

    // the file, a checkpoint

    await choose(page, 'items');

    const generation = async () => Number(/Generation\s+(\d+)/.exec(
        await card(page, 'items').innerText())[1]);
    const last = await generation();

    await press(page, 'Reload the file');
    like(await page.locator('#confirm-text').innerText(), /items\.bloom/,
         'the question names the file to load');
    await press(page, 'Load it');
    like(await outcome(page),
         /^Generation \d+ serves\. The load took /, 'the file is loaded again');
    await page.waitForFunction((n) => [...document.querySelectorAll('.card')]
        .some((one) => /^items/.test(one.innerText)
                       && /Generation\s+(\d+)/.exec(one.innerText)[1] > n),
        last);
    check('the card has the generation that was loaded',
          await generation() > last);

    await press(page, 'Save a checkpoint');
    await press(page, 'Save it');
    like(await outcome(page), /^Generation \d+ is saved\. The checkpoint took /,
         'a checkpoint is saved');

    // errors, in words

    await watched.during(/status of 409/, async () => {
        await choose(page, 'seen');
        await press(page, 'Reload the file');
        await press(page, 'Load it');
        like(await outcome(page),
             /^The file was not loaded: .*\(409, not_possible\)/,
             'the result says that a load without a file is impossible');
    });

    await watched.during(/status of 422/, async () => {
        await choose(page, 'leaked');
        await press(page, 'Reload the file');
        await press(page, 'Load it');
        like(await outcome(page),
             /^The file was not loaded: .*damaged.*\(422, /,
             'the result says that a refused image is damaged');
    });
}


// A key is removed beside the answer about it.

async function removals(page, hostile, mine) {
    const found = async (zone, key) =>
        (await inZone(page, zone)).getByRole('button',
            { name: `Remove ${visible(key)} from zone ${zone}`, exact: true });
    const said = page.locator('#why .said');

    await lookUp(page, hostile);

    const button = await found('seen', hostile);

    await button.click();
    is(await text(page.getByRole('group').locator('.question')),
       `No request finds ${visible(hostile)} in zone seen any more, in this `
       + `nginx, from now on until ${visible(hostile)} is added again or a `
       + 'newer image has it.',
       'the page says what it means to remove a key');
    is(await page.evaluate(() => document.activeElement.textContent), 'Cancel',
       'this question has the focus on Cancel');
    await accessible(page, 'a question beside an answer');
    await press(page, 'Cancel');
    is(await button.evaluate((node) => node === document.activeElement), true,
       'Cancel gives the focus back to the button');

    await button.click();
    await press(page, 'Remove it');
    await said.waitFor();
    is(await text(said), `${visible(hostile)} is absent in zone seen now.`,
       'the page says that the removed key is absent');
    like(await text(await inZone(page, 'seen')), /^seen absent/,
         'the answer about the removed key is a new one');
    is(await (await found('seen', hostile)).count(), 0,
       'an absent key cannot be removed');

    await choose(page, 'seen');
    await page.locator('#detail .facts div')
        .filter({ hasText: /^Removed and excepted keys\s*[1-9][\d,]* of at most 10,000$/ })
        .waitFor();
    check('the details have the number of removed keys', true);

    // an entry below another one

    await choose(page, 'bad-urls');
    await page.getByLabel('Keys to add')
        .fill(`http://up${mine}.example/\nhttp://up${mine}.example/a/\n`);
    await press(page, 'Add keys');
    await press(page, 'Add 2 keys');
    await outcome(page);
    await lookUp(page, `http://www.up${mine}.example/a/b`);
    await (await found('bad-urls', `up${mine}.example/a/`)).click();
    await press(page, 'Remove it');
    await said.waitFor();
    is(await text(said),
       `up${mine}.example/a/ is removed, but zone bad-urls still finds it by `
       + `up${mine}.example/.`,
       'the page says by what a removed key is still found');
    is(await (await found('bad-urls', `up${mine}.example/`)).count(), 1,
       'the other entry can be removed, too');
}


async function keyboard(page) {
    await page.goto(`${address}/bloom/`);
    await page.locator('.card').first().waitFor();
    await page.keyboard.press('Tab');
    is(await page.evaluate(() => document.activeElement.textContent),
       'Skip the list of zones',
       'the first Tab stop skips the list of zones');
    await page.keyboard.press('Tab');
    is(await page.evaluate(() => document.activeElement.id), 'pause',
       'the second Tab stop is the pause button');

    await page.keyboard.press('Tab');
    is(await page.evaluate(() => document.activeElement.id), 'key',
       'the third Tab stop is the key to look up');

    for (let i = 0; i < 5; i++) {
        await page.keyboard.press('Tab');
    }

    is(await page.evaluate(() => document.activeElement.textContent), 'items',
       'later Tab stops are zones');

    const outline = await page.evaluate(() =>
        getComputedStyle(document.activeElement).outlineStyle);

    is(outline, 'solid', 'the focus is visible');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 2, name: 'items' }).waitFor();
    await page.waitForFunction(() => document.activeElement.id === 'detail');
    check('Enter chooses a zone', true);
    is(await page.locator('[aria-current]').innerText(), 'items',
       'the chosen zone is marked');
    is(new URL(page.url()).hash, '#zone=items',
       'the address names the chosen zone');
}


// ---- the same checks at other addresses ----

async function elsewhere(browser) {
    for (const path of ['/reading/', '/bare', '/proxied/deep/']) {
        const { context, page, watched } = await open(browser, path);

        await choose(page, 'items');
        await lookUp(page, 'id1');
        like(await text(await inZone(page, 'items')), /^items maybe present/,
             `a key is looked up at ${path}`);
        is(await page.getByRole('button', { name: 'Add keys' }).count(),
           path === '/reading/' ? 0 : 1,
           `keys can be added at ${path} only where writing is on`);
        watched.quiet(`the page at ${path} has no error`);
        await context.close();
    }
}


async function pauses(browser) {
    const { context, page, watched } = await open(browser, '/bloom/');
    let asked = 0;

    page.on('request', (request) => asked += request.url().endsWith('/zones'));

    const asks = async () => {
        const before = asked;
        await page.waitForTimeout(5000);
        return asked - before;
    };

    const asksOn = async () => {
        const before = asked;

        while (asked < before + 2) {
            await page.waitForRequest(/\/zones$/);
        }

        return true;
    };

    const hide = (hidden) => page.evaluate((value) => {
        Object.defineProperty(document, 'hidden',
                              { value, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);

    check('the page asks again and again', await asksOn());
    await hide(true);
    is(await asks(), 0, 'a hidden page asks nothing');
    await hide(false);
    check('a page that is shown again asks again', await asksOn());

    await press(page, 'Pause updates');
    is(await page.getByRole('button', { name: 'Pause updates' })
           .getAttribute('aria-pressed'), 'true',
           'the button of the pause is pressed');
    is(await asks(), 0, 'a paused page asks nothing');

    await choose(page, 'tokens');
    like(await page.locator('#detail .u-legend').nth(1).innerText(),
         /now:?\s*\d[\d.]* %/,
         'a new chart of a paused page has the present figures');

    await press(page, 'Pause updates');
    check('a page that is not paused any more asks again', await asksOn());

    watched.quiet('pauses cause no error');
    await context.close();
}


async function troubles(browser) {
    const { context, page, watched } = await open(browser,
                                                  '/bloom/#zone=items');
    const trouble = page.getByRole('alert');

    // the helper

    await nginx('silence');
    await page.locator('.card.bad h3', { hasText: 'items' }).waitFor();
    like(await card(page, 'items').innerText(),
         /helper process has been silent for \d+ s/,
         'a card says that the helper is silent');
    is(await page.locator('#summary').innerText(),
       '8 of 8 zones need attention',
       'all zones are in trouble while the helper is silent');
    await nginx('wake');
    await page.locator('.card.good h3', { hasText: 'items' }).waitFor();
    check('zones recover when the helper works again', true);

    // states that are hard to cause

    await page.route(/\/zones$/, async (route) => {
        const response = await route.fetch();
        const answer = await response.json();
        const [first, second] = answer.zones;

        Object.assign(first, { state: 'not_loaded', generation: 0, image: null,
                               filter: null });
        Object.assign(second, { state: 'damaged' });
        Object.assign(second.journal, { error: 'No space <b>left</b>',
                                        owing_workers: 2, lost_keys: 1 });
        second.load = { ...second.load, in_progress: true, done_bytes: 1 << 20,
                        size_bytes: 4 << 20 };

        await route.fulfill({ response, json: answer });
    });

    await page.getByText('Nothing is loaded: every answer').first().waitFor();
    like(await card(page, 'items').innerText(), /^items\s+not loaded/,
         'the card of a zone that is not loaded says so');
    is(await page.locator('#detail-title').innerText(), 'items',
       'a zone that is not loaded is shown');
    like(await card(page, 'bad-urls').innerText(),
         /damaged[^]*No space <b>left<\/b>[^]*1 added key could[^]*2 workers keep added[^]*Loading: 1 MiB of 4 MiB/,
         'the card of a damaged zone says what its journal lost');
    await accessible(page, 'zones in trouble');
    await page.unrouteAll({ behavior: 'wait' });
    watched.quiet('zones in trouble cause no error');

    // the endpoint

    await watched.during(/ERR_CONNECTION|Failed to load/, async () => {
        await nginx('stop');
        await trouble.filter({ hasText: 'does not answer' }).waitFor();
        like(await trouble.innerText(),
             /cannot be reached\. The values below are from \d\d:\d\d:\d\d\./,
             'the page says that nginx does not answer');
        is(await page.title(), 'No answer – Bloom filters',
           'the title says that nginx does not answer');
        await page.getByLabel('Key', { exact: true }).fill('id1');
        await press(page, 'Look up');
        await page.getByText('The key was not looked up: it cannot be reached')
            .waitFor();
        check('a lookup says that nginx does not answer', true);
        await nginx('start');
        await trouble.waitFor({ state: 'hidden' });
        check('the page recovers when nginx is back', true);
    });

    await watched.during(/status of 403/, async () => {
        await page.route(/\/zones$/, (route) =>
            route.fulfill({ status: 403, contentType: 'text/html',
                            body: '<h1>403 Forbidden</h1>' }));
        await trouble.filter({ hasText: 'nginx refuses your request' })
            .waitFor();
        check('the page says that nginx refuses it', true);
        await page.unrouteAll({ behavior: 'wait' });
        await trouble.waitFor({ state: 'hidden' });
    });

    watched.quiet('an nginx that is gone causes no other error');
    await context.close();
}


// Clears a zone, while no other run uses it.

async function clears(browser) {
    const { context, page, watched } = await open(browser, '/bloom/');

    await page.locator('.card').first().waitFor();

    const dialog = page.getByRole('dialog');
    const key = 'a key that goes';

    await choose(page, 'seen');
    await page.getByLabel('Keys to add').fill(key);
    await press(page, 'Add keys');
    await press(page, 'Add 1 key');
    like(await outcome(page), /1 added/, 'a key is added');

    await press(page, 'Clear');
    is(await dialog.getByRole('heading').innerText(), 'Clear seen?',
       'the page asks before it clears a zone');
    like(await page.locator('#confirm-text').innerText(),
         /All keys that were added are lost.*The zone becomes empty/,
         'the question says what is lost');
    check('a zone is not cleared by a click alone',
          await page.locator('#confirm-yes').isDisabled());
    await accessible(page, 'a question with a word');
    await page.getByLabel('Type seen to confirm').fill('see');
    check('another word is not enough',
          await page.locator('#confirm-yes').isDisabled());
    await press(page, 'Cancel');
    is(await outcome(page), 'Nothing was changed.', 'Cancel clears nothing');
    await lookUp(page, key);
    like(await text(await inZone(page, 'seen')), /^seen maybe present/,
         'the key is still there');

    await press(page, 'Clear');
    await page.getByLabel('Type seen to confirm').fill('seen');
    await press(page, 'Clear the zone');
    like(await outcome(page), /^Generation \d+ serves\. The clear took /,
         'the zone is cleared');
    await lookUp(page, key);
    like(await text(await inZone(page, 'seen')), /^seen absent/,
         'the key is gone');

    await press(page, 'Restore removed keys');
    like(await page.locator('#confirm-text').innerText(), /Nothing else changes/,
         'the question says what is restored');
    await press(page, 'Restore them');
    is(await outcome(page), 'No key is removed any more.',
       'the removed keys are restored');

    await forgets(page);

    watched.quiet('clearing causes no error');
    await context.close();
}


// Returns the number of excepted keys of zone items, as the endpoint has it.

async function excepted() {
    const response = await fetch(`${address}/bloom/zones/items`);

    return (await response.json()).removals.excepted;
}


// Makes zone items except a key, and forget it.

async function forgets(page) {
    const shown = (number) => page.locator('#detail .facts div')
        .filter({ hasText: new RegExp(`^Excepted keys\\s*${number} of at most`
                                      + ' 5,000$') });

    for (let i = 0; i < 600 && await excepted() === 0; i++) {
        await fetch(`${address}/except?id=gone`);
        await page.waitForTimeout(100);
    }

    await choose(page, 'items');
    await shown(1).waitFor();
    check('the details have the number of excepted keys', true);

    await fetch(`${address}/except?id=gone`);
    await page.locator('#detail .facts div')
        .filter({ hasText: /^Measured\s*\d[\d.]* % now, \d[\d.]* % without excepted keys$/ })
        .waitFor();
    check('the details have the measured rate with and without excepted keys',
          true);

    await lookUp(page, 'gone');
    like(await text(await inZone(page, 'items')),
         /^items absent .*gone absent, excepted/,
         'the page says that a key is an excepted one');
    is(await text(page.locator('#why .verdict')
                      .filter({ hasText: 'zone items' }).first()),
       'Rejected with 404 because zone items does not find it: gone is an '
       + 'excepted key: the backend did not know it',
       'the page says why it is rejected');
    await accessible(page, 'an answer about an excepted key');

    await press(page, 'Forget excepted keys');
    is(await page.getByRole('dialog').getByRole('heading').innerText(),
       'Forget all excepted keys of items?',
       'the page asks before a zone forgets its excepted keys');
    like(await page.locator('#confirm-text').innerText(),
         /false positives that the backend did not know.*Nothing else changes/,
         'the question says what is forgotten');
    await press(page, 'Cancel');
    is(await outcome(page), 'Nothing was changed.', 'Cancel forgets nothing');
    is(await excepted(), 1, 'the key is still an excepted one');

    await press(page, 'Forget excepted keys');
    await press(page, 'Forget them');
    is(await outcome(page), 'The excepted keys are forgotten.',
       'the excepted keys are forgotten');
    await shown(0).waitFor();
    is(await excepted(), 0, 'the zone has no excepted key any more');
    await lookUp(page, 'gone');
    like(await text(await inZone(page, 'items')), /^items maybe present /,
         'the key is present again');
}


// What the page says of the facts that the endpoint has about rules

function sentences() {
    const zone = { name: 'bad', label: 'URLhaus' };
    const here = { server: 'shop', file: 'a.conf', line: 3, location: '/go',
                   dry_run: false, unknown: 'pass' };
    const rule = { rule: 'r', file: 'a.conf', line: 7, action: 'reject',
                   status: 403, condition: 'present', key: '$arg_url',
                   zone: 'bad', dry_run: false, answer: 'present',
                   entry: 'evil.test/', effect: 'fires', decided: false };
    const flat = (parts) => parts.map((part) =>
        part.code ?? part.zone?.name ?? part).join('');
    const all = (changes, places = [here], more = {}) => effects({
        zones: [{ ...zone, ...more }],
        lists: [{ places, rules: [{ ...rule, ...changes }] }],
    });
    const says = (...given) =>
        all(...given).map(({ verdict }) => flat(verdict)).join('; ');

    is(says({}), 'Rejected with 403 because zone bad finds evil.test/',
       'a rule that fires has a sentence');
    is(says({ decided: true }), '',
       'a rule that does not come to its turn has no sentence');
    is(says({ effect: 'none' }), '', 'a rule without effect has no sentence');
    is(says({}, []), '', 'a rule that applies nowhere has no sentence');
    is(says({ action: 'route', to: '/slow' }),
       'Routed to /slow because zone bad finds evil.test/', 'a route is named');
    is(says({ action: 'pass' }), 'Passed because zone bad finds evil.test/',
       'a rule that passes a key has a sentence');

    const dry = { ...here, dry_run: true };

    like(says({ dry_run: true }), /^In dry run: Rejected/,
         'a rule on trial is called that');
    like(says({}, [dry, dry]), /^In dry run: Rejected/,
         'a rule that is everywhere in a dry run is called that');
    like(says({}, [dry, here]), /^Rejected/,
         'a rule that is somewhere in force is in force');

    const absent = { condition: 'absent', answer: 'absent', entry: undefined };

    like(says(absent), /because zone bad does not find it$/,
         'a rule on absent keys says that its zone does not find the key');

    for (const [exception, end] of Object.entries({
        removed: 'x was removed',
        excepted: 'x is an excepted key: the backend did not know it',
        image_excepted: 'x is an exception that the builder of the image chose',
    })) {
        is(says({ ...absent, entry: 'x', exception }),
           `Rejected with 403 because zone bad does not find it: ${end}`,
           `an exception of the kind ${exception} has its reason`);
    }

    is(says({ answer: 'invalid' }, [here], { reason: 'has a dot' }),
       'Rejected with 403 because zone bad calls the key invalid: it has a dot',
       'a sentence says why a key is invalid');

    const unknown = { answer: 'unknown', effect: 'unknown' };
    const to = (where) => ({ ...here, unknown: 'route', to: where });

    is(says(unknown), '', 'an unknown key passes by default');
    is(says(unknown, [{ ...here, unknown: 'reject' }, here],
            { state: 'not_loaded' }),
       'Rejected with 503 because zone bad cannot tell: its state is not loaded',
       'an unknown key is rejected where that is configured');
    is(all(unknown, [to('@a'), here, to('@b'), to('@a')])
           .map(({ verdict, places }) => `${verdict[0]} ${places.length}`)
           .join(),
       'Routed to @a 2,Routed to @b 1',
       'each service for unknown keys has a sentence, with its places');

    is(flat(all({ if: '$reads' })[0].by),
       'By rule r at a.conf:7, if $arg_url is this key and if=$reads holds',
       'the page says which rule it is, and when it runs');
    is(flat(all({ rule: 'a.conf:7' })[0].by),
       'By the rule at a.conf:7, if $arg_url is this key',
       'a rule without a name has its place');

    for (const [changes, wanted] of [
        [{}, 'In location /go of server shop'],
        [{ modifier: '=' }, 'In location = /go of server shop'],
        [{ modifier: 'if' }, 'In location if in /go of server shop'],
        [{ location: null }, 'In server shop'],
        [{ server: null, location: null }, 'In server a.conf:3'],
        [{ dry_run: true }, 'In location /go of server shop, in dry run'],
    ]) {
        is(flat(place({ ...here, ...changes })), wanted,
           `the page names a place: ${wanted}`);
    }
}


// The checks above assume that the browser reports each of these.

async function noticed(browser) {
    const { context, page, watched } = await open(browser, '/bloom/');

    const notices = async (what, pattern, work) => {
        const noticed = () => watched.bad.some((text) => pattern.test(text));

        await page.evaluate(work).catch(() => {});

        for (let i = 0; i < 100 && !noticed(); i++) {
            await page.waitForTimeout(100);
        }

        check(`${what} would be noticed`, noticed(), watched.bad.join('; '));
        watched.bad = [];
    };

    await notices('markup from text', /policy: require-trusted-types-for/,
        () => { document.body.innerHTML += '<p onclick="x()">'; });
    await notices('an inline handler', /policy: (script-src-attr|require-trusted-types-for)/, () => {
        const p = document.createElement('p');
        p.setAttribute('onclick', 'document.title = "taken"');
        document.body.append(p);
        p.click();
    });
    await notices('an inline style', /policy: style-src-attr/,
        () => document.body.setAttribute('style', 'color: red'));
    await notices('a request to others', /policy: connect-src|asks elsewhere/,
        () => fetch('http://127.0.0.1:9/'));
    await notices('an error', /error: .*lost/,
        () => setTimeout(() => { throw new Error('lost'); }));
    await context.close();
}


words();
sentences();

await withBrowser(async (browser) => {
    const all = (name, options) => where.run(`${name}: `, () =>
        everything(browser, options));

    await noticed(browser);

    await Promise.all([
        all('light', { colorScheme: 'light' }),
        all('dark', { colorScheme: 'dark' }),
        all('phone', { colorScheme: 'light', hasTouch: true,
                       viewport: { width: 360, height: 740 } }),
        elsewhere(browser),
        pauses(browser),
    ]);

    await clears(browser);
    await troubles(browser);
});

console.log('end');
process.exit(0);
