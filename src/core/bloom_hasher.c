/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file names hash functions and funnels, and checks the hasher that an
 * image records.
 */

#include "bloom_hasher.h"


static const char *const  kinds[] = {
    NULL, "murmur3", "siphash", "murmur3-funnel", "murmur64a", "murmur2",
    "murmur3-32", "highwayhash", "fnv1", "murmur3-twice", "murmur3-each"
};

static const char *const  funnels[] = { "bytes", "utf16", "long", "int" };


void
bloom_hasher_murmur3(bloom_hasher_t *hasher, uint32_t seed)
{
    memset(hasher, 0, sizeof(*hasher));

    hasher->kind = BLOOM_HASH_MURMUR3;
    bloom_put32(hasher->key, seed);
}


void
bloom_hasher_foreign(bloom_hasher_t *hasher, uint32_t kind, uint32_t funnel,
    uint32_t seed)
{
    memset(hasher, 0, sizeof(*hasher));

    hasher->kind = kind;
    bloom_put32(hasher->key, seed);
    hasher->key[BLOOM_HASHER_AT_FUNNEL] = (uint8_t) funnel;
}


int
bloom_hasher_valid(const bloom_hasher_t *hasher)
{
    uint32_t  i, funnel, seed;

    if (hasher->kind == BLOOM_HASH_SIPHASH) {
        return 1;
    }

    seed = bloom_hasher_seed(hasher);
    funnel = bloom_hasher_funnel(hasher);

    i = hasher->kind == BLOOM_HASH_MURMUR3 ? BLOOM_HASHER_AT_FUNNEL
                                           : BLOOM_HASHER_AT_FUNNEL + 1;

    for ( /* void */ ; i < BLOOM_HASH_KEY_LEN; i++) {
        if (hasher->key[i] != 0) {
            return 0;
        }
    }

    switch (hasher->kind) {

    case BLOOM_HASH_MURMUR3:
        return 1;

    case BLOOM_HASH_FUNNEL:
        return seed == 0 && funnel >= BLOOM_FUNNEL_UTF16
               && funnel <= BLOOM_FUNNEL_INT;

    case BLOOM_HASH_MURMUR3_32:
        return funnel == BLOOM_FUNNEL_BYTES || funnel == BLOOM_FUNNEL_LONG;
    }

    return bloom_hasher_name(hasher->kind) != NULL
           && seed == 0 && funnel == BLOOM_FUNNEL_BYTES;
}


const char *
bloom_hasher_name(uint32_t kind)
{
    return kind <= BLOOM_HASH_MURMUR3_EACH ? kinds[kind] : NULL;
}


uint32_t
bloom_hasher_parse(const char *name, size_t len)
{
    uint32_t     kind;
    const char  *candidate;

    for (kind = BLOOM_HASH_MURMUR3; kind <= BLOOM_HASH_SIPHASH; kind++) {
        candidate = bloom_hasher_name(kind);

        if (strlen(candidate) == len && memcmp(candidate, name, len) == 0) {
            return kind;
        }
    }

    return 0;
}


const char *
bloom_hasher_funnel_name(uint32_t funnel)
{
    return funnel <= BLOOM_FUNNEL_INT ? funnels[funnel] : NULL;
}


int
bloom_hasher_funnel_parse(const char *name, size_t len)
{
    int  i;

    for (i = BLOOM_FUNNEL_BYTES; i <= BLOOM_FUNNEL_INT; i++) {
        if (strlen(funnels[i]) == len && memcmp(name, funnels[i], len) == 0) {
            return i;
        }
    }

    return -1;
}
