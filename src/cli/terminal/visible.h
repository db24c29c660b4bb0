/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions escape text from outside before a person sees it: keys, names
 * of files, answers of servers.
 *
 * A terminal obeys control characters, so the author of a key could control the
 * screen of its reader.  These become \xNN, byte for byte:
 *
 *     controls C0 and DEL                   \x1b
 *     bytes that are not valid UTF-8        \x9b, a control for some terminals
 *     controls C1, U+0080 to U+009F         \xc2\x9b
 *     line and paragraph separators, U+2028 and U+2029
 *     characters that change the direction of text, U+061C, U+200E, U+200F,
 *     U+202A to U+202E, U+2066 to U+2069
 *
 * All other characters stay, also a backslash, so that text may be escaped
 * twice.  The result is for people; JSON (bloom_json_writer.h) is for programs.
 */

#ifndef VISIBLE_H
#define VISIBLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>


#define VISIBLE_MAX  16                  /* most bytes for a character */


/* Writes the character at p, or its escape, to `dst`.  There are `rest` bytes,
 * at least 1, and *used gets how many the character has.  Returns the length
 * in `dst`. */
size_t visible_next(char dst[VISIBLE_MAX], const uint8_t *p, size_t rest,
    size_t *used);

/* Prints escaped text. */
void visible_print(FILE *file, const void *data, size_t len);

/* Prints the name of a file, escaped, to standard output. */
void visible_name(const char *name);

/* Prints data to standard output: escaped if that is a terminal, else byte for
 * byte. */
void visible_data(const void *data, size_t len);

/* Removes the passwords of redis:// and unix:// URLs from a text. */
void visible_without_passwords(char *text);


#endif /* VISIBLE_H */
