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
 * Encodes n code points, at least one of which is not ASCII.  Returns the
 * length, or -1 if the result is longer than `room`.  Time is quadratic in `n`.
 */
int bloom_punycode_encode(uint8_t *out, size_t room, const uint32_t *c,
    size_t n);

/*
 * Decodes punycode.  Returns the number of code points, or -1 if there are more
 * than `room` or the input is not punycode.  Time is quadratic in the number of
 * code points.
 */
int bloom_punycode_decode(uint32_t *c, size_t room, const uint8_t *p,
    size_t len);


#pragma GCC visibility pop

#endif /* BLOOM_PUNYCODE_H */
