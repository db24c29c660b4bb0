/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file writes and reads keys with their length in front of them.
 */

#include <string.h>

#include "bloom_packed_key.h"


#define LENGTH_MAX  3                    /* LEB128 of BLOOM_KEY_MAX */


size_t
bloom_packed_key_size(size_t len)
{
    return 1 + (len >= 1 << 7) + (len >= 1 << 14) + len;
}


uint8_t *
bloom_packed_key_write(uint8_t *p, const bloom_key_t *key)
{
    size_t  rest;

    for (rest = key->len; rest > 0x7f; rest >>= 7) {
        *p++ = (uint8_t) (rest | 0x80);
    }

    *p++ = (uint8_t) rest;

    memcpy(p, key->data, key->len);

    return p + key->len;
}


const uint8_t *
bloom_packed_key_read(bloom_key_t *key, const uint8_t *p, const uint8_t *end)
{
    size_t    len;
    unsigned  shift;

    for (len = 0, shift = 0; /* void */ ; shift += 7) {

        if (p == end || shift == 7 * LENGTH_MAX) {
            return NULL;
        }

        len |= (size_t) (*p & 0x7f) << shift;

        if ((*p++ & 0x80) == 0) {
            break;
        }
    }

    /* a last byte of zero is an empty key or a needlessly long length */

    if (p[-1] == 0 || len > BLOOM_KEY_MAX || len > (size_t) (end - p)) {
        return NULL;
    }

    key->data = p;
    key->len = len;

    return p + len;
}
