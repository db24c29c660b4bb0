/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file converts internationalised labels to ASCII, and is the only user of
 * libidn2.
 *
 * Browsers convert a label by UTS #46, nontransitionally and without its rules
 * about hyphens and about which ASCII characters a label may have.  libidn2 has
 * these rules, and those of IDNA2008, which refuse more.  So a label is cut
 * where nothing composes with anything, libidn2 converts the pieces, and what
 * they became is put together here:
 *
 *     ab--Fußball☃                as it comes
 *     ab | - | - | fußball☃       cut at hyphens; libidn2 refuses the last piece
 *     ab | - | - | fu | ß | ball☃   cut again; now libidn2 takes every piece
 *     xn--ab--fuball-b4a4125i     put together
 *
 * libidn2 allocates memory while it converts and has released it all when it
 * returns; nothing else of the core allocates.  So it is called only for what
 * has a byte above 0x7f in it, and how much it is given is bounded.
 */

#ifndef BLOOM_IDN_H
#define BLOOM_IDN_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


/* What may be given to libidn2 for one name: BLOOM_IDN_CALL for each call, and
 * the bytes. */
#define BLOOM_IDN_MAX   32768
#define BLOOM_IDN_CALL  64

/*
 * Converts a label with bytes above 0x7f to ASCII in lower case.  Takes what it
 * gives to libidn2 from `left`, which is BLOOM_IDN_MAX for a new name.
 *
 * Returns the length of the result, which may be 0: some characters vanish.
 * Returns -1 if a browser goes to no host with this label: it is no UTF-8, or
 * has, or becomes, a character that ends a host or that no host has.  Returns
 * -2 if the result is longer than `room` or nothing is left to be given.
 *
 * A character that is newer than libidn2's Unicode stands for itself.
 */
int bloom_idn_label(uint8_t *out, size_t room, const uint8_t *label,
    size_t len, size_t *left);

/*
 * Returns 3 if one of the dots U+3002, U+FF0E and U+FF61 is at p, or else 0.
 * `rest` is at least 1.
 */
static inline size_t
bloom_idn_dot(const uint8_t *p, size_t rest)
{
    if (rest < 3 || (*p != 0xe3 && *p != 0xef)) {
        return 0;
    }

    return (p[0] == 0xe3 && p[1] == 0x80 && p[2] == 0x82)
           || (p[0] == 0xef && p[1] == 0xbc && p[2] == 0x8e)
           || (p[0] == 0xef && p[1] == 0xbd && p[2] == 0xa1) ? 3 : 0;
}


#pragma GCC visibility pop

#endif /* BLOOM_IDN_H */
