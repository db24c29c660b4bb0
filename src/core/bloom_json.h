/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read a JSON array of strings in pieces.
 */

#ifndef BLOOM_JSON_H
#define BLOOM_JSON_H

#include "bloom_key.h"

#pragma GCC visibility push(hidden)


/*
 * A reader of one array of strings.  It is as strict as RFC 8259: valid UTF-8,
 * no byte order mark, no comma after the last string.  Escaped surrogates must
 * come in pairs.  The input may be cut anywhere.  Of a string that is longer
 * than the caller's buffer, the reader gives only the bytes at its beginning.
 */
typedef struct {
    uint64_t     offset;                 /* of the next byte; after an error,
                                            of the wrong byte */
    uint64_t     strings;                /* strings begun so far */
    const char  *error;                  /* what is wrong, or NULL */

    /* private */

    uint8_t     *buf;
    size_t       size;                   /* of buf */
    size_t       len;
    int          state;
    int          more;                   /* bytes or hex digits still to come
                                            of the current character */
    uint32_t     unit;                   /* value of the hex digits so far */
    uint32_t     high;                   /* pending high surrogate, or 0 */
    uint8_t      from, to;               /* range of the next UTF-8 byte */
} bloom_json_t;


/* Begins an array.  `buf` has `size` bytes, the most that a string has, and the
 * caller keeps it until the array is read. */
void bloom_json_begin(bloom_json_t *json, uint8_t *buf, size_t size);

/*
 * Reads the next string from a piece of the input, *pos .. end.  Returns 1 with
 * the decoded string, which may be empty; 0 if the whole piece has been read;
 * -1 with json->error, also at every further call.  The key points into the
 * piece or into `buf` and is valid until the next call.
 */
int bloom_json_next(bloom_json_t *json, bloom_key_t *key,
    const uint8_t **pos, const uint8_t *end);

/* Ends the input.  Returns 0, or -1 with json->error if the array is not
 * complete. */
int bloom_json_end(bloom_json_t *json);


#pragma GCC visibility pop

#endif /* BLOOM_JSON_H */
