// SPDX-License-Identifier: BSD-2-Clause

// lists-engine.mjs [DIR] < cases.json > answers.json
//
// Asks an engine that Adblock-style lists are written for which URLs a list
// blocks as pages: uBlock Origin's (the package "@gorhill/ubo-core"); or
// AdGuard's (the package "@adguard/tsurlfilter"), if it is installed in DIR.
//
// A case has lists (`files`, paths, or `texts`) and `urls`.  The answer has for
// each URL the verdict and the rule that decided:
//
//     document   blocked by a rule with the type `document`
//     host       blocked by a rule without a type that ends at the host
//     beyond     blocked by a rule without a type that ends behind the host;
//                uBlock Origin blocks what other pages request from there, but
//                opens it as a page
//     allowed    allowed by an exception, although a rule blocks it
//     -          no rule blocks it
//
// AdGuard's verdicts are document, allowed, - and failed, if it throws.
//
// Conditions (!#if) have the values of uBlock Origin in Chromium on a desktop.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';

const root = new URL('../../', import.meta.url);
const require = createRequire(new URL('dashboard/', root));

const ENVIRONMENT = ['ublock', 'webext', 'ipaddress', 'native_css_has',
                     'chromium'];

// The result of a match, and what to ask for: rules of just this type, and
// exceptions also if nothing blocks.

const PASS = 0, BLOCK = 1, ALLOW = 2;
const EXACT_WITH_EXCEPTIONS = 0b11;

const base = pathToFileURL(dirname(require.resolve('@gorhill/ubo-core')) + '/');
const part = path => import(new URL(path, base));

const { StaticNetFilteringEngine } = await part('index.js');
const { FilteringContext } = await part('js/filtering-context.js');
const { utils } = await part('js/static-filtering-parser.js');
const { default: matcher } = await part('js/static-net-filtering.js');

const engine = await StaticNetFilteringEngine.create();

// AdGuard's prints to standard output which rules it does not know

console.log = console.info = console.debug = () => {};

const other = process.argv[2] && createRequire(
    pathToFileURL(`${process.argv[2]}/`))('@adguard/tsurlfilter');


// Returns how the rules of a type judge a request.

function judged(url, type) {
    const request = new FilteringContext().fromDetails(
        { originURL: url, url, type });
    const result = matcher.matchRequest(request, EXACT_WITH_EXCEPTIONS);

    return {
        result,
        important: result === BLOCK && matcher.isBlockImportant(),
        log: result === PASS ? undefined : matcher.toLogData(),
    };
}


// Returns whether what a rule matches ends at the host.

function endsAtHost(url, log) {
    const found = typeof log.regex === 'string'
                  && new RegExp(log.regex, 'i').exec(url.toLowerCase());

    if (!found) {
        return false;
    }

    const { hostname } = new URL(url);
    const past = found.index + found[0].length - url.indexOf(hostname)
                 - hostname.length;

    const dot = url[url.indexOf(hostname) + hostname.length] === '.';

    return past === 0 || past === 1 || past === 2 && dot;
}


// A rule with the type `document` decides before one without a type, and
// $important before both.

function answer(url) {
    const exact = judged(url, 'main_frame');
    const any = judged(url, 'no_type');
    const take = exact.result === PASS
                 || !exact.important
                    && (any.important
                        || any.result === ALLOW && exact.result !== ALLOW);
    const { result, log } = take ? any : exact;

    const verdict = result === PASS ? '-'
                    : result === ALLOW ? 'allowed'
                    : !take ? 'document'
                    : endsAtHost(url, log) ? 'host' : 'beyond';

    return { verdict, rule: log?.raw };
}


// Returns how AdGuard's engine judges URLs.

function otherAnswers(texts, urls) {
    const { Engine, Request, RequestType, RuleStorage, StringRuleList } = other;

    const lists = texts.map((text, i) => new StringRuleList(i + 1, text, true));
    const rules = new Engine(new RuleStorage(lists));

    return urls.map(url => {
        let rule;

        try {
            rule = rules.matchRequest(
                new Request(url, url, RequestType.Document)).getBasicResult();

        } catch (error) {
            return { verdict: 'failed', rule: error.message };
        }

        return { verdict: !rule ? '-'
                          : rule.isAllowlist() ? 'allowed' : 'document',
                 rule: rule?.getText() };
    });
}


const answers = [];

for (const { files = [], texts = [], urls }
     of JSON.parse(readFileSync(0, 'utf8')))
{
    const pruned = files.map(path => readFileSync(path, 'utf8'))
                        .concat(texts)
                        .map(text => utils.preparser.prune(text, ENVIRONMENT));

    if (other) {
        answers.push(otherAnswers(pruned, urls));
        continue;
    }

    await engine.useLists(pruned.map(raw => ({ raw })));
    answers.push(urls.map(answer));
}

process.stdout.write(JSON.stringify(answers));
