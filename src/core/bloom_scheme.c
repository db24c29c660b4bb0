/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * One table lists all schemes; those for plain bitmaps come first.
 */

#include <string.h>

#include "bloom_scheme.h"
#include "bloom_geometry.h"
#include "bloom_hasher.h"


static const struct {
    const char  *name;
    uint32_t     layout;
    uint32_t     hash;
} schemes[] = {
    { "guava64",         BLOOM_LAYOUT_DOUBLE63, BLOOM_HASH_MURMUR3 },
    { "guava32",         BLOOM_LAYOUT_DOUBLE31, BLOOM_HASH_MURMUR3 },
    { "go-zero",         BLOOM_LAYOUT_EACH,     BLOOM_HASH_MURMUR3_EACH },
    { "redisson",        BLOOM_LAYOUT_ZIGZAG,   BLOOM_HASH_HIGHWAY },
    { "redisbloom",      BLOOM_LAYOUT_DOUBLE,   BLOOM_HASH_MURMUR64A },
    { "double",          BLOOM_LAYOUT_DOUBLE,   BLOOM_HASH_MURMUR3 },
    { "dcso",            BLOOM_LAYOUT_LEHMER,   BLOOM_HASH_FNV1 },
    { "bits-and-blooms", BLOOM_LAYOUT_FOUR,     BLOOM_HASH_MURMUR3_TWICE },
    { "spark1",          BLOOM_LAYOUT_DOUBLE31, BLOOM_HASH_MURMUR3_32 },
    { "spark2",          BLOOM_LAYOUT_SPARK2,   BLOOM_HASH_MURMUR3_32 },
    { "libbloom",        BLOOM_LAYOUT_DOUBLE,   BLOOM_HASH_MURMUR2 },

    /* the names of schemes with other funnels, or with links */

    { "guava64",         BLOOM_LAYOUT_DOUBLE63, BLOOM_HASH_FUNNEL },
    { "guava32",         BLOOM_LAYOUT_DOUBLE31, BLOOM_HASH_FUNNEL },
    { "double",          BLOOM_LAYOUT_DOUBLE,   BLOOM_HASH_FUNNEL },
    { "redisbloom",      BLOOM_LAYOUT_LINKS,    BLOOM_HASH_MURMUR64A },
    { "redisbloom",      BLOOM_LAYOUT_LINKS,    BLOOM_HASH_MURMUR2 },
};

#define SCHEMES  (sizeof(schemes) / sizeof(schemes[0]))
#define PLAIN    11                      /* schemes for plain bitmaps */


const char *
bloom_scheme_name(uint32_t layout, uint32_t hash)
{
    size_t  i;

    for (i = 0; i < SCHEMES; i++) {
        if (schemes[i].layout == layout && schemes[i].hash == hash) {
            return schemes[i].name;
        }
    }

    return NULL;
}


int
bloom_scheme_parse(const char *name, size_t len, uint32_t *layout,
    uint32_t *hash)
{
    size_t  i;

    for (i = 0; i < PLAIN; i++) {

        if (strlen(schemes[i].name) == len
            && memcmp(schemes[i].name, name, len) == 0)
        {
            *layout = schemes[i].layout;
            *hash = schemes[i].hash;
            return 0;
        }
    }

    return -1;
}


const char *
bloom_scheme_list(unsigned i)
{
    return i < PLAIN ? schemes[i].name : NULL;
}


int
bloom_scheme_valid(uint32_t layout, uint32_t hash)
{
    if (bloom_geometry_is_foreign(layout)) {
        return bloom_scheme_name(layout, hash) != NULL;
    }

    return hash == BLOOM_HASH_MURMUR3 || hash == BLOOM_HASH_SIPHASH;
}
