/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file prints an image's header as members of a JSON object.
 */

#include <stdio.h>

#include "bloom_foreign.h"
#include "bloom_fuse.h"
#include "bloom_growth.h"
#include "bloom_scheme.h"
#include "image_json.h"
#include "units.h"


double
image_json_items_error(const bloom_image_t *image)
{
    return (image->flags & BLOOM_IMAGE_ESTIMATED)
           ? bloom_image_items_error(image) : 0;
}


double
image_json_bits_per_item(const bloom_image_t *image)
{
    uint32_t  i;
    uint64_t  bits;

    bits = image->geometry.bits;

    for (i = 0; i < image->geometry.layers; i++) {
        bits += image->geometry.layer[i].bits;
    }

    return (double) bits / (double) (image->items != 0 ? image->items : 1);
}


void
image_json_kinds(bloom_json_writer_t *json, const exception_kinds_t *kinds)
{
    bloom_json_put_count(json, "excepted", kinds != NULL ? kinds->excepted : 0);
    bloom_json_put_count(json, "removed", kinds != NULL ? kinds->removed : 0);
    bloom_json_put_count(json, "feedback", kinds != NULL ? kinds->feedback : 0);
}


void
image_json_fill(bloom_json_writer_t *json, uint32_t layout, double fill)
{
    if (layout == BLOOM_LAYOUT_FUSE) {
        bloom_json_put_null(json, "fill_ratio");

    } else {
        bloom_json_put_number(json, "fill_ratio", fill);
    }
}


void
image_json_parts(bloom_json_writer_t *json, const bloom_image_t *image,
    const bloom_census_t *census)
{
    uint32_t          i;
    bloom_geometry_t  part;

    bloom_json_put_array(json, "parts");

    for (i = 0; i <= image->geometry.layers; i++) {
        part = image->geometry.layers == 0
               ? image->geometry : bloom_geometry_part(&image->geometry, i);

        bloom_json_put_object(json, NULL);
        bloom_json_put_count(json, "capacity",
                             bloom_growth_room(&image->geometry,
                                               image->capacity, i));
        bloom_json_put_count(json, "bits", part.bits);
        bloom_json_put_count(json, "k", part.k);
        bloom_json_put_count(json, "lines", part.lines);

        if (census != NULL && image->geometry.layers == 0) {
            bloom_json_put_count(json, "estimated_items",
                                 bloom_census_items(census));
            image_json_fill(json, part.layout, bloom_census_fill(census));
            bloom_json_put_number(json, "estimated_fpr",
                                  bloom_census_fpr(census));

        } else if (census != NULL) {
            bloom_json_put_count(json, "estimated_items",
                                 census->part[i].items);
            image_json_fill(json, part.layout, census->part[i].fill);
            bloom_json_put_number(json, "estimated_fpr", census->part[i].fpr);
        }

        bloom_json_put_end(json);
    }

    bloom_json_put_end(json);
}


void
image_json(bloom_json_writer_t *json, const char *path,
    const bloom_image_t *image, const exception_kinds_t *kinds,
    double items_error, double fpr)
{
    char                     position[BLOOM_POSITION_TEXT_MAX];
    const bloom_geometry_t  *g;

    g = &image->geometry;

    bloom_json_put_text(json, "file", path);
    bloom_json_put_count(json, "size_bytes", bloom_image_file_size(image));
    bloom_json_put_count(json, "version", BLOOM_IMAGE_VERSION);
    bloom_json_put_hex(json, "build_id", image->build_id,
                       BLOOM_IMAGE_BUILD_ID_LEN);
    bloom_json_put_time(json, "created", image->created);
    bloom_json_put_time(json, "as_of", image->as_of);

    if (image->source.len != 0) {
        (void) bloom_position_write(image->source.position, position);

        bloom_json_put_bytes(json, "source", image->source.name,
                             image->source.len);
        bloom_json_put_text(json, "source_position", position);

    } else {
        bloom_json_put_null(json, "source");
        bloom_json_put_null(json, "source_position");
    }

    bloom_json_put_text(json, "layout", bloom_geometry_layout_name(g->layout));
    bloom_json_put_count(json, "bits", g->bits);
    bloom_json_put_count(json, "k", g->k);
    bloom_json_put_count(json, "lines", g->lines);

    if (g->layout == BLOOM_LAYOUT_FUSE) {
        bloom_json_put_count(json, "slots",
                             bloom_fuse_slots(&g->fuse) << g->fuse.shard_bits);
        bloom_json_put_count(json, "slot_bits", g->fuse.width);
        bloom_json_put_count(json, "wide_slots", g->fuse.wide);
        bloom_json_put_count(json, "shards",
                             (uint64_t) 1 << g->fuse.shard_bits);
        bloom_json_put_count(json, "room", g->fuse.room);
    }

    bloom_json_put_text(json, "hash", bloom_hasher_name(image->hasher.kind));

    if (image->hasher.kind == BLOOM_HASH_SIPHASH) {
        bloom_json_put_null(json, "seed");           /* a secret */

    } else {
        bloom_json_put_count(json, "seed", bloom_hasher_seed(&image->hasher));
    }

    if (image->flags & BLOOM_IMAGE_IMPORTED) {
        bloom_json_put_text(json, "from",
                            bloom_image_origin_name(image->origin));
        bloom_json_put_text(json, "scheme",
                            bloom_scheme_name(g->layout, image->hasher.kind));
        bloom_json_put_text(json, "funnel",
                            bloom_hasher_funnel_name(
                                bloom_hasher_funnel(&image->hasher)));
        bloom_json_put_count(json, "links", bloom_foreign_links(g));
    }

    bloom_json_put_text(json, "form", bloom_form_name(image->key_form));
    bloom_json_put_count(json, "capacity", image->capacity);
    bloom_json_put_number(json, "fpr", image->fpr);
    bloom_json_put_count(json, "items", image->items);
    bloom_json_put_bool(json, "items_estimated",
                        (image->flags & BLOOM_IMAGE_ESTIMATED) != 0);
    bloom_json_put_number(json, "items_error", items_error);
    image_json_kinds(json, kinds);
    bloom_json_put_number(json, "bits_per_item",
                          image_json_bits_per_item(image));
    bloom_json_put_number(json, "estimated_fpr", fpr);
    bloom_json_put_count(json, "max_items", bloom_image_capacity(image));
    bloom_json_put_number(json, "promised_fpr", bloom_image_promised(image));
    bloom_json_put_count(json, "layers", g->layers);
    image_json_parts(json, image, NULL);
}
