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
#define MAGIC         0
#define VERSION       8
#define ORDER         12
#define FILE_SIZE     16
#define PAYLOAD       24
#define PAYLOAD_SIZE  32
#define CHUNK_SIZE    40
#define TABLE_CRC     44
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
#define AS_OF         128
#define BUILD_ID      136
#define RESERVED      152
#define EXCEPTIONS    3584            /* from here on: version 2 */
#define EXCEPTIONS_SIZE  3592
#define EXCEPTIONS_CRC   3600
#define LAYERS        3608
#define SOURCE        3632
#define SOURCE_LEN    3648
#define LAYER_BITS    3912
#define LAYER_K       4040
#define LAYER_LINES   4056
#define LAYERS_END    4072
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


/* Makes a file of an image, of its words and of the entries of its exceptions,
 * image->exceptions_size bytes. */
static inline file_t
file_of(const bloom_image_t *given, const uint64_t *words,
    const uint8_t *entries)
{
    file_t         file;
    uint8_t       *p;
    bloom_image_t  image;

    image = *given;

    memset(&file, 0, sizeof(file));
    file.size = bloom_image_file_size(&image);
    file.bytes = malloc(file.size);
    assert_non_null(file.bytes);

    p = file.bytes + BLOOM_IMAGE_PAGE;
    bloom_image_seal(&image, words, p);
    p += bloom_image_table_size(&image);
    memcpy(p, words, bloom_image_payload_size(&image));
    p += bloom_image_payload_size(&image);

    if (image.exceptions != 0) {
        p += bloom_image_exceptions_table_size(&image);
        memset(p, 0, bloom_image_exceptions_padded(&image));
        memcpy(p, entries, image.exceptions_size);
        bloom_image_seal_exceptions(&image, p,
                                    p - bloom_image_exceptions_table_size(
                                            &image));
        p += bloom_image_exceptions_padded(&image);
    }

    assert_ptr_equal(p, file.bytes + file.size);

    bloom_image_encode(&image, file.bytes);

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

    words = calloc(1, bloom_image_payload_size(image));
    assert_non_null(words);

    for (i = 0; i < 40; i++) {
        hash = bloom_hash(&image->hasher, &i, sizeof(i));
        bloom_layout_add(&image->geometry, words, hash);
    }

    return words;
}


/* Makes entries of the number and of the size that the image states: each has a
 * key of one byte, except the last one, which has the rest. */
static inline uint8_t *
some_entries(const bloom_image_t *image)
{
    size_t    n, len, rest;
    uint8_t  *data, *p;
    uint64_t  i;

    data = calloc(1, image->exceptions_size + 1);
    assert_non_null(data);

    for (i = 1, p = data; i <= image->exceptions; i++) {
        *p++ = 2;
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


/* `removed` has exceptions, and so version 2. */
static bloom_image_t  blocked, classic, removed;


static inline int
make_examples(void **state)
{
    (void) state;

    blocked = example(BLOOM_LAYOUT_BLOCKED, 16, 2, 3 * 512);
    classic = example(BLOOM_LAYOUT_CLASSIC, 7, 0, 5 * 512);

    removed = blocked;
    removed.exceptions = 3;
    removed.exceptions_size = 2 * 11 + 10 + 20;

    return 0;
}


/*
 * Reads the exceptions of an opened file.  Returns NULL, and the padded data in
 * `entries` if that is wanted; or the reason why they were refused.
 */
static inline const char *
refused_exceptions(bloom_image_reader_t *reader, uint8_t *entries)
{
    int       rc;
    size_t    len;
    uint8_t  *dst;
    uint64_t  chunk;

    for (chunk = 0; chunk < bloom_image_exceptions_chunks(&reader->image);
         chunk++)
    {
        assert_int_equal(reader->next_exceptions, chunk);

        len = bloom_image_exceptions_chunk_size(&reader->image, chunk);
        dst = malloc(len);
        assert_non_null(dst);

        rc = bloom_image_next_exceptions(reader, dst);

        if (rc == 1 && entries != NULL) {
            memcpy(entries + chunk * BLOOM_IMAGE_CHUNK, dst, len);
        }

        free(dst);

        if (rc == -1) {
            assert_int_equal(reader->next_exceptions, chunk);
            assert_true(reader->error[0] != '\0');
            return reader->error;
        }

        assert_int_equal(rc, 1);
        assert_int_equal(reader->len, len);
    }

    assert_int_equal(bloom_image_next_exceptions(reader, NULL), 0);
    assert_int_equal(bloom_image_next_exceptions(reader, NULL), 0);

    return NULL;
}


/*
 * Reads a whole file.  Returns NULL, and the payload if that is wanted; or the
 * reason why the file was refused, after which nothing more may be read.
 */
static inline const char *
refused(file_t *file, uint64_t *payload)
{
    int                          rc;
    size_t                       len;
    uint8_t                     *dst;
    uint64_t                     chunk;
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

    for (chunk = 0; /* void */ ; chunk++) {
        assert_int_equal(reader.next, chunk);

        if (chunk == bloom_image_chunks(&reader.image)) {
            break;
        }

        len = bloom_image_chunk_size(&reader.image, chunk);
        assert_in_range(len, 1, BLOOM_IMAGE_CHUNK);

        dst = malloc(len);
        assert_non_null(dst);

        rc = bloom_image_next(&reader, dst);

        if (rc == 1 && payload != NULL) {
            memcpy((uint8_t *) payload + chunk * BLOOM_IMAGE_CHUNK, dst, len);
        }

        free(dst);

        if (rc == -1) {
            assert_int_equal(reader.next, chunk);
            assert_true(reader.error[0] != '\0');
            return reader.error;
        }

        assert_int_equal(rc, 1);
        assert_int_equal(reader.len, len);
    }

    if (refused_exceptions(&reader, NULL) != NULL) {
        return reader.error;
    }

    /* after the end, the result is the end again, and nothing is read */

    rc = file->reads;
    assert_int_equal(bloom_image_next(&reader, NULL), 0);
    assert_int_equal(bloom_image_next(&reader, NULL), 0);
    assert_int_equal(file->reads, rc);

    return NULL;
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
