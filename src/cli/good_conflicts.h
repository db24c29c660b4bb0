/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Conflicts are expressions of good keys that the finished filter takes for
 * present because a list has them (good_keys.h).  These functions tell them
 * from false positives.
 */

#ifndef GOOD_CONFLICTS_H
#define GOOD_CONFLICTS_H

#include <pthread.h>

#include "good_keys.h"
#include "hash_index.h"
#include "key_set.h"


/* Where a list has a candidate. */
typedef struct {
    uint64_t    line;                    /* 0: it has not been seen */
    unsigned    file;
} good_place_t;

/* What the search for good keys has found.  Threads share it. */
typedef struct {
    good_keys_t              *good;
    const collect_options_t  *from;
    const bloom_image_t      *image;
    const uint64_t           *words;

    pthread_mutex_t           lock;      /* protects the members below */
    key_set_t                 found;     /* candidates */
    char                    **shown;     /* for each: the good key; NULL: it is
                                            the candidate itself */
    size_t                    shown_room;
    uint64_t                  bytes;     /* that all candidates would take */
    uint64_t                  matched;
    int                       stop;      /* atomic: a key is invalid, or there
                                            is no room for more candidates */
    int                       full;      /* no room */

    hash_index_t              index;     /* of the candidates' hashes */

    char                    **again;     /* the lists that can be read again */
    unsigned                  nagain;
    good_place_t             *place;     /* of each candidate */
} good_search_t;


/* Keeps the state of the n lists, before they are read. */
void good_conflicts_begin(good_keys_t *good, char **lists, int n);

/* Finds the conflicts among the candidates: good->conflicts and good->example.
 * Returns CLI_OK; or CLI_ERROR after a message, if a list cannot be read
 * again. */
int good_conflicts_find(good_search_t *search, char **lists, int n);

/* Names the conflicts.  Returns CLI_ERROR. */
int good_conflicts_refuse(const good_search_t *search, const char *output);

void good_conflicts_free(good_search_t *search);


#endif /* GOOD_CONFLICTS_H */
