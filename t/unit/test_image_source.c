/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check images that state a source and a position: they are read
 * back, alone and with exceptions and layers, their bytes are as documented,
 * and invalid ones are refused even if their checksums are right.
 */

#include "image_files.h"

#include "bloom_exceptions_image.h"

#define SOURCE_NAME  3652
#define NAME_END     (SOURCE_NAME + BLOOM_SOURCE_NAME_MAX)


/* Images with a source: alone, with exceptions, with layers, with both. */
static bloom_image_t  alone, with_removed, with_layers, with_all;


static void
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


static int
make_sources(void **state)
{
    static const bloom_layer_t  layer = { 1024, 16, 2 };

    (void) make_examples(state);

    alone = blocked;
    set_source(&alone, 0x1122334455667788, 0x99aabbccddeeff01, "redis:ids");

    with_removed = removed;
    set_source(&with_removed, UINT64_MAX, UINT64_MAX, "a");

    with_layers = blocked;
    with_layers.capacity = 1000;
    with_layers.geometry.layers = 1;
    with_layers.geometry.layer[0] = layer;
    set_source(&with_layers, 0, 0, "stream/1._:/-");

    with_all = with_layers;
    with_all.exceptions = removed.exceptions;
    with_all.exceptions_size = removed.exceptions_size;

    return 0;
}


static void
check_read(const bloom_image_t *image)
{
    char           error[BLOOM_IMAGE_ERROR_LEN];
    file_t         file;
    bloom_image_t  got;

    file = example_file(image);

    assert_int_equal(bloom_image_version(image), 2);
    assert_int_equal(bloom_get32(file.bytes + VERSION), 2);
    assert_null(refused(&file, NULL));

    memset(&got, 'x', sizeof(got));
    assert_int_equal(bloom_image_decode(&got, file.bytes, file.size, error),
                     0);

    assert_int_equal(got.source.len, image->source.len);
    assert_memory_equal(got.source.name, image->source.name,
                        BLOOM_SOURCE_NAME_MAX);
    assert_int_equal(bloom_position_cmp(got.source.position,
                                        image->source.position), 0);
    assert_int_equal(got.exceptions, image->exceptions);
    assert_int_equal(got.geometry.layers, image->geometry.layers);

    /* images of different sources can be merged */

    assert_null(bloom_image_differs(&got, image));
    bloom_image_set_source(&got, NULL);
    assert_null(bloom_image_differs(&got, image));

    free(file.bytes);
}


static void
test_written_sources_are_read_back(void **state)
{
    char           name[BLOOM_SOURCE_NAME_MAX + 1];
    size_t         len;
    bloom_image_t  image;

    (void) state;

    check_read(&alone);
    check_read(&with_removed);
    check_read(&with_layers);
    check_read(&with_all);

    for (len = 1; len <= BLOOM_SOURCE_NAME_MAX; len++) {
        memset(name, 'a' + (int) (len % 26), len);
        name[len] = '\0';

        image = alone;
        set_source(&image, len, 0, name);
        check_read(&image);
    }
}


static void
test_the_bytes_are_as_documented(void **state)
{
    file_t   file, old;

    static const uint8_t  position[16] = {
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
        0x01, 0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99
    };

    (void) state;

    file = example_file(&alone);
    old = example_file(&blocked);

    assert_int_equal(file.size, old.size);
    assert_memory_equal(file.bytes + SOURCE, position, sizeof(position));
    assert_memory_equal(file.bytes + SOURCE_LEN, "\x09\0\0\0redis:ids", 13);

    /* apart from these fields and the version, nothing differs */

    bloom_put32(file.bytes + VERSION, 1);
    memset(file.bytes + SOURCE, 0, 16 + 4 + 9);
    remake_header_crc(&file);
    assert_memory_equal(file.bytes, old.bytes, old.size);

    free(file.bytes);
    free(old.bytes);
}


static void
test_a_source_can_be_set_and_left_out(void **state)
{
    bloom_image_t    image;
    bloom_source_t   none;

    static const bloom_source_t  zero;

    (void) state;

    /* no source, given as NULL or with a length of 0: all of it is zero */

    image = alone;
    bloom_image_set_source(&image, NULL);
    assert_int_equal(bloom_image_version(&image), 1);
    assert_memory_equal(&image.source, &zero, sizeof(zero));

    memset(&none, 'x', sizeof(none));
    none.len = 0;
    image = alone;
    bloom_image_set_source(&image, &none);
    assert_memory_equal(&image.source, &zero, sizeof(zero));

    /* of a longer name, nothing is left */

    image = alone;
    set_source(&image, 1, 2, "b");
    assert_int_equal(image.source.len, 1);
    assert_memory_equal(image.source.name, "b\0\0\0\0\0\0\0\0\0", 10);

    /* what version 2 needs otherwise stays */

    image = with_all;
    bloom_image_set_source(&image, NULL);
    assert_int_equal(bloom_image_version(&image), 2);
}


/* Version 2 has less room for the header of an imported filter's source. */
static void
test_the_header_of_an_imported_filter_must_fit(void **state)
{
    bloom_image_t  image;

    (void) state;

    image = blocked;
    image.flags |= BLOOM_IMAGE_IMPORTED;
    image.origin = BLOOM_ORIGIN_BITMAP;
    image.geometry.layout = BLOOM_LAYOUT_DOUBLE;
    image.geometry.lines = 0;

    assert_int_equal(bloom_image_origin_room(&image), BLOOM_IMAGE_ORIGIN_MAX);

    image.origin_len = EXCEPTIONS - 176;
    set_source(&image, 1, 0, "ids");
    assert_int_equal(bloom_image_origin_room(&image), EXCEPTIONS - 176);
    assert_int_equal(image.origin_len, EXCEPTIONS - 176);

    bloom_image_set_source(&image, NULL);
    image.origin_len = EXCEPTIONS - 176 + 1;
    bloom_image_set_source(&image, NULL);
    assert_int_equal(image.origin_len, EXCEPTIONS - 176 + 1);

    set_source(&image, 1, 0, "ids");
    assert_int_equal(image.origin_len, 0);
}


static void
test_every_damaged_byte_is_detected(void **state)
{
    int     bit;
    size_t  i;
    file_t  file;

    (void) state;

    file = example_file(&with_all);

    for (i = EXCEPTIONS; i < BLOOM_IMAGE_PAGE; i++) {
        for (bit = 1; bit <= 0x80; bit <<= 1) {
            file.bytes[i] ^= (uint8_t) bit;
            assert_non_null(refused(&file, NULL));
            file.bytes[i] ^= (uint8_t) bit;
        }
    }

    assert_null(refused(&file, NULL));
    free(file.bytes);
}


/* ---- refused, with a right checksum ---- */


static void
test_wrong_lengths_of_a_name_are_refused(void **state)
{
    size_t  i;
    char    reason[96];

    static const uint32_t  lens[] = {
        256, 257, 65535, 65536 + 9, 1u << 24, 1u << 31, UINT32_MAX
    };

    static const bloom_image_t  *const images[] = {
        &alone, &with_removed, &with_layers, &with_all
    };

    (void) state;

    for (i = 0; i < array_len(lens); i++) {
        snprintf(reason, sizeof(reason), "is invalid: the name of its source "
                 "has %u bytes, and at most 255 are possible",
                 (unsigned) lens[i]);
        assert_value_refused(images[i % array_len(images)], SOURCE_LEN, 4,
                             lens[i], reason);
    }

    /* longer than the name: zeros are no characters of a name */

    assert_value_refused(&alone, SOURCE_LEN, 4, 10, "other characters");
    assert_value_refused(&alone, SOURCE_LEN, 4, 255, "other characters");

    /* shorter: its last byte follows the name */

    assert_value_refused(&alone, SOURCE_LEN, 4, 8,
                         "the bytes after the name of its source are not "
                         "zero");
}


static void
test_names_of_other_characters_are_refused(void **state)
{
    int     c, good;
    size_t  i;
    file_t  file;

    static const char  allowed[] = "abcdefghijklmnopqrstuvwxyz"
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/-";

    (void) state;

    file = example_file(&with_removed);

    for (c = 0; c < 256; c++) {
        file.bytes[SOURCE_NAME] = (uint8_t) c;
        remake_header_crc(&file);

        for (good = 0, i = 0; i < sizeof(allowed) - 1; i++) {
            good |= allowed[i] == c;
        }

        if (good) {
            assert_null(refused(&file, NULL));
        } else {
            assert_refused(&file, "is invalid: the name of its source has "
                           "other characters than letters, digits and "
                           "\"._:/-\"");
        }
    }

    free(file.bytes);

    assert_value_refused(&alone, SOURCE_NAME + 8, 1, 0, "other characters");
    assert_value_refused(&alone, SOURCE_NAME + 4, 1, '\n', "other characters");
}


static void
test_positions_without_a_name_are_refused(void **state)
{
    size_t  at;

    (void) state;

    for (at = SOURCE; at < SOURCE + 16; at++) {
        assert_value_refused(&removed, at, 1, 0x80,
                             "is invalid: it has the position of a source "
                             "without a name");
    }

    assert_value_refused(&blocked, VERSION, 4, 2, "0 exceptions in 0 bytes");
}


/* All bytes around the fields are zero, with a source and without one. */
static void
test_other_bytes_are_zero(void **state)
{
    size_t  at;

    (void) state;

    for (at = SOURCE_NAME; at < LAYER_BITS; at++) {
        assert_value_refused(&removed, at, 1, 'a', "bytes after the name");

        if (at >= SOURCE_NAME + 9) {
            assert_value_refused(&alone, at, 1, 'a', "bytes after the name");
        }
    }

    for (at = LAYERS + 8; at < SOURCE; at++) {
        assert_value_refused(&alone, at, 1, 1, "reserved bytes");
        assert_value_refused(&removed, at, 1, 1, "reserved bytes");
    }

    /* the longest name ends before the reserved bytes */

    assert_value_refused(&alone, NAME_END, 1, 'a', "bytes after the name");
    assert_value_refused(&alone, LAYER_BITS - 1, 1, 'a',
                         "bytes after the name");
}


static void
test_only_version_2_has_a_source(void **state)
{
    (void) state;

    assert_value_refused(&alone, VERSION, 4, 1, "reserved bytes");
    assert_value_refused(&alone, VERSION, 4, 3, "has version 3");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_written_sources_are_read_back),
        cmocka_unit_test(test_the_bytes_are_as_documented),
        cmocka_unit_test(test_a_source_can_be_set_and_left_out),
        cmocka_unit_test(test_the_header_of_an_imported_filter_must_fit),
        cmocka_unit_test(test_every_damaged_byte_is_detected),
        cmocka_unit_test(test_wrong_lengths_of_a_name_are_refused),
        cmocka_unit_test(test_names_of_other_characters_are_refused),
        cmocka_unit_test(test_positions_without_a_name_are_refused),
        cmocka_unit_test(test_other_bytes_are_zero),
        cmocka_unit_test(test_only_version_2_has_a_source),
    };

    return cmocka_run_group_tests_name("image_source", tests, make_sources,
                                       NULL);
}
