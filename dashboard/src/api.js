// SPDX-License-Identifier: BSD-2-Clause

// Sends requests to the endpoint that this page comes from, whatever its prefix
// is and whatever proxies are in front of it.

const TIMEOUT = 10_000;

const base = location.pathname.replace(/\/*$/, '/');


// An error, in words; `answer` is the endpoint's, if there was one.

class Failure extends Error {
    constructor(message, status = 0, answer = null) {
        super(message);
        this.status = status;
        this.answer = answer;
    }
}


// Sends GET for a path below the prefix.  Returns { answer, now }, where `now` is
// the server's time.

export const get = (path) => ask(path, { headers: accept }, TIMEOUT);


// Sends POST, without a time limit, since a load may take long.

export const post = (path, body) =>
    ask(path, {
        method: 'POST',
        headers: { ...accept, 'Content-Type': 'text/plain' },
        body,
    });


// Sends DELETE, without a time limit, since the disk may be slow.

export const remove = (path) => ask(path, { method: 'DELETE', headers: accept });

export const zonePath = (name) => `zones/${encodeURIComponent(name)}`;

const accept = { Accept: 'application/json' };


async function ask(path, options, timeout) {
    const { response, text } = await send(base + path, options, timeout);
    let answer = null;

    try {
        answer = JSON.parse(text);

    } catch {
        // the answer does not come from the endpoint
    }

    if (!response.ok || answer === null) {
        throw failure(response, answer);
    }

    const date = Date.parse(response.headers.get('Date') ?? '');

    return { answer, now: Number.isNaN(date) ? Date.now() : date };
}


async function send(address, options, timeout) {
    try {
        const response = await fetch(address, {
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
        ?? `an answer with status ${response.status} came from somewhere `
           + 'else; check what is in front of the endpoint', response.status);
}


// Messages for responses of nginx itself, or of a proxy

const words = {
    401: 'nginx asks for a password (401); load the page again',
    403: 'nginx refuses your request (403); see "allow" and "deny" in the '
         + 'location',
    404: 'there is nothing at this path (404); check that the location still '
         + 'has "bloom_api"',
    413: 'the body is too large for nginx (413); see "client_max_body_size"',
    502: 'the proxy in front of the endpoint gets no answer (502)',
    503: 'the server or the proxy in front of it is overloaded (503)',
    504: 'the proxy in front of the endpoint gets no answer in time (504)',
};
