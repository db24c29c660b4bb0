/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions split a stream into keys, and decode keys that arrive in
 * requests.
 */

#ifndef BLOOM_KEY_H
#define BLOOM_KEY_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


/* The most bytes of a key that a filter gets, an exception has, or a journal
 * stores; such a key has at least one byte.  A longer key is invalid. */
#define BLOOM_KEY_MAX       65535
#define BLOOM_KEY_TOO_LONG  "is longer than 65535 bytes"

typedef struct {
    const uint8_t  *data;
    size_t          len;
} bloom_key_t;

typedef enum {
    BLOOM_SPLIT_LINES = 0,               /* keys end with LF or CR LF */
    BLOOM_SPLIT_NUL                      /* keys end with a zero byte */
} bloom_split_e;


/*
 * Reads the next key from a piece of a stream, *pos .. end.
 *
 * Returns 1 with the key, which points into the piece and may be empty, and
 * moves *pos past the key's delimiter.  Returns 0 if no delimiter is left: the
 * caller puts the rest in front of the next piece.  If `last` is set, there is
 * no next piece, and a rest that is not empty is the last key.
 */
int bloom_key_next(bloom_key_t *key, const uint8_t **pos, const uint8_t *end,
    bloom_split_e split, int last);

/*
 * Returns the length, 3 or 0, of the UTF-8 byte order mark at the beginning of
 * a stream.  The mark is not part of the first key.
 */
size_t bloom_key_mark(const uint8_t *data, size_t len);


typedef enum {
    BLOOM_DECODE_OFF = 0,
    BLOOM_DECODE_URI,                    /* %41 -> A */
    BLOOM_DECODE_FORM                    /* %41 -> A and + -> space */
} bloom_decode_e;

/*
 * Decodes `len` bytes of src into dst, which has room for `len` bytes and may
 * be src itself.  Returns the decoded length.  An invalid escape stays as it is
 * (the URL Standard's percent-decode), so decoding never fails.
 */
size_t bloom_key_decode(uint8_t *dst, const uint8_t *src, size_t len,
    bloom_decode_e how);


#pragma GCC visibility pop

#endif /* BLOOM_KEY_H */
