/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A hash_index_t finds hashes of keys, and has marks for each.
 *
 * The number of hashes is known before.  The table takes 48 to 96 bytes for
 * each.  The hashes may be chosen by an attacker, as those of MurmurHash3 can
 * be: their slots depend on secret numbers.
 */

#ifndef HASH_INDEX_H
#define HASH_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_hasher.h"


typedef struct {
    bloom_hash_t  hash;
    uint32_t      marks;                 /* atomic; 0: the slot is empty */
} hash_index_slot_t;

typedef struct {
    hash_index_slot_t  *slot;
    unsigned            bits;            /* 2^bits slots */
    uint64_t            factor[2];       /* secret */
} hash_index_t;


/* Makes an index with room for n hashes. */
void hash_index_create(hash_index_t *index, size_t n);
void hash_index_free(hash_index_t *index);

/* Adds a hash, with a mark, unless the index has it. */
#define HASH_INDEX_PRESENT  1

void hash_index_add(hash_index_t *index, bloom_hash_t hash);

/* Returns the marks of a hash; 0 if the index does not have it. */
uint32_t hash_index_marks(const hash_index_t *index, bloom_hash_t hash);

/* Gives those of n hashes that the index has a further mark.  Any thread may
 * call it. */
void hash_index_mark(hash_index_t *index, const bloom_hash_t *hash, size_t n,
    uint32_t mark);


#endif /* HASH_INDEX_H */
