/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check that damaged, truncated, invalid and unreadable image files
 * are refused, each with the right reason.
 */

#include "image_files.h"


/* ---- damage ---- */

/* Every byte is changed: to each other value in the header, to several values
 * elsewhere. */
static unsigned
corrupt_every_byte(const bloom_image_t *image)
{
    size_t    i, v, values;
    file_t    file;
    uint8_t   was;
    unsigned  count;

    static const uint8_t  flips[] = { 0x01, 0x10, 0x80, 0xff, 0x55 };

    count = 0;
    file = example_file(image);
    assert_null(refused(&file, NULL));

    for (i = 0; i < file.size; i++) {
        was = file.bytes[i];
        values = i < BLOOM_IMAGE_PAGE ? 255 : array_len(flips);

        for (v = 0; v < values; v++) {
            file.bytes[i] ^= i < BLOOM_IMAGE_PAGE ? v + 1 : flips[v];

            if (refused(&file, NULL) == NULL) {
                fail_msg("byte %zu may be 0x%02x", i, file.bytes[i]);
            }

            file.bytes[i] = was;
            count++;
        }
    }

    assert_null(refused(&file, NULL));
    print_message("%u corruptions of %zu bytes refused (%s, version %u)\n",
                  count, file.size,
                  bloom_geometry_layout_name(image->geometry.layout),
                  (unsigned) bloom_image_version(image));

    free(file.bytes);

    return count;
}


static void
test_every_damaged_byte_is_detected(void **state)
{
    (void) state;

    assert_int_equal(corrupt_every_byte(&blocked),
                     4096 * 255 + (4096 + 3 * 64) * 5);
    assert_int_equal(corrupt_every_byte(&classic),
                     4096 * 255 + (4096 + 5 * 64) * 5);
    assert_int_equal(corrupt_every_byte(&removed),
                     4096 * 255 + (4096 + 3 * 64 + 4096 + 64) * 5);
}


/* Every wrong length is tested, in memory of exactly that length. */
static void
check_lengths(const bloom_image_t *image)
{
    size_t    len;
    file_t    whole, part;
    unsigned  shorter, longer;

    shorter = 0;
    longer = 0;
    whole = example_file(image);

    memset(&part, 0, sizeof(part));

    for (len = 0; len < whole.size + 5000; len++) {
        if (len == whole.size) {
            continue;
        }

        part.size = len;
        part.bytes = calloc(1, len ? len : 1);
        assert_non_null(part.bytes);
        memcpy(part.bytes, whole.bytes, len < whole.size ? len : whole.size);

        if (len == 0) {
            assert_refused(&part, "is empty");
            shorter++;

        } else if (len < 8) {
            assert_refused(&part, "is not a Bloom filter image");
            shorter++;

        } else if (len < 24) {
            assert_non_null(refused(&part, NULL));
            shorter++;

        } else if (len < whole.size) {
            assert_refused(&part, "is truncated");
            shorter++;

        } else {
            assert_refused(&part, "is too long");
            longer++;
        }

        free(part.bytes);
    }

    assert_int_equal(shorter, whole.size);
    assert_int_equal(longer, 4999);

    print_message("%u truncations and %u longer files refused (%s, "
                  "version %u)\n", shorter, longer,
                  bloom_geometry_layout_name(image->geometry.layout),
                  (unsigned) bloom_image_version(image));

    free(whole.bytes);
}


static void
test_files_of_a_wrong_length_are_refused(void **state)
{
    (void) state;

    check_lengths(&blocked);
    check_lengths(&classic);
    check_lengths(&removed);
}


/* ---- invalid values with a right checksum ---- */

static void
test_another_kind_of_file_is_refused(void **state)
{
    size_t  i;
    file_t  file;

    static const char *const  others[] = {
        "\x1f\x8b\x08", "one\ntwo\n", "\x89PNG\r\n\x1a\n", "BLOOM\r\n",
        "\x89" "BLOOM\n", "\x89" "BLOOM\n\n", "\x09" "BLOOM\r\n"
    };

    (void) state;

    for (i = 0; i < array_len(others); i++) {
        file = example_file(&blocked);
        memset(file.bytes, 0, 8);
        memcpy(file.bytes, others[i], strlen(others[i]));
        remake_header_crc(&file);
        assert_refused(&file, "is not a Bloom filter image");
        free(file.bytes);
    }
}


static void
test_other_versions_and_byte_orders_are_refused(void **state)
{
    size_t   i;
    file_t   file;
    uint8_t  was;

    (void) state;

    assert_value_refused(&blocked, VERSION, 4, 3, "has version 3, but this "
                         "program reads versions up to 2; use a newer program");
    assert_value_refused(&blocked, VERSION, 4, UINT32_MAX,
                         "has version 4294967295");
    assert_value_refused(&blocked, VERSION, 4, 0, "version 0 does not exist");

    assert_value_refused(&blocked, ORDER, 4, 0x04030201, "big-endian");
    assert_value_refused(&blocked, ORDER, 4, 0,
                         "byte order mark is 0x00000000 instead of 0x01020304");

    /* a header in big-endian byte order: each number is reversed */

    file = example_file(&blocked);

    for (i = 0; i < 2; i++) {
        was = file.bytes[VERSION + i];
        file.bytes[VERSION + i] = file.bytes[VERSION + 3 - i];
        file.bytes[VERSION + 3 - i] = was;

        was = file.bytes[ORDER + i];
        file.bytes[ORDER + i] = file.bytes[ORDER + 3 - i];
        file.bytes[ORDER + 3 - i] = was;
    }

    assert_refused(&file, "big-endian");
    free(file.bytes);

    /* the header of a later version is not interpreted */

    file = example_file(&blocked);
    bloom_put32(file.bytes + VERSION, 3);
    bloom_put32(file.bytes + LAYOUT, 77);
    bloom_put64(file.bytes + FILE_SIZE, 1);
    assert_refused(&file, "has version 3");
    free(file.bytes);
}


static void
test_lengths_out_of_range_are_refused(void **state)
{
    size_t  i;

    static const uint64_t  lengths[] = {
        0, 1, 63, 4096, 8192 + 64, (uint64_t) 1 << 32, (uint64_t) 1 << 43,
        (uint64_t) 1 << 63, ((uint64_t) 1 << 63) + 8, UINT64_MAX - 4095,
        UINT64_MAX
    };

    (void) state;

    for (i = 0; i < array_len(lengths); i++) {
        assert_value_refused(&blocked, FILE_SIZE, 8, lengths[i],
                             lengths[i] < 8384 ? "is too long"
                                               : "is truncated");
        assert_value_refused(&blocked, PAYLOAD, 8, lengths[i],
                             "do not make");
        assert_value_refused(&blocked, PAYLOAD_SIZE, 8, lengths[i],
                             "do not make");
        assert_value_refused(&blocked, CHUNK_SIZE, 4, lengths[i],
                             "do not make");
        assert_value_refused(&blocked, BITS, 8, lengths[i],
                             "is invalid");
    }

    /* in range, but not the size of the file */

    assert_value_refused(&blocked, BITS, 8, 512, "512 bits do not make 192 "
                         "bytes of payload at 8192 in a file of 8384");
    assert_value_refused(&blocked, BITS, 8, 2048, "2048 bits do not make");
    assert_value_refused(&blocked, BITS, 8, BLOOM_BITS_MAX, "do not make");
    assert_value_refused(&blocked, BITS, 8, BLOOM_BITS_MAX + 512,
                         "is invalid: layout blocked cannot have "
                         "8796093022720 bits");
    assert_value_refused(&blocked, BITS, 8, 1024 + 64,
                         "is invalid: layout blocked cannot have 1088 bits");
}


/* The lengths agree with each other, but not with the number of bits. */
static void
test_lengths_that_do_not_fit_the_bits_are_refused(void **state)
{
    file_t  file;

    (void) state;

    file = example_file(&blocked);
    file.size += 64;
    file.bytes = realloc(file.bytes, file.size);
    assert_non_null(file.bytes);
    memset(file.bytes + file.size - 64, 0, 64);
    bloom_put64(file.bytes + FILE_SIZE, file.size);
    remake_header_crc(&file);
    assert_refused(&file, "1536 bits do not make 192 bytes of payload at 8192 "
                   "in a file of 8448");
    free(file.bytes);

    file = example_file(&blocked);
    bloom_put64(file.bytes + PAYLOAD_SIZE, 128);
    bloom_put64(file.bytes + FILE_SIZE, file.size - 64);
    remake_header_crc(&file);

    file.size -= 64;
    assert_refused(&file, "1536 bits do not make 128 bytes");

    /* the bits agree too: this is another image, with a damaged chunk */

    bloom_put64(file.bytes + BITS, 1024);
    remake_header_crc(&file);
    assert_refused(&file, "checksum of bytes 8192 to 8319 differs");

    free(file.bytes);
}


static void
test_values_out_of_range_are_refused(void **state)
{
    size_t    i;
    file_t    file;
    double    fpr;
    uint64_t  bits;

    static const double  rates[] = {
        0, -0.0, -0.001, 1, 1.5, 1e300, INFINITY, -INFINITY, NAN, -NAN
    };

    (void) state;

    assert_value_refused(&blocked, LAYOUT, 4, 0, "has layout 0");
    assert_value_refused(&blocked, LAYOUT, 4, 3, "has layout 3");
    assert_value_refused(&blocked, LAYOUT, 4, UINT32_MAX, "has layout");
    assert_value_refused(&blocked, LAYOUT, 4, BLOOM_LAYOUT_CLASSIC,
                         "is invalid: layout classic");
    assert_value_refused(&classic, LAYOUT, 4, BLOOM_LAYOUT_BLOCKED,
                         "is invalid: layout blocked");

    assert_value_refused(&blocked, HASH, 4, 0, "has hash 0");
    assert_value_refused(&blocked, HASH, 4, 11, "has hash 11");
    assert_value_refused(&blocked, HASH, 4, 3,
                         "layout blocked cannot have hash");
    assert_value_refused(&blocked, KEY_FORM, 4, 4, "has key form 4");
    assert_value_refused(&blocked, FLAGS, 4, 4, "has flags 0x4");
    assert_value_refused(&blocked, FLAGS, 4, 0x80000001, "has flags");

    assert_value_refused(&blocked, K, 4, 0, "k 0, lines 2");
    assert_value_refused(&blocked, K, 4, 15, "k 15, lines 2");
    assert_value_refused(&blocked, K, 4, 6, "k 6, lines 2");
    assert_value_refused(&blocked, K, 4, 32, "k 32, lines 2");
    assert_value_refused(&blocked, K, 4, UINT32_MAX, "k 4294967295");
    assert_value_refused(&blocked, LINES, 4, 0, "k 16, lines 0");
    assert_value_refused(&blocked, LINES, 4, 1, "k 16, lines 1");
    assert_value_refused(&blocked, LINES, 4, 3, "k 16, lines 3");
    assert_value_refused(&blocked, LINES, 4, 4, "k 16, lines 4");
    assert_value_refused(&blocked, LINES, 4, UINT32_MAX, "lines 4294967295");
    assert_value_refused(&classic, K, 4, 0, "k 0, lines 0");
    assert_value_refused(&classic, K, 4, 65, "k 65, lines 0");
    assert_value_refused(&classic, LINES, 4, 1, "k 7, lines 1");

    assert_value_refused(&blocked, CAPACITY, 8, 0, "capacity is 0");

    for (i = 0; i < array_len(rates); i++) {
        fpr = rates[i];
        memcpy(&bits, &fpr, sizeof(bits));
        assert_value_refused(&blocked, FPR, 8, bits, "false-positive rate");
    }

    /* a murmur3 seed has 32 bits; siphash's key may be anything */

    assert_value_refused(&blocked, HASH_KEY + 4, 4, 1, "murmur3 seed");
    assert_value_refused(&blocked, HASH_KEY + 12, 4, 0x80000000,
                         "murmur3 seed");
    assert_value_refused(&classic, HASH, 4, BLOOM_HASH_MURMUR3,
                         "murmur3 seed");

    for (i = RESERVED; i < HEADER_CRC; i++) {
        file = example_file(&blocked);
        file.bytes[i] = 1;
        remake_header_crc(&file);
        assert_refused(&file, "reserved bytes of its header are not zero");
        free(file.bytes);
    }
}


/*
 * A reader cannot judge hash key, capacity, items, rate, times and build id.
 * The highest byte of the rate is not changed, which would make the rate
 * greater than 1.
 */
static int
may_differ(size_t at)
{
    return (at >= HASH_KEY && at < FPR + 7) || (at >= CREATED && at < RESERVED);
}


static void
test_only_free_header_fields_may_change(void **state)
{
    size_t  at;
    file_t  file;

    (void) state;

    file = example_file(&classic);

    for (at = 0; at < HEADER_CRC; at++) {
        file.bytes[at] ^= 0x40;
        remake_header_crc(&file);

        if ((refused(&file, NULL) == NULL) != may_differ(at)) {
            fail_msg("byte %zu may %sdiffer", at, may_differ(at) ? "" : "not ");
        }

        file.bytes[at] ^= 0x40;
    }

    free(file.bytes);
}


static void
test_damage_is_located(void **state)
{
    file_t         file;
    bloom_image_t  image;

    (void) state;

    file = example_file(&blocked);
    file.bytes[BUILD_ID] ^= 1;
    assert_refused(&file, "is damaged: the checksum of its header differs");
    file.bytes[BUILD_ID] ^= 1;

    file.bytes[4096 + 4095] ^= 1;
    assert_refused(&file, "checksum of its table, bytes 4096 to 8191, differs");
    file.bytes[4096 + 4095] ^= 1;

    file.bytes[8192 + 100] ^= 1;
    assert_refused(&file, "checksum of bytes 8192 to 8383 differs");
    free(file.bytes);

    image = classic;
    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 * 3 - 512;
    file = example_file(&image);

    file.bytes[8192 + 1048576] ^= 1;
    assert_refused(&file, "checksum of bytes 1056768 to 2105343 differs");
    file.bytes[8192 + 1048576] ^= 1;

    file.bytes[file.size - 1] ^= 1;
    assert_refused(&file, "checksum of bytes 2105344 to 3153855 differs");
    free(file.bytes);
}


/* ---- a disk that fails ---- */

static void
test_a_failure_of_any_read_is_reported(void **state)
{
    int            reads;
    char           reason[64];
    file_t         file;
    uint64_t      *payload;
    bloom_image_t  image;

    (void) state;

    image = classic;
    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 * 3 - 512;

    file = example_file(&image);
    payload = malloc(bloom_image_payload_size(&image));
    assert_non_null(payload);

    assert_null(refused(&file, NULL));
    reads = file.reads;

    /* the header, the table twice, three chunks */

    assert_int_equal(reads, 1 + 1 + 1 + 3);

    for (file.fails = 1; file.fails <= reads; file.fails++) {
        memset(payload, 0x77, bloom_image_payload_size(&image));

        /* nothing is read after the failure */

        assert_non_null(refused(&file, payload));
        assert_int_equal(file.reads, file.fails);

        sprintf(reason, "cannot be read at byte %u", (unsigned) file.failed);
        assert_refused(&file, reason);
    }

    file.fails = 0;
    assert_null(refused(&file, payload));

    free(payload);
    free(file.bytes);
}


/* A chunk whose read failed can be read again. */
static void
test_reading_continues_after_a_failed_chunk(void **state)
{
    file_t                       file;
    uint8_t                     *dst;
    bloom_image_t                image;
    static bloom_image_reader_t  reader;

    (void) state;

    image = classic;
    image.geometry.bits = (uint64_t) BLOOM_IMAGE_CHUNK * 8 * 2;

    file = example_file(&image);
    dst = malloc(BLOOM_IMAGE_CHUNK);
    assert_non_null(dst);

    assert_int_equal(bloom_image_open(&reader, read_file, &file, file.size),
                     0);

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
 * Another image is written over the file after the header was read.  Its bits
 * are valid, but for another seed: with this header, keys would be absent.
 */
static void
test_an_image_overwritten_while_it_is_read_is_refused(void **state)
{
    file_t                       file, other;
    uint8_t                      dst[3 * 64];
    bloom_image_t                image;
    static bloom_image_reader_t  reader;

    (void) state;

    image = blocked;
    bloom_hasher_murmur3(&image.hasher, 1);

    file = example_file(&blocked);
    other = example_file(&image);
    assert_int_equal(file.size, other.size);

    assert_int_equal(bloom_image_open(&reader, read_file, &file, file.size),
                     0);

    memcpy(file.bytes, other.bytes, file.size);
    assert_int_equal(bloom_image_next(&reader, dst), -1);
    assert_non_null(strstr(reader.error, "changed while it was read"));
    assert_int_equal(reader.next, 0);

    free(file.bytes);
    free(other.bytes);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_every_damaged_byte_is_detected),
        cmocka_unit_test(test_files_of_a_wrong_length_are_refused),
        cmocka_unit_test(test_another_kind_of_file_is_refused),
        cmocka_unit_test(test_other_versions_and_byte_orders_are_refused),
        cmocka_unit_test(test_lengths_out_of_range_are_refused),
        cmocka_unit_test(test_lengths_that_do_not_fit_the_bits_are_refused),
        cmocka_unit_test(test_values_out_of_range_are_refused),
        cmocka_unit_test(test_only_free_header_fields_may_change),
        cmocka_unit_test(test_damage_is_located),
        cmocka_unit_test(test_a_failure_of_any_read_is_reported),
        cmocka_unit_test(test_reading_continues_after_a_failed_chunk),
        cmocka_unit_test(test_an_image_overwritten_while_it_is_read_is_refused),
    };

    return cmocka_run_group_tests_name("image_refused", tests, make_examples,
                                       NULL);
}
