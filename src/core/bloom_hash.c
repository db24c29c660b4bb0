/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * MURMUR3 and SIPHASH, the common case, are tried first; the hashes of imported
 * filters are in bloom_hash_foreign.c.
 */

#include "bloom_hash.h"
#include "bloom_hash_foreign.h"
#include "bloom_murmur3.h"
#include "bloom_siphash.h"


bloom_hash_t
bloom_hash(const bloom_hasher_t *hasher, const void *data, size_t len)
{
    if (hasher->kind == BLOOM_HASH_MURMUR3) {
        return bloom_murmur3_x64_128(data, len, bloom_hasher_seed(hasher));
    }

    if (hasher->kind == BLOOM_HASH_SIPHASH) {
        return bloom_siphash_128(data, len, hasher->key, 1, 3);
    }

    return bloom_hash_foreign(hasher, data, len);
}


void
bloom_hash_prefixes(bloom_hash_t *hash, const bloom_hasher_t *hasher,
    const bloom_key_t *key, unsigned n)
{
    unsigned  i, shortest;

    for (shortest = 0;
         shortest + 1 < n && key[shortest].len > key[shortest + 1].len;
         shortest++)
    {
        /* void */
    }

    if (hasher->kind == BLOOM_HASH_MURMUR3) {
        bloom_murmur3_prefixes(hash, key, n, shortest,
                               bloom_hasher_seed(hasher));

    } else if (hasher->kind == BLOOM_HASH_SIPHASH) {
        bloom_siphash_prefixes(hash, key, n, shortest, hasher->key);

    } else {
        for (i = 0; i < n; i++) {
            hash[i] = bloom_hash_foreign(hasher, key[i].data, key[i].len);
        }
    }
}
