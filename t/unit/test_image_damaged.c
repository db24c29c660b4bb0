/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check that damaged, truncated and unreadable image files, and files
 * that change while they are read, are refused, each with the right reason.
 */

#include "image_files.h"

#define TABLE_AT  (8192 + 3 * 64)        /* of the exceptions of `removed` */
#define DATA_AT   (TABLE_AT + 4096)


/* ---- damage ---- */

/* Every byte is changed: to each other value in the header, to several values
 * elsewhere. */
static void
corrupt_every_byte(const bloom_image_t *image)
{
    size_t   i, v, values;
    file_t   file;
    uint8_t  was;

    static const uint8_t  flips[] = { 0x01, 0x10, 0x80, 0xff, 0x55 };

    file = example_file(image);

    for (i = 0; i < file.size; i++) {
        was = file.bytes[i];
        values = i < BLOOM_IMAGE_PAGE ? 255 : array_len(flips);

        for (v = 0; v < values; v++) {
            file.bytes[i] ^= i < BLOOM_IMAGE_PAGE ? v + 1 : flips[v];

            if (refused(&file, NULL) == NULL) {
                fail_msg("byte %zu may be 0x%02x", i, file.bytes[i]);
            }

            file.bytes[i] = was;
        }
    }

    assert_null(refused(&file, NULL));
    free(file.bytes);
}


TEST(every_damaged_byte_is_detected)
{
    corrupt_every_byte(&classic);
    corrupt_every_byte(&whole);
    corrupt_every_byte(&ring);
}


/* Every wrong length is tested, in memory of exactly that length. */
static void
check_lengths(const bloom_image_t *image)
{
    size_t  len;
    file_t  right, part;

    right = example_file(image);

    memset(&part, 0, sizeof(part));

    for (len = 0; len < right.size + 5000; len++) {
        if (len == right.size) {
            continue;
        }

        part.size = len;
        part.bytes = unit_zeros(len);
        memcpy(part.bytes, right.bytes, len < right.size ? len : right.size);

        if (len == 0) {
            assert_refused(&part, "is empty");

        } else if (len < 8) {
            assert_refused(&part, "is not a Bloom filter image");

        } else if (len < 24) {
            assert_non_null(refused(&part, NULL));

        } else if (len < right.size) {
            assert_refused(&part, "is truncated");

        } else {
            assert_refused(&part, "is too long");
        }

        free(part.bytes);
    }

    free(right.bytes);
}


TEST(files_of_a_wrong_length_are_refused)
{
    check_lengths(&classic);
    check_lengths(&whole);
    check_lengths(&ring);
}


TEST(damage_is_located)
{
    size_t         i;
    file_t         file[3];
    bloom_image_t  image;

    /* in `blocked`, and in images of three and of five chunks */

    static const struct {
        size_t       file;
        size_t       at;
        const char  *reason;
    } damage[] = {
        { 0, BUILD_ID, "is damaged: the checksum of its header differs" },
        { 0, 4096 + 4095, "checksum of its table, bytes 4096 to 8191, "
                          "differs" },
        { 0, 8192 + 100, "checksum of bytes 8192 to 8383 differs" },
        { 1, 8192 + 1048576, "checksum of bytes 1056768 to 2105343 differs" },
        { 1, 3153855, "checksum of bytes 2105344 to 3153855 differs" },
        { 2, TABLE_AT + 4000, "checksum of its table, bytes 8384 to 12479, "
                              "differs" },
        { 2, DATA_AT + 2 * BLOOM_IMAGE_CHUNK,
          "checksum of bytes 2109632 to 3158207 differs" },
        { 2, 5255295, "checksum of bytes 4206784 to 5255295 differs" },
    };

    file[0] = example_file(&blocked);

    image = classic;
    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 * 3 - 512;
    file[1] = example_file(&image);

    image = blocked;
    set_exceptions(&image, 476000, 5 * BLOOM_IMAGE_CHUNK - 64);
    file[2] = example_file(&image);

    for (i = 0; i < array_len(damage); i++) {
        file[damage[i].file].bytes[damage[i].at] ^= 1;
        assert_refused(&file[damage[i].file], damage[i].reason);
        file[damage[i].file].bytes[damage[i].at] ^= 1;
    }

    for (i = 0; i < array_len(file); i++) {
        assert_null(refused(&file[i], NULL));
        free(file[i].bytes);
    }
}


/* ---- a disk that fails, and files that change ---- */

TEST(a_failure_of_any_read_is_reported)
{
    int            reads;
    char           reason[64];
    file_t         file;
    bloom_image_t  image;

    image = classic;
    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 * 3 - 512;
    set_exceptions(&image, 95400, BLOOM_IMAGE_CHUNK + 1000);

    file = example_file(&image);
    assert_null(refused(&file, NULL));
    reads = file.reads;

    /* at least the header, both tables, three chunks and two */

    assert_true(reads >= 1 + 2 + 3 + 2);

    for (file.fails = 1; file.fails <= reads; file.fails++) {

        /* nothing is read after the failure */

        assert_non_null(refused(&file, NULL));
        assert_int_equal(file.reads, file.fails);

        sprintf(reason, "cannot be read at byte %u", (unsigned) file.failed);
        assert_refused(&file, reason);
    }

    file.fails = 0;
    assert_null(refused(&file, NULL));

    free(file.bytes);
}


/* A chunk whose read failed can be read again. */
TEST(reading_continues_after_a_failed_chunk)
{
    file_t                       file;
    uint8_t                     *dst;
    bloom_image_t                image;
    static bloom_image_reader_t  reader;

    image = classic;
    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 * 2;

    file = example_file(&image);
    dst = unit_alloc(BLOOM_IMAGE_CHUNK);

    open_file(&reader, &file);

    /* the table's page is read again before the chunk */

    file.fails = file.reads + 2;
    assert_int_equal(bloom_image_next(&reader, dst), -1);
    assert_int_equal(bloom_image_next(&reader, dst), 1);
    assert_memory_equal(dst, file.bytes + 8192, BLOOM_IMAGE_CHUNK);

    file.fails = file.reads + 1;
    assert_int_equal(bloom_image_next(&reader, dst), -1);
    assert_int_equal(bloom_image_next(&reader, dst), 1);
    assert_memory_equal(dst, file.bytes + 8192 + BLOOM_IMAGE_CHUNK,
                        BLOOM_IMAGE_CHUNK);
    assert_int_equal(bloom_image_next(&reader, dst), 0);

    free(dst);
    free(file.bytes);
}


/*
 * Another image is written over the file after the header was read, or after
 * the bits were.  Its bits are valid, but for another seed: with this header,
 * keys would be absent.
 */
TEST(an_image_overwritten_while_it_is_read_is_refused)
{
    file_t                       file, other;
    bloom_image_t                image;
    static bloom_image_reader_t  reader;

    image = removed;
    bloom_hasher_murmur3(&image.hasher, 1);

    file = example_file(&removed);
    other = example_file(&image);
    assert_int_equal(file.size, other.size);

    open_file(&reader, &file);
    memcpy(file.bytes, other.bytes, file.size);
    assert_non_null(refused_payload(&reader, NULL));
    assert_non_null(strstr(reader.error, "changed while it was read"));

    other.bytes[DATA_AT] = 1;
    remake_exceptions_crc(&other, &image);
    assert_null(refused(&other, NULL));

    open_file(&reader, &file);
    assert_null(refused_payload(&reader, NULL));
    memcpy(file.bytes, other.bytes, file.size);
    assert_non_null(refused_exceptions(&reader, NULL));
    assert_non_null(strstr(reader.error, "changed while it was read"));

    free(file.bytes);
    free(other.bytes);
}
