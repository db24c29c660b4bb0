/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A URL is brought into Safe Browsing's canonical form, and taken apart into
 * the expressions by which it is looked up: "URLs and Hashing" of the Safe
 * Browsing API, version 4.
 *
 *     http://a.b.example/1/2.html?x=1        canonical form
 *            |           |       |
 *            host        path    query       the key: all but the scheme
 *
 * An expression is the host, or one of its parent domains, with the path and
 * query, the path, or one of its first directories: always a stretch of the
 * key.
 *
 *     a.b.example/1/2.html?x=1      b.example/1/2.html?x=1
 *     a.b.example/1/2.html          b.example/1/2.html
 *     a.b.example/                  b.example/
 *     a.b.example/1/                b.example/1/
 *
 * docs/key-forms.md has each step, and what is decided where the document,
 * Chromium and Google's client in Go differ.
 */

#ifndef BLOOM_URL_H
#define BLOOM_URL_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_key.h"

#pragma GCC visibility push(hidden)


#define BLOOM_URL_MAX          65535     /* bytes, as it comes */
#define BLOOM_URL_HOSTS        5
#define BLOOM_URL_PATHS        6
#define BLOOM_URL_EXPRESSIONS  (BLOOM_URL_HOSTS * BLOOM_URL_PATHS)

/* Memory for a URL of `len` bytes: every byte may become an escape. */
#define BLOOM_URL_ROOM(len)    (3 * (len) + 1024)


typedef struct {
    bloom_key_t  canonical;
    bloom_key_t  key;                    /* canonical, without "scheme://" */
    size_t       host_len;               /* of the key's beginning */
    size_t       path_len;               /* behind that, without the query */
    unsigned     hosts;                  /* it, and its parent domains: */
    size_t       host[BLOOM_URL_HOSTS];  /* where in the key each begins */
} bloom_url_t;


/*
 * Brings a URL of `len` bytes into canonical form, in `buf`, which has
 * BLOOM_URL_ROOM(len) bytes and which url's parts point into afterwards.
 * Without a scheme it is taken for http.  NULL, or why it cannot be: a phrase
 * to follow the URL ("has no host").
 *
 * The canonical form, and the key as well, has itself for its canonical form.
 * Time is linear in `len`.
 */
const char *bloom_url_parse(bloom_url_t *url, const uint8_t *data, size_t len,
    uint8_t *buf);

/*
 * The expressions, hosts from the longest to the shortest, and for each of
 * them the path with the query, the path, and the directories from the root
 * on.  Their number, 1 to BLOOM_URL_EXPRESSIONS; none occurs twice.
 */
unsigned bloom_url_expand(bloom_key_t expression[BLOOM_URL_EXPRESSIONS],
    const bloom_url_t *url);


#pragma GCC visibility pop

#endif /* BLOOM_URL_H */
