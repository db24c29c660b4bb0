/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions collect the keys that a journal removes.  A second reading of
 * the journal then tells which keys are still added, and which are still
 * removed.  Only keys that a record removes take memory.
 */

#ifndef JOURNAL_REMOVED_H
#define JOURNAL_REMOVED_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_hasher.h"
#include "bloom_record.h"


/* A key that was removed. */
typedef struct {
    uint8_t   *key;                      /* NULL: the slot is free */
    size_t     len;
    uint64_t   position;                 /* of the record of its last removal */
    uint32_t   index;                    /* of the key in that record */
    int        restored;                 /* since then: that removal does not
                                            count */
    int        added;                    /* since then */
} removed_key_t;

/* All members are 0 at first. */
typedef struct {
    uint8_t         secret[BLOOM_HASH_KEY_LEN];
    removed_key_t  *keys;                /* a hash table */
    size_t          size;                /* slots: a power of two, or 0 */
    size_t          used;
    uint64_t        cleared;             /* position of the last clear; 0: the
                                            journal has no clear */
} journal_removed_t;


/* Takes note of a record at a position, in the first reading.  The keys of the
 * record stay unread. */
void journal_removed_note(journal_removed_t *removed, bloom_record_t record,
    uint64_t position);

/*
 * Returns 1 if a key of a record counts in the second reading: an addition that
 * was not removed or cleared later, or a removal that is the last word about
 * its key.  `index` is the key's number in the record, from 0.
 */
int journal_removed_counts(const journal_removed_t *removed,
    const bloom_record_t *record, uint64_t position, uint32_t index,
    const bloom_key_t *key);

/* Forgets everything. */
void journal_removed_free(journal_removed_t *removed);


#endif /* JOURNAL_REMOVED_H */
