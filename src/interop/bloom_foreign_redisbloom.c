/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * RedisBloom, and the BF commands of Redis 8, dump a filter as the chunks of
 * BF.SCANDUMP, which follow one another in a file.  They are little-endian and
 * packed.  The first chunk is the header:
 *
 *     0   size, keys added, 8 bytes        8   number of links, 4
 *     12  options, 4                       16  growth, 4
 *     20  links of 53 bytes each:
 *             0   bytes, 8       8   bits, 8        16  size, 8
 *             24  error rate     32  bits per entry, two doubles
 *             40  k, 4           44  entries, 8     52  n2, 1
 *
 * The other chunks are the bits of the links.  Option 1 means that the number
 * of bits is not rounded to a power of two, option 4 that hashes have 64 bits.
 * Old filters have hashes of 32 bits, and 2^n2 bits.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "bloom_foreign.h"
#include "bloom_bytes.h"
#include "bloom_hasher.h"

#define HEAD         20
#define LINK         53

#define OPT_NOROUND  1
#define OPT_FORCE64  4


/* Reads link i.  Returns 0 with its hash in *hash, or -1 with f->error. */
static int
parse_link(bloom_foreign_t *f, const uint8_t *p, uint32_t i, uint32_t options,
    uint32_t *hash)
{
    uint8_t        n2;
    uint64_t       bytes, bits;
    bloom_link_t  *link;

    link = &f->image.geometry.link[i];

    bytes = bloom_get64(p);
    bits = bloom_get64(p + 8);
    n2 = p[52];

    if (n2 != 0) {
        bits = n2 < 44 ? (uint64_t) 1 << n2 : UINT64_MAX;
    }

    if (bloom_foreign_geometry(f, BLOOM_LAYOUT_DOUBLE, bits,
                               bloom_get32(p + 40)) != 0)
    {
        return -1;
    }

    if (bytes < (bits + 7) / 8
        || bytes > bloom_geometry_whole_lines(bits) / 8)
    {
        return bloom_foreign_fail(f, "is not a RedisBloom dump: link %" PRIu32
                                  " has %" PRIu64 " bits in %" PRIu64
                                  " bytes", i, bits, bytes);
    }

    *hash = BLOOM_HASH_MURMUR64A;

    if ((options & OPT_FORCE64) == 0 && n2 <= 31) {

        if (n2 == 0) {
            return bloom_foreign_fail(f, "cannot be imported: it has hashes of "
                                      "32 bits, and its number of bits is not "
                                      "a power of two; create it again with a "
                                      "current RedisBloom");
        }

        *hash = BLOOM_HASH_MURMUR2;
    }

    link->bits = bits;
    link->k = bloom_get32(p + 40);

    f->link_bytes[i] = bytes;

    return 0;
}


static int
parse(bloom_foreign_t *f, const uint8_t *head, size_t len, uint64_t size)
{
    double             fpr, none;
    uint32_t           i, links, options, hash, first;
    uint64_t           entries, lines;
    const uint8_t     *p;
    bloom_geometry_t  *g;

    if (len < HEAD + LINK) {
        return bloom_foreign_fail(f, "is not a RedisBloom dump: it has %zu "
                                  "bytes, but a header has %d", len,
                                  HEAD + LINK);
    }

    g = &f->image.geometry;
    links = bloom_get32(head + 8);
    options = bloom_get32(head + 12);

    if (links == 0 || options > 15) {
        return bloom_foreign_fail(f, "is not a RedisBloom dump: it says %"
                                  PRIu32 " links and options 0x%" PRIx32,
                                  links, options);
    }

    if (links > BLOOM_LINKS_MAX) {
        return bloom_foreign_fail(f, "has %" PRIu32 " links, but at most %d "
                                  "can be imported; reserve it again for as "
                                  "many keys as it has", links,
                                  BLOOM_LINKS_MAX);
    }

    f->payload = HEAD + LINK * (uint64_t) links;

    if (len < f->payload) {
        return bloom_foreign_fail(f, "is truncated: it has %zu bytes, but a "
                                  "header of %" PRIu32 " links has %" PRIu64,
                                  len, links, f->payload);
    }

    f->bytes = 0;
    entries = 0;
    lines = 0;
    none = 0;
    first = 0;

    for (i = 0; i < links; i++) {

        p = head + HEAD + LINK * i;

        if (parse_link(f, p, i, options, &hash) != 0) {
            return -1;
        }

        if (i != 0 && hash != first) {
            return bloom_foreign_fail(f, "cannot be imported: some of its "
                                      "links have hashes of 32 bits, and "
                                      "others of 64; reserve it again");
        }

        first = hash;
        memcpy(&fpr, p + 24, 8);
        none += log1p(-fpr);
        lines += bloom_geometry_whole_lines(g->link[i].bits);
        f->bytes += f->link_bytes[i];

        if (__builtin_add_overflow(entries, bloom_get64(p + 44), &entries)) {
            entries = 0;
        }
    }

    if (links > 1) {
        if (lines > BLOOM_BITS_MAX) {
            return bloom_foreign_fail(f, "has %" PRIu64 " bits, but a filter "
                                      "can have at most %" PRIu64, lines,
                                      BLOOM_BITS_MAX);
        }

        g->layout = BLOOM_LAYOUT_LINKS;
        g->links = links;
        g->bits = lines;

    } else {
        memset(&g->link[0], 0, sizeof(g->link[0]));
    }

    f->order = BLOOM_ORDER_LE;

    if (bloom_foreign_size(f, size) != 0
        || bloom_foreign_hasher(f, first, 0) != 0)
    {
        return -1;
    }

    bloom_foreign_promise(f, entries, -expm1(none));
    bloom_foreign_keep(f, BLOOM_ORIGIN_REDISBLOOM, f->payload);

    f->claimed = bloom_get64(head);

    return 0;
}


static int
write_head(bloom_foreign_out_t *out, const bloom_image_t *image,
    const uint8_t *origin)
{
    int                      rc;
    double                   bpe;
    uint8_t                 *p;
    uint32_t                 links;
    uint64_t                 offset;
    bloom_link_t             link;
    bloom_foreign_t          f;
    const bloom_geometry_t  *g;

    g = &image->geometry;
    links = bloom_foreign_links(g);

    if (bloom_foreign_scheme(out, image, "redisbloom",
                             g->layout == BLOOM_LAYOUT_LINKS
                             ? BLOOM_LAYOUT_LINKS : BLOOM_LAYOUT_DOUBLE,
                             image->hasher.kind == BLOOM_HASH_MURMUR2
                             ? BLOOM_HASH_MURMUR2 : BLOOM_HASH_MURMUR64A) != 0)
    {
        return -1;
    }

    rc = bloom_foreign_origin(out, &bloom_foreign_redisbloom, image, origin,
                              &f);

    if (rc == -1) {
        return -1;
    }

    out->head_len = HEAD + LINK * links;
    out->order = BLOOM_ORDER_LE;

    if (rc == 1) {
        memcpy(out->head, origin, out->head_len);
        memcpy(out->link_bytes, f.link_bytes, sizeof(f.link_bytes));

        /* keys are added to the last link */

        p = out->head + HEAD + LINK * (links - 1);

        bloom_put64(out->head, bloom_foreign_count(out, image, f.claimed));
        bloom_put64(p + 16, bloom_foreign_count(out, image,
                                                bloom_get64(p + 16)));

        return 0;
    }

    /* a header as BF.RESERVE ... NONSCALING makes it today */

    if (links != 1) {
        return bloom_foreign_fail(out, "cannot be written as redisbloom: it has "
                                  "%" PRIu32 " links and does not have the "
                                  "header of its source; copy the source "
                                  "instead", links);
    }

    if (g->bits % 64 != 0
        || image->hasher.kind != BLOOM_HASH_MURMUR64A)
    {
        return bloom_foreign_fail(out, "cannot be written as redisbloom: its %"
                                  PRIu64 " bits are not a multiple of 64, or "
                                  "its hashes have 32 bits", g->bits);
    }

    memset(out->head, 0, out->head_len);
    p = out->head + HEAD;
    link = bloom_foreign_link(g, 0, &offset);
    bpe = link.k / M_LN2;

    bloom_put64(out->head, out->items);
    bloom_put32(out->head + 8, 1);
    bloom_put32(out->head + 12, OPT_NOROUND | OPT_FORCE64 | 8);
    bloom_put64(p, link.bits / 8);
    bloom_put64(p + 8, link.bits);
    bloom_put64(p + 16, out->items);
    memcpy(p + 24, &image->fpr, 8);
    memcpy(p + 32, &bpe, 8);
    bloom_put32(p + 40, link.k);
    bloom_put64(p + 44, image->capacity);
    out->link_bytes[0] = link.bits / 8;

    return 0;
}


const bloom_foreign_format_t  bloom_foreign_redisbloom = {
    "redisbloom", BLOOM_ORIGIN_REDISBLOOM, "a RedisBloom dump", parse,
    write_head
};
