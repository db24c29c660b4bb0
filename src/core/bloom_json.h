/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This is as much JSON as the project needs: a reader takes an array of strings
 * piece by piece, and strings are escaped for writing.
 */

#ifndef BLOOM_JSON_H
#define BLOOM_JSON_H

#include "bloom_key.h"

#pragma GCC visibility push(hidden)


#define BLOOM_JSON_KEY_MAX      65535    /* bytes of a string, decoded */
#define BLOOM_JSON_ESCAPED_MAX  6        /* bytes that one becomes */


/*
 * A reader of one array of strings and nothing else, strict as RFC 8259 is:
 * valid UTF-8, no byte order mark, no comma behind the last string.  Escaped
 * surrogates must come in pairs.  The input may be cut anywhere.
 */
typedef struct {
    uint64_t     offset;                 /* of the next byte; on an error, of
                                            the byte that is wrong */
    uint64_t     strings;                /* begun so far */
    const char  *error;                  /* what is wrong, or NULL */
    int          too_long;               /* that: a string is */

    /* ---- */

    uint8_t     *buf;
    size_t       len;
    int          state;
    int          more;                   /* bytes or digits of a character */
    uint32_t     unit;                   /* that it has so far */
    uint32_t     high;                   /* surrogate, or 0 */
    uint8_t      from, to;               /* range of its next byte */
} bloom_json_t;


/* `buf` has BLOOM_JSON_KEY_MAX bytes and is the caller's. */
void bloom_json_begin(bloom_json_t *json, uint8_t *buf);

/*
 * The next string of a piece of the input, *pos .. end, decoded; it may be
 * empty.  1 with the key, which lies in the piece or in `buf` and is good until
 * the next call; 0 if the piece is read to its end; -1 with json->error, and
 * again at each further call.
 */
int bloom_json_next(bloom_json_t *json, bloom_key_t *key,
    const uint8_t **pos, const uint8_t *end);

/* At the input's end: 0, or -1 with json->error if the array has none. */
int bloom_json_end(bloom_json_t *json);


/*
 * Writes the inside of a JSON string to `dst`, or nothing if that is NULL.  A
 * byte that fits in no UTF-8 character becomes U+FFFD.  Returns the length, at
 * most BLOOM_JSON_ESCAPED_MAX * len.
 */
size_t bloom_json_escape(uint8_t *dst, const uint8_t *src, size_t len);

/*
 * Does so for the character at p alone, of which `used` bytes are used; `rest`
 * is at least 1.
 */
size_t bloom_json_escape_next(uint8_t dst[BLOOM_JSON_ESCAPED_MAX],
    const uint8_t *p, size_t rest, size_t *used);


#pragma GCC visibility pop

#endif /* BLOOM_JSON_H */
