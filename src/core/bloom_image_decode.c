/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file decodes the header of an image: nothing in it is used before it has
 * been checked.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bloom_image_decode.h"
#include "bloom_image_fields.h"
#include "bloom_bytes.h"
#include "bloom_crc.h"
#include "bloom_scheme.h"


#define fail(...)                                                            \
    (snprintf(error, BLOOM_IMAGE_ERROR_LEN, __VA_ARGS__), -1)


int
bloom_image_is(const void *data, size_t len)
{
    return len >= BLOOM_IMAGE_MAGIC_LEN
           && memcmp(data, BLOOM_IMAGE_MAGIC, BLOOM_IMAGE_MAGIC_LEN) == 0;
}


uint64_t
bloom_image_claims(const uint8_t h[BLOOM_IMAGE_PAGE])
{
    return bloom_get64(h + AT_FILE_SIZE);
}


/* Checks, before the checksum, that the file is an image of a known version and
 * is complete. */
static int
check_kind(const uint8_t *h, uint64_t file_size, char *error)
{
    uint32_t  order, version;
    uint64_t  claimed;

    if (!bloom_image_is(h, BLOOM_IMAGE_MAGIC_LEN)) {
        return fail("is not a Bloom filter image; build one with \"ngx-bloom "
                    "build\"");
    }

    version = bloom_get32(h + AT_VERSION);
    order = bloom_get32(h + AT_ORDER);

    if (order == __builtin_bswap32(ORDER_MARK)) {
        return fail("was written in big-endian byte order, but an image is "
                    "little-endian on every machine; correct the program that "
                    "wrote it");
    }

    if (order != ORDER_MARK) {
        return fail("is damaged: its byte order mark is 0x%08" PRIx32
                    " instead of 0x%08x; copy or build it again",
                    order, ORDER_MARK);
    }

    if (version != BLOOM_IMAGE_VERSION) {
        return fail("has version %" PRIu32 ", but this program reads version "
                    "%d; %s", version, BLOOM_IMAGE_VERSION,
                    version > BLOOM_IMAGE_VERSION ? "use a newer program"
                                                  : "build it again");
    }

    claimed = bloom_get64(h + AT_FILE_SIZE);

    if (claimed > file_size) {
        return fail("is truncated: it has %" PRIu64 " bytes, but its header "
                    "says %" PRIu64 "; copy or build it again",
                    file_size, claimed);
    }

    if (claimed < file_size) {
        return fail("is too long: it has %" PRIu64 " bytes, but its header "
                    "says %" PRIu64 "; copy or build it again",
                    file_size, claimed);
    }

    return 0;
}


/* Decodes what an imported image has in the reserved bytes; `used` is set to
 * the offset of the first byte that is still reserved. */
static int
decode_origin(bloom_image_t *image, const uint8_t *h, size_t *used,
    char *error)
{
    uint32_t           i;
    bloom_geometry_t  *g;

    g = &image->geometry;
    g->links = bloom_get32(h + AT_LINKS);
    image->origin = bloom_get32(h + AT_ORIGIN);
    image->origin_len = bloom_get32(h + AT_ORIGIN_LEN);
    image->origin_items = bloom_get64(h + AT_ORIGIN_ITEMS);

    if (bloom_image_origin_name(image->origin) == NULL) {
        return fail("has origin %" PRIu32 ", which this program does not "
                    "know; use a newer program", image->origin);
    }

    if (g->links > BLOOM_LINKS_MAX
        || (g->layout == BLOOM_LAYOUT_LINKS) != (g->links != 0)
        || bloom_get32(h + AT_LINKS + 4) != 0
        || image->origin_len > bloom_image_origin_room(image))
    {
        return fail("is invalid: it has %" PRIu32 " links and %" PRIu32
                    " bytes of its origin's header; build it again", g->links,
                    image->origin_len);
    }

    for (i = 0; i < g->links; i++) {
        g->link[i].bits = bloom_get64(h + AT_LINK_TABLE + 16 * i);
        g->link[i].k = bloom_get32(h + AT_LINK_TABLE + 16 * i + 8);
        g->link[i].zero = bloom_get32(h + AT_LINK_TABLE + 16 * i + 12);
    }

    *used = bloom_image_origin_at(image) + image->origin_len;

    return 0;
}


/* Decodes the dimensions of a fuse base, not checked: see
 * bloom_geometry_valid(). */
static void
decode_fuse(bloom_fuse_t *fuse, const uint8_t *h)
{
    fuse->keys = bloom_get64(h + AT_FUSE_KEYS);
    fuse->room = bloom_get64(h + AT_FUSE_ROOM);
    fuse->wide = bloom_get64(h + AT_FUSE_WIDE);
    fuse->length = bloom_get32(h + AT_FUSE_LENGTH);
    fuse->segments = bloom_get32(h + AT_FUSE_SEGMENTS);
    fuse->shard_bits = bloom_get32(h + AT_FUSE_SHARDS);
    fuse->width = bloom_get32(h + AT_FUSE_WIDTH);
}


/* Decodes the layers, whose dimensions bloom_geometry_valid() checks. */
static int
decode_layers(bloom_image_t *image, const uint8_t *h, char *error)
{
    uint64_t           n;
    uint32_t           i;
    bloom_geometry_t  *g;

    g = &image->geometry;
    n = bloom_get64(h + AT_LAYERS);

    if (n > BLOOM_LAYERS_MAX
        || (n != 0 && image->capacity > BLOOM_CAPACITY_MAX))
    {
        return fail("is invalid: it has %" PRIu64 " layers behind a capacity "
                    "of %" PRIu64 "; build it again", n, image->capacity);
    }

    g->layers = (uint16_t) n;

    for (i = 0; i < g->layers; i++) {
        g->layer[i].bits = bloom_get64(h + AT_LAYER_BITS + 8 * i);
        g->layer[i].k = h[AT_LAYER_K + i];
        g->layer[i].lines = h[AT_LAYER_LINES + i];
    }

    if (!bloom_all_zero(h + AT_LAYER_BITS + 8 * n, 8 * (BLOOM_LAYERS_MAX - n))
        || !bloom_all_zero(h + AT_LAYER_K + n, BLOOM_LAYERS_MAX - n)
        || !bloom_all_zero(h + AT_LAYER_LINES + n, BLOOM_LAYERS_MAX - n))
    {
        return fail("is invalid: it describes more than its %" PRIu64
                    " layers; build it again", n);
    }

    return 0;
}


static int
decode_source(bloom_source_t *source, const uint8_t *h, char *error)
{
    source->position.high = bloom_get64(h + AT_SOURCE);
    source->position.low = bloom_get64(h + AT_SOURCE + 8);
    source->len = bloom_get32(h + AT_SOURCE_LEN);

    if (source->len > BLOOM_SOURCE_NAME_MAX) {
        return fail("is invalid: the name of its source has %" PRIu32
                    " bytes, and at most %d are possible; build it again",
                    source->len, BLOOM_SOURCE_NAME_MAX);
    }

    memcpy(source->name, h + AT_SOURCE_NAME, source->len);

    if (source->len == 0 && !bloom_all_zero(h + AT_SOURCE, 16)) {
        return fail("is invalid: it has the position of a source without a "
                    "name; build it again");
    }

    if (source->len != 0 && !bloom_source_name_valid(source->name, source->len))
    {
        return fail("is invalid: the name of its source has other characters "
                    "than letters, digits and \"._:/-\"; build it again");
    }

    if (!bloom_all_zero(h + AT_SOURCE_NAME + source->len,
                        AT_LAYER_BITS - AT_SOURCE_NAME - source->len))
    {
        return fail("is invalid: the bytes after the name of its source are "
                    "not zero; build it again");
    }

    return 0;
}


/* Returns 1 if so many exceptions can have so many bytes of data. */
static int
exceptions_fit(uint64_t n, uint64_t size)
{
    return size <= BLOOM_IMAGE_EXCEPTIONS_MAX && n <= size / EXCEPTION_MIN
           && size <= n * EXCEPTION_MAX;
}


static int
decode_exceptions(bloom_image_t *image, const uint8_t *h, char *error)
{
    image->exceptions = bloom_get64(h + AT_EXCEPTIONS);
    image->exceptions_size = bloom_get64(h + AT_EXCEPTIONS_SIZE);
    image->exceptions_crc = bloom_get32(h + AT_EXCEPTIONS_CRC);
    image->built = bloom_get64(h + AT_BUILT);
    image->built_size = bloom_get64(h + AT_BUILT_SIZE);

    if (!exceptions_fit(image->exceptions, image->exceptions_size)) {
        return fail("is invalid: it has %" PRIu64 " exceptions in %" PRIu64
                    " bytes; build it again", image->exceptions,
                    image->exceptions_size);
    }

    /* a difference below 0 is too large */

    if (!exceptions_fit(image->built, image->built_size)
        || !exceptions_fit(image->exceptions - image->built,
                           image->exceptions_size - image->built_size))
    {
        return fail("is invalid: its builder chose %" PRIu64 " exceptions in %"
                    PRIu64 " bytes, of %" PRIu64 " in %" PRIu64 "; build it "
                    "again", image->built, image->built_size,
                    image->exceptions, image->exceptions_size);
    }

    return 0;
}


static int
decode_copy(bloom_image_t *image, const uint8_t *h, char *error)
{
    bloom_image_copy_t  *copy;

    copy = &image->copy;

    memcpy(copy->journal, h + AT_COPY, BLOOM_IMAGE_JOURNAL_LEN);
    copy->position = bloom_get64(h + AT_COPY + 16);
    copy->sequence = bloom_get64(h + AT_COPY + 24);
    copy->time = bloom_get64(h + AT_COPY + 32);
    copy->removed = bloom_get64(h + AT_COPY + 40);
    copy->removed_bytes = bloom_get64(h + AT_COPY + 48);

    if (bloom_image_is_copy(image)
        ? copy->sequence == 0 || copy->position % 8 != 0
        : !bloom_all_zero(h + AT_COPY, AT_COPY_END - AT_COPY))
    {
        return fail("is invalid: it cannot be the copy of a zone at position %"
                    PRIu64 ", record %" PRIu64 "; copy the zone again",
                    copy->position, copy->sequence);
    }

    return 0;
}


/* Decodes what any image may have. */
static int
decode_rest(bloom_image_t *image, const uint8_t *h, char *error)
{
    if (decode_layers(image, h, error) != 0
        || decode_source(&image->source, h, error) != 0
        || decode_copy(image, h, error) != 0
        || decode_exceptions(image, h, error) != 0)
    {
        return -1;
    }

    if ((image->exceptions == 0 && image->exceptions_crc != 0)
        || !bloom_all_zero(h + AT_EXCEPTIONS_CRC + 4,
                           AT_LAYERS - AT_EXCEPTIONS_CRC - 4)
        || !bloom_all_zero(h + AT_PREFIXES, AT_COPY - AT_PREFIXES)
        || !bloom_all_zero(h + AT_COPY_END, AT_EXCEPTIONS - AT_COPY_END)
        || !bloom_all_zero(h + AT_LAYERS_END, AT_HEADER_CRC - AT_LAYERS_END))
    {
        return fail("is invalid: reserved bytes of its header are not zero; "
                    "build it again");
    }

    return 0;
}


int
bloom_image_decode(bloom_image_t *image, const uint8_t h[BLOOM_IMAGE_PAGE],
    uint64_t file_size, char *error)
{
    size_t             used, end;
    uint32_t           slices;
    uint64_t           fpr;
    bloom_geometry_t  *g;

    if (check_kind(h, file_size, error) != 0) {
        return -1;
    }

    if (bloom_get32(h + AT_HEADER_CRC) != bloom_crc32c(0, h, AT_HEADER_CRC)) {
        return fail("is damaged: the checksum of its header differs; "
                    "copy or build it again");
    }

    memset(image, 0, sizeof(*image));

    g = &image->geometry;
    g->layout = bloom_get32(h + AT_LAYOUT);
    g->k = bloom_get32(h + AT_K);
    g->lines = bloom_get32(h + AT_LINES);
    g->bits = bloom_get64(h + AT_BITS);
    image->hasher.kind = bloom_get32(h + AT_HASH);
    memcpy(image->hasher.key, h + AT_HASH_KEY, BLOOM_HASH_KEY_LEN);
    image->key_form = bloom_get32(h + AT_KEY_FORM);
    image->flags = bloom_get32(h + AT_FLAGS);
    image->capacity = bloom_get64(h + AT_CAPACITY);
    image->items = bloom_get64(h + AT_ITEMS);
    fpr = bloom_get64(h + AT_FPR);
    memcpy(&image->fpr, &fpr, sizeof(fpr));
    image->created = bloom_get64(h + AT_CREATED);
    image->as_of = bloom_get64(h + AT_AS_OF);
    memcpy(image->build_id, h + AT_BUILD_ID, BLOOM_IMAGE_BUILD_ID_LEN);
    image->table_crc = bloom_get32(h + AT_TABLE_CRC);

    used = AT_RESERVED;
    end = AT_PREFIXES;

    if (decode_rest(image, h, error) != 0) {
        return -1;
    }

    if ((image->flags & BLOOM_IMAGE_IMPORTED)
        && decode_origin(image, h, &used, error) != 0)
    {
        return -1;
    }

    if (g->layout == BLOOM_LAYOUT_FUSE
        && (image->flags & BLOOM_IMAGE_IMPORTED) == 0)
    {
        decode_fuse(&g->fuse, h);
        used = AT_FUSE_END;
    }

    if (bloom_geometry_layout_name(g->layout) == NULL) {
        return fail("has layout %" PRIu32 ", which this program does not "
                    "know; use a newer program", g->layout);
    }

    if (bloom_hasher_name(image->hasher.kind) == NULL) {
        return fail("has hash %" PRIu32 ", which this program does not "
                    "know; use a newer program", image->hasher.kind);
    }

    if (bloom_form_name(image->key_form) == NULL) {
        return fail("has key form %" PRIu32 ", which this program does not "
                    "know; use a newer program", image->key_form);
    }

    if (image->flags & ~(uint32_t) BLOOM_IMAGE_FLAGS) {
        return fail("has flags 0x%" PRIx32 ", which this program does not "
                    "know; use a newer program", image->flags);
    }

    if (!bloom_scheme_valid(g->layout, image->hasher.kind)
        || bloom_geometry_is_foreign(g->layout)
           != ((image->flags & BLOOM_IMAGE_IMPORTED) != 0))
    {
        return fail("is invalid: layout %s cannot have hash %s and flags 0x%"
                    PRIx32 "; build it again",
                    bloom_geometry_layout_name(g->layout),
                    bloom_hasher_name(image->hasher.kind), image->flags);
    }

    if (image->flags & BLOOM_IMAGE_RING) {
        slices = bloom_get32(h + AT_SLICES);

        if (slices == 0 || slices > BLOOM_PARTS_MAX || g->layers != 0
            || used != AT_RESERVED
            || !bloom_all_zero(h + used, AT_SLICES - used))
        {
            return fail("is invalid: it cannot have %" PRIu32 " slices; let "
                        "nginx write it again", slices);
        }

        g->slices = (uint16_t) slices;
        used = AT_RING_END;
    }

    if (!bloom_geometry_valid(g)) {
        return fail("is invalid: layout %s cannot have %" PRIu64 " bits, k %"
                    PRIu32 ", lines %" PRIu32 "%s; build it again",
                    bloom_geometry_layout_name(g->layout), g->bits, g->k,
                    g->lines,
                    g->layers != 0 ? ", or these layers" : "");
    }

    if (bloom_get64(h + AT_PAYLOAD_SIZE) != bloom_image_payload_size(image)
        || bloom_get64(h + AT_PAYLOAD)
           != BLOOM_IMAGE_PAGE + bloom_image_table_size(image)
        || bloom_get32(h + AT_CHUNK_SIZE) != BLOOM_IMAGE_CHUNK
        || file_size != bloom_image_file_size(image))
    {
        return fail("is invalid: %" PRIu64 " bits do not make %" PRIu64
                    " bytes of payload at %" PRIu64 " in a file of %" PRIu64
                    " with %" PRIu64 " bytes of exceptions; build it again",
                    g->bits, bloom_get64(h + AT_PAYLOAD_SIZE),
                    bloom_get64(h + AT_PAYLOAD), file_size,
                    image->exceptions_size);
    }

    if (g->layout == BLOOM_LAYOUT_FUSE
        && image->capacity != g->fuse.keys + g->fuse.room)
    {
        return fail("is invalid: its capacity is %" PRIu64 ", but it has %"
                    PRIu64 " keys and room for %" PRIu64 " more; build it "
                    "again", image->capacity, g->fuse.keys, g->fuse.room);
    }

    if (image->capacity == 0 || !(image->fpr > 0 && image->fpr < 1)) {
        return fail("is invalid: its capacity is %" PRIu64 ", and its "
                    "false-positive rate is %g; build it again",
                    image->capacity, image->fpr);
    }

    if (image->hasher.kind == BLOOM_HASH_MURMUR3
        && !bloom_all_zero(image->hasher.key + 4, BLOOM_HASH_KEY_LEN - 4))
    {
        return fail("is invalid: its murmur3 seed has more than 32 bits; "
                    "build it again");
    }

    if (!bloom_hasher_valid(&image->hasher)) {
        return fail("is invalid: its hash key is out of range for hash %s; "
                    "build it again", bloom_hasher_name(image->hasher.kind));
    }

    if (!bloom_all_zero(h + used, end - used)) {
        return fail("is invalid: reserved bytes of its header are not zero; "
                    "build it again");
    }

    return 0;
}


int
bloom_image_get_ring(const bloom_image_t *image, bloom_image_ring_t *ring,
    const uint8_t h[BLOOM_IMAGE_PAGE])
{
    uint32_t  i, slices;
    uint64_t  bit;

    slices = image->geometry.slices;

    ring->open = bloom_get32(h + AT_OPEN);
    ring->live = bloom_get64(h + AT_LIVE);
    ring->full = bloom_get64(h + AT_FULL);

    for (i = 0; i < BLOOM_PARTS_MAX; i++) {
        ring->opened[i] = bloom_get64(h + AT_OPENED + 8 * i);
        ring->closed[i] = bloom_get64(h + AT_CLOSED + 8 * i);
    }

    if (ring->open >= slices
        || ring->live >> slices != 0
        || (ring->live >> ring->open & 1) == 0
        || (ring->full & ~ring->live) != 0
        || (ring->full >> ring->open & 1) != 0)
    {
        return -1;
    }

    for (i = 0; i < BLOOM_PARTS_MAX; i++) {
        bit = ring->live >> i & 1;

        if (i == ring->open ? ring->closed[i] != 0
            : bit ? ring->closed[i] < ring->opened[i]
            : (ring->opened[i] | ring->closed[i]) != 0)
        {
            return -1;
        }
    }

    return 0;
}
