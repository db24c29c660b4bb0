/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read the keys in files and put their hashes into a keystore.
 *
 * Several threads take turns reading blocks.  Each finds the keys in the lines
 * of its block, converts them to the key form and hashes them.
 */

#ifndef COLLECT_H
#define COLLECT_H

#include "bloom_exceptions.h"
#include "bloom_key.h"
#include "bloom_layout.h"
#include "line_limit.h"
#include "exceptions.h"
#include "keyform.h"
#include "keystore.h"
#include "left_out.h"
#include "letter_case.h"
#include "list_format.h"
#include "reasons.h"


typedef struct {
    bloom_split_e            split;
    list_format_t             list;
    uint32_t                 key_form;
    const bloom_hasher_t    *hasher;
    unsigned                 threads;
    line_limit_t          max_errors; /* invalid lines that are allowed */
    line_limit_t          max_skipped;    /* lines without a key */
    const char              *exceptions; /* file for exceptions of lists; NULL:
                                            these are skipped */
    const char              *without;    /* file of keys to leave out, or
                                            NULL */
    left_out_t              *left_out;   /* the keys in that file, or NULL */
    uint64_t                 memory;     /* bytes, for the keystore */
    keystore_keep_e          keep;       /* in the keystore */
    const char              *temporary;  /* directory of the spill file; NULL:
                                            the image's directory */
    char                    *directory;  /* the image's directory */
    int                      quiet;      /* show no progress */
    keystore_t              *store;      /* gets the hashes if words is NULL */
    uint64_t                *words;      /* NULL, or a filter that gets the keys
                                            at once */
    const bloom_geometry_t  *geometry;   /* of the words */
    bloom_exceptions_t      *removed;    /* NULL, or removed keys of an image:
                                            the keys are taken from them */
    const uint64_t          *present;    /* with `removed`: the bits of that
                                            image */

    /* If not NULL, takes the keys instead of the store.  Any thread may call
     * it; returns NULL, or why the key is invalid.  Limits for lines are then
     * the caller's to check, and messages about lines the caller's to print. */
    const char            *(*each)(void *data, keyform_t *keyform,
                                   const bloom_key_t *key, unsigned file,
                                   uint64_t line);
    void                    *each_data;
    int                     *stop;       /* NULL, or atomic: 1 ends the reading
                                            after the blocks that have begun; so
                                            does an invalid or skipped line */
} collect_options_t;

/* A file that was read. */
typedef struct {
    const char    *name;
    list_format_t   list;                 /* what it was read as */
} collect_file_t;

/* The result.  All members are 0 at first. */
typedef struct {
    uint64_t              received;      /* keys, without those left out; with
                                            `each`, keys that are valid */
    uint64_t              left_out;      /* keys that --without leaves out */
    letter_case_t         letters;       /* of URLs */
    uint64_t              changed;       /* keys that changed the words */
    uint64_t              lifted;        /* removed keys of which `present` has
                                            the bits */
    uint64_t              lines;         /* that are not empty or comments */
    uint64_t              empty;         /* empty lines, or csv fields */
    uint64_t              comments;      /* lines */
    uint64_t              skipped;       /* entries that cannot be a key, such
                                            as some Adblock rules */
    uint64_t              errors;        /* invalid lines */
    reasons_t             reasons;       /* of skipped and invalid lines */
    collect_file_t       *file;
    unsigned              files;
    exceptions_t          exceptions;
} collect_counts_t;


/*
 * Reads `n` files, and prints why lines are invalid.  Returns CLI_OK; or
 * CLI_ERROR after a message, if a file cannot be read, or more lines are
 * invalid or skipped than the limits allow.
 */
int collect(const collect_options_t *options, char **names, int n,
    collect_counts_t *counts);

void collect_free(collect_counts_t *counts);


#endif /* COLLECT_H */
