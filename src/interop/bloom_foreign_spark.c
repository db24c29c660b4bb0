/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * writeTo() of Spark's org.apache.spark.util.sketch.BloomFilter writes numbers
 * of 4 bytes, big-endian, then words of 64 bits:
 *
 *     version 1:   1 | k | number of words | words
 *     version 2:   2 | k | seed | number of words | words
 */

#include <inttypes.h>
#include <stdio.h>

#include "bloom_foreign.h"
#include "bloom_hasher.h"


static int
parse(bloom_foreign_t *f, const uint8_t *head, size_t len, uint64_t size)
{
    size_t    want;
    uint32_t  version, k, words, seed;

    version = len >= 4 ? bloom_get32be(head) : 0;

    if (version != 1 && version != 2) {
        return bloom_foreign_fail(f, "is not a Spark filter: it does not begin "
                                  "with version 1 or 2");
    }

    want = version == 1 ? 12 : 16;

    if (len < want) {
        return bloom_foreign_fail(f, "is not a Spark filter: it has %zu bytes, "
                                  "but a header has %zu", len, want);
    }

    k = bloom_get32be(head + 4);
    seed = version == 1 ? 0 : bloom_get32be(head + 8);
    words = bloom_get32be(head + want - 4);

    if (words == 0 || words > INT32_MAX) {
        return bloom_foreign_fail(f, "is not a Spark filter: it says %" PRId32
                                  " words", (int32_t) words);
    }

    f->payload = want;
    f->bytes = (uint64_t) words * 8;
    f->link_bytes[0] = f->bytes;
    f->order = BLOOM_ORDER_BE;

    if (bloom_foreign_size(f, size) != 0
        || bloom_foreign_geometry(f, version == 1 ? BLOOM_LAYOUT_DOUBLE31
                                                  : BLOOM_LAYOUT_SPARK2,
                                  (uint64_t) words * 64, k) != 0
        || bloom_foreign_hasher(f, BLOOM_HASH_MURMUR3_32, seed) != 0)
    {
        return -1;
    }

    bloom_foreign_promise(f, 0, 0);
    bloom_foreign_keep(f, BLOOM_ORIGIN_SPARK, 0);

    return 0;
}


static int
write_head(bloom_foreign_out_t *out, const bloom_image_t *image,
    const uint8_t *origin)
{
    uint32_t                 layout;
    const bloom_geometry_t  *g;

    (void) origin;

    g = &image->geometry;
    layout = g->layout == BLOOM_LAYOUT_SPARK2 ? g->layout
                                              : BLOOM_LAYOUT_DOUBLE31;

    if (bloom_foreign_scheme(out, image, "spark", layout,
                             BLOOM_HASH_MURMUR3_32) != 0)
    {
        return -1;
    }

    if (g->bits % 64 != 0 || g->bits / 64 > INT32_MAX) {
        return bloom_foreign_fail(out, "cannot be written as spark: %" PRIu64
                                  " bits are too many, or not a multiple of "
                                  "64", g->bits);
    }

    if (layout == BLOOM_LAYOUT_DOUBLE31
        && bloom_hasher_seed(&image->hasher) != 0)
    {
        return bloom_foreign_fail(out, "cannot be written as spark: version 1 "
                                  "has no room for its seed; import it again");
    }

    bloom_put32be(out->head, layout == BLOOM_LAYOUT_SPARK2 ? 2 : 1);
    bloom_put32be(out->head + 4, g->k);
    out->head_len = 8;

    if (layout == BLOOM_LAYOUT_SPARK2) {
        bloom_put32be(out->head + 8, bloom_hasher_seed(&image->hasher));
        out->head_len = 12;
    }

    bloom_put32be(out->head + out->head_len, (uint32_t) (g->bits / 64));
    out->head_len += 4;
    out->order = BLOOM_ORDER_BE;
    out->link_bytes[0] = g->bits / 8;

    return 0;
}


const bloom_foreign_format_t  bloom_foreign_spark = {
    "spark", BLOOM_ORIGIN_SPARK, "a Spark filter", parse, write_head
};
