/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file keeps hashes in a table with linear probing.
 */

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "hash_index.h"

#define BITS_MIN  6

/* Memory is prefetched for the hash that is this far ahead. */
#define PREFETCH  16


static size_t
home_of(const hash_index_t *index, bloom_hash_t hash)
{
    return (size_t) ((hash.h1 * index->factor[0] + hash.h2 * index->factor[1])
                     >> (64 - index->bits));
}


/* Returns the slot of a hash, or the empty slot where it belongs. */
static hash_index_slot_t *
find(const hash_index_t *index, bloom_hash_t hash)
{
    size_t              i, mask;
    hash_index_slot_t  *slot;

    mask = ((size_t) 1 << index->bits) - 1;

    for (i = home_of(index, hash); /* void */ ; i = (i + 1) & mask) {
        slot = &index->slot[i];

        if (__atomic_load_n(&slot->marks, __ATOMIC_RELAXED) == 0
            || (slot->hash.h1 == hash.h1 && slot->hash.h2 == hash.h2))
        {
            return slot;
        }
    }
}


void
hash_index_create(hash_index_t *index, size_t n)
{
    size_t  size;

    for (index->bits = BITS_MIN; (size_t) 1 << index->bits < 2 * n;
         index->bits++)
    {
        /* void */
    }

    cli_random(index->factor, sizeof(index->factor));
    index->factor[0] |= 1;
    index->factor[1] |= 1;

    size = ((size_t) 1 << index->bits) * sizeof(hash_index_slot_t);
    index->slot = cli_alloc(size);
    memset(index->slot, 0, size);
}


void
hash_index_free(hash_index_t *index)
{
    free(index->slot);
    memset(index, 0, sizeof(*index));
}


void
hash_index_add(hash_index_t *index, bloom_hash_t hash)
{
    hash_index_slot_t  *slot;

    slot = find(index, hash);
    slot->hash = hash;
    slot->marks |= HASH_INDEX_PRESENT;
}


uint32_t
hash_index_marks(const hash_index_t *index, bloom_hash_t hash)
{
    return __atomic_load_n(&find(index, hash)->marks, __ATOMIC_RELAXED);
}


void
hash_index_mark(hash_index_t *index, const bloom_hash_t *hash, size_t n,
    uint32_t mark)
{
    size_t              i;
    uint32_t            marks;
    hash_index_slot_t  *slot;

    for (i = 0; i < n; i++) {

        if (i + PREFETCH < n) {
            __builtin_prefetch(&index->slot[home_of(index,
                                                    hash[i + PREFETCH])]);
        }

        slot = find(index, hash[i]);
        marks = __atomic_load_n(&slot->marks, __ATOMIC_RELAXED);

        if (marks != 0 && (marks & mark) == 0) {
            (void) __atomic_fetch_or(&slot->marks, mark, __ATOMIC_RELAXED);
        }
    }
}
