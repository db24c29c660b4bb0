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
bloom_hash_many(bloom_hash_t *hash, const bloom_hasher_t *hasher,
    const bloom_key_t *key, unsigned n)
{
    unsigned  i, end, shortest;

    for (i = 0; i < n; i = end) {
        shortest = i;
        end = i + 1;

        while (end < n && key[end].data == key[i].data) {

            if (key[end].len < key[shortest].len) {
                shortest = end;
            }

            end++;
        }

        if (end - i > 1 && hasher->kind == BLOOM_HASH_MURMUR3) {
            bloom_murmur3_prefixes(hash + i, key + i, end - i, shortest - i,
                                   bloom_hasher_seed(hasher));

        } else if (end - i > 1 && hasher->kind == BLOOM_HASH_SIPHASH) {
            bloom_siphash_prefixes(hash + i, key + i, end - i, shortest - i,
                                   hasher->key);

        } else {
            for ( /* void */ ; i < end; i++) {
                hash[i] = bloom_hash(hasher, key[i].data, key[i].len);
            }
        }
    }
}
