/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions bring a URL into Safe Browsing's canonical form, and derive
 * the expressions under which it is looked up ("URLs and Hashing" of the Safe
 * Browsing API, version 4).
 *
 *     http://a.b.example/1/2.html?x=1        canonical form
 *            |           |       |
 *            host        path    query       the key: all but the scheme
 *
 * An expression is the host or one of its parent domains, followed by the path
 * with the query, the path, or one of the first directories of the path.  Each
 * one is a substring of the key.  Some expressions of the URL above:
 *
 *     a.b.example/1/2.html?x=1      b.example/1/2.html?x=1
 *     a.b.example/1/2.html          b.example/1/2.html
 *     a.b.example/                  b.example/
 *     a.b.example/1/                b.example/1/
 *
 * A browser resolves "." and ".." and fetches what is left; a server may unescape
 * that, and resolve again.  So a URL with escapes may have two readings, which
 * have the same host:
 *
 *     http://b.example/a%2Fb/../c/..%2fd
 *                     /c/%252E%252E/d       the browser's reading: the key
 *                     /d                    the server's reading
 *
 * A URL is stored by its key and looked up by the expressions of both readings.
 * What is allowed should have one reading: a server that unescapes in part agrees
 * with both then.
 *
 * docs/key-forms.md describes each step, and the decisions where the document,
 * Chromium and Google's client in Go differ.
 */

#ifndef BLOOM_URL_H
#define BLOOM_URL_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_key.h"

#pragma GCC visibility push(hidden)


#define BLOOM_URL_HOSTS        5
#define BLOOM_URL_DIRECTORIES  4
#define BLOOM_URL_PATHS        (2 + BLOOM_URL_DIRECTORIES)
#define BLOOM_URL_READINGS     2

/* Both readings have the path "/", so there is always one expression less. */
#define BLOOM_URL_EXPRESSIONS                                                \
    (BLOOM_URL_HOSTS * (BLOOM_URL_READINGS * BLOOM_URL_PATHS - 1))

/* The buffer for a URL of `len` bytes.  It has the input twice, and both
 * readings, in which every byte may become an escape. */
#define BLOOM_URL_ROOM(len)    (8 * (len) + 2048)


/* A reading of a URL. */
typedef struct {
    bloom_key_t  key;                    /* the host, the path and the query */
    size_t       path_len;               /* the path follows the host */
    unsigned     directories;
    size_t       directory[BLOOM_URL_DIRECTORIES];  /* lengths of the first
                                                       ones, with their slash;
                                                       without the path */
} bloom_url_reading_t;

/* A URL in canonical form. */
typedef struct {
    bloom_key_t  canonical;              /* the first reading with its scheme */
    size_t       host_len;               /* each key begins with the host */
    unsigned     hosts;                  /* the host and its parent domains */
    size_t       host[BLOOM_URL_HOSTS];  /* offset of each one in a key */
    unsigned     readings;               /* 1 or 2; the first is the one by
                                            which the URL is stored */
    bloom_url_reading_t  reading[BLOOM_URL_READINGS];
} bloom_url_t;


/*
 * Brings a URL of `len` bytes into canonical form.  The result points into
 * `buf`, which has BLOOM_URL_ROOM(len) bytes.  A URL without a scheme is read
 * as http.  Returns NULL if the URL is valid, else the reason why it is not: a
 * phrase to follow the URL, such as "has no host".
 *
 * The canonical form of a canonical URL is that URL, and the key of a key is
 * that key.  Time is linear in `len`.
 */
const char *bloom_url_parse(bloom_url_t *url, const uint8_t *data, size_t len,
    uint8_t *buf);

/*
 * Computes the expressions of a URL: for each host, from the longest to the
 * shortest, the path with the query, the path, and the directories from the
 * root on; first those of the first reading, then those that only the second
 * one has.  Returns their number, 1 to BLOOM_URL_EXPRESSIONS.  No expression
 * occurs twice.
 *
 * The first expression is the key.  *second becomes the number of the one that
 * is the whole key of the second reading; 0 if there is one reading.
 */
unsigned bloom_url_expand(bloom_key_t expression[BLOOM_URL_EXPRESSIONS],
    unsigned *second, const bloom_url_t *url);


#pragma GCC visibility pop

#endif /* BLOOM_URL_H */
