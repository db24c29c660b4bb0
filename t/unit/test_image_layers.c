/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check images of filters that have grown: all fields come back,
 * and layers that cannot be are refused, each with the right reason.
 */

#include "image_files.h"

#include "bloom_growth.h"


/* `grown` has layers; `both` has exceptions, too. */
static bloom_image_t  grown, both;


static int
make_layers(void **state)
{
    uint32_t  i;

    static const bloom_layer_t  layer[] = {
        { 512, 8, 1 }, { 1024, 16, 2 }, { 1536, 3, 3 }
    };

    (void) make_examples(state);

    grown = blocked;
    grown.capacity = 1000;

    for (i = 0; i < array_len(layer); i++) {
        grown.geometry.layer[i] = layer[i];
    }

    grown.geometry.layers = array_len(layer);

    both = grown;
    both.exceptions = removed.exceptions;
    both.exceptions_size = removed.exceptions_size;

    return 0;
}


static void
check_read(const bloom_image_t *image)
{
    char           error[BLOOM_IMAGE_ERROR_LEN];
    file_t         file;
    uint64_t      *words, *got;
    bloom_image_t  again;

    file = example_file(image);
    words = some_bits(image);
    got = malloc(bloom_image_payload_size(image));
    assert_non_null(got);

    assert_int_equal(bloom_image_version(image), 2);
    assert_int_equal(bloom_get32(file.bytes + VERSION), 2);
    assert_int_equal(bloom_image_payload_size(image),
                     (3 * 512 + 512 + 1024 + 1536) / 8);

    assert_null(refused(&file, got));
    assert_memory_equal(got, words, bloom_image_payload_size(image));

    assert_int_equal(bloom_image_decode(&again, file.bytes, file.size, error),
                     0);
    assert_true(bloom_geometry_equal(&again.geometry, &image->geometry));
    assert_int_equal(again.geometry.layers, 3);
    assert_int_equal(again.capacity, 1000);
    assert_int_equal(again.exceptions, image->exceptions);
    assert_null(bloom_image_differs(&again, image));

    free(words);
    free(got);
    free(file.bytes);
}


static void
test_layers_are_read_as_they_were_written(void **state)
{
    (void) state;

    check_read(&grown);
    check_read(&both);
}


static void
test_the_promise_counts_all_parts(void **state)
{
    bloom_image_t  image;

    (void) state;

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


static void
test_every_damaged_byte_is_detected(void **state)
{
    int       bit;
    size_t    i;
    file_t    file;

    (void) state;

    file = example_file(&both);

    for (i = 0; i < file.size; i++) {
        for (bit = 1; bit <= 0x80; bit <<= 1) {
            file.bytes[i] ^= (uint8_t) bit;

            if (refused(&file, NULL) == NULL) {
                fail_msg("byte %zu may be 0x%02x", i, file.bytes[i]);
            }

            file.bytes[i] ^= (uint8_t) bit;
        }
    }

    assert_null(refused(&file, NULL));
    free(file.bytes);
}


static void
test_wrong_numbers_of_layers_are_refused(void **state)
{
    static const uint64_t  numbers[] = {
        17, 255, 256, (uint64_t) 1 << 32, ((uint64_t) 1 << 32) + 3,
        (uint64_t) 1 << 63, UINT64_MAX
    };

    size_t  i;
    char    reason[64];

    (void) state;

    for (i = 0; i < array_len(numbers); i++) {
        snprintf(reason, sizeof(reason), "is invalid: it has %llu layers "
                 "behind", (unsigned long long) numbers[i]);
        assert_value_refused(&grown, LAYERS, 8, numbers[i], reason);
        assert_value_refused(&both, LAYERS, 8, numbers[i], reason);
    }

    /* fewer than are described, and more */

    assert_value_refused(&grown, LAYERS, 8, 2, "describes more than its 2 "
                         "layers");
    assert_value_refused(&both, LAYERS, 8, 0, "describes more than its 0 "
                         "layers");
    assert_value_refused(&grown, LAYERS, 8, 4, "or these layers");
    assert_value_refused(&grown, LAYERS, 8, 16, "or these layers");

    assert_value_refused(&grown, LAYER_BITS + 8 * 3, 8, 512, "describes more");
    assert_value_refused(&grown, LAYER_BITS + 8 * 15, 8, 512, "describes more");
    assert_value_refused(&grown, LAYER_K + 3, 1, 8, "describes more");
    assert_value_refused(&grown, LAYER_K + 15, 1, 8, "describes more");
    assert_value_refused(&grown, LAYER_LINES + 3, 1, 1, "describes more");
    assert_value_refused(&grown, LAYER_LINES + 15, 1, 1, "describes more");
}


static void
test_layers_out_of_range_are_refused(void **state)
{
    size_t  i;

    static const uint64_t  bits[] = {
        0, 1, 511, 513, 1000, BLOOM_BITS_MAX - 512, BLOOM_BITS_MAX,
        BLOOM_BITS_MAX + 512, (uint64_t) 1 << 63, UINT64_MAX - 511, UINT64_MAX
    };

    (void) state;

    for (i = 0; i < array_len(bits); i++) {
        assert_value_refused(&grown, LAYER_BITS + 8, 8, bits[i],
                             "or these layers");
    }

    /* in range, but the file is shorter */

    assert_value_refused(&grown, LAYER_BITS + 8, 8, 512, "do not make");
    assert_value_refused(&grown, LAYER_BITS + 8, 8, BLOOM_BITS_MAX / 2,
                         "do not make");

    for (i = 0; i < 256; i++) {
        if (i != 2 && i != 4 && i != 8 && i != 16) {
            assert_value_refused(&grown, LAYER_K + 1, 1, i, "or these layers");
        }

        if (i != 2) {
            assert_value_refused(&grown, LAYER_LINES + 1, 1, i,
                                 "or these layers");
        }
    }
}


static void
test_other_fields_must_fit_the_layers(void **state)
{
    size_t         at;
    file_t         file;
    bloom_image_t  image;

    (void) state;

    assert_value_refused(&grown, CAPACITY, 8, BLOOM_CAPACITY_MAX + 1,
                         "3 layers behind a capacity of 4398046511105");
    assert_value_refused(&grown, CAPACITY, 8, UINT64_MAX, "behind a capacity");

    image = grown;
    image.capacity = BLOOM_CAPACITY_MAX;
    file = example_file(&image);
    assert_null(refused(&file, NULL));
    free(file.bytes);

    /* version 1 has no layers */

    assert_value_refused(&grown, VERSION, 4, 1, "is invalid");

    /* no exceptions, but their size or checksum */

    assert_value_refused(&grown, EXCEPTIONS_SIZE, 8, 11,
                         "0 exceptions in 11 bytes");
    assert_value_refused(&grown, EXCEPTIONS_CRC, 4, 1, "reserved bytes");

    for (at = EXCEPTIONS_CRC + 4; at < HEADER_CRC; at++) {
        if ((at < LAYERS || at >= LAYERS + 8)
            && (at < SOURCE || at >= LAYERS_END))
        {
            assert_value_refused(&grown, at, 1, 1, "reserved bytes");
            assert_value_refused(&both, at, 1, 1, "reserved bytes");
        }
    }
}


/* The rest of the header is that of an imported filter. */
static void
test_imported_filters_have_no_layers(void **state)
{
    file_t         file;
    bloom_image_t  image;

    (void) state;

    image = grown;
    image.geometry.layout = BLOOM_LAYOUT_DOUBLE;
    image.geometry.lines = 0;
    image.geometry.k = 7;
    image.hasher.kind = BLOOM_HASH_MURMUR3;
    memset(image.hasher.key, 0, BLOOM_HASH_KEY_LEN);
    image.flags |= BLOOM_IMAGE_IMPORTED;
    image.origin = BLOOM_ORIGIN_BITMAP;

    image.geometry.layers = 0;
    file = example_file(&image);
    assert_null(refused(&file, NULL));
    free(file.bytes);

    image.geometry.layers = 1;
    file.size = bloom_image_file_size(&image);
    file.bytes = calloc(1, file.size);
    assert_non_null(file.bytes);
    bloom_image_encode(&image, file.bytes);
    assert_refused(&file, "layout double cannot have 1536 bits, k 7, lines 0, "
                   "or these layers");
    free(file.bytes);
}


/* Base and layers together have at most as many bits as a base may have. */
static void
test_all_parts_have_at_most_two_to_the_43_bits(void **state)
{
    char           error[BLOOM_IMAGE_ERROR_LEN];
    uint8_t        header[BLOOM_IMAGE_PAGE];
    bloom_image_t  image, got;

    (void) state;

    image = grown;
    image.geometry.layer[0].bits = BLOOM_BITS_MAX - (3 * 512 + 1024 + 1536);
    bloom_image_encode(&image, header);
    assert_int_equal(bloom_image_decode(&got, header,
                                        bloom_image_file_size(&image), error),
                     0);

    image.geometry.layer[0].bits += 512;
    bloom_image_encode(&image, header);
    assert_int_equal(bloom_image_decode(&got, header,
                                        bloom_image_file_size(&image), error),
                     -1);
    assert_non_null(strstr(error, "or these layers"));
}


static void
test_images_of_other_layers_cannot_be_merged(void **state)
{
    bloom_image_t  other;

    (void) state;

    other = grown;
    other.geometry.layers = 2;
    assert_string_equal(bloom_image_differs(&grown, &other), "layers");
    assert_string_equal(bloom_image_differs(&other, &grown), "layers");

    other = grown;
    other.geometry.layer[2].bits += 512;
    assert_string_equal(bloom_image_differs(&grown, &other), "layers");

    other = grown;
    other.geometry.layer[1].k = 8;
    assert_string_equal(bloom_image_differs(&grown, &other), "layers");

    other = grown;
    other.geometry.layer[0].lines = 2;
    assert_string_equal(bloom_image_differs(&grown, &other), "layers");

    other = grown;
    other.geometry.k = 8;
    assert_string_equal(bloom_image_differs(&grown, &other), "k");

    /* what is behind the last layer means nothing */

    other = grown;
    other.geometry.layer[3].bits = 512;
    assert_null(bloom_image_differs(&grown, &other));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_layers_are_read_as_they_were_written),
        cmocka_unit_test(test_the_promise_counts_all_parts),
        cmocka_unit_test(test_every_damaged_byte_is_detected),
        cmocka_unit_test(test_wrong_numbers_of_layers_are_refused),
        cmocka_unit_test(test_layers_out_of_range_are_refused),
        cmocka_unit_test(test_other_fields_must_fit_the_layers),
        cmocka_unit_test(test_imported_filters_have_no_layers),
        cmocka_unit_test(test_all_parts_have_at_most_two_to_the_43_bits),
        cmocka_unit_test(test_images_of_other_layers_cannot_be_merged),
    };

    return cmocka_run_group_tests_name("image_layers", tests, make_layers,
                                       NULL);
}
