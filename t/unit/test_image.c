/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check that written images can be read, and that their bytes are
 * as documented.
 */

#include "image_files.h"


/* ---- written and read ---- */

static void
check_round_trip(const bloom_image_t *image)
{
    file_t                       file;
    uint64_t                    *words, *read;
    bloom_image_t                again;
    static bloom_image_reader_t  reader;

    words = some_bits(image);
    file = file_of(image, words, NULL);

    read = calloc(1, bloom_image_payload_size(image));
    assert_non_null(read);

    assert_null(refused(&file, read));
    assert_memory_equal(read, words, bloom_image_payload_size(image));

    assert_int_equal(bloom_image_open(&reader, read_file, &file, file.size),
                     0);

    /* all fields, and the table's checksum */

    again = reader.image;
    assert_int_equal(again.table_crc, bloom_get32(file.bytes + TABLE_CRC));
    again.table_crc = image->table_crc;

    assert_true(bloom_geometry_equal(&again.geometry, &image->geometry));
    assert_null(bloom_image_differs(&again, image));
    assert_int_equal(again.flags, image->flags);
    assert_int_equal(again.capacity, image->capacity);
    assert_int_equal(again.items, image->items);
    assert_true(again.fpr == image->fpr);
    assert_int_equal(again.created, image->created);
    assert_int_equal(again.as_of, image->as_of);
    assert_memory_equal(again.build_id, image->build_id,
                        BLOOM_IMAGE_BUILD_ID_LEN);

    free(file.bytes);
    free(words);
    free(read);
}


static void
test_a_written_image_is_read_back(void **state)
{
    bloom_image_t  image;

    (void) state;

    check_round_trip(&blocked);
    check_round_trip(&classic);

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

    /* one line; one chunk, slightly less and slightly more; many chunks */

    image = classic;
    image.geometry.bits = 512;
    check_round_trip(&image);

    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8;
    check_round_trip(&image);

    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 - 512;
    check_round_trip(&image);

    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 + 512;
    check_round_trip(&image);

    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 * 5 - 1024;
    check_round_trip(&image);
}


/* A little-endian number, byte by byte. */
static uint64_t
number(const file_t *file, size_t at, size_t len)
{
    uint64_t  v;

    for (v = 0; len-- > 0; /* void */ ) {
        v = v << 8 | file->bytes[at + len];
    }

    return v;
}


/* Each field is at its offset, little-endian; all other bytes are zero. */
static void
test_the_header_is_as_documented(void **state)
{
    size_t    i;
    double    fpr;
    file_t    file;
    uint64_t  bits;

    (void) state;

    file = example_file(&classic);

    assert_memory_equal(file.bytes, "\x89" "BLOOM\r\n", 8);
    assert_int_equal(number(&file, VERSION, 4), 1);
    assert_int_equal(number(&file, ORDER, 4), 0x01020304);
    assert_int_equal(number(&file, FILE_SIZE, 8), file.size);
    assert_int_equal(number(&file, PAYLOAD, 8), 8192);
    assert_int_equal(number(&file, PAYLOAD_SIZE, 8), 5 * 64);
    assert_int_equal(number(&file, CHUNK_SIZE, 4), 1048576);
    assert_int_equal(number(&file, TABLE_CRC, 4),
                     bloom_crc32c_portable(0, file.bytes + 4096, 4096));
    assert_int_equal(number(&file, LAYOUT, 4), 2);
    assert_int_equal(number(&file, K, 4), 7);
    assert_int_equal(number(&file, LINES, 4), 0);
    assert_int_equal(number(&file, FLAGS, 4), 1);
    assert_int_equal(number(&file, BITS, 8), 5 * 512);
    assert_int_equal(number(&file, HASH, 4), 2);
    assert_int_equal(number(&file, KEY_FORM, 4), 0);
    assert_int_equal(number(&file, CAPACITY, 8), 0x1122334455667788);
    assert_int_equal(number(&file, ITEMS, 8), 0x0102030405060708);
    assert_int_equal(number(&file, CREATED, 8), 1767225600123);
    assert_int_equal(number(&file, AS_OF, 8), 1767222000456);
    assert_int_equal(number(&file, HEADER_CRC, 4),
                     bloom_crc32c_portable(0, file.bytes, HEADER_CRC));

    bits = number(&file, FPR, 8);
    memcpy(&fpr, &bits, sizeof(fpr));
    assert_true(fpr == 0.0009765625);

    for (i = 0; i < 16; i++) {
        assert_int_equal(file.bytes[HASH_KEY + i], 0x80 + i);
        assert_int_equal(file.bytes[BUILD_ID + i], 0xf0 + i);
    }

    for (i = RESERVED; i < HEADER_CRC; i++) {
        assert_int_equal(file.bytes[i], 0);
    }

    /* the table has one checksum, then zeros */

    assert_int_equal(number(&file, 4096, 4),
                     bloom_crc32c_portable(0, file.bytes + 8192, 5 * 64));

    for (i = 4100; i < 8192; i++) {
        assert_int_equal(file.bytes[i], 0);
    }

    free(file.bytes);
}


/* A file too large to be copied: head and payload are in separate memory. */
typedef struct {
    uint8_t   head[4096 + 8192];
    uint8_t  *payload;
    size_t    size;
    int       reads;
} large_t;


static int
read_large(void *ctx, void *buf, size_t len, uint64_t offset)
{
    large_t  *large = ctx;

    assert_true(offset < large->size && len <= large->size - offset);
    large->reads++;

    if (offset < sizeof(large->head)) {
        assert_true(len <= sizeof(large->head) - offset);
        memcpy(buf, large->head + offset, len);

    } else {
        memcpy(buf, large->payload + offset - sizeof(large->head), len);
    }

    return 0;
}


/* 1025 chunks have a table of more than one page. */
static void
test_a_table_of_several_pages_is_read_back(void **state)
{
    int                          rc, round;
    uint8_t                     *dst;
    uint64_t                     chunk;
    bloom_image_t                image;
    static large_t               large;
    static bloom_image_reader_t  reader;

    (void) state;

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

    dst = malloc(BLOOM_IMAGE_CHUNK);
    assert_non_null(dst);

    for (round = 0; round < 2; round++) {
        large.reads = 0;

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

            /* header, two pages of the table; again each page, the chunks */

            assert_int_equal(large.reads, 1 + 2 + 2 + 1025);

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
}


/* ---- the header alone, comparing, names ---- */

static void
test_a_header_is_decoded_without_its_file(void **state)
{
    char           error[BLOOM_IMAGE_ERROR_LEN];
    uint8_t       *header;
    bloom_image_t  image;

    (void) state;

    header = malloc(BLOOM_IMAGE_PAGE);
    assert_non_null(header);

    bloom_image_encode(&blocked, header);

    assert_int_equal(bloom_image_decode(&image, header, 8384, error), 0);
    assert_null(bloom_image_differs(&image, &blocked));

    assert_int_equal(bloom_image_decode(&image, header, 8383, error), -1);
    assert_string_equal(error, "is truncated: it has 8383 bytes, but its "
                        "header says 8384; copy or build it again");

    assert_int_equal(bloom_image_decode(&image, header, 8385, error), -1);
    assert_string_equal(error, "is too long: it has 8385 bytes, but its "
                        "header says 8384; copy or build it again");

    free(header);
}


static void
test_images_that_cannot_be_merged_differ(void **state)
{
    bloom_image_t  other;

    (void) state;

    /* fields that do not matter for merging */

    other = blocked;
    other.capacity++;
    other.items = 0;
    other.fpr = 0.5;
    other.flags = 0;
    other.created = 0;
    other.as_of = 0;
    other.build_id[3] = 0;
    other.table_crc++;
    assert_null(bloom_image_differs(&blocked, &other));

    assert_string_equal(bloom_image_differs(&blocked, &classic), "layout");

    other = blocked;
    other.geometry.bits += 512;
    assert_string_equal(bloom_image_differs(&blocked, &other), "bits");

    other = blocked;
    other.geometry.k = 8;
    assert_string_equal(bloom_image_differs(&blocked, &other), "k");

    other = blocked;
    other.hasher.kind = BLOOM_HASH_SIPHASH;
    assert_string_equal(bloom_image_differs(&blocked, &other), "hash");

    other = blocked;
    other.hasher.key[3] ^= 1;
    assert_string_equal(bloom_image_differs(&blocked, &other), "seed");

    other = classic;
    other.hasher.key[15] ^= 1;
    assert_string_equal(bloom_image_differs(&classic, &other), "seed");

    other = blocked;
    other.key_form = BLOOM_FORM_LOWER;
    assert_string_equal(bloom_image_differs(&blocked, &other), "key form");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_a_written_image_is_read_back),
        cmocka_unit_test(test_the_header_is_as_documented),
        cmocka_unit_test(test_a_table_of_several_pages_is_read_back),
        cmocka_unit_test(test_a_header_is_decoded_without_its_file),
        cmocka_unit_test(test_images_that_cannot_be_merged_differ),
    };

    return cmocka_run_group_tests_name("image", tests, make_examples, NULL);
}
