// SPDX-License-Identifier: BSD-2-Clause

// Requests to the endpoint that this page is of, whatever its prefix is and
// whatever is before it.

const TIMEOUT = 10_000;

const base = location.pathname.replace(/\/*$/, '/');


// What is wrong, in words; `answer` is the endpoint's, if it gave one.

export class Failure extends Error {
    constructor(message, status = 0, answer = null) {
        super(message);
        this.status = status;
        this.answer = answer;
    }
}


// GET of a path below the prefix: { answer, now }, with the server's time

export const get = (path) => ask(path, { headers: accept }, TIMEOUT);


// POST; a load may take as long as it takes

export const post = (path, body) =>
    ask(path, {
        method: 'POST',
        headers: { ...accept, 'Content-Type': 'text/plain' },
        body,
    });

export const zonePath = (name) => `zones/${encodeURIComponent(name)}`;

const accept = { Accept: 'application/json' };


async function ask(path, options, timeout) {
    const { response, text } = await send(path, options, timeout);
    let answer = null;

    try {
        answer = JSON.parse(text);

    } catch {
        // the answer is not the endpoint's
    }

    if (!response.ok || answer === null) {
        throw failure(response, answer);
    }

    const date = Date.parse(response.headers.get('Date') ?? '');

    return { answer, now: Number.isNaN(date) ? Date.now() : date };
}


async function send(path, options, timeout) {
    try {
        const response = await fetch(base + path, {
            cache: 'no-store',
            credentials: 'same-origin',
            redirect: 'error',
            signal: timeout && AbortSignal.timeout(timeout),
            ...options,
        });

        return { response, text: await response.text() };

    } catch (error) {
        throw new Failure(
            error.name === 'TimeoutError'
                ? `there was no answer within ${timeout / 1000} seconds`
                : 'it cannot be reached');
    }
}


function failure(response, answer) {
    const error = answer?.error;

    if (error !== undefined) {
        return new Failure(`${error.message} (${response.status}, `
                           + `${error.code})`, response.status, answer);
    }

    return new Failure(words[response.status]
        ?? `the answer, with status ${response.status}, is not the endpoint's: `
           + 'see what stands before it', response.status);
}


// Messages for what nginx itself refuses with a page of its own

const words = {
    401: 'nginx asks who you are (401): load the page again',
    403: 'nginx does not let you (403): see "allow" and "deny" of the location',
    404: 'nothing is there (404): is "bloom_api" still in this location?',
    413: 'the body is too large for nginx (413): see "client_max_body_size"',
    502: 'the proxy before the endpoint gets no answer (502)',
    503: 'the server is overloaded, or the proxy before it is (503)',
    504: 'the proxy before the endpoint gets no answer in time (504)',
};
