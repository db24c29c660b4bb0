/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check that written images of every kind are read back.  The
 * golden images (test_image_golden.c) hold the bytes.
 */

#include "image_files.h"

#include "bloom_exceptions_image.h"
#include "bloom_growth.h"


/* ---- written and read ---- */

static void
check_round_trip(const bloom_image_t *image)
{
    size_t                       i, size, padded;
    file_t                       file;
    uint8_t                     *entries, *got;
    uint64_t                    *words;
    bloom_image_t                again;
    static bloom_image_reader_t  reader;

    words = some_bits(image);
    entries = some_entries(image);
    file = file_of(image, words, entries);

    size = bloom_image_payload_size(image);
    padded = bloom_image_exceptions_padded(image);
    assert_in_range(padded - image->exceptions_size, 0, 63);

    got = unit_alloc(size + padded);

    assert_null(refused(&file, got));
    assert_memory_equal(got, words, size);

    /* exceptions may be read before the payload, too */

    open_file(&reader, &file);
    assert_null(refused_exceptions(&reader, got));
    assert_memory_equal(got, entries, image->exceptions_size);

    for (i = image->exceptions_size; i < padded; i++) {
        assert_int_equal(got[i], 0);
    }

    assert_null(refused_payload(&reader, got));
    assert_memory_equal(got, words, size);

    /* all fields; the checksums of tables follow from the rest */

    again = reader.image;
    assert_null(bloom_image_differs(&again, image));
    assert_int_equal(bloom_get32(file.bytes + VERSION), 3);
    again.table_crc = image->table_crc;
    again.exceptions_crc = image->exceptions_crc;
    assert_memory_equal(&again, image, sizeof(again));

    if (image->flags & BLOOM_IMAGE_RING) {
        assert_memory_equal(&reader.ring, &slices, sizeof(slices));
    }

    /* the header of an imported filter's source, and what is behind it */

    if (image->origin != 0) {
        got = realloc(got, image->origin_len + 1);
        assert_non_null(got);
        memset(got, 0xab, image->origin_len);
        assert_memory_equal(file.bytes + bloom_image_origin_at(&again), got,
                            image->origin_len);
    }

    free(file.bytes);
    free(entries);
    free(words);
    free(got);
}


TEST(images_of_each_kind_are_read_back)
{
    size_t         i;
    bloom_image_t  image;

    static const bloom_image_t  *const images[] = {
        &blocked, &classic, &removed, &grown, &sourced, &copied, &whole,
        &imported, &linked, &ring
    };

    for (i = 0; i < array_len(images); i++) {
        check_round_trip(images[i]);
        assert_int_equal(bloom_image_is_copy(images[i]),
                         images[i] == &copied || images[i] == &whole);
    }

    /* the smallest and the greatest value of each field */

    image = blocked;
    image.flags = 0;
    image.capacity = 1;
    image.items = 0;
    image.fpr = 1e-300;
    image.created = 0;
    image.as_of = 0;
    memset(image.build_id, 0, sizeof(image.build_id));
    bloom_hasher_murmur3(&image.hasher, 0);
    check_round_trip(&image);

    image.capacity = UINT64_MAX;
    image.items = UINT64_MAX;
    image.fpr = nextafter(1, 0);
    image.created = UINT64_MAX;
    image.as_of = UINT64_MAX;
    bloom_hasher_murmur3(&image.hasher, UINT32_MAX);
    check_round_trip(&image);

    image = grown;
    image.capacity = BLOOM_CAPACITY_MAX;
    check_round_trip(&image);

    /* the header of a source without bytes, and one byte below its room */

    image = imported;
    image.origin_len = 0;
    check_round_trip(&image);

    image = linked;
    assert_int_equal(image.origin_len, 3328 - 16 * 56);
    image.origin_len--;
    check_round_trip(&image);

    image = imported;
    image.origin_len = BLOOM_IMAGE_ORIGIN_MAX;
    assert_int_equal(bloom_image_origin_room(&image), image.origin_len);
    assert_int_equal(bloom_image_origin_at(&image) + image.origin_len,
                     PREFIXES);
    set_source(&image, 1, 0, "ids");
    set_exceptions(&image, 1, 11);
    check_round_trip(&image);
}


/* Each slice may be the open one; slices that are not live are zeros. */
TEST(rings_of_each_size_are_read_back)
{
    uint32_t            i, n;
    bloom_image_t       image;
    bloom_image_ring_t  before;

    static const uint32_t  sizes[] = { 1, 2, 42, BLOOM_PARTS_MAX };

    before = slices;

    for (n = 0; n < array_len(sizes); n++) {
        image = ring;
        image.geometry.slices = (uint16_t) sizes[n];

        for (i = 0; i < sizes[n]; i++) {
            memset(&slices, 0, sizeof(slices));
            slices.open = i;
            slices.live = (uint64_t) 1 << i;
            check_round_trip(&image);

            /* all others are live, and were full */

            slices.live = UINT64_MAX >> (64 - sizes[n]);
            slices.full = slices.live & ~((uint64_t) 1 << i);
            check_round_trip(&image);
        }
    }

    slices = before;
}


/* The fields of slices are where the description says, and those of a copy. */
TEST(slices_and_copies_have_their_places)
{
    file_t          file;
    const uint8_t  *h;

    file = example_file(&ring);
    h = file.bytes;

    assert_int_equal(bloom_get32(h + FLAGS), 0x1 | 0x4);
    assert_int_equal(bloom_get32(h + SLICES), 5);
    assert_int_equal(bloom_get32(h + OPEN), 1);
    assert_int_equal(bloom_get64(h + LIVE), 0x1b);
    assert_int_equal(bloom_get64(h + FULL), 0x01);
    assert_int_equal(bloom_get64(h + OPENED + 8 * 3), 1000);
    assert_int_equal(bloom_get64(h + CLOSED + 8 * 4), 2000);
    assert_true(bloom_get64(h + CLOSED) == UINT64_MAX);
    assert_int_equal(bloom_get64(h + PAYLOAD_SIZE), 5 * 3 * 64);
    free(file.bytes);

    file = example_file(&copied);
    h = file.bytes;

    assert_int_equal(h[COPY + 15], 1);
    assert_int_equal(bloom_get64(h + COPY_POSITION), 0x1122334455667788);
    assert_int_equal(bloom_get64(h + COPY_SEQUENCE), 1);
    assert_int_equal(bloom_get64(h + COPY + 32), 1767225600000);
    assert_int_equal(bloom_get64(h + COPY + 40), 3);
    assert_true(bloom_get64(h + COPY + 48) == UINT64_MAX);
    free(file.bytes);
}


/* One line; one chunk, slightly less and slightly more; many chunks; the
 * padding that completes a chunk, and one byte more. */
TEST(parts_of_each_size_are_read_back)
{
    size_t         i;
    bloom_image_t  image;

    static const uint64_t  bytes[] = {
        64, BLOOM_IMAGE_CHUNK, BLOOM_IMAGE_CHUNK - 64, BLOOM_IMAGE_CHUNK + 64,
        BLOOM_IMAGE_CHUNK * 5 - 128
    };

    static const struct {
        uint64_t  n;
        uint64_t  size;
    } exceptions[] = {
        { 1, 11 }, { 1, 64 }, { 1, 65 }, { 1, 65547 }, { 40, 40 * 11 },
        { 60000, BLOOM_IMAGE_CHUNK }, { 95000, BLOOM_IMAGE_CHUNK - 63 },
        { 95000, BLOOM_IMAGE_CHUNK + 1 }, { 476000, 5 * BLOOM_IMAGE_CHUNK }
    };

    for (i = 0; i < array_len(bytes); i++) {
        image = classic;
        image.geometry.bits = 8 * bytes[i];
        check_round_trip(&image);
    }

    for (i = 0; i < array_len(exceptions); i++) {
        image = blocked;
        set_exceptions(&image, exceptions[i].n, exceptions[i].size);
        check_round_trip(&image);
    }
}


TEST(sources_of_each_length_are_read_back)
{
    char           name[BLOOM_SOURCE_NAME_MAX + 1];
    size_t         len;
    bloom_image_t  image;

    for (len = 1; len <= BLOOM_SOURCE_NAME_MAX; len++) {
        memset(name, 'a' + (int) (len % 26), len);
        name[len] = '\0';

        image = blocked;
        set_source(&image, len, 0, name);
        check_round_trip(&image);
    }
}


/* A file too large to be copied: head and payload are in separate memory. */
typedef struct {
    uint8_t   head[4096 + 8192];
    uint8_t  *payload;
    size_t    size;
} large_t;


static int
read_large(void *ctx, void *buf, size_t len, uint64_t offset)
{
    large_t  *large = ctx;

    assert_true(offset < large->size && len <= large->size - offset);

    if (offset < sizeof(large->head)) {
        assert_true(len <= sizeof(large->head) - offset);
        memcpy(buf, large->head + offset, len);

    } else {
        memcpy(buf, large->payload + offset - sizeof(large->head), len);
    }

    return 0;
}


/* 1025 chunks have a table of more than one page. */
TEST(a_table_of_several_pages_is_read_back)
{
    int                          rc, round;
    uint8_t                     *dst;
    uint64_t                     chunk;
    bloom_image_t                image;
    static large_t               large;
    static bloom_image_reader_t  reader;

    image = blocked;
    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 * 1024 + 512;

    assert_int_equal(bloom_image_chunks(&image), 1025);
    assert_int_equal(bloom_image_table_size(&image), 8192);
    assert_int_equal(bloom_image_chunk_size(&image, 1023), BLOOM_IMAGE_CHUNK);
    assert_int_equal(bloom_image_chunk_size(&image, 1024), 64);

    large.size = bloom_image_file_size(&image);
    assert_int_equal(large.size, 4096 + 8192 + ((uint64_t) 1 << 30) + 64);

    large.payload = (uint8_t *) some_bits(&image);
    bloom_image_seal(&image, large.payload, large.head + 4096);
    bloom_image_encode(&image, large.head);

    dst = unit_alloc(BLOOM_IMAGE_CHUNK);

    for (round = 0; round < 2; round++) {
        assert_int_equal(bloom_image_open(&reader, read_large, &large,
                                          large.size), 0);

        for (chunk = 0; (rc = bloom_image_next(&reader, dst)) == 1; chunk++) {
            if (memcmp(dst, large.payload + chunk * BLOOM_IMAGE_CHUNK,
                       bloom_image_chunk_size(&image, chunk)) != 0)
            {
                fail_msg("chunk %u differs", (unsigned) chunk);
            }
        }

        if (round == 0) {
            assert_int_equal(rc, 0);
            assert_int_equal(chunk, 1025);

        } else {
            assert_int_equal(rc, -1);
            assert_int_equal(chunk, 1024);
            assert_non_null(strstr(reader.error, "checksum of bytes "
                                                 "1073754112 to 1073754175"));
        }

        large.payload[large.size - sizeof(large.head) - 1] ^= 1;
    }

    free(dst);
    free(large.payload);

    /* the most exceptions that an image can have fit one page */

    image = blocked;
    set_exceptions(&image, BLOOM_IMAGE_EXCEPTIONS_MAX / 11,
                   BLOOM_IMAGE_EXCEPTIONS_MAX);
    assert_int_equal(bloom_image_exceptions_chunks(&image), 256);
    assert_int_equal(bloom_image_exceptions_table_size(&image), 4096);
}


/* ---- fields, comparing ---- */

TEST(the_promise_counts_all_parts)
{
    bloom_image_t  image;

    assert_int_equal(bloom_image_capacity(&grown), 15000);
    assert_true(bloom_image_fpr(&grown, 5000)
                == bloom_growth_fpr(&grown.geometry, 1000, 5000));
    assert_true(bloom_image_promised(&grown)
                == bloom_growth_fpr(&grown.geometry, 1000, 15000));

    /* never lower than the rate of the header */

    image = grown;
    image.fpr = 0.9999999;
    image.capacity = 1;
    assert_true(bloom_image_promised(&image) == 0.9999999);

    image.geometry.layers = 0;
    image.capacity = UINT64_MAX;
    assert_true(bloom_image_capacity(&image) == UINT64_MAX);
    assert_true(bloom_image_promised(&image) == image.fpr);
}


TEST(a_source_can_be_set_and_left_out)
{
    bloom_image_t   image;
    bloom_source_t  none;

    static const bloom_source_t  zero;

    /* no source, given as NULL or with a length of 0: all of it is zero */

    image = sourced;
    bloom_image_set_source(&image, NULL);
    assert_memory_equal(&image.source, &zero, sizeof(zero));

    memset(&none, 'x', sizeof(none));
    none.len = 0;
    image = sourced;
    bloom_image_set_source(&image, &none);
    assert_memory_equal(&image.source, &zero, sizeof(zero));

    /* of a longer name, nothing is left */

    set_source(&image, 1, 2, "redis:ids");
    set_source(&image, 1, 2, "b");
    assert_int_equal(image.source.len, 1);
    assert_memory_equal(image.source.name, "b\0\0\0\0\0\0\0\0\0", 10);
}


TEST(images_that_cannot_be_merged_differ)
{
    bloom_image_t  other;

    /* fields that do not matter for merging; what is behind the last layer */

    other = whole;
    other.capacity++;
    other.items = 0;
    other.fpr = 0.5;
    other.flags = 0;
    other.created = 0;
    other.as_of = 0;
    other.build_id[3] = 0;
    other.table_crc++;
    other.exceptions = 0;
    other.copy.position = 8;
    other.geometry.layer[3].bits = 512;
    bloom_image_set_source(&other, NULL);
    assert_null(bloom_image_differs(&whole, &other));

#define differs(image, change, what)                                         \
    other = image;                                                           \
    other.change;                                                            \
    assert_string_equal(bloom_image_differs(&image, &other), what);          \
    assert_string_equal(bloom_image_differs(&other, &image), what)

    differs(blocked, geometry.layout = BLOOM_LAYOUT_CLASSIC, "layout");
    differs(blocked, geometry.bits += 512, "bits");
    differs(blocked, geometry.k = 8, "k");
    differs(blocked, geometry.lines = 1, "k");
    differs(blocked, hasher.kind = BLOOM_HASH_SIPHASH, "hash");
    differs(blocked, hasher.key[3] ^= 1, "seed");
    differs(blocked, key_form = BLOOM_FORM_LOWER, "key form");
    differs(classic, hasher.key[15] ^= 1, "seed");
    differs(grown, geometry.k = 8, "k");
    differs(grown, geometry.layers = 2, "layers");
    differs(grown, geometry.layer[2].bits += 512, "layers");
    differs(grown, geometry.layer[1].k = 8, "layers");
    differs(grown, geometry.layer[0].lines = 2, "layers");
    differs(linked, geometry.link[1].k++, "links");
}


/* ---- entries ---- */

static void
check_entries(const bloom_image_t *image, const uint8_t *entries,
    const char *reason)
{
    uint8_t     *copy;
    const char  *why;

    /* in memory of exactly that size */

    copy = unit_copy(entries, image->exceptions_size);

    why = bloom_exceptions_check(image, copy);
    assert_non_null(why);
    assert_non_null(strstr(why, reason));

    free(copy);
}


TEST(entries_that_do_not_fit_are_refused)
{
    size_t         at, size;
    uint8_t       *entries;
    bloom_image_t  image;

    size = 4 * 11 + 9 + 2 + 200;
    image = blocked;
    set_exceptions(&image, 5, size);
    entries = some_entries(&image);

    assert_null(bloom_exceptions_check(&image, entries));
    image.exceptions = 4;
    check_entries(&image, entries, "more or fewer");
    image.exceptions = 6;
    check_entries(&image, entries, "more or fewer");
    image.exceptions = 5;

    /* an entry that is cut off is invalid, a whole one is missing */

    for (at = 0; at < size; at++) {
        image.exceptions_size = at;
        check_entries(&image, entries, at % 11 == 0 && at <= 44
                                       ? "more or fewer" : "is not valid");
    }

    image.exceptions_size = size;

    entries[11] = 0;
    check_entries(&image, entries, "is not valid");
    entries[11] = 8;
    check_entries(&image, entries, "is not valid");
    entries[11] = 6;
    assert_null(bloom_exceptions_check(&image, entries));

    /* the builder chose one of the first, or the last */

    entries[11] = 7;
    check_entries(&image, entries, "more or fewer");
    image.built = 1;
    check_entries(&image, entries, "more or fewer");
    image.built_size = 11;
    assert_null(bloom_exceptions_check(&image, entries));
    image.built = 0;
    check_entries(&image, entries, "more or fewer");

    image.built = 1;
    entries[11] = 2;
    entries[44] = 1;
    check_entries(&image, entries, "more or fewer");
    image.built_size = size - 44;
    assert_null(bloom_exceptions_check(&image, entries));

    free(entries);
}
