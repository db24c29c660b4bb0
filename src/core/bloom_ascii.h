/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions test and convert ASCII letters and digits, whatever the
 * locale.
 */

#ifndef BLOOM_ASCII_H
#define BLOOM_ASCII_H

#include <stdint.h>


static inline uint8_t
bloom_lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}


/* Converts eight bytes, packed in a number, to lower case at once. */
static inline uint64_t
bloom_lower8(uint64_t x)
{
    uint64_t  low, from_a, after_z, upper;

    /* 7 bits plus a constant below 0x80 never carry into the next byte */

    low = x & 0x7f7f7f7f7f7f7f7f;
    from_a = low + 0x3f3f3f3f3f3f3f3f;
    after_z = low + 0x2525252525252525;
    upper = (from_a & ~after_z & ~x) & 0x8080808080808080;

    return x | upper >> 2;
}


static inline int
bloom_is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}


static inline int
bloom_is_alpha(uint8_t c)
{
    c |= 0x20;

    return c >= 'a' && c <= 'z';
}


/* Returns 0 to 15, or -1 if c is not a hexadecimal digit. */
static inline int
bloom_hex_digit(uint8_t c)
{
    if (bloom_is_digit(c)) {
        return c - '0';
    }

    c |= 0x20;

    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}


#endif /* BLOOM_ASCII_H */
