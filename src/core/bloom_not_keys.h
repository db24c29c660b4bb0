/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions find out that a file is no list of keys: an archive, text in
 * UTF-16, a web page, a dump of a database, JSON, a CSV with quotes.  nginx and
 * the tool share them, so they agree about every file.
 *
 * A filter built of such a file has its bytes as keys, and no key that the file
 * was meant to have: a shield refuses every request, and a guard that asks for
 * such keys passes every image.
 *
 * Each kind is recognized by evidence that keys hardly give by chance.  Keys
 * that do can be read with zero bytes as their ends (-0): then only the first
 * bytes of the file count.
 */

#ifndef BLOOM_NOT_KEYS_H
#define BLOOM_NOT_KEYS_H

#include "bloom_key.h"

#pragma GCC visibility push(hidden)


/* So many bytes of a file are enough to look at. */
#define BLOOM_NOT_KEYS_BYTES  (1024 * 1024)

/* How the file is read. */
#define BLOOM_NOT_KEYS_NUL    0x1        /* keys end with zero bytes */
#define BLOOM_NOT_KEYS_LINES  0x2        /* each line is a key */
#define BLOOM_NOT_KEYS_WHOLE  0x4        /* the bytes are the whole file */


/*
 * Looks at the first bytes of a file.  Returns NULL, or what the file is and
 * what to do: a constant phrase that follows its name, in which FILE stands for
 * the name.
 */
const char *bloom_not_keys(const uint8_t *data, size_t len, unsigned how);

/*
 * Looks at a line, or at a field of a CSV.  Returns NULL, or why it is no key:
 * a constant phrase that follows it.  COPY and SELECT ... INTO OUTFILE write \N
 * for NULL, and \. ends the data of COPY.
 */
const char *bloom_not_key(const bloom_key_t *key);


#pragma GCC visibility pop

#endif /* BLOOM_NOT_KEYS_H */
