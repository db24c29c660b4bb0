/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions convert internationalised labels to ASCII.  No other file
 * uses libidn2.
 *
 * Browsers convert a label by UTS #46, nontransitionally, and without its rules
 * about hyphens and about the ASCII characters that a label may have.  libidn2
 * enforces these rules, and those of IDNA2008, which refuse even more.  So the
 * label is cut at places where characters cannot compose, libidn2 converts the
 * pieces, and the results are joined here:
 *
 *     ab--Fußball☃                  input
 *     ab | - | - | fußball☃         cut at hyphens; libidn2 refuses a piece
 *     ab | - | - | fu | ß | ball☃   cut again; libidn2 accepts every piece
 *     xn--ab--fuball-b4a4125i       joined
 *
 * libidn2 allocates memory while it converts, and it is the only part of the
 * core that allocates.  So only labels with a byte above 0x7f are passed to it,
 * and the number of bytes passed is bounded.  It releases the memory before the
 * functions here return.
 */

#ifndef BLOOM_IDN_H
#define BLOOM_IDN_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


/* The budget of libidn2 for one name.  Each call costs BLOOM_IDN_CALL plus the
 * number of bytes passed. */
#define BLOOM_IDN_MAX   32768
#define BLOOM_IDN_CALL  64

/*
 * Converts a label with bytes above 0x7f to ASCII in lower case.  `left` is
 * what remains of the name's budget: the caller sets it to BLOOM_IDN_MAX for a
 * new name, and this function reduces it.
 *
 * Returns the length of the result, which is 0 if every character is ignored;
 * -1 if browsers refuse the label because it is not UTF-8, or because it has,
 * or is converted to, a character that hosts cannot have; -2 if the result is
 * longer than `room` or the budget is used up.
 *
 * A character that is newer than libidn2's version of Unicode is kept as it is.
 */
int bloom_idn_label(uint8_t *out, size_t room, const uint8_t *label,
    size_t len, size_t *left);

/*
 * Returns 3, its length, if one of the dots U+3002, U+FF0E and U+FF61 is at p,
 * else 0.  `rest` is at least 1.
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
