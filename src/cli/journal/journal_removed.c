/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The removed keys are in a set that compares them byte by byte, so the result
 * is exact.
 */

#include <stdlib.h>
#include <string.h>

#include "bloom_exceptions.h"
#include "cli.h"
#include "journal_removed.h"


/* Returns what is known of a key that was removed, or NULL. */
static journal_removal_t *
known(const journal_removed_t *removed, const bloom_key_t *key)
{
    key_set_key_t  *found;

    if (removed->keys.n == 0) {
        return NULL;
    }

    found = key_set_find(&removed->keys, key);

    return found != NULL ? &removed->removal[found - removed->keys.key] : NULL;
}


/* Adds a key, unless the set has it.  Returns what is known of it. */
static journal_removal_t *
insert(journal_removed_t *removed, const bloom_key_t *key)
{
    size_t  i;

    if (removed->keys.n == 0) {
        key_set_create(&removed->keys);
    }

    (void) key_set_add(&removed->keys, key, NULL, &i);

    if (removed->keys.n > removed->room) {
        removed->room = 2 * removed->keys.n;
        removed->removal = cli_realloc(removed->removal, removed->room
                                       * sizeof(journal_removal_t));
    }

    return &removed->removal[i];
}


void
journal_removed_note(journal_removed_t *removed, bloom_record_t record,
    uint64_t position)
{
    size_t              i;
    uint32_t            index;
    bloom_key_t         key;
    journal_removal_t  *removal;

    if (record.type == BLOOM_RECORD_CLEAR) {
        journal_removed_free(removed);
        removed->cleared = position;
        return;
    }

    if (record.type == BLOOM_RECORD_RESTORE) {
        for (i = 0; (record.kinds & BLOOM_EXCEPTION_REMOVED)
                    && i < removed->keys.n; i++)
        {
            removed->removal[i].restored = 1;
        }

        return;
    }

    for (index = 0; bloom_record_key(&record, &key) == 1; index++) {

        if (record.type == BLOOM_RECORD_REMOVE) {
            removal = insert(removed, &key);

            removal->position = position;
            removal->index = index;
            removal->restored = 0;
            removal->added = 0;
            continue;
        }

        removal = known(removed, &key);

        if (removal != NULL) {
            removal->added = 1;
        }
    }
}


int
journal_removed_counts(const journal_removed_t *removed,
    const bloom_record_t *record, uint64_t position, uint32_t index,
    const bloom_key_t *key)
{
    const journal_removal_t  *removal;

    if (position < removed->cleared) {
        return 0;
    }

    removal = known(removed, key);

    switch (record->type) {

    case BLOOM_RECORD_ADD:
        return removal == NULL || removal->restored
               || position > removal->position;

    case BLOOM_RECORD_REMOVE:
        return removal != NULL && !removal->restored && !removal->added
               && position == removal->position && index == removal->index;

    default:
        return 0;
    }
}


void
journal_removed_free(journal_removed_t *removed)
{
    key_set_free(&removed->keys);
    free(removed->removal);
    memset(removed, 0, sizeof(*removed));
}
