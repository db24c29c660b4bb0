/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions convert internationalised labels to ASCII.  No other file
 * uses libidn2.
 *
 * Browsers convert a label by UTS #46, nontransitionally, and without its rules
 * about hyphens and about the ASCII characters that a label may have.  libidn2
 * enforces these rules, and those of IDNA2008, which refuse even more, and has
 * the Unicode of its own version.  So the table in bloom_idn_table.c is applied
 * first.  Then the label is cut at places where characters cannot compose,
 * libidn2 converts the pieces, and the results are joined here:
 *
 *     ab--Fußball☃                  input
 *     ab | - | - | fußball☃         cut at hyphens; libidn2 refuses a piece
 *     ab | - | - | fu | ß | ball☃   cut again; libidn2 accepts every piece
 *     xn--ab--fuball-b4a4125i       joined
 *
 * libidn2 allocates memory while it converts, and it is the only part of the
 * core that allocates.  It releases the memory before the functions here
 * return.  Only labels with a byte above 0x7f are passed to it, and at most
 * BLOOM_IDN_MAX bytes for a name or for a list of names: a byte takes 0.1 us.
 */

#ifndef BLOOM_IDN_H
#define BLOOM_IDN_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


/*
 * What libidn2 may be passed for one name or one list.  A call costs the bytes
 * passed, those of the result, and a few more.  No name that DNS resolves needs
 * as much: its labels have at most 239 characters together, each composed from
 * at most nine bytes, and most are passed twice.
 */
#define BLOOM_IDN_MAX      10240

/* The longest label of DNS, in bytes. */
#define BLOOM_IDN_LABEL    63

#define BLOOM_IDN_REFUSED  (-1)
#define BLOOM_IDN_SPENT    (-2)

/*
 * Converts a label with bytes above 0x7f to ASCII in lower case.  `out` has
 * BLOOM_IDN_LABEL bytes.
 *
 * Returns the length of the result, which is 0 if every character is ignored.
 * Returns BLOOM_IDN_REFUSED if no host has such a label: it is not UTF-8, it
 * has, or is converted to, a character that hosts cannot have, or it becomes
 * longer than BLOOM_IDN_LABEL bytes.  Returns BLOOM_IDN_SPENT if the budget of
 * the name or of its list is used up.
 */
int bloom_idn_label(uint8_t *out, const uint8_t *label, size_t len);

/* Gives a new name a budget of its own, unless it belongs to a list. */
void bloom_idn_begin_name(void);

/* Gives all names up to bloom_idn_end_list() one budget together. */
void bloom_idn_begin_list(void);
void bloom_idn_end_list(void);

/* Returns what all names of this thread have cost so far.  A caller that has
 * much to do looks at the time if this has grown. */
uint64_t bloom_idn_spent(void);

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
