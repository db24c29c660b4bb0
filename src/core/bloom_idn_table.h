/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tables have what today's browsers know about characters and the oldest
 * supported libidn2 does not.  scripts/idn-table.mjs generates them.
 */

#ifndef BLOOM_IDN_TABLE_H
#define BLOOM_IDN_TABLE_H

#include <stdint.h>

#pragma GCC visibility push(hidden)


/*
 * Characters that UTS #46 treats alike, in the order of their numbers:
 *
 *     to == 0       they are ignored; the table has all such characters
 *     to == first   they are valid, and an older libidn2 does not know them
 *     else          c becomes to + c - first, and `then` behind it, unless
 *                   `then` is 0
 *
 * Of the characters that libidn2 maps as browsers do, the table has those that
 * become some with which no host exists, as " " or "/".  That one is `to`.
 */
typedef struct {
    uint32_t  first;
    uint32_t  last;
    uint32_t  to;
    uint32_t  then;
} bloom_idn_range_t;

/* Two characters in a row, of which NFC makes one. */
typedef struct {
    uint32_t  first;
    uint32_t  second;
    uint32_t  composed;
} bloom_idn_pair_t;


extern const bloom_idn_range_t  bloom_idn_range[];
extern const unsigned           bloom_idn_ranges;

extern const bloom_idn_pair_t   bloom_idn_pair[];
extern const unsigned           bloom_idn_pairs;


#pragma GCC visibility pop

#endif /* BLOOM_IDN_TABLE_H */
