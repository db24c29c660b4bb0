/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Keys are cut out of streams, and decoded as requests carry them.
 */

#ifndef BLOOM_KEY_H
#define BLOOM_KEY_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


typedef struct {
    const uint8_t  *data;
    size_t          len;
} bloom_key_t;

typedef enum {
    BLOOM_SPLIT_LINES = 0,               /* LF, or CR LF */
    BLOOM_SPLIT_NUL                      /* a zero byte; nothing is stripped */
} bloom_split_e;


/*
 * The next key of a piece of a stream, *pos .. end.  1 with the key, which
 * lies in the piece and may be empty, and *pos behind its delimiter; 0 if no
 * delimiter is left: the rest belongs to the stream's next piece, or, where
 * `last` is set, is itself a key if it is not empty.
 */
int bloom_key_next(bloom_key_t *key, const uint8_t **pos, const uint8_t *end,
    bloom_split_e split, int last);

/*
 * Length of a UTF-8 byte order mark at the beginning of a text, 3 or 0: no
 * part of the first key.
 */
size_t bloom_key_mark(const uint8_t *data, size_t len);


typedef enum {
    BLOOM_DECODE_OFF = 0,
    BLOOM_DECODE_URI,                    /* %41 -> A */
    BLOOM_DECODE_FORM                    /* the same, and + -> space */
} bloom_decode_e;

/*
 * Decodes `len` bytes of src into dst, which has room for as many and may be
 * src itself; the decoded length.  What is no valid escape stays as it is (the
 * URL Standard's percent-decode), so that every key can be decoded.
 */
size_t bloom_key_decode(uint8_t *dst, const uint8_t *src, size_t len,
    bloom_decode_e how);


#pragma GCC visibility pop

#endif /* BLOOM_KEY_H */
