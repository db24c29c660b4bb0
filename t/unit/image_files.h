/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header has image files in memory, for tests of the reader.
 *
 * Each read must lie within the file.  It goes to a separate block of memory,
 * so that sanitizers notice an access beyond it.
 */

#ifndef IMAGE_FILES_H
#define IMAGE_FILES_H

#include "unit.h"

#include "bloom_bytes.h"
#include "bloom_crc.h"
#include "bloom_image_reader.h"
#include "bloom_image_seal.h"


/* Offsets of the header's fields, from docs/image-format.md. */
#define VERSION       8
#define ORDER         12
#define FILE_SIZE     16
#define PAYLOAD       24
#define PAYLOAD_SIZE  32
#define CHUNK_SIZE    40
#define LAYOUT        48
#define K             52
#define LINES         56
#define FLAGS         60
#define BITS          64
#define HASH          72
#define KEY_FORM      76
#define HASH_KEY      80
#define CAPACITY      96
#define ITEMS         104
#define FPR           112
#define CREATED       120
#define BUILD_ID      136
#define RESERVED      152
#define ORIGIN        152             /* from here on: if imported */
#define ORIGIN_LEN    156
#define LINKS         160
#define LINK_TABLE    176
#define SLICES        2048            /* from here on: if it is of a ring */
#define OPEN          2052
#define LIVE          2056
#define FULL          2064
#define OPENED        2072
#define CLOSED        2520
#define SLICES_END    2968
#define PREFIXES      3504            /* from here on: any image */
#define COPY          3520
#define COPY_POSITION    3536
#define COPY_SEQUENCE    3544
#define COPY_END         3576
#define EXCEPTIONS    3584
#define EXCEPTIONS_SIZE  3592
#define EXCEPTIONS_CRC   3600
#define BUILT         3616
#define BUILT_SIZE    3624
#define LAYERS        3608
#define SOURCE        3632
#define SOURCE_LEN    3648
#define SOURCE_NAME   3652
#define LAYER_BITS    3912
#define LAYER_K       4040
#define LAYER_LINES   4056
#define HEADER_CRC    4092


typedef struct {
    uint8_t  *bytes;
    size_t    size;
    int       reads;                     /* number of reads so far */
    int       fails;                     /* this read fails; 0: none does */
    uint64_t  failed;                    /* offset of that read */
} file_t;


static inline int
read_file(void *ctx, void *buf, size_t len, uint64_t offset)
{
    file_t  *file = ctx;

    assert_true(len > 0);
    assert_true(offset < file->size && len <= file->size - offset);

    if (++file->reads == file->fails) {
        memset(buf, 0xee, len);
        file->failed = offset;
        return -1;
    }

    memcpy(buf, file->bytes + offset, len);

    return 0;
}


/* The slices of the ring images. */
static bloom_image_ring_t  slices;


/* Makes a file of an image, of its words and of the entries of its exceptions,
 * image->exceptions_size bytes.  The header of an imported filter's source is
 * of bytes 0xab. */
static inline file_t
file_of(const bloom_image_t *given, const uint64_t *words,
    const uint8_t *entries)
{
    file_t              file;
    uint8_t            *h;
    bloom_image_t       image;
    bloom_image_part_t  payload, exceptions;

    image = *given;
    payload = bloom_image_payload_part(&image);
    exceptions = bloom_image_exceptions_part(&image);

    memset(&file, 0, sizeof(file));
    file.size = bloom_image_file_size(&image);
    file.bytes = unit_zeros(file.size);

    h = file.bytes;
    memcpy(h + payload.data, words, payload.size);
    bloom_image_seal(&image, words, h + payload.table);

    if (image.exceptions != 0) {
        memcpy(h + exceptions.data, entries, image.exceptions_size);
        bloom_image_seal_exceptions(&image, h + exceptions.data,
                                    h + exceptions.table);
    }

    bloom_image_encode(&image, h);
    memset(h + bloom_image_origin_at(&image), 0xab, image.origin_len);
    bloom_image_encode_again(h);

    if (image.flags & BLOOM_IMAGE_RING) {
        bloom_image_put_ring(&image, &slices, h);
    }

    return file;
}


/* Makes an image with every field set and some keys. */
static inline bloom_image_t
example(uint32_t layout, uint32_t k, uint32_t lines, uint64_t bits)
{
    uint32_t       i;
    bloom_image_t  image;

    memset(&image, 0, sizeof(image));

    image.geometry.layout = layout;
    image.geometry.k = k;
    image.geometry.lines = lines;
    image.geometry.bits = bits;
    image.key_form = BLOOM_FORM_RAW;
    image.flags = BLOOM_IMAGE_ESTIMATED;
    image.capacity = 0x1122334455667788;
    image.items = 0x0102030405060708;
    image.fpr = 0.0009765625;
    image.created = 1767225600123;
    image.as_of = 1767222000456;

    if (layout == BLOOM_LAYOUT_BLOCKED) {
        bloom_hasher_murmur3(&image.hasher, 0xdeadbeef);
    } else {
        image.hasher.kind = BLOOM_HASH_SIPHASH;
    }

    for (i = 0; i < 16; i++) {
        image.build_id[i] = (uint8_t) (0xf0 + i);

        if (image.hasher.kind == BLOOM_HASH_SIPHASH) {
            image.hasher.key[i] = (uint8_t) (0x80 + i);
        }
    }

    return image;
}


static inline uint64_t *
some_bits(const bloom_image_t *image)
{
    uint32_t      i;
    uint64_t     *words;
    bloom_hash_t  hash;

    words = unit_zeros(bloom_image_payload_size(image));

    for (i = 0; i < 40; i++) {
        hash = bloom_hash(&image->hasher, &i, sizeof(i));
        bloom_layout_add(&image->geometry, words, hash);
    }

    return words;
}


/* Makes entries of the numbers and of the size that the image states: each has
 * a key of one byte, except the last one, which has the rest.  The builder chose
 * the last ones. */
static inline uint8_t *
some_entries(const bloom_image_t *image)
{
    size_t    n, len, rest;
    uint8_t  *data, *p;
    uint64_t  i;

    data = unit_zeros(image->exceptions_size + 1);

    for (i = 1, p = data; i <= image->exceptions; i++) {
        *p++ = i > image->exceptions - image->built ? 1 : 2;
        bloom_put64(p, 1767225600000 + i);
        p += 8;

        rest = i < image->exceptions
               ? 2 : (size_t) (data + image->exceptions_size - p);

        for (n = 1; (rest - n) >> (7 * n) != 0; n++) { /* void */ }

        for (len = rest -= n; n > 0; n--, len >>= 7) {
            *p++ = (uint8_t) ((len & 0x7f) | (n > 1 ? 0x80 : 0));
        }

        memset(p, 'a' + (int) i % 26, rest);
        p += rest;
    }

    assert_ptr_equal(p, data + image->exceptions_size);

    return data;
}


static inline file_t
example_file(const bloom_image_t *image)
{
    file_t     file;
    uint8_t   *entries;
    uint64_t  *words;

    words = some_bits(image);
    entries = some_entries(image);
    file = file_of(image, words, entries);
    free(words);
    free(entries);

    return file;
}


/*
 * Images of each kind: with exceptions, with layers, with a source, and a copy;
 * `whole` is all of that.  `imported` has one part and the header of its source;
 * `linked` has as many links as an image may have, and no room left.  `ring` has
 * slices and exceptions.
 */
static bloom_image_t  blocked, classic, removed, grown, sourced, copied, whole;
static bloom_image_t  imported, linked, ring;


static inline void
set_source(bloom_image_t *image, uint64_t high, uint64_t low, const char *name)
{
    bloom_source_t  source;

    /* bytes after the name do not matter */

    memset(&source, 'x', sizeof(source));
    source.position.high = high;
    source.position.low = low;
    source.len = (uint32_t) strlen(name);
    memcpy(source.name, name, source.len);

    bloom_image_set_source(image, &source);
}


static inline void
set_copy(bloom_image_t *image, uint64_t position, uint64_t sequence)
{
    memset(&image->copy, 0, sizeof(image->copy));
    image->copy.journal[BLOOM_IMAGE_JOURNAL_LEN - 1] = 1;
    image->copy.position = position;
    image->copy.sequence = sequence;
    image->copy.time = 1767225600000;
    image->copy.removed = 3;
    image->copy.removed_bytes = UINT64_MAX;
}


static inline void
set_exceptions(bloom_image_t *image, uint64_t n, uint64_t size)
{
    image->exceptions = n;
    image->exceptions_size = size;
}


static void __attribute__((constructor))
make_examples(void)
{
    uint32_t  i;

    static const bloom_layer_t  layer[] = {
        { 512, 8, 1 }, { 1024, 16, 2 }, { 1536, 3, 3 }
    };

    blocked = example(BLOOM_LAYOUT_BLOCKED, 16, 2, 3 * 512);
    classic = example(BLOOM_LAYOUT_CLASSIC, 7, 0, 5 * 512);

    removed = blocked;
    set_exceptions(&removed, 3, 2 * 11 + 10 + 20);

    grown = blocked;
    grown.capacity = 1000;
    grown.geometry.layers = array_len(layer);
    memcpy(grown.geometry.layer, layer, sizeof(layer));

    sourced = blocked;
    set_source(&sourced, 0x1122334455667788, 0x99aabbccddeeff01, "redis:ids");

    copied = blocked;
    set_copy(&copied, 0x1122334455667788, 1);

    whole = grown;
    set_exceptions(&whole, 3, 2 * 11 + 10 + 20);
    whole.built = 1;
    whole.built_size = 10 + 20;
    set_source(&whole, UINT64_MAX, 0, "stream/1._:/-");
    set_copy(&whole, 0, UINT64_MAX);

    ring = blocked;
    ring.flags |= BLOOM_IMAGE_RING;
    ring.geometry.slices = 5;
    set_exceptions(&ring, 3, 2 * 11 + 10 + 20);

    /* slice 1 is open, 2 has no keys, 3 and 4 are closed, 0 was full */

    slices.open = 1;
    slices.live = 0x1b;
    slices.full = 0x01;
    slices.opened[3] = 1000;
    slices.closed[3] = 2000;
    slices.opened[4] = 2000;
    slices.closed[4] = 2000;
    slices.opened[0] = UINT64_MAX - 1;
    slices.closed[0] = UINT64_MAX;
    slices.opened[1] = 3000;

    imported = example(BLOOM_LAYOUT_DOUBLE63, 200, 0, 1003);
    imported.flags |= BLOOM_IMAGE_IMPORTED;
    imported.origin = BLOOM_ORIGIN_GUAVA;
    imported.origin_items = 6;
    imported.origin_len = 4;
    bloom_hasher_foreign(&imported.hasher, BLOOM_HASH_FUNNEL,
                         BLOOM_FUNNEL_LONG, 0);

    linked = imported;
    linked.geometry.layout = BLOOM_LAYOUT_LINKS;
    linked.geometry.links = BLOOM_LINKS_MAX;
    linked.geometry.bits = 0;
    linked.geometry.k = 60;

    for (i = 0; i < BLOOM_LINKS_MAX; i++) {
        linked.geometry.link[i].bits = 64 + 64 * i;
        linked.geometry.link[i].k = 5 + i;
        linked.geometry.bits += bloom_geometry_whole_lines(64 + 64 * i);
    }

    linked.origin = BLOOM_ORIGIN_REDISBLOOM;
    linked.origin_len = bloom_image_origin_room(&linked);
    bloom_hasher_foreign(&linked.hasher, BLOOM_HASH_MURMUR64A, 0, 0);
}


static inline void
open_file(bloom_image_reader_t *reader, file_t *file)
{
    file->reads = 0;

    if (bloom_image_open(reader, read_file, file, file->size) != 0) {
        fail_msg("%s", reader->error);
    }
}


/*
 * Reads the chunks of a part of an opened file.  Returns NULL, and the part in
 * `data` if that is wanted; or the reason why the part was refused.
 */
static inline const char *
refused_part(bloom_image_reader_t *reader, bloom_image_part_t part,
    int (*next)(bloom_image_reader_t *reader, void *dst), uint8_t *data)
{
    int       rc;
    size_t    len, at;
    uint8_t  *dst;

    for (at = 0; at < part.size; at += len) {
        len = part.size - at < BLOOM_IMAGE_CHUNK ? part.size - at
                                                 : BLOOM_IMAGE_CHUNK;
        dst = unit_alloc(len);

        rc = next(reader, dst);

        if (rc == 1 && data != NULL) {
            memcpy(data + at, dst, len);
        }

        free(dst);

        if (rc == -1) {
            assert_true(reader->error[0] != '\0');
            return reader->error;
        }

        assert_int_equal(rc, 1);
        assert_int_equal(reader->len, len);
    }

    /* after the end, the result is the end again */

    assert_int_equal(next(reader, NULL), 0);
    assert_int_equal(next(reader, NULL), 0);

    return NULL;
}


static inline const char *
refused_payload(bloom_image_reader_t *reader, void *payload)
{
    return refused_part(reader, bloom_image_payload_part(&reader->image),
                        bloom_image_next, payload);
}


static inline const char *
refused_exceptions(bloom_image_reader_t *reader, uint8_t *entries)
{
    return refused_part(reader, bloom_image_exceptions_part(&reader->image),
                        bloom_image_next_exceptions, entries);
}


/* Reads a whole file.  Returns NULL, and the payload if that is wanted; or the
 * reason why the file was refused. */
static inline const char *
refused(file_t *file, void *payload)
{
    const char                  *why;
    static bloom_image_reader_t  reader;

    memset(&reader, 0xa5, sizeof(reader));
    file->reads = 0;

    if (bloom_image_open(&reader, read_file, file, file->size) != 0) {
        assert_true(reader.error[0] != '\0');
        assert_true(strlen(reader.error) < BLOOM_IMAGE_ERROR_LEN - 1);
        return reader.error;
    }

    assert_string_equal(reader.error, "");
    assert_true(bloom_geometry_valid(&reader.image.geometry));
    assert_int_equal(bloom_image_file_size(&reader.image), file->size);

    why = refused_payload(&reader, payload);

    return why != NULL ? why : refused_exceptions(&reader, NULL);
}


static inline void
assert_refused(file_t *file, const char *reason)
{
    const char  *error;

    error = refused(file, NULL);

    if (error == NULL) {
        fail_msg("accepted, expected \"%s\"", reason);
    }

    if (strstr(error, reason) == NULL) {
        fail_msg("refused as \"%s\", expected \"%s\"", error, reason);
    }
}


static inline void
remake_header_crc(file_t *file)
{
    bloom_put32(file->bytes + HEADER_CRC,
                bloom_crc32c(0, file->bytes, HEADER_CRC));
}


/* Corrects all checksums of the exceptions, which have one chunk. */
static inline void
remake_exceptions_crc(file_t *file, const bloom_image_t *image)
{
    uint8_t             *h;
    bloom_image_part_t   part;

    h = file->bytes;
    part = bloom_image_exceptions_part(image);
    bloom_put32(h + part.table, bloom_crc32c(0, h + part.data, part.size));
    bloom_put32(h + EXCEPTIONS_CRC, bloom_crc32c(0, h + part.table, 4096));
    remake_header_crc(file);
}


/* Puts a value of up to 8 bytes into the header of an image and corrects its
 * checksum: the file is refused. */
static inline void
assert_value_refused(const bloom_image_t *image, size_t at, size_t len,
    uint64_t value, const char *reason)
{
    file_t   file;
    uint8_t  bytes[8];

    file = example_file(image);
    bloom_put64(bytes, value);
    memcpy(file.bytes + at, bytes, len);
    remake_header_crc(&file);
    assert_refused(&file, reason);

    free(file.bytes);
}


#endif /* IMAGE_FILES_H */
