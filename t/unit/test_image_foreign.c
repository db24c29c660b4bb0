/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check that headers of imported images are read back, and that
 * invalid ones are refused even if their checksum is right.
 */

#include "unit.h"

#include "bloom_bytes.h"
#include "bloom_image_reader.h"
#include "bloom_image_seal.h"

#define AT_LAYOUT      48
#define AT_K           52
#define AT_FLAGS       60
#define AT_BITS        64
#define AT_HASH        72
#define AT_HASH_KEY    80
#define AT_ORIGIN      152
#define AT_ORIGIN_LEN  156
#define AT_LINKS       160
#define AT_LINK_TABLE  176


static bloom_image_t
imported(void)
{
    bloom_image_t  image;

    memset(&image, 0, sizeof(image));

    image.geometry.layout = BLOOM_LAYOUT_DOUBLE63;
    image.geometry.k = 200;
    image.geometry.bits = 1003;
    image.flags = BLOOM_IMAGE_IMPORTED | BLOOM_IMAGE_ESTIMATED;
    image.capacity = 10;
    image.fpr = 0.01;
    image.items = 7;
    image.origin = BLOOM_ORIGIN_GUAVA;
    image.origin_items = 6;
    bloom_hasher_foreign(&image.hasher, BLOOM_HASH_FUNNEL, BLOOM_FUNNEL_LONG,
                         0);

    return image;
}


static bloom_image_t
linked(void)
{
    uint32_t       i;
    bloom_image_t  image;

    image = imported();
    image.geometry.layout = BLOOM_LAYOUT_LINKS;
    image.geometry.links = BLOOM_LINKS_MAX;
    image.geometry.bits = 0;
    image.geometry.k = 60;

    for (i = 0; i < BLOOM_LINKS_MAX; i++) {
        image.geometry.link[i].bits = 64 + 64 * i;
        image.geometry.link[i].k = 5 + i;
        image.geometry.bits += bloom_geometry_whole_lines(64 + 64 * i);
    }

    image.origin = BLOOM_ORIGIN_REDISBLOOM;
    bloom_hasher_foreign(&image.hasher, BLOOM_HASH_MURMUR64A, 0, 0);
    image.origin_len = bloom_image_origin_room(&image);

    return image;
}


static void
comes_back(const bloom_image_t *image)
{
    char           error[BLOOM_IMAGE_ERROR_LEN];
    uint8_t        page[BLOOM_IMAGE_PAGE];
    bloom_image_t  again;

    bloom_image_encode(image, page);
    memset(bloom_image_origin(image, page), 0xab, image->origin_len);
    bloom_image_encode_again(page);

    if (bloom_image_decode(&again, page, bloom_image_file_size(image), error)
        != 0)
    {
        print_error("%s\n", error);
        fail();
    }

    again.table_crc = image->table_crc;
    assert_memory_equal(&again, image, sizeof(again));
    assert_int_equal(bloom_image_origin(&again, page)[image->origin_len], 0);
    assert_true(image->origin_len == 0
                || bloom_image_origin(&again, page)[image->origin_len - 1]
                   == 0xab);
}


static void
test_imported_headers_are_read_back(void **state)
{
    bloom_image_t  image;

    (void) state;

    image = imported();
    comes_back(&image);

    image.origin_len = 100;
    comes_back(&image);

    image = linked();
    assert_int_equal(image.origin_len, 4092 - 176 - 16 * 56);
    image.origin_len--;
    comes_back(&image);
}


static void
refused(const bloom_image_t *image, size_t at, size_t len, uint64_t value,
    const char *why)
{
    char           error[BLOOM_IMAGE_ERROR_LEN];
    uint8_t        page[BLOOM_IMAGE_PAGE], bytes[8];
    bloom_image_t  again;

    bloom_image_encode(image, page);
    bloom_put64(bytes, value);
    memcpy(page + at, bytes, len);
    bloom_image_encode_again(page);

    if (bloom_image_decode(&again, page, bloom_image_file_size(image), error)
        == 0)
    {
        print_error("byte %zu is %llu: accepted\n", at,
                    (unsigned long long) value);
        fail();
    }

    if (strstr(error, why) == NULL) {
        print_error("byte %zu: \"%s\", expected \"%s\"\n", at, error, why);
        fail();
    }
}


static void
test_invalid_imported_headers_are_refused(void **state)
{
    size_t         at;
    bloom_image_t  one, many;

    (void) state;

    one = imported();
    many = linked();
    one.origin_len = 4;

    refused(&one, AT_LAYOUT, 4, 3, "has layout 3");
    refused(&one, AT_LAYOUT, 4, 14, "has layout 14");
    refused(&one, AT_HASH, 4, 11, "has hash 11");
    refused(&one, AT_FLAGS, 4, 0, "and flags 0x0");
    refused(&one, AT_FLAGS, 4, 6, "has flags 0x6");
    refused(&one, AT_LAYOUT, 4, BLOOM_LAYOUT_CLASSIC, "is invalid");
    refused(&one, AT_LAYOUT, 4, BLOOM_LAYOUT_LEHMER, "lehmer cannot have hash");
    refused(&one, AT_LAYOUT, 4, BLOOM_LAYOUT_FUSE, "fuse cannot have hash");
    refused(&one, AT_HASH, 4, BLOOM_HASH_FNV1,
            "double63 cannot have hash fnv1");
    refused(&one, AT_HASH, 4, BLOOM_HASH_MURMUR3, "seed has more than 32 bits");
    refused(&one, AT_HASH_KEY, 1, 1, "hash key is out of range");
    refused(&one, AT_HASH_KEY + 4, 1, 4, "hash key is out of range");
    refused(&one, AT_HASH_KEY + 15, 1, 1, "hash key is out of range");
    refused(&one, AT_K, 4, 0, "is invalid");
    refused(&one, AT_K, 4, 256, "is invalid");
    refused(&one, AT_BITS, 8, 0, "is invalid");
    refused(&one, AT_BITS, 8, BLOOM_BITS_MAX + 1, "is invalid");
    refused(&one, AT_BITS, 8, 1025, "is invalid");
    refused(&one, AT_BITS, 8, UINT64_MAX, "is invalid");
    refused(&one, AT_ORIGIN, 4, 0, "has origin 0");
    refused(&one, AT_ORIGIN, 4, 8, "has origin 8");
    refused(&one, AT_ORIGIN_LEN, 4, 4092 - 176 + 1, "bytes of its origin");
    refused(&one, AT_ORIGIN_LEN, 4, UINT32_MAX, "bytes of its origin");
    refused(&one, AT_LINKS, 4, 1, "1 links");
    refused(&one, AT_LINKS + 4, 4, 1, "is invalid");

    /* the bytes after the origin are reserved */

    for (at = AT_LINK_TABLE + 4; at < 4092; at += 131) {
        refused(&one, at, 1, 1, "reserved bytes");
    }

    refused(&many, AT_LINKS, 4, 0, "0 links");
    refused(&many, AT_LINKS, 4, 1, "is invalid");
    refused(&many, AT_LINKS, 4, 55, "is invalid");
    refused(&many, AT_LINKS, 4, 57, "57 links");
    refused(&many, AT_LINKS, 4, UINT32_MAX, "links");
    refused(&many, AT_LINK_TABLE, 8, 0, "is invalid");
    refused(&many, AT_LINK_TABLE, 8, 513, "is invalid");
    refused(&many, AT_LINK_TABLE, 8, UINT64_MAX, "is invalid");
    refused(&many, AT_LINK_TABLE + 8, 4, 0, "is invalid");
    refused(&many, AT_LINK_TABLE + 8, 4, 256, "is invalid");
    refused(&many, AT_LINK_TABLE + 12, 4, 1, "is invalid");
    refused(&many, AT_K, 4, 61, "is invalid");
    refused(&many, AT_HASH, 4, BLOOM_HASH_FNV1, "is invalid");
}


/* Reads from a file in memory. */
typedef struct {
    uint8_t  bytes[3 * BLOOM_IMAGE_PAGE];
} file_t;


static int
read_file(void *ctx, void *buf, size_t len, uint64_t offset)
{
    memcpy(buf, ((file_t *) ctx)->bytes + offset, len);

    return 0;
}


/* Bits after the last one are refused, all other bits are accepted. */
static void
test_bits_after_the_last_one_are_refused(void **state)
{
    int                    rc;
    size_t                 i;
    uint8_t                payload[128];
    bloom_image_t          image;
    static file_t          file;
    bloom_image_reader_t   reader;

    (void) state;

    image = imported();                  /* 1003 bits in 128 bytes */

    for (i = 0; i < 1024; i++) {
        memset(payload, 0, sizeof(payload));
        payload[i / 8] = (uint8_t) (1 << i % 8);

        bloom_image_seal(&image, payload, file.bytes + BLOOM_IMAGE_PAGE);
        bloom_image_encode(&image, file.bytes);
        memcpy(file.bytes + 2 * BLOOM_IMAGE_PAGE, payload, sizeof(payload));

        assert_int_equal(bloom_image_open(&reader, read_file, &file,
                                          bloom_image_file_size(&image)), 0);

        rc = bloom_image_next(&reader, payload);

        if (i < 1003) {
            assert_int_equal(rc, 1);

        } else {
            assert_int_equal(rc, -1);
            assert_non_null(strstr(reader.error, "after its last one"));
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_imported_headers_are_read_back),
        cmocka_unit_test(test_invalid_imported_headers_are_refused),
        cmocka_unit_test(test_bits_after_the_last_one_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
