/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file counts changes in digests.
 */

#include "bloom_digest.h"
#include "bloom_siphash.h"

#define FACTOR  0x9e3779b97f4a7c15


void
bloom_digest_put(bloom_digest_batch_t *batch, const bloom_key_t *key,
    int removed)
{
    bloom_hash_t  hash;

    static const uint8_t  secret[BLOOM_HASH_KEY_LEN] = {
        'n', 'g', 'x', '-', 'b', 'l', 'o', 'o', 'm', ' ', 'd', 'i', 'g', 'e',
        's', 't'
    };

    hash = bloom_siphash_128(key->data, key->len, secret, 1, 3);

    batch->factor *= FACTOR;
    batch->sum = batch->sum * FACTOR + (removed ? hash.h2 : hash.h1);
}
