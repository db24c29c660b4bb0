/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * BloomFilter.WriteTo() of bits-and-blooms (formerly willf) bloom, for Go,
 * writes numbers of 8 bytes, big-endian:
 *
 *     0  m, bits of the filter      8   k
 *     16 size of the bit set in bits: m, or up to 63 more
 *     24 words of 64 bits
 *
 * The size of the bit set and the words are little-endian if the program has
 * chosen that.
 */

#include <inttypes.h>
#include <stdio.h>

#include "bloom_foreign.h"
#include "bloom_bytes.h"
#include "bloom_hasher.h"

#define HEAD  24


static int
parse(bloom_foreign_t *f, const uint8_t *head, size_t len, uint64_t size)
{
    uint64_t  bits, set;

    if (len < HEAD) {
        return bloom_foreign_fail(f, "is not a bits-and-blooms filter: it has "
                                  "%zu bytes, but a header has %d", len, HEAD);
    }

    bits = bloom_get64be(head);
    set = bloom_get64be(head + 16);
    f->order = BLOOM_ORDER_BE;

    if (set < bits || set - bits > 63) {
        set = bloom_get64(head + 16);
        f->order = BLOOM_ORDER_LE;
    }

    if (set < bits || set - bits > 63) {
        return bloom_foreign_fail(f, "is not a bits-and-blooms filter: it says "
                                  "%" PRIu64 " bits in a bit set of %" PRIu64,
                                  bits, bloom_get64be(head + 16));
    }

    if (bloom_foreign_geometry(f, BLOOM_LAYOUT_FOUR, bits,
                               bloom_get64be(head + 8)) != 0
        || bloom_foreign_hasher(f, BLOOM_HASH_MURMUR3_TWICE, 0) != 0)
    {
        return -1;
    }

    f->payload = HEAD;
    f->bytes = (set + 63) / 64 * 8;
    f->link_bytes[0] = f->bytes;

    if (f->bytes > bloom_geometry_whole_lines(bits) / 8) {
        return bloom_foreign_fail(f, "is not a bits-and-blooms filter: it says "
                                  "%" PRIu64 " bits in a bit set of %" PRIu64,
                                  bits, set);
    }

    if (bloom_foreign_size(f, size) != 0) {
        return -1;
    }

    bloom_foreign_promise(f, 0, 0);
    bloom_foreign_keep(f, BLOOM_ORIGIN_BITS_AND_BLOOMS, HEAD);

    return 0;
}


static int
write_head(bloom_foreign_out_t *out, const bloom_image_t *image,
    const uint8_t *origin)
{
    int                      rc;
    bloom_foreign_t          f;
    const bloom_geometry_t  *g;

    if (bloom_foreign_scheme(out, image, "bits-and-blooms", BLOOM_LAYOUT_FOUR,
                             BLOOM_HASH_MURMUR3_TWICE) != 0)
    {
        return -1;
    }

    rc = bloom_foreign_origin(out, &bloom_foreign_bits_and_blooms, image,
                              origin, &f);

    if (rc == -1) {
        return -1;
    }

    out->head_len = HEAD;

    if (rc == 1) {
        memcpy(out->head, origin, HEAD);
        out->order = f.order;
        out->link_bytes[0] = f.link_bytes[0];

        return 0;
    }

    g = &image->geometry;

    bloom_put64be(out->head, g->bits);
    bloom_put64be(out->head + 8, g->k);
    bloom_put64be(out->head + 16, g->bits);
    out->order = BLOOM_ORDER_BE;
    out->link_bytes[0] = (g->bits + 63) / 64 * 8;

    return 0;
}


const bloom_foreign_format_t  bloom_foreign_bits_and_blooms = {
    "bits-and-blooms", BLOOM_ORIGIN_BITS_AND_BLOOMS, "a bits-and-blooms filter",
    parse, write_head
};
