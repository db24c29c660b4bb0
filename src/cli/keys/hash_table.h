/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A hash_table_t finds hashes in an array of its owner.
 *
 *     hash   | h1 h2 | h1 h2 | h1 h2 |         of the owner
 *                ^       ^
 *     slot   | 0 1   0   2   0   0   0   0 |   1 + an index, or 0
 *
 * The hashes may be chosen by an attacker: who knows the seed of MurmurHash3
 * can compute keys for any of them.  So the slot of a hash depends on secret
 * numbers.
 */

#ifndef HASH_TABLE_H
#define HASH_TABLE_H

#include <stddef.h>
#include <stdint.h>


/* All members are 0 at first. */
typedef struct {
    uint32_t    *slot;
    size_t       room;                   /* slots in memory */
    unsigned     bits;                   /* 2^bits slots are used */
    uint64_t     secret[2];
} hash_table_t;


/* Empties a table, and gives it at least so many slots: several times as many
 * as it will have hashes. */
void hash_table_clear(hash_table_t *table, size_t slots);
void hash_table_free(hash_table_t *table);

/* Returns where the search for a hash begins. */
static inline size_t
hash_table_home(const hash_table_t *table, uint64_t h1, uint64_t h2)
{
    unsigned __int128  product;

    product = (unsigned __int128) (h1 ^ table->secret[0])
              * (h2 ^ table->secret[1]);

    return (size_t) (((uint64_t) product ^ (uint64_t) (product >> 64))
                     >> (64 - table->bits));
}


/*
 * Returns the slot of a hash, or the empty slot where it belongs.  The array
 * has `width` words for each hash, of which the first is h1 and the last h2.
 */
static inline __attribute__((always_inline)) uint32_t *
hash_table_find(const hash_table_t *table, const uint64_t *hash,
    unsigned width, uint64_t h1, uint64_t h2)
{
    size_t           i, mask;
    uint32_t        *slot;
    const uint64_t  *other;

    mask = ((size_t) 1 << table->bits) - 1;

    for (i = hash_table_home(table, h1, h2); /* void */ ; i = (i + 1) & mask) {
        slot = &table->slot[i];

        if (*slot == 0) {
            return slot;
        }

        other = &hash[(size_t) (*slot - 1) * width];

        if (other[width - 1] == h2 && other[0] == h1) {
            return slot;
        }
    }
}


#endif /* HASH_TABLE_H */
