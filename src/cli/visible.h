/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Text from outside is made visible before a person sees it: keys, names of
 * files, what servers say.
 *
 * A terminal obeys control bytes, so whoever wrote a key could write on the
 * screen of whoever reads it.  These become \xNN, byte for byte:
 *
 *     controls C0 and DEL                   \x1b
 *     bytes that are not valid UTF-8        \x9b, which some terminals take for
 *                                           a control
 *     controls C1, U+0080 to U+009F         \xc2\x9b
 *     line and paragraph separators, U+2028 and U+2029
 *     what changes the direction of text, U+061C, U+200E, U+200F, U+202A to
 *     U+202E, U+2066 to U+2069
 *
 * All else stays, a backslash too, so that text may be made visible twice.  It
 * is to be read by people; what programs read is JSON (json.h).
 */

#ifndef VISIBLE_H
#define VISIBLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>


#define VISIBLE_MAX  16                  /* bytes that a character becomes */


/* Returns 1 if a valid character of UTF-8, `len` bytes, must not be printed. */
int visible_is_hidden(const uint8_t *p, size_t len);

/* Writes the character at p, of which `used` bytes are used, as people may see
 * it; `rest` is at least 1.  Returns the length. */
size_t visible_next(char dst[VISIBLE_MAX], const uint8_t *p, size_t rest,
    size_t *used);

/* Prints text as people may see it. */
void visible_print(FILE *file, const void *data, size_t len);

/* Prints a file's name to standard output so. */
void visible_name(const char *name);

/* Prints data to standard output: so if that is a terminal, else byte for
 * byte. */
void visible_data(const void *data, size_t len);

/* Leaves the passwords of redis:// URLs out of a text. */
void visible_without_passwords(char *text);


#endif /* VISIBLE_H */
