/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions write and read packed keys, which records of a journal and
 * exceptions of an image have.
 *
 *     length   1 to 3 bytes: 1 to BLOOM_KEY_MAX, in LEB128
 *     key      its bytes
 *
 * LEB128 has seven bits in each byte, the lowest first.  Bit 7 is set in all
 * bytes but the last.  A length takes as few bytes as possible, so each key has
 * exactly one packed form.
 */

#ifndef BLOOM_PACKED_KEY_H
#define BLOOM_PACKED_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_key.h"

#pragma GCC visibility push(hidden)


/* Returns the bytes that a key of `len` bytes, 1 to BLOOM_KEY_MAX, takes. */
size_t bloom_packed_key_size(size_t len);

/* Writes a key to p.  Returns the end of what it has written. */
uint8_t *bloom_packed_key_write(uint8_t *p, const bloom_key_t *key);

/*
 * Reads the key at p, before `end`.  It points into these bytes.  Returns the
 * end of the packed key, or NULL if no valid one is there.
 */
const uint8_t *bloom_packed_key_read(bloom_key_t *key, const uint8_t *p,
    const uint8_t *end);


#pragma GCC visibility pop

#endif /* BLOOM_PACKED_KEY_H */
