/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A left_out_t has the keys that --without leaves out of an image.
 *
 * Keys are compared byte by byte as canonical keys, so a key is left out in
 * whatever spelling a list has it.  While threads look keys up, the set does
 * not change, except for the marks of keys that were found.
 */

#ifndef LEFT_OUT_H
#define LEFT_OUT_H

#include <stddef.h>
#include <stdint.h>

#include "key_set.h"


/* All members are 0 at first. */
typedef struct {
    const char  *name;                   /* of the file */
    key_set_t    keys;                   /* canonical; found: a list has it */
} left_out_t;


/* Reads the keys in a file, which is read as with --from lines, and converts
 * them to a key form.  Returns CLI_OK; or CLI_ERROR after a message, if the
 * file cannot be read or has an invalid key. */
int left_out_read(left_out_t *left_out, const char *name, uint32_t form);
void left_out_free(left_out_t *left_out);

/* Returns 1 if the file has this canonical key, and marks the key as found;
 * else 0.  Any thread may call it. */
int left_out_has(left_out_t *left_out, const bloom_key_t *canonical);

/* Returns how many keys of the file were never found. */
size_t left_out_unmatched(const left_out_t *left_out);

/* Warns of keys that were never found, if there are any, with examples. */
void left_out_warn(const left_out_t *left_out);


#endif /* LEFT_OUT_H */
