/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Collecting puts the hashes of the keys in files into the keystore: several
 * threads read blocks in turns, find the keys in their lines, convert them to
 * their key form and hash them.
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
    uint64_t                 max_errors; /* lines that may be left out */
    uint64_t                 memory;     /* for the keystore, bytes */
    const char              *temporary;  /* its directory, or NULL: */
    char                    *directory;  /* that of the image */
    int                      quiet;      /* no progress */
    keystore_t              *store;      /* hashes go there, or */
    uint64_t                *words;      /* into these at once, if not NULL, */
    const bloom_geometry_t  *geometry;   /* which have this geometry */
} collect_options_t;

typedef struct {
    uint64_t  received;                  /* keys */
    uint64_t  changed;                   /* keys that changed the words */
    uint64_t  empty;                     /* lines, or csv fields */
    uint64_t  comments;
    uint64_t  skipped;                   /* lines that have no key for us */
    uint64_t  errors;                    /* lines that could not be read */
} collect_counts_t;


/*
 * Of each line that has no key where it should, file, number and reason are
 * said.  CLI_OK, or CLI_ERROR having said why: a file cannot be read, or there
 * are more such lines than may be.
 */
int collect(const collect_options_t *options, char **names, int n,
    collect_counts_t *counts);


#endif /* COLLECT_H */
