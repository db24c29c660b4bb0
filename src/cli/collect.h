/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read the keys in files and put their hashes into a keystore.
 *
 * Several threads take turns reading blocks.  Each finds the keys in the lines
 * of its block, converts them to the key form and hashes them.
 */

#ifndef COLLECT_H
#define COLLECT_H

#include "bloom_key.h"
#include "bloom_layout.h"
#include "keystore.h"
#include "listformat.h"


typedef struct {
    bloom_split_e            split;
    listformat_t             list;
    uint32_t                 key_form;
    const bloom_hasher_t    *hasher;
    unsigned                 threads;
    uint64_t                 max_errors; /* invalid lines that are allowed */
    uint64_t                 memory;     /* bytes, for the keystore */
    const char              *temporary;  /* directory of the spill file; NULL:
                                            the image's directory */
    char                    *directory;  /* the image's directory */
    int                      quiet;      /* show no progress */
    keystore_t              *store;      /* gets the hashes if words is NULL */
    uint64_t                *words;      /* NULL, or a filter that gets the keys
                                            at once */
    const bloom_geometry_t  *geometry;   /* of the words */
} collect_options_t;

typedef struct {
    uint64_t  received;                  /* keys */
    uint64_t  changed;                   /* keys that changed the words */
    uint64_t  empty;                     /* empty lines, or csv fields */
    uint64_t  comments;                  /* lines */
    uint64_t  skipped;                   /* valid lines without a key, such as
                                            some Adblock rules */
    uint64_t  errors;                    /* invalid lines */
} collect_counts_t;


/*
 * Reads `n` files and prints the file, number and reason of each invalid line.
 * Returns CLI_OK; or CLI_ERROR after a message, if a file cannot be read or
 * there are more than max_errors invalid lines.
 */
int collect(const collect_options_t *options, char **names, int n,
    collect_counts_t *counts);


#endif /* COLLECT_H */
