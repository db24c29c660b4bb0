/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A bitmap is a Redis string that contains the filter's bits, set by SETBIT.
 * The filters of go-zero, Redisson and many programs are bitmaps.  A bitmap has
 * no header and is only as long as its highest set bit requires, so the user
 * states bits, k and the scheme.
 */

#include <inttypes.h>
#include <stdio.h>

#include "bloom_foreign.h"
#include "bloom_hasher.h"
#include "bloom_scheme.h"


static int
parse(bloom_foreign_t *f, const uint8_t *head, size_t len, uint64_t size)
{
    int  scheme;

    (void) head;
    (void) len;

    scheme = bloom_scheme_valid(f->layout, f->hash);

    if (!scheme || f->bits == 0 || f->k == 0) {
        return bloom_foreign_fail(f, "has no header; add%s%s%s",
                                  scheme ? "" : " --scheme",
                                  f->bits ? "" : " --bits",
                                  f->k ? "" : " --hashes");
    }

    if (bloom_foreign_geometry(f, f->layout, f->bits, f->k) != 0
        || bloom_foreign_hasher(f, f->hash, 0) != 0)
    {
        return -1;
    }

    f->payload = 0;
    f->bytes = (f->bits + 7) / 8;
    f->link_bytes[0] = f->bytes;
    f->order = BLOOM_ORDER_MSB;
    f->may_be_short = 1;

    if (size != BLOOM_FOREIGN_UNKNOWN && size > f->bytes) {
        return bloom_foreign_fail(f, "has %" PRIu64 " bytes, which is more "
                                  "than %" PRIu64 " bits; correct --bits, or "
                                  "remove the line end that redis-cli writes",
                                  size, f->bits);
    }

    bloom_foreign_promise(f, 0, 0);
    bloom_foreign_keep(f, BLOOM_ORIGIN_BITMAP, 0);

    return 0;
}


static int
write_head(bloom_foreign_out_t *out, const bloom_image_t *image,
    const uint8_t *origin)
{
    uint32_t  layout;

    (void) origin;

    layout = image->geometry.layout;

    if (!bloom_geometry_is_foreign(layout) || layout == BLOOM_LAYOUT_LINKS)
    {
        return bloom_foreign_fail(out, "cannot be written as a bitmap: no "
                                  "other system reads its layout, %s",
                                  bloom_geometry_layout_name(layout));
    }

    out->head_len = 0;
    out->order = BLOOM_ORDER_MSB;
    out->link_bytes[0] = (image->geometry.bits + 7) / 8;

    return 0;
}


const bloom_foreign_format_t  bloom_foreign_bitmap = {
    "bitmap", BLOOM_ORIGIN_BITMAP, "a Redis bitmap", parse, write_head
};
