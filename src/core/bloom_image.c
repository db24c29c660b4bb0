/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A header is decoded field by field, and accepted only if every field is in
 * range and agrees with the file's size.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bloom_image.h"
#include "bloom_bytes.h"
#include "bloom_crc.h"
#include "bloom_growth.h"
#include "bloom_scheme.h"


/*
 * The first byte is not ASCII and the last two are CR LF, so that a transfer in
 * text mode damages the magic number visibly.
 */
static const uint8_t  magic[8] = { 0x89, 'B', 'L', 'O', 'O', 'M', 0x0d, 0x0a };

#define ORDER_MARK       0x01020304
#define SUMS_IN_A_PAGE   (BLOOM_IMAGE_PAGE / 4)

/* Offsets of the header's fields, in the order of docs/image-format.md. */
#define AT_MAGIC         0
#define AT_VERSION       8
#define AT_ORDER         12
#define AT_FILE_SIZE     16
#define AT_PAYLOAD       24
#define AT_PAYLOAD_SIZE  32
#define AT_CHUNK_SIZE    40
#define AT_TABLE_CRC     44
#define AT_LAYOUT        48
#define AT_K             52
#define AT_LINES         56
#define AT_FLAGS         60
#define AT_BITS          64
#define AT_HASH          72
#define AT_KEY_FORM      76
#define AT_HASH_KEY      80
#define AT_CAPACITY      96
#define AT_ITEMS         104
#define AT_FPR           112
#define AT_CREATED       120
#define AT_AS_OF         128
#define AT_BUILD_ID      136
#define AT_RESERVED      152
#define AT_ORIGIN        152             /* from here on: if imported */
#define AT_ORIGIN_LEN    156
#define AT_LINKS         160
#define AT_ORIGIN_ITEMS  168
#define AT_LINK_TABLE    176
#define AT_FUSE_KEYS     152             /* from here on: if fuse */
#define AT_FUSE_ROOM     160
#define AT_FUSE_WIDE     168
#define AT_FUSE_LENGTH   176
#define AT_FUSE_SEGMENTS 180
#define AT_FUSE_SHARDS   184
#define AT_FUSE_WIDTH    188
#define AT_FUSE_END      192
#define AT_EXCEPTIONS    3584            /* from here on: version 2 */
#define AT_EXCEPTIONS_SIZE  3592
#define AT_EXCEPTIONS_CRC   3600
#define AT_LAYERS        3608
#define AT_SOURCE        3632
#define AT_SOURCE_LEN    3648
#define AT_SOURCE_NAME   3652
#define AT_LAYER_BITS    3912
#define AT_LAYER_K       4040
#define AT_LAYER_LINES   4056
#define AT_LAYERS_END    4072
#define AT_HEADER_CRC    (BLOOM_IMAGE_PAGE - 4)

/* The fewest and the most bytes of an exception: its kinds, its time, its
 * length and its key. */
#define EXCEPTION_MIN    (1 + 8 + 1 + 1)
#define EXCEPTION_MAX    (1 + 8 + 3 + BLOOM_KEY_MAX)


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


uint32_t
bloom_image_version(const bloom_image_t *image)
{
    return image->exceptions != 0 || image->geometry.layers != 0
           || image->source.len != 0 ? 2 : 1;
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

    if (image->origin_len > bloom_image_origin_room(image)) {
        image->origin_len = 0;
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


uint8_t *
bloom_image_origin(const bloom_image_t *image, uint8_t h[BLOOM_IMAGE_PAGE])
{
    return h + AT_LINK_TABLE + 16 * links_of(image);
}


uint32_t
bloom_image_origin_room(const bloom_image_t *image)
{
    return (bloom_image_version(image) == 1 ? AT_HEADER_CRC : AT_EXCEPTIONS)
           - AT_LINK_TABLE - 16 * links_of(image);
}


void
bloom_image_encode(const bloom_image_t *image, uint8_t h[BLOOM_IMAGE_PAGE])
{
    uint64_t  fpr;

    memcpy(&fpr, &image->fpr, sizeof(fpr));
    memset(h, 0, BLOOM_IMAGE_PAGE);

    memcpy(h + AT_MAGIC, magic, sizeof(magic));
    bloom_put32(h + AT_VERSION, bloom_image_version(image));
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

    if (image->exceptions != 0) {
        bloom_put64(h + AT_EXCEPTIONS, image->exceptions);
        bloom_put64(h + AT_EXCEPTIONS_SIZE, image->exceptions_size);
        bloom_put32(h + AT_EXCEPTIONS_CRC, image->exceptions_crc);
    }

    encode_layers(&image->geometry, h);

    if (image->source.len != 0) {
        encode_source(&image->source, h);
    }

    bloom_image_encode_again(h);
}


void
bloom_image_encode_again(uint8_t h[BLOOM_IMAGE_PAGE])
{
    bloom_put32(h + AT_HEADER_CRC, bloom_crc32c(0, h, AT_HEADER_CRC));
}


#define fail(...)                                                            \
    (snprintf(error, BLOOM_IMAGE_ERROR_LEN, __VA_ARGS__), -1)


int
bloom_image_is(const void *data, size_t len)
{
    return len >= sizeof(magic) && memcmp(data, magic, sizeof(magic)) == 0;
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

    if (!bloom_image_is(h, sizeof(magic))) {
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

    if (version > BLOOM_IMAGE_VERSION) {
        return fail("has version %" PRIu32 ", but this program reads versions "
                    "up to %d; use a newer program", version,
                    BLOOM_IMAGE_VERSION);
    }

    if (version == 0) {
        return fail("is damaged: version %" PRIu32 " does not exist; "
                    "copy or build it again", version);
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

    *used = AT_LINK_TABLE + 16 * g->links + image->origin_len;

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


static int
decode_version_2(bloom_image_t *image, const uint8_t *h, char *error)
{
    uint64_t  n, size;

    if (decode_layers(image, h, error) != 0
        || decode_source(&image->source, h, error) != 0)
    {
        return -1;
    }

    n = bloom_get64(h + AT_EXCEPTIONS);
    size = bloom_get64(h + AT_EXCEPTIONS_SIZE);

    if ((n == 0 && image->geometry.layers == 0 && image->source.len == 0)
        || size > BLOOM_IMAGE_EXCEPTIONS_MAX || n > size / EXCEPTION_MIN
        || size > n * EXCEPTION_MAX)
    {
        return fail("is invalid: it has %" PRIu64 " exceptions in %" PRIu64
                    " bytes; build it again", n, size);
    }

    image->exceptions = n;
    image->exceptions_size = size;
    image->exceptions_crc = bloom_get32(h + AT_EXCEPTIONS_CRC);

    if ((n == 0 && image->exceptions_crc != 0)
        || !bloom_all_zero(h + AT_EXCEPTIONS_CRC + 4,
                           AT_LAYERS - AT_EXCEPTIONS_CRC - 4)
        || !bloom_all_zero(h + AT_LAYERS + 8, AT_SOURCE - AT_LAYERS - 8)
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
    end = AT_HEADER_CRC;

    if (bloom_get32(h + AT_VERSION) != 1) {
        end = AT_EXCEPTIONS;

        if (decode_version_2(image, h, error) != 0) {
            return -1;
        }
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
