/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Guava's BloomFilter.writeTo() writes a header, big-endian, and the words:
 *
 *     0  strategy, 1 byte: 0 MURMUR128_MITZ_32, 1 MURMUR128_MITZ_64
 *     1  k, 1 byte, from 1
 *     2  number of words, 4 bytes, signed
 *     6  words of 64 bits
 *
 * The funnel is not recorded, so the user states it.
 */

#include <inttypes.h>
#include <stdio.h>

#include "bloom_foreign.h"
#include "bloom_hasher.h"

#define HEAD  6


static int
parse(bloom_foreign_t *f, const uint8_t *head, size_t len, uint64_t size)
{
    uint32_t  words;

    static const uint32_t  layouts[2] = {
        BLOOM_LAYOUT_DOUBLE31, BLOOM_LAYOUT_DOUBLE63
    };

    if (len < HEAD) {
        return bloom_foreign_fail(f, "is not a Guava file: it has %zu bytes, "
                                  "but a header has %d", len, HEAD);
    }

    words = bloom_get32be(head + 2);

    if (head[0] > 1 || head[1] == 0 || words == 0 || words > INT32_MAX) {
        return bloom_foreign_fail(f, "is not a Guava file: it says strategy "
                                  "%d, %d hashes and %" PRId32 " words",
                                  head[0], head[1], (int32_t) words);
    }

    f->payload = HEAD;
    f->bytes = (uint64_t) words * 8;
    f->link_bytes[0] = f->bytes;
    f->order = BLOOM_ORDER_BE;

    if (bloom_foreign_size(f, size) != 0
        || bloom_foreign_geometry(f, layouts[head[0]], (uint64_t) words * 64,
                                  head[1]) != 0
        || bloom_foreign_hasher(f, BLOOM_HASH_MURMUR3, 0) != 0)
    {
        return -1;
    }

    bloom_foreign_promise(f, 0, 0);
    bloom_foreign_keep(f, BLOOM_ORIGIN_GUAVA, 0);

    return 0;
}


static int
write_head(bloom_foreign_out_t *out, const bloom_image_t *image,
    const uint8_t *origin)
{
    uint32_t                 layout, hash;
    const bloom_geometry_t  *g;

    (void) origin;

    g = &image->geometry;
    layout = g->layout == BLOOM_LAYOUT_DOUBLE31 ? g->layout
                                                : BLOOM_LAYOUT_DOUBLE63;
    hash = image->hasher.kind == BLOOM_HASH_FUNNEL ? BLOOM_HASH_FUNNEL
                                                   : BLOOM_HASH_MURMUR3;

    if (bloom_foreign_scheme(out, image, "guava", layout, hash) != 0) {
        return -1;
    }

    if (g->bits % 64 != 0 || g->bits / 64 > INT32_MAX
        || bloom_hasher_seed(&image->hasher) != 0)
    {
        return bloom_foreign_fail(out, "cannot be written as guava: %" PRIu64
                                  " bits are too many, or not a multiple of "
                                  "64", g->bits);
    }

    out->head[0] = layout == BLOOM_LAYOUT_DOUBLE63;
    out->head[1] = (uint8_t) g->k;
    bloom_put32be(out->head + 2, (uint32_t) (g->bits / 64));

    out->head_len = HEAD;
    out->order = BLOOM_ORDER_BE;
    out->link_bytes[0] = g->bits / 8;

    return 0;
}


const bloom_foreign_format_t  bloom_foreign_guava = {
    "guava", BLOOM_ORIGIN_GUAVA, "a Guava file", parse, write_head
};
