/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function converts a filter of bits-and-blooms from JSON to its binary
 * form.  The JSON is {"m":1000,"k":4,"b":"AAAA..."}, where b is the binary form
 * from byte 16 on in base64, in the standard or the URL-safe alphabet.
 */

#ifndef BLOOM_FOREIGN_JSON_H
#define BLOOM_FOREIGN_JSON_H

#include "bloom_foreign.h"

#pragma GCC visibility push(hidden)


/*
 * Writes the binary form to `dst`, which has room for `len` bytes and may be
 * `src`.  Returns its length, or -1 with `error`.
 */
int64_t bloom_foreign_json(uint8_t *dst, const uint8_t *src, size_t len,
    char error[BLOOM_FOREIGN_ERROR_LEN]);


#pragma GCC visibility pop

#endif /* BLOOM_FOREIGN_JSON_H */
