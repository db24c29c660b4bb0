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

#include "bloom_record.h"
#include "key_set.h"


/* The last removal of a key. */
typedef struct {
    uint64_t            position;        /* of its record */
    uint32_t            index;           /* of the key in that record */
    uint8_t             restored;        /* since then: the removal does not
                                            count */
    uint8_t             added;           /* since then */
} journal_removal_t;

/* All members are 0 at first. */
typedef struct {
    key_set_t           keys;            /* that were removed */
    journal_removal_t  *removal;         /* of each key */
    size_t              room;
    uint64_t            cleared;         /* position of the last clear; 0: the
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
