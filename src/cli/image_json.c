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
image_json_kinds(json_t *json, const exception_kinds_t *kinds)
{
    json_count(json, "excepted", kinds != NULL ? kinds->excepted : 0);
    json_count(json, "removed", kinds != NULL ? kinds->removed : 0);
    json_count(json, "feedback", kinds != NULL ? kinds->feedback : 0);
}


void
image_json_fill(json_t *json, uint32_t layout, double fill)
{
    if (layout == BLOOM_LAYOUT_FUSE) {
        json_null(json, "fill_ratio");

    } else {
        json_number(json, "fill_ratio", fill);
    }
}


void
image_json_parts(json_t *json, const bloom_image_t *image,
    const bloom_census_t *census)
{
    json_t            object;
    uint32_t          i;
    bloom_geometry_t  part;

    json_array(json, "parts");

    for (i = 0; i <= image->geometry.layers; i++) {
        part = image->geometry.layers == 0
               ? image->geometry : bloom_geometry_part(&image->geometry, i);

        json_object(&object, i == 0);
        json_count(&object, "capacity",
                   bloom_growth_room(&image->geometry, image->capacity, i));
        json_count(&object, "bits", part.bits);
        json_count(&object, "k", part.k);
        json_count(&object, "lines", part.lines);

        if (census != NULL && image->geometry.layers == 0) {
            json_count(&object, "estimated_items", bloom_census_items(census));
            image_json_fill(&object, part.layout, bloom_census_fill(census));
            json_number(&object, "estimated_fpr", bloom_census_fpr(census));

        } else if (census != NULL) {
            json_count(&object, "estimated_items", census->part[i].items);
            image_json_fill(&object, part.layout, census->part[i].fill);
            json_number(&object, "estimated_fpr", census->part[i].fpr);
        }

        json_object_end();
    }

    json_array_end();
}


void
image_json(json_t *json, const char *path, const bloom_image_t *image,
    const exception_kinds_t *kinds, double items_error, double fpr)
{
    char                     time[UNITS_LEN];
    char                     source[BLOOM_SOURCE_NAME_MAX + 1];
    char                     position[BLOOM_POSITION_TEXT_MAX];
    const bloom_geometry_t  *g;

    g = &image->geometry;

    json_text(json, "file", path);
    json_count(json, "size_bytes", bloom_image_file_size(image));
    json_count(json, "version", bloom_image_version(image));
    json_hex(json, "build_id", image->build_id, BLOOM_IMAGE_BUILD_ID_LEN);
    json_text(json, "created", format_time(time, image->created));

    if (image->as_of != 0) {
        json_text(json, "as_of", format_time(time, image->as_of));

    } else {
        json_null(json, "as_of");
    }

    if (image->source.len != 0) {
        snprintf(source, sizeof(source), "%.*s", (int) image->source.len,
                 image->source.name);
        (void) bloom_position_write(image->source.position, position);

        json_text(json, "source", source);
        json_text(json, "source_position", position);

    } else {
        json_null(json, "source");
        json_null(json, "source_position");
    }

    json_text(json, "layout", bloom_geometry_layout_name(g->layout));
    json_count(json, "bits", g->bits);
    json_count(json, "k", g->k);
    json_count(json, "lines", g->lines);

    if (g->layout == BLOOM_LAYOUT_FUSE) {
        json_count(json, "slots",
                   bloom_fuse_slots(&g->fuse) << g->fuse.shard_bits);
        json_count(json, "slot_bits", g->fuse.width);
        json_count(json, "wide_slots", g->fuse.wide);
        json_count(json, "shards", (uint64_t) 1 << g->fuse.shard_bits);
        json_count(json, "room", g->fuse.room);
    }

    json_text(json, "hash", bloom_hasher_name(image->hasher.kind));

    if (image->hasher.kind == BLOOM_HASH_SIPHASH) {
        json_null(json, "seed");         /* a secret */

    } else {
        json_count(json, "seed", bloom_hasher_seed(&image->hasher));
    }

    if (image->flags & BLOOM_IMAGE_IMPORTED) {
        json_text(json, "from", bloom_image_origin_name(image->origin));
        json_text(json, "scheme",
                  bloom_scheme_name(g->layout, image->hasher.kind));
        json_text(json, "funnel", bloom_hasher_funnel_name(
                                      bloom_hasher_funnel(&image->hasher)));
        json_count(json, "links", bloom_foreign_links(g));
    }

    json_text(json, "form", bloom_form_name(image->key_form));
    json_count(json, "capacity", image->capacity);
    json_number(json, "fpr", image->fpr);
    json_count(json, "items", image->items);
    json_bool(json, "items_estimated",
              (image->flags & BLOOM_IMAGE_ESTIMATED) != 0);
    json_number(json, "items_error", items_error);
    image_json_kinds(json, kinds);
    json_number(json, "bits_per_item", image_json_bits_per_item(image));
    json_number(json, "estimated_fpr", fpr);
    json_count(json, "max_items", bloom_image_capacity(image));
    json_number(json, "promised_fpr", bloom_image_promised(image));
    json_count(json, "layers", g->layers);
    image_json_parts(json, image, NULL);
}
