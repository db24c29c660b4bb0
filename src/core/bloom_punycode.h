/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions convert between code points and punycode, RFC 3492, without
 * the prefix "xn--".
 */

#ifndef BLOOM_PUNYCODE_H
#define BLOOM_PUNYCODE_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


/*
 * Encodes code points, of which some are not ASCII.  Returns the length, or -1
 * if the result is longer than `room`.  Time is quadratic in `n`.
 */
int bloom_punycode_encode(uint8_t *out, size_t room, const uint32_t *c,
    size_t n);

/*
 * Decodes punycode.  Returns the number of code points, or -1 if there are more
 * than `room` or if this is no punycode.  Time is quadratic in the number.
 */
int bloom_punycode_decode(uint32_t *c, size_t room, const uint8_t *p,
    size_t len);


#pragma GCC visibility pop

#endif /* BLOOM_PUNYCODE_H */
