/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check images with exceptions, which have version 2: that they are
 * read back, that their bytes are as documented, and that invalid ones are
 * refused even if their checksums are right.
 */

#include "image_files.h"

#include "bloom_exceptions.h"
#include "bloom_exceptions_image.h"

#define MAX       ((uint64_t) 1 << 28)
#define TABLE_AT  (8192 + 3 * 64)        /* of the exceptions of `removed` */
#define DATA_AT   (TABLE_AT + 4096)


static bloom_image_t
with(uint64_t n, uint64_t size)
{
    bloom_image_t  image;

    image = blocked;
    image.exceptions = n;
    image.exceptions_size = size;

    return image;
}


/* Opens a file, which must be accepted. */
static void
open_file(bloom_image_reader_t *reader, file_t *file)
{
    file->reads = 0;

    if (bloom_image_open(reader, read_file, file, file->size) != 0) {
        fail_msg("%s", reader->error);
    }
}


/* ---- written and read ---- */

static void
check_round_trip(uint64_t n, uint64_t size, uint64_t chunks)
{
    file_t                       file;
    size_t                       padded;
    uint8_t                     *entries, *got;
    uint64_t                    *words;
    bloom_image_t                image;
    static bloom_image_reader_t  reader;

    image = with(n, size);
    padded = bloom_image_exceptions_padded(&image);

    assert_int_equal(padded % 64, 0);
    assert_in_range(padded - size, 0, 63);
    assert_int_equal(bloom_image_exceptions_chunks(&image), chunks);
    assert_int_equal(bloom_image_exceptions_table_size(&image), 4096);
    assert_int_equal(bloom_image_file_size(&image), DATA_AT + padded);
    assert_int_equal(bloom_image_version(&image), 2);

    words = some_bits(&image);
    entries = some_entries(&image);
    file = file_of(&image, words, entries);

    assert_null(refused(&file, NULL));

    open_file(&reader, &file);
    assert_int_equal(reader.image.exceptions, n);
    assert_int_equal(reader.image.exceptions_size, size);
    assert_null(bloom_image_differs(&reader.image, &image));
    assert_int_equal(bloom_image_file_size(&reader.image), file.size);

    /* exceptions may be read before the payload, too */

    got = malloc(padded);
    assert_non_null(got);
    assert_null(refused_exceptions(&reader, got));
    assert_memory_equal(got, entries, size);

    while (padded > size) {
        assert_int_equal(got[--padded], 0);
    }

    got = realloc(got, bloom_image_payload_size(&image));
    assert_non_null(got);
    assert_int_equal(bloom_image_next(&reader, got), 1);
    assert_memory_equal(got, words, bloom_image_payload_size(&image));
    assert_int_equal(bloom_image_next(&reader, got), 0);

    free(got);
    free(words);
    free(entries);
    free(file.bytes);
}


static void
test_written_exceptions_are_read_back(void **state)
{
    (void) state;

    check_round_trip(1, 11, 1);
    check_round_trip(1, 64, 1);
    check_round_trip(1, 65, 1);
    check_round_trip(1, 65547, 1);
    check_round_trip(3, 52, 1);
    check_round_trip(40, 40 * 11, 1);

    /* one chunk; the padding completes it; one byte more; several chunks */

    check_round_trip(60000, BLOOM_IMAGE_CHUNK, 1);
    check_round_trip(95000, BLOOM_IMAGE_CHUNK - 63, 1);
    check_round_trip(95000, BLOOM_IMAGE_CHUNK + 1, 2);
    check_round_trip(476000, 5 * BLOOM_IMAGE_CHUNK, 5);
}


/* The most that an image can have fits one page of the table. */
static void
test_the_largest_exceptions_have_one_page_of_a_table(void **state)
{
    bloom_image_t  image;

    (void) state;

    image = with(MAX / 11, MAX);

    assert_int_equal(bloom_image_exceptions_chunks(&image), 256);
    assert_int_equal(bloom_image_exceptions_table_size(&image), 4096);
    assert_int_equal(bloom_image_exceptions_padded(&image), MAX);
}


static void
test_an_image_without_exceptions_has_version_1(void **state)
{
    file_t  file;

    (void) state;

    assert_int_equal(bloom_image_version(&blocked), 1);
    assert_int_equal(bloom_image_exceptions_chunks(&blocked), 0);
    assert_int_equal(bloom_image_exceptions_table_size(&blocked), 0);
    assert_int_equal(bloom_image_exceptions_padded(&blocked), 0);

    file = example_file(&blocked);
    assert_int_equal(bloom_get32(file.bytes + VERSION), 1);
    assert_int_equal(file.size, 8192 + 3 * 64);
    free(file.bytes);
}


/* Apart from the version, the size and the new fields, a header is the same in
 * both versions. */
static void
test_the_bytes_are_as_documented(void **state)
{
    size_t    i;
    file_t    file, old;
    uint8_t  *entries;

    (void) state;

    file = example_file(&removed);
    old = example_file(&blocked);
    entries = some_entries(&removed);

    assert_int_equal(file.size, DATA_AT + 64);
    assert_int_equal(bloom_get32(file.bytes + VERSION), 2);
    assert_int_equal(bloom_get64(file.bytes + FILE_SIZE), file.size);
    assert_int_equal(bloom_get64(file.bytes + EXCEPTIONS), 3);
    assert_int_equal(bloom_get64(file.bytes + EXCEPTIONS_SIZE), 52);
    assert_int_equal(bloom_get32(file.bytes + EXCEPTIONS_CRC),
                     bloom_crc32c_portable(0, file.bytes + TABLE_AT, 4096));
    assert_int_equal(bloom_get32(file.bytes + TABLE_AT),
                     bloom_crc32c_portable(0, file.bytes + DATA_AT, 64));
    assert_memory_equal(file.bytes + DATA_AT, entries, 52);

    for (i = TABLE_AT + 4; i < DATA_AT; i++) {
        assert_int_equal(file.bytes[i], 0);
    }

    for (i = DATA_AT + 52; i < file.size; i++) {
        assert_int_equal(file.bytes[i], 0);
    }

    bloom_put32(file.bytes + VERSION, 1);
    bloom_put64(file.bytes + FILE_SIZE, old.size);
    memset(file.bytes + EXCEPTIONS, 0, 20);
    remake_header_crc(&file);
    assert_memory_equal(file.bytes, old.bytes, old.size);

    free(entries);
    free(old.bytes);
    free(file.bytes);
}


/* ---- refused ---- */

static void
test_numbers_that_do_not_fit_are_refused(void **state)
{
    size_t  i;
    file_t  file;

    static const uint64_t  sizes[] = {
        0, 1, 3 * 11 - 1, 3 * 65547 + 1, MAX + 1, (uint64_t) 1 << 32,
        (uint64_t) 1 << 63, UINT64_MAX - 62, UINT64_MAX
    };

    static const uint64_t  numbers[] = {
        0, 5, MAX, (uint64_t) 1 << 63, UINT64_MAX / 11 + 1, UINT64_MAX
    };

    (void) state;

    for (i = 0; i < array_len(sizes); i++) {
        assert_value_refused(&removed, EXCEPTIONS_SIZE, 8, sizes[i],
                             "is invalid: it has 3 exceptions in ");
    }

    for (i = 0; i < array_len(numbers); i++) {
        assert_value_refused(&removed, EXCEPTIONS, 8, numbers[i],
                             " exceptions in 52 ");
    }

    /* enough exceptions for more bytes than any image may have */

    file = example_file(&removed);
    bloom_put64(file.bytes + EXCEPTIONS, 5000);
    bloom_put64(file.bytes + EXCEPTIONS_SIZE, MAX);
    remake_header_crc(&file);
    assert_refused(&file, "do not make");
    bloom_put64(file.bytes + EXCEPTIONS_SIZE, MAX + 1);
    remake_header_crc(&file);
    assert_refused(&file, "5000 exceptions in 268435457 bytes");
    free(file.bytes);

    /* possible, but not the size of the file */

    assert_value_refused(&removed, EXCEPTIONS_SIZE, 8, 65,
                         "in a file of 12544 with 65 "
                         "bytes of exceptions");
    assert_value_refused(&removed, EXCEPTIONS_SIZE, 8, 3 * 65547,
                         "do not make");
    assert_value_refused(&removed, FILE_SIZE, 8, 12544 + 64, "is truncated");
    assert_value_refused(&removed, FILE_SIZE, 8, 12544 - 64, "is too long");
    assert_value_refused(&removed, EXCEPTIONS_CRC, 4, 1,
                         "checksum of its table, bytes "
                         "8384 to 12479, differs");
}


/* A file of version 1 that states exceptions, and one of version 2 without. */
static void
test_exceptions_of_another_version_are_refused(void **state)
{
    file_t  file;

    (void) state;

    assert_value_refused(&removed, VERSION, 4, 1, "do not make");

    file = example_file(&blocked);
    bloom_put64(file.bytes + EXCEPTIONS, 3);
    remake_header_crc(&file);
    assert_refused(&file, "reserved bytes");
    free(file.bytes);

    file = example_file(&blocked);
    bloom_put32(file.bytes + VERSION, 2);
    remake_header_crc(&file);
    assert_refused(&file, "is invalid: it has 0 exceptions in 0 bytes");
    free(file.bytes);
}


/* test_image_source.c has the bytes of sources. */
static void
test_reserved_bytes_are_zero(void **state)
{
    size_t  at;

    (void) state;

    for (at = RESERVED; at < HEADER_CRC; at++) {
        if ((at < EXCEPTIONS || at >= EXCEPTIONS_CRC + 4)
            && (at < LAYERS || at >= LAYERS + 8)
            && (at < SOURCE || at >= LAYERS_END))
        {
            assert_value_refused(&removed, at, 1, 1, "reserved bytes");
        }
    }
}


/* Changes a byte of the exceptions and corrects all checksums. */
static void
test_bytes_after_the_entries_are_refused(void **state)
{
    size_t  i;
    file_t  file;

    (void) state;

    file = example_file(&removed);

    for (i = 0; i < 64; i++) {
        file.bytes[DATA_AT + i] ^= 0x80;
        bloom_put32(file.bytes + TABLE_AT,
                    bloom_crc32c(0, file.bytes + DATA_AT, 64));
        bloom_put32(file.bytes + EXCEPTIONS_CRC,
                    bloom_crc32c(0, file.bytes + TABLE_AT, 4096));
        remake_header_crc(&file);

        if (i < 52) {
            assert_null(refused(&file, NULL));
        } else {
            assert_refused(&file, "bytes after its exceptions are not zero");
        }

        file.bytes[DATA_AT + i] ^= 0x80;
    }

    free(file.bytes);
}


static void
test_damage_is_located(void **state)
{
    file_t         file;
    bloom_image_t  image;

    (void) state;

    image = with(476000, 5 * BLOOM_IMAGE_CHUNK - 64);
    file = example_file(&image);

    file.bytes[DATA_AT + 2 * BLOOM_IMAGE_CHUNK] ^= 1;
    assert_refused(&file, "checksum of bytes 2109632 to 3158207 differs");
    file.bytes[DATA_AT + 2 * BLOOM_IMAGE_CHUNK] ^= 1;

    file.bytes[TABLE_AT + 4000] ^= 1;
    assert_refused(&file, "checksum of its table, bytes 8384 to 12479, "
                          "differs");
    file.bytes[TABLE_AT + 4000] ^= 1;

    file.bytes[file.size - 1] ^= 1;
    assert_refused(&file, "checksum of bytes 4206784 to 5255295 differs");

    free(file.bytes);
}


static void
test_a_failure_of_any_read_is_reported(void **state)
{
    int            reads;
    char           reason[64];
    file_t         file;
    bloom_image_t  image;

    (void) state;

    image = with(95400, BLOOM_IMAGE_CHUNK + 1000);
    file = example_file(&image);
    assert_null(refused(&file, NULL));
    reads = file.reads;

    /* the header, both tables; each table and its chunks */

    assert_int_equal(reads, 1 + 1 + 1 + (1 + 1) + (1 + 2));

    for (file.fails = 1; file.fails <= reads; file.fails++) {
        assert_non_null(refused(&file, NULL));
        assert_int_equal(file.reads, file.fails);

        sprintf(reason, "cannot be read at byte %u", (unsigned) file.failed);
        assert_refused(&file, reason);
    }

    free(file.bytes);
}


/* Another image is written over the file after its bits were read. */
static void
test_exceptions_that_change_while_they_are_read_are_refused(void **state)
{
    file_t                       file, other;
    uint8_t                      dst[3 * 64];
    static bloom_image_reader_t  reader;

    (void) state;

    file = example_file(&removed);
    other = example_file(&removed);
    other.bytes[DATA_AT] = 1;
    bloom_put32(other.bytes + TABLE_AT,
                bloom_crc32c(0, other.bytes + DATA_AT, 64));
    bloom_put32(other.bytes + EXCEPTIONS_CRC,
                bloom_crc32c(0, other.bytes + TABLE_AT, 4096));
    remake_header_crc(&other);
    assert_null(refused(&other, NULL));

    open_file(&reader, &file);
    assert_int_equal(bloom_image_next(&reader, dst), 1);

    memcpy(file.bytes, other.bytes, file.size);
    assert_int_equal(bloom_image_next_exceptions(&reader, dst), -1);
    assert_non_null(strstr(reader.error, "changed while it was read"));

    free(file.bytes);
    free(other.bytes);
}


/* ---- imported images ---- */

static bloom_image_t
imported(uint32_t origin_len)
{
    bloom_image_t  image;

    image = with(1, 11);
    image.geometry.layout = BLOOM_LAYOUT_DOUBLE63;
    image.geometry.k = 5;
    image.geometry.lines = 0;
    image.geometry.bits = 1003;
    image.flags = BLOOM_IMAGE_IMPORTED;
    image.origin = BLOOM_ORIGIN_GUAVA;
    image.origin_len = origin_len;

    return image;
}


static void
test_a_source_header_ends_before_the_exceptions(void **state)
{
    char           error[BLOOM_IMAGE_ERROR_LEN];
    uint8_t        page[BLOOM_IMAGE_PAGE], data[64], table[4096];
    bloom_image_t  image, again;

    (void) state;

    memset(data, 0, sizeof(data));

    /* the longest one */

    image = imported(3584 - 176);
    assert_int_equal(bloom_image_origin_room(&image), 3584 - 176);
    bloom_image_seal_exceptions(&image, data, table);
    assert_int_equal(image.origin_len, 3584 - 176);

    bloom_image_encode(&image, page);
    memset(bloom_image_origin(&image, page), 0xab, image.origin_len);
    bloom_image_encode_again(page);

    assert_int_equal(bloom_image_decode(&again, page,
                                        bloom_image_file_size(&image), error),
                     0);
    assert_int_equal(again.origin_len, image.origin_len);
    assert_int_equal(again.exceptions, 1);

    /* one byte more is refused */

    bloom_put32(page + 156, 3584 - 176 + 1);
    bloom_image_encode_again(page);
    assert_int_equal(bloom_image_decode(&again, page,
                                        bloom_image_file_size(&image), error),
                     -1);
    assert_non_null(strstr(error, "bytes of its origin's header"));

    /* the writer leaves it out; without exceptions it stays */

    image = imported(3584 - 176 + 1);
    bloom_image_seal_exceptions(&image, data, table);
    assert_int_equal(image.origin_len, 0);

    image = imported(0);
    image.exceptions = 0;
    image.exceptions_size = 0;
    assert_int_equal(bloom_image_origin_room(&image), BLOOM_IMAGE_ORIGIN_MAX);
}


/* ---- entries ---- */

static void
assert_entries_refused(const uint8_t *entries, size_t size, uint64_t n,
    const char *reason)
{
    uint8_t     *copy;
    const char  *why;

    /* in memory of exactly that size */

    copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, entries, size);

    why = bloom_exceptions_check(copy, size, n);
    assert_non_null(why);
    assert_non_null(strstr(why, reason));

    free(copy);
}


static void
test_entries_that_do_not_fit_are_refused(void **state)
{
    size_t         size;
    uint8_t       *entries;
    bloom_image_t  image;

    (void) state;

    image = with(5, 4 * 11 + 9 + 2 + 200);
    entries = some_entries(&image);

    assert_null(bloom_exceptions_check(entries, image.exceptions_size, 5));
    assert_entries_refused(entries, image.exceptions_size, 4, "more or fewer");
    assert_entries_refused(entries, image.exceptions_size, 6, "more or fewer");

    /* an entry that is cut off is invalid, a whole one is missing */

    for (size = 0; size < image.exceptions_size; size++) {
        assert_entries_refused(entries, size, 5, size % 11 == 0 && size <= 44
                                                 ? "more or fewer"
                                                 : "is not valid");
    }

    entries[11] = 0;
    assert_entries_refused(entries, image.exceptions_size, 5, "is not valid");
    entries[11] = 8;
    assert_entries_refused(entries, image.exceptions_size, 5, "is not valid");
    entries[11] = 7;
    assert_null(bloom_exceptions_check(entries, image.exceptions_size, 5));

    free(entries);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_written_exceptions_are_read_back),
        cmocka_unit_test(test_the_largest_exceptions_have_one_page_of_a_table),
        cmocka_unit_test(test_an_image_without_exceptions_has_version_1),
        cmocka_unit_test(test_the_bytes_are_as_documented),
        cmocka_unit_test(test_numbers_that_do_not_fit_are_refused),
        cmocka_unit_test(test_exceptions_of_another_version_are_refused),
        cmocka_unit_test(test_reserved_bytes_are_zero),
        cmocka_unit_test(test_bytes_after_the_entries_are_refused),
        cmocka_unit_test(test_damage_is_located),
        cmocka_unit_test(test_a_failure_of_any_read_is_reported),
        cmocka_unit_test(
            test_exceptions_that_change_while_they_are_read_are_refused),
        cmocka_unit_test(test_a_source_header_ends_before_the_exceptions),
        cmocka_unit_test(test_entries_that_do_not_fit_are_refused),
    };

    return cmocka_run_group_tests_name("image_exceptions", tests,
                                       make_examples, NULL);
}
