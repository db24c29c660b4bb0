/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The types of the search for good keys: what is asked for, what the search
 * keeps while it runs, and its result (good_keys.h).
 */

#ifndef GOOD_SEARCH_H
#define GOOD_SEARCH_H

#include <pthread.h>
#include <sys/stat.h>

#include "bloom_image.h"
#include "hash_table.h"
#include "key_options.h"
#include "key_set.h"
#include "removed_keys.h"


#define GOOD_KEYS_EXAMPLES  20

/* An expression of a good key that a list has. */
typedef struct {
    const char    *file;                 /* where the good key is */
    uint64_t       line;
    char           key[KEYFORM_SHOWN];   /* the good key, escaped */
    char           expression[KEYFORM_SHOWN];
    const char    *list;                 /* a list that has it; NULL: unknown */
    uint64_t       list_line;
} good_keys_conflict_t;

/* The options, and the result.  All members are 0 at first. */
typedef struct {
    char                 **names;        /* of the files */
    int                    n;
    int                    wins;         /* conflicts become exceptions */

    struct stat           *lists;        /* the lists before they were read; a
                                            mode of 0: not a regular file */

    uint64_t               received;     /* good keys */
    uint64_t               matched;      /* good keys with a candidate */
    uint64_t               conflicts;    /* expressions */
    good_keys_conflict_t  *example;      /* the first conflicts */
    size_t                 examples;
    removed_keys_t         exceptions;
} good_keys_t;

/* What the search for good keys has found.  Threads share it. */
typedef struct {
    good_keys_t              *good;
    const key_options_t      *from;
    const bloom_image_t      *image;
    const uint64_t           *words;

    pthread_mutex_t           lock;      /* protects the members below */
    key_set_t                 found;     /* candidates */
    char                    **shown;     /* for each: the good key; NULL: it is
                                            the candidate itself */
    size_t                    shown_room;
    uint64_t                  bytes;     /* that all candidates would take */
    uint64_t                  matched;
    int                       full;      /* atomic: there is no room for further
                                            candidates */

    bloom_hash_t             *hash;      /* of each candidate */
    hash_table_t              table;     /* the first candidate of each hash */
    uint8_t                  *marks;     /* of each such candidate; atomic */

    char                    **again;     /* the lists that can be read again */
    unsigned                  nagain;
    place_t                  *place;     /* where a list has each candidate;
                                            line 0: no list that was read
                                            again has it */
} good_search_t;


#endif /* GOOD_SEARCH_H */
