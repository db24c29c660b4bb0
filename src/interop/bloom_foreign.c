/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file implements the checks and conversions that the formats share.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "bloom_foreign.h"
#include "bloom_hasher.h"
#include "bloom_scheme.h"


static inline uint64_t
reverse_bits_of_bytes(uint64_t x)
{
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0f) | (x & 0x0f0f0f0f0f0f0f0f) << 4;
    x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;

    return (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
}


void
bloom_foreign_order(bloom_order_e order, void *bits, size_t len)
{
    uint8_t   *p;
    uint64_t   x;

    if (order == BLOOM_ORDER_LE) {
        return;
    }

    for (p = bits; len >= 8; p += 8, len -= 8) {

        memcpy(&x, p, 8);

        x = order == BLOOM_ORDER_BE ? __builtin_bswap64(x)
                                    : reverse_bits_of_bytes(x);
        memcpy(p, &x, 8);
    }

    for ( /* void */ ; order == BLOOM_ORDER_MSB && len != 0; p++, len--) {
        *p = (uint8_t) reverse_bits_of_bytes(*p);
    }
}


uint32_t
bloom_foreign_links(const bloom_geometry_t *g)
{
    return g->layout == BLOOM_LAYOUT_LINKS ? g->links : 1;
}


bloom_link_t
bloom_foreign_link(const bloom_geometry_t *g, uint32_t i, uint64_t *offset)
{
    uint32_t      j;
    bloom_link_t  link;

    *offset = 0;

    if (g->layout != BLOOM_LAYOUT_LINKS) {
        link.bits = g->bits;
        link.k = g->k;
        link.zero = 0;

        return link;
    }

    for (j = 0; j < i; j++) {
        *offset += bloom_geometry_whole_lines(g->link[j].bits) / 8;
    }

    return g->link[i];
}


int
bloom_foreign_padded(const bloom_geometry_t *g, const uint64_t *words)
{
    uint32_t        i;
    uint64_t        bit, end, offset;
    bloom_link_t    link;
    const uint8_t  *p;

    for (i = 0; i < bloom_foreign_links(g); i++) {

        link = bloom_foreign_link(g, i, &offset);
        p = (const uint8_t *) words + offset;
        end = bloom_geometry_whole_lines(link.bits);

        for (bit = link.bits; bit < end; bit++) {
            if (p[bit / 8] >> (bit % 8) & 1) {
                return 0;
            }
        }
    }

    return 1;
}


int
bloom_foreign_geometry(bloom_foreign_t *f, uint32_t layout, uint64_t bits,
    uint64_t k)
{
    if (bits == 0 || bits > BLOOM_BITS_MAX) {
        return bloom_foreign_fail(f, "has %" PRIu64 " bits, but a filter must "
                                  "have 1 to %" PRIu64, bits, BLOOM_BITS_MAX);
    }

    if (k == 0 || k > BLOOM_K_MAX) {
        return bloom_foreign_fail(f, "has %" PRIu64 " bits for each key, but a "
                                  "filter must have 1 to %d", k, BLOOM_K_MAX);
    }

    f->image.geometry.layout = layout;
    f->image.geometry.bits = bits;
    f->image.geometry.k = (uint32_t) k;

    return 0;
}


int
bloom_foreign_hasher(bloom_foreign_t *f, uint32_t kind, uint32_t seed)
{
    /* murmur3 with another funnel than bytes is a hash of its own */

    if (kind == BLOOM_HASH_MURMUR3 && f->funnel != BLOOM_FUNNEL_BYTES) {
        kind = BLOOM_HASH_FUNNEL;
    }

    bloom_hasher_foreign(&f->image.hasher, kind, f->funnel, seed);

    if (!bloom_hasher_valid(&f->image.hasher)) {
        return bloom_foreign_fail(f, "cannot have the funnel \"%s\" with this "
                                  "scheme; omit --funnel",
                                  bloom_hasher_funnel_name(f->funnel));
    }

    f->image.flags = BLOOM_IMAGE_IMPORTED | BLOOM_IMAGE_ESTIMATED;
    f->image.key_form = BLOOM_FORM_RAW;
    f->claimed = BLOOM_FOREIGN_UNKNOWN;

    return 0;
}


void
bloom_foreign_promise(bloom_foreign_t *f, uint64_t capacity, double fpr)
{
    double             n;
    bloom_geometry_t  *g;

    g = &f->image.geometry;
    n = floor((double) g->bits * M_LN2 / g->k);

    f->image.capacity = n > 1 ? (uint64_t) n : 1;
    f->image.fpr = exp2(-(double) g->k);

    if (capacity != 0 && fpr > 0 && fpr < 1) {
        f->image.capacity = capacity;
        f->image.fpr = fpr;
        f->promised = 1;
    }
}


void
bloom_foreign_keep(bloom_foreign_t *f, uint32_t origin, size_t len)
{
    f->image.origin = origin;

    if (len <= bloom_image_origin_room(&f->image)) {
        f->image.origin_len = (uint32_t) len;

    } else {
        f->lost_len = len;
    }
}


int
bloom_foreign_size(bloom_foreign_t *f, uint64_t size)
{
    uint64_t  need;

    need = f->payload + f->bytes;

    if (size == BLOOM_FOREIGN_UNKNOWN) {
        return 0;
    }

    if (size < need && !f->may_be_short) {
        return bloom_foreign_fail(f, "is truncated or of another format: it "
                                  "has %" PRIu64 " bytes, but its header says "
                                  "%" PRIu64, size, need);
    }

    if (size > need && !f->may_be_long) {
        return bloom_foreign_fail(f, "is longer than its header says: %" PRIu64
                                  " bytes follow the filter's %" PRIu64
                                  " bytes; remove them", size - need, need);
    }

    return 0;
}


int
bloom_foreign_scheme(bloom_foreign_out_t *out, const bloom_image_t *image,
    const char *format, uint32_t layout, uint32_t hash)
{
    const char  *is;

    if (image->geometry.layout == layout && image->hasher.kind == hash) {
        return 0;
    }

    is = bloom_scheme_name(image->geometry.layout, image->hasher.kind);

    return bloom_foreign_fail(out, "cannot be written as %s, in which keys "
                              "have other bits: its scheme is %s", format,
                              is ? is : bloom_geometry_layout_name(
                                              image->geometry.layout));
}


int
bloom_foreign_origin(bloom_foreign_out_t *out,
    const bloom_foreign_format_t *format, const bloom_image_t *image,
    const uint8_t *origin, bloom_foreign_t *f)
{
    uint32_t  at;

    if (image->origin != format->origin || image->origin_len == 0) {
        return 0;
    }

    memset(f, 0, sizeof(*f));

    if (format->parse(f, origin, image->origin_len, BLOOM_FOREIGN_UNKNOWN) == 0
        && (f->payload == image->origin_len || f->may_be_long)
        && bloom_image_differs(&f->image, image) == NULL)
    {
        return 1;
    }

    at = bloom_image_origin_at(image);

    return bloom_foreign_fail(out, "cannot be written as %s: the source's "
                              "header that it keeps, bytes %" PRIu32 " to %"
                              PRIu32 ", belongs to another filter; import it "
                              "again", format->name, at,
                              at + image->origin_len - 1);
}


uint64_t
bloom_foreign_count(const bloom_foreign_out_t *out, const bloom_image_t *image,
    uint64_t claimed)
{
    return out->items > image->origin_items
           ? claimed + (out->items - image->origin_items) : claimed;
}
