/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * DCSO's bloom, version 1, writes numbers of 8 bytes, little-endian:
 *
 *     0   flags; the lowest byte is the version, 1
 *     8   n, capacity                   16  p, the rate promised, a double
 *     24  k                             32  m, bits
 *     40  N, keys added                 48  words of 64 bits, ceil(m / 64)
 *
 * Any data may follow, to the end of the file.
 */

#include <inttypes.h>
#include <stdio.h>

#include "bloom_foreign.h"
#include "bloom_bytes.h"
#include "bloom_hasher.h"

#define HEAD  48


static int
parse(bloom_foreign_t *f, const uint8_t *head, size_t len, uint64_t size)
{
    double    fpr;
    uint64_t  n, bits;

    if (len < HEAD) {
        return bloom_foreign_fail(f, "is not a DCSO filter: it has %zu bytes, "
                                  "but a header has %d", len, HEAD);
    }

    if (head[0] != 1) {
        return bloom_foreign_fail(f, "is not a DCSO filter of version 1: its "
                                  "version is %d", head[0]);
    }

    n = bloom_get64(head + 8);
    bits = bloom_get64(head + 32);
    memcpy(&fpr, head + 16, 8);

    if (!(fpr > 0 && fpr < 1) || n == 0) {
        return bloom_foreign_fail(f, "is not a DCSO filter: it says %" PRIu64
                                  " keys at a rate of %g", n, fpr);
    }

    if (bloom_foreign_geometry(f, BLOOM_LAYOUT_LEHMER, bits,
                               bloom_get64(head + 24)) != 0
        || bloom_foreign_hasher(f, BLOOM_HASH_FNV1, 0) != 0)
    {
        return -1;
    }

    f->payload = HEAD;
    f->bytes = (bits + 63) / 64 * 8;
    f->link_bytes[0] = f->bytes;
    f->order = BLOOM_ORDER_LE;
    f->may_be_long = 1;

    if (bloom_foreign_size(f, size) != 0) {
        return -1;
    }

    bloom_foreign_promise(f, n, fpr);
    bloom_foreign_keep(f, BLOOM_ORIGIN_DCSO, HEAD);

    f->claimed = bloom_get64(head + 40);

    return 0;
}


static int
write_head(bloom_foreign_out_t *out, const bloom_image_t *image,
    const uint8_t *origin)
{
    int                      rc;
    uint8_t                 *h;
    bloom_foreign_t          f;
    const bloom_geometry_t  *g;

    if (bloom_foreign_scheme(out, image, "dcso", BLOOM_LAYOUT_LEHMER,
                             BLOOM_HASH_FNV1) != 0)
    {
        return -1;
    }

    rc = bloom_foreign_origin(out, &bloom_foreign_dcso, image, origin, &f);

    if (rc == -1) {
        return -1;
    }

    h = out->head;
    g = &image->geometry;
    memset(h, 0, HEAD);

    if (rc == 1) {
        memcpy(h, origin, HEAD);
        out->tail = origin + HEAD;
        out->tail_len = image->origin_len - HEAD;

    } else {
        bloom_put64(h, 1);
        bloom_put64(h + 8, image->capacity);
        memcpy(h + 16, &image->fpr, 8);
    }

    bloom_put64(h + 24, g->k);
    bloom_put64(h + 32, g->bits);
    bloom_put64(h + 40, bloom_foreign_count(out, image,
                                            bloom_get64(h + 40)));

    out->head_len = HEAD;
    out->order = BLOOM_ORDER_LE;
    out->link_bytes[0] = (g->bits + 63) / 64 * 8;

    return 0;
}


const bloom_foreign_format_t  bloom_foreign_dcso = {
    "dcso", BLOOM_ORIGIN_DCSO, "a DCSO filter", parse, write_head
};
