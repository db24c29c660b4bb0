/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file computes the sizes of an image's parts, and encodes its header.
 */

#include <math.h>
#include <string.h>

#include "bloom_image.h"
#include "bloom_image_fields.h"
#include "bloom_bytes.h"
#include "bloom_crc.h"
#include "bloom_growth.h"
#include "bloom_scheme.h"


static uint64_t
chunks_of(uint64_t size)
{
    return (size + BLOOM_IMAGE_CHUNK - 1) / BLOOM_IMAGE_CHUNK;
}


static size_t
chunk_size_of(uint64_t size, uint64_t chunk)
{
    uint64_t  rest;

    rest = size - chunk * BLOOM_IMAGE_CHUNK;

    return rest < BLOOM_IMAGE_CHUNK ? (size_t) rest : BLOOM_IMAGE_CHUNK;
}


static uint64_t
table_size_of(uint64_t size)
{
    return (chunks_of(size) + SUMS_IN_A_PAGE - 1) / SUMS_IN_A_PAGE
           * BLOOM_IMAGE_PAGE;
}


int
bloom_image_is_copy(const bloom_image_t *image)
{
    return !bloom_all_zero(image->copy.journal, BLOOM_IMAGE_JOURNAL_LEN);
}


void
bloom_image_set_source(bloom_image_t *image, const bloom_source_t *source)
{
    memset(&image->source, 0, sizeof(bloom_source_t));

    if (source != NULL && source->len != 0) {
        image->source.position = source->position;
        image->source.len = source->len;
        memcpy(image->source.name, source->name, source->len);
    }
}


uint64_t
bloom_image_capacity(const bloom_image_t *image)
{
    return image->geometry.layers == 0
           ? image->capacity
           : bloom_growth_capacity(&image->geometry, image->capacity,
                                   image->geometry.layers);
}


double
bloom_image_fpr(const bloom_image_t *image, uint64_t items)
{
    return bloom_growth_fpr(&image->geometry, image->capacity, items);
}


double
bloom_image_items_error(const bloom_image_t *image)
{
    return bloom_growth_items_error_at(&image->geometry, image->capacity,
                                       image->items);
}


double
bloom_image_promised(const bloom_image_t *image)
{
    return image->geometry.layers == 0
           ? image->fpr
           : fmax(image->fpr,
                  bloom_image_fpr(image, bloom_image_capacity(image)));
}


uint64_t
bloom_image_payload_size(const bloom_image_t *image)
{
    return bloom_geometry_bytes(&image->geometry);
}


uint64_t
bloom_image_chunks(const bloom_image_t *image)
{
    return chunks_of(bloom_image_payload_size(image));
}


size_t
bloom_image_chunk_size(const bloom_image_t *image, uint64_t chunk)
{
    return chunk_size_of(bloom_image_payload_size(image), chunk);
}


uint64_t
bloom_image_table_size(const bloom_image_t *image)
{
    return table_size_of(bloom_image_payload_size(image));
}


uint64_t
bloom_image_exceptions_padded(const bloom_image_t *image)
{
    return (image->exceptions_size + 63) / 64 * 64;
}


uint64_t
bloom_image_exceptions_chunks(const bloom_image_t *image)
{
    return chunks_of(bloom_image_exceptions_padded(image));
}


size_t
bloom_image_exceptions_chunk_size(const bloom_image_t *image, uint64_t chunk)
{
    return chunk_size_of(bloom_image_exceptions_padded(image), chunk);
}


uint64_t
bloom_image_exceptions_table_size(const bloom_image_t *image)
{
    return table_size_of(bloom_image_exceptions_padded(image));
}


bloom_image_part_t
bloom_image_payload_part(const bloom_image_t *image)
{
    bloom_image_part_t  part;

    part.table = BLOOM_IMAGE_PAGE;
    part.size = bloom_image_payload_size(image);
    part.data = part.table + table_size_of(part.size);
    part.chunks = chunks_of(part.size);
    part.table_crc = image->table_crc;

    return part;
}


bloom_image_part_t
bloom_image_exceptions_part(const bloom_image_t *image)
{
    bloom_image_part_t  part, payload;

    payload = bloom_image_payload_part(image);

    part.table = payload.data + payload.size;
    part.size = bloom_image_exceptions_padded(image);
    part.data = part.table + table_size_of(part.size);
    part.chunks = chunks_of(part.size);
    part.table_crc = image->exceptions_crc;

    return part;
}


uint64_t
bloom_image_file_size(const bloom_image_t *image)
{
    bloom_image_part_t  last;

    last = bloom_image_exceptions_part(image);

    return last.data + last.size;
}


static uint32_t
links_of(const bloom_image_t *image)
{
    return image->geometry.layout == BLOOM_LAYOUT_LINKS
           ? image->geometry.links : 0;
}


static void
encode_origin(const bloom_image_t *image, uint8_t *h)
{
    uint32_t  i, links;

    links = links_of(image);

    bloom_put32(h + AT_ORIGIN, image->origin);
    bloom_put32(h + AT_ORIGIN_LEN, image->origin_len);
    bloom_put32(h + AT_LINKS, links);
    bloom_put64(h + AT_ORIGIN_ITEMS, image->origin_items);

    for (i = 0; i < links; i++) {
        bloom_put64(h + AT_LINK_TABLE + 16 * i, image->geometry.link[i].bits);
        bloom_put32(h + AT_LINK_TABLE + 16 * i + 8,
                    image->geometry.link[i].k);
    }
}


static void
encode_fuse(const bloom_fuse_t *fuse, uint8_t *h)
{
    bloom_put64(h + AT_FUSE_KEYS, fuse->keys);
    bloom_put64(h + AT_FUSE_ROOM, fuse->room);
    bloom_put64(h + AT_FUSE_WIDE, fuse->wide);
    bloom_put32(h + AT_FUSE_LENGTH, fuse->length);
    bloom_put32(h + AT_FUSE_SEGMENTS, fuse->segments);
    bloom_put32(h + AT_FUSE_SHARDS, fuse->shard_bits);
    bloom_put32(h + AT_FUSE_WIDTH, fuse->width);
}


static void
encode_layers(const bloom_geometry_t *g, uint8_t *h)
{
    uint32_t  i;

    bloom_put64(h + AT_LAYERS, g->layers);

    for (i = 0; i < g->layers; i++) {
        bloom_put64(h + AT_LAYER_BITS + 8 * i, g->layer[i].bits);
        h[AT_LAYER_K + i] = (uint8_t) g->layer[i].k;
        h[AT_LAYER_LINES + i] = (uint8_t) g->layer[i].lines;
    }
}


static void
encode_source(const bloom_source_t *source, uint8_t *h)
{
    bloom_put64(h + AT_SOURCE, source->position.high);
    bloom_put64(h + AT_SOURCE + 8, source->position.low);
    bloom_put32(h + AT_SOURCE_LEN, source->len);
    memcpy(h + AT_SOURCE_NAME, source->name, source->len);
}


static void
encode_copy(const bloom_image_copy_t *copy, uint8_t *h)
{
    memcpy(h + AT_COPY, copy->journal, BLOOM_IMAGE_JOURNAL_LEN);
    bloom_put64(h + AT_COPY + 16, copy->position);
    bloom_put64(h + AT_COPY + 24, copy->sequence);
    bloom_put64(h + AT_COPY + 32, copy->time);
    bloom_put64(h + AT_COPY + 40, copy->removed);
    bloom_put64(h + AT_COPY + 48, copy->removed_bytes);
}


uint32_t
bloom_image_origin_at(const bloom_image_t *image)
{
    return AT_LINK_TABLE + 16 * links_of(image);
}


uint32_t
bloom_image_origin_room(const bloom_image_t *image)
{
    return AT_PREFIXES - bloom_image_origin_at(image);
}


void
bloom_image_encode(const bloom_image_t *image, uint8_t h[BLOOM_IMAGE_PAGE])
{
    uint64_t  fpr;

    memcpy(&fpr, &image->fpr, sizeof(fpr));
    memset(h, 0, BLOOM_IMAGE_PAGE);

    memcpy(h + AT_MAGIC, BLOOM_IMAGE_MAGIC, BLOOM_IMAGE_MAGIC_LEN);
    bloom_put32(h + AT_VERSION, BLOOM_IMAGE_VERSION);
    bloom_put32(h + AT_ORDER, ORDER_MARK);
    bloom_put64(h + AT_FILE_SIZE, bloom_image_file_size(image));
    bloom_put64(h + AT_PAYLOAD,
                BLOOM_IMAGE_PAGE + bloom_image_table_size(image));
    bloom_put64(h + AT_PAYLOAD_SIZE, bloom_image_payload_size(image));
    bloom_put32(h + AT_CHUNK_SIZE, BLOOM_IMAGE_CHUNK);
    bloom_put32(h + AT_TABLE_CRC, image->table_crc);
    bloom_put32(h + AT_LAYOUT, image->geometry.layout);
    bloom_put32(h + AT_K, image->geometry.k);
    bloom_put32(h + AT_LINES, image->geometry.lines);
    bloom_put32(h + AT_FLAGS, image->flags);
    bloom_put64(h + AT_BITS, image->geometry.bits);
    bloom_put32(h + AT_HASH, image->hasher.kind);
    bloom_put32(h + AT_KEY_FORM, image->key_form);
    memcpy(h + AT_HASH_KEY, image->hasher.key, BLOOM_HASH_KEY_LEN);
    bloom_put64(h + AT_CAPACITY, image->capacity);
    bloom_put64(h + AT_ITEMS, image->items);
    bloom_put64(h + AT_FPR, fpr);
    bloom_put64(h + AT_CREATED, image->created);
    bloom_put64(h + AT_AS_OF, image->as_of);
    memcpy(h + AT_BUILD_ID, image->build_id, BLOOM_IMAGE_BUILD_ID_LEN);

    if (image->flags & BLOOM_IMAGE_IMPORTED) {
        encode_origin(image, h);

    } else if (image->geometry.layout == BLOOM_LAYOUT_FUSE) {
        encode_fuse(&image->geometry.fuse, h);
    }

    if (image->flags & BLOOM_IMAGE_RING) {
        bloom_put32(h + AT_SLICES, image->geometry.slices);
    }

    if (image->exceptions != 0) {
        bloom_put64(h + AT_EXCEPTIONS, image->exceptions);
        bloom_put64(h + AT_EXCEPTIONS_SIZE, image->exceptions_size);
        bloom_put32(h + AT_EXCEPTIONS_CRC, image->exceptions_crc);
        bloom_put64(h + AT_BUILT, image->built);
        bloom_put64(h + AT_BUILT_SIZE, image->built_size);
    }

    encode_layers(&image->geometry, h);

    if (image->source.len != 0) {
        encode_source(&image->source, h);
    }

    encode_copy(&image->copy, h);
    bloom_image_encode_again(h);
}


void
bloom_image_put_ring(const bloom_image_t *image, const bloom_image_ring_t *ring,
    uint8_t h[BLOOM_IMAGE_PAGE])
{
    uint32_t  i;

    bloom_put32(h + AT_OPEN, ring->open);
    bloom_put64(h + AT_LIVE, ring->live);
    bloom_put64(h + AT_FULL, ring->full);

    for (i = 0; i < image->geometry.slices; i++) {
        bloom_put64(h + AT_OPENED + 8 * i, ring->opened[i]);
        bloom_put64(h + AT_CLOSED + 8 * i, ring->closed[i]);
    }

    bloom_image_encode_again(h);
}


uint32_t
bloom_image_checksum(const uint8_t header[BLOOM_IMAGE_PAGE])
{
    return bloom_get32(header + AT_HEADER_CRC);
}


void
bloom_image_encode_again(uint8_t h[BLOOM_IMAGE_PAGE])
{
    bloom_put32(h + AT_HEADER_CRC, bloom_crc32c(0, h, AT_HEADER_CRC));
}


const char *
bloom_image_differs(const bloom_image_t *a, const bloom_image_t *b)
{
    if (a->geometry.layout != b->geometry.layout) {
        return "layout";
    }

    if (a->geometry.bits != b->geometry.bits) {
        return "bits";
    }

    if (!bloom_geometry_equal(&a->geometry, &b->geometry)) {
        return a->geometry.layout == BLOOM_LAYOUT_LINKS ? "links"
               : a->geometry.k == b->geometry.k
                 && a->geometry.lines == b->geometry.lines ? "layers" : "k";
    }

    if (a->hasher.kind != b->hasher.kind) {
        return "hash";
    }

    if (bloom_hasher_funnel(&a->hasher) != bloom_hasher_funnel(&b->hasher)) {
        return "funnel";
    }

    if (memcmp(a->hasher.key, b->hasher.key, BLOOM_HASH_KEY_LEN) != 0) {
        return "seed";
    }

    if (a->key_form != b->key_form) {
        return "key form";
    }

    return NULL;
}


const char *
bloom_image_origin_name(uint32_t origin)
{
    static const char *const  names[] = {
        NULL, "guava", "redisbloom", "bitmap", "dcso", "bits-and-blooms",
        "spark", "libbloom"
    };

    return origin < sizeof(names) / sizeof(names[0]) ? names[origin] : NULL;
}
