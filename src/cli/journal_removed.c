/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The removed keys are in a hash table with linear probing.  They are compared
 * byte by byte, so the result is exact.
 */

#include <stdlib.h>
#include <string.h>

#include "bloom_siphash.h"
#include "cli.h"
#include "bloom_exceptions.h"
#include "journal_removed.h"


/* Returns the slot of a key, or the free one where it would be.  The table is
 * not empty. */
static removed_key_t *
find(const journal_removed_t *removed, const bloom_key_t *key)
{
    size_t          i;
    bloom_hash_t    hash;
    removed_key_t  *slot;

    hash = bloom_siphash_128(key->data, key->len, removed->secret, 1, 3);

    for (i = hash.h1; /* void */ ; i++) {
        slot = &removed->keys[i & (removed->size - 1)];

        if (slot->key == NULL
            || (slot->len == key->len
                && memcmp(slot->key, key->data, key->len) == 0))
        {
            return slot;
        }
    }
}


/* Returns a key that was removed, or NULL. */
static removed_key_t *
known(const journal_removed_t *removed, const bloom_key_t *key)
{
    removed_key_t  *slot;

    if (removed->size == 0) {
        return NULL;
    }

    slot = find(removed, key);

    return slot->key != NULL ? slot : NULL;
}


/* Makes room for one more key. */
static void
grow(journal_removed_t *removed)
{
    size_t          i, size;
    bloom_key_t     key;
    removed_key_t  *old;

    if (removed->used < removed->size / 2) {
        return;
    }

    if (removed->size == 0) {
        cli_random(removed->secret, BLOOM_HASH_KEY_LEN);
    }

    old = removed->keys;
    size = removed->size;

    removed->size = size == 0 ? 1024 : 2 * size;
    removed->keys = cli_alloc(removed->size * sizeof(removed_key_t));
    memset(removed->keys, 0, removed->size * sizeof(removed_key_t));

    for (i = 0; i < size; i++) {
        if (old[i].key != NULL) {
            key.data = old[i].key;
            key.len = old[i].len;
            *find(removed, &key) = old[i];
        }
    }

    free(old);
}


static removed_key_t *
insert(journal_removed_t *removed, const bloom_key_t *key)
{
    removed_key_t  *slot;

    grow(removed);
    slot = find(removed, key);

    if (slot->key == NULL) {
        slot->key = cli_alloc(key->len);
        memcpy(slot->key, key->data, key->len);
        slot->len = key->len;
        removed->used++;
    }

    return slot;
}


void
journal_removed_note(journal_removed_t *removed, bloom_record_t record,
    uint64_t position)
{
    size_t          i;
    uint32_t        index;
    bloom_key_t     key;
    removed_key_t  *slot;

    if (record.type == BLOOM_RECORD_CLEAR) {
        journal_removed_free(removed);
        removed->cleared = position;
        return;
    }

    if (record.type == BLOOM_RECORD_RESTORE) {
        for (i = 0; (record.kinds & BLOOM_EXCEPTION_REMOVED)
                    && i < removed->size; i++)
        {
            removed->keys[i].restored = 1;
        }

        return;
    }

    for (index = 0; bloom_record_key(&record, &key) == 1; index++) {

        if (record.type == BLOOM_RECORD_REMOVE) {
            slot = insert(removed, &key);

            slot->position = position;
            slot->index = index;
            slot->restored = 0;
            slot->added = 0;
            continue;
        }

        slot = known(removed, &key);

        if (slot != NULL) {
            slot->added = 1;
        }
    }
}


int
journal_removed_counts(const journal_removed_t *removed,
    const bloom_record_t *record, uint64_t position, uint32_t index,
    const bloom_key_t *key)
{
    const removed_key_t  *slot;

    if (position < removed->cleared) {
        return 0;
    }

    slot = known(removed, key);

    switch (record->type) {

    case BLOOM_RECORD_ADD:
        return slot == NULL || slot->restored || position > slot->position;

    case BLOOM_RECORD_REMOVE:
        return slot != NULL && !slot->restored && !slot->added
               && position == slot->position && index == slot->index;

    default:
        return 0;
    }
}


void
journal_removed_free(journal_removed_t *removed)
{
    size_t  i;

    for (i = 0; i < removed->size; i++) {
        free(removed->keys[i].key);
    }

    free(removed->keys);
    memset(removed, 0, sizeof(*removed));
}
