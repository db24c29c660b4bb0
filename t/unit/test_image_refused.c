/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check that invalid image files, whose checksums are right, are
 * refused, each with the right reason.
 */

#include "image_files.h"
#include "bloom_image_decode.h"

#define MAX       BLOOM_IMAGE_EXCEPTIONS_MAX
#define TABLE_AT  (8192 + 3 * 64)        /* of the exceptions of `removed` */
#define DATA_AT   (TABLE_AT + 4096)


/* ---- invalid values with a right checksum ---- */

TEST(another_kind_of_file_is_refused)
{
    size_t  i;
    file_t  file;

    static const char *const  others[] = {
        "\x1f\x8b\x08", "one\ntwo\n", "\x89PNG\r\n\x1a\n", "BLOOM\r\n",
        "\x89" "BLOOM\n", "\x89" "BLOOM\n\n", "\x09" "BLOOM\r\n"
    };

    for (i = 0; i < array_len(others); i++) {
        file = example_file(&blocked);
        memset(file.bytes, 0, 8);
        memcpy(file.bytes, others[i], strlen(others[i]));
        remake_header_crc(&file);
        assert_refused(&file, "is not a Bloom filter image");
        free(file.bytes);
    }
}


/* The header of another version is not interpreted. */
TEST(another_version_is_refused)
{
    size_t  i;
    char    reason[BLOOM_IMAGE_ERROR_LEN];
    file_t  file;

    static const struct {
        uint32_t     version;
        const char  *remedy;
    } others[] = {
        { 0, "build it again" }, { 1, "build it again" },
        { 2, "build it again" }, { 4, "use a newer program" },
        { UINT32_MAX, "use a newer program" }
    };

    for (i = 0; i < array_len(others); i++) {
        snprintf(reason, sizeof(reason), "has version %u, but this program "
                 "reads version 3; %s", (unsigned) others[i].version,
                 others[i].remedy);

        file = example_file(&blocked);
        bloom_put32(file.bytes + VERSION, others[i].version);
        bloom_put32(file.bytes + LAYOUT, 77);
        bloom_put64(file.bytes + FILE_SIZE, 1);
        assert_refused(&file, reason);
        free(file.bytes);
    }
}


TEST(values_out_of_range_are_refused)
{
    size_t  i;

    static const struct {
        const bloom_image_t  *image;
        size_t                at;
        size_t                len;
        uint64_t              value;
        const char           *reason;
    } wrong[] = {
        { &blocked, VERSION, 8, 0x0403020101000000, "big-endian" },
        { &blocked, ORDER, 4, 0x04030201, "big-endian" },
        { &blocked, ORDER, 4, 0, "byte order mark is 0x00000000 instead of "
                                 "0x01020304" },

        { &blocked, LAYOUT, 4, 0, "has layout 0" },
        { &blocked, LAYOUT, 4, 3, "has layout 3" },
        { &blocked, LAYOUT, 4, UINT32_MAX, "has layout" },
        { &blocked, LAYOUT, 4, BLOOM_LAYOUT_CLASSIC, "layout classic cannot" },
        { &classic, LAYOUT, 4, BLOOM_LAYOUT_BLOCKED, "layout blocked cannot" },
        { &imported, LAYOUT, 4, 3, "has layout 3" },
        { &imported, LAYOUT, 4, 14, "has layout 14" },
        { &imported, LAYOUT, 4, BLOOM_LAYOUT_CLASSIC, "is invalid" },
        { &imported, LAYOUT, 4, BLOOM_LAYOUT_LEHMER,
          "lehmer cannot have hash" },
        { &imported, LAYOUT, 4, BLOOM_LAYOUT_FUSE, "fuse cannot have hash" },

        { &blocked, HASH, 4, 0, "has hash 0" },
        { &blocked, HASH, 4, 11, "has hash 11" },
        { &blocked, HASH, 4, 3, "layout blocked cannot have hash" },
        { &imported, HASH, 4, 11, "has hash 11" },
        { &imported, HASH, 4, BLOOM_HASH_FNV1,
          "double63 cannot have hash fnv1" },
        { &linked, HASH, 4, BLOOM_HASH_FNV1, "is invalid" },

        { &blocked, KEY_FORM, 4, 4, "has key form 4" },
        { &blocked, FLAGS, 4, 8, "has flags 0x8" },
        { &ring, FLAGS, 4, 0xc, "has flags 0xc" },
        { &blocked, FLAGS, 4, 0x80000001, "has flags" },
        { &imported, FLAGS, 4, 0, "and flags 0x0" },
        { &imported, FLAGS, 4, 10, "has flags 0xa" },

        { &blocked, K, 4, 0, "k 0, lines 2" },
        { &blocked, K, 4, 15, "k 15, lines 2" },
        { &blocked, K, 4, 6, "k 6, lines 2" },
        { &blocked, K, 4, 32, "k 32, lines 2" },
        { &blocked, K, 4, UINT32_MAX, "k 4294967295" },
        { &blocked, LINES, 4, 0, "k 16, lines 0" },
        { &blocked, LINES, 4, 1, "k 16, lines 1" },
        { &blocked, LINES, 4, 3, "k 16, lines 3" },
        { &blocked, LINES, 4, 4, "k 16, lines 4" },
        { &blocked, LINES, 4, UINT32_MAX, "lines 4294967295" },
        { &classic, K, 4, 0, "k 0, lines 0" },
        { &classic, K, 4, 65, "k 65, lines 0" },
        { &classic, LINES, 4, 1, "k 7, lines 1" },
        { &imported, K, 4, 0, "is invalid" },
        { &imported, K, 4, 256, "is invalid" },

        { &blocked, CAPACITY, 8, 0, "capacity is 0" },
        { &grown, CAPACITY, 8, BLOOM_CAPACITY_MAX + 1,
          "3 layers behind a capacity of 4398046511105" },
        { &grown, CAPACITY, 8, UINT64_MAX, "behind a capacity" },

        /* in range, but not the size of the file; a number of bits that no
         * layout can have */

        { &blocked, BITS, 8, 512, "512 bits do not make 192 bytes of payload "
                                  "at 8192 in a file of 8384" },
        { &blocked, BITS, 8, 2048, "2048 bits do not make" },
        { &blocked, BITS, 8, BLOOM_BITS_MAX, "do not make" },
        { &blocked, BITS, 8, BLOOM_BITS_MAX + 512,
          "layout blocked cannot have 8796093022720 bits" },
        { &blocked, BITS, 8, 1024 + 64,
          "layout blocked cannot have 1088 bits" },
        { &imported, BITS, 8, 0, "is invalid" },
        { &imported, BITS, 8, BLOOM_BITS_MAX + 1, "is invalid" },
        { &imported, BITS, 8, 1025, "is invalid" },
        { &imported, BITS, 8, UINT64_MAX, "is invalid" },

        /* a murmur3 seed has 32 bits */

        { &blocked, HASH_KEY + 4, 4, 1, "murmur3 seed" },
        { &blocked, HASH_KEY + 12, 4, 0x80000000, "murmur3 seed" },
        { &classic, HASH, 4, BLOOM_HASH_MURMUR3, "murmur3 seed" },
        { &imported, HASH, 4, BLOOM_HASH_MURMUR3,
          "seed has more than 32 bits" },
        { &imported, HASH_KEY, 1, 1, "hash key is out of range" },
        { &imported, HASH_KEY + 4, 1, 4, "hash key is out of range" },
        { &imported, HASH_KEY + 15, 1, 1, "hash key is out of range" },

        { &imported, ORIGIN, 4, 0, "has origin 0" },
        { &imported, ORIGIN, 4, 8, "has origin 8" },
        { &imported, ORIGIN_LEN, 4, BLOOM_IMAGE_ORIGIN_MAX + 1,
          "0 links and 3329 bytes of its origin's header" },
        { &linked, ORIGIN_LEN, 4, 3328 - 16 * 56 + 1,
          "56 links and 2433 bytes of its origin's header" },
        { &imported, ORIGIN_LEN, 4, UINT32_MAX, "bytes of its origin" },
        { &imported, LINKS, 4, 1, "1 links" },
        { &imported, LINKS + 4, 4, 1, "is invalid" },
        { &linked, LINKS, 4, 0, "0 links" },
        { &linked, LINKS, 4, 1, "is invalid" },
        { &linked, LINKS, 4, 55, "is invalid" },
        { &linked, LINKS, 4, 57, "57 links" },
        { &linked, LINKS, 4, UINT32_MAX, "links" },
        { &linked, LINK_TABLE, 8, 0, "is invalid" },
        { &linked, LINK_TABLE, 8, 513, "is invalid" },
        { &linked, LINK_TABLE, 8, UINT64_MAX, "is invalid" },
        { &linked, LINK_TABLE + 8, 4, 0, "is invalid" },
        { &linked, LINK_TABLE + 8, 4, 256, "is invalid" },
        { &linked, LINK_TABLE + 12, 4, 1, "is invalid" },
        { &linked, K, 4, 61, "is invalid" },

        /* exceptions: a size that fits the number, but not the file; and a
         * number, a size or a checksum alone */

        { &removed, EXCEPTIONS_SIZE, 8, 65, "in a file of 12544 with 65 bytes "
                                            "of exceptions" },
        { &removed, EXCEPTIONS_SIZE, 8, 3 * 65547, "do not make" },
        { &removed, FILE_SIZE, 8, 12544 + 64, "is truncated" },
        { &removed, FILE_SIZE, 8, 12544 - 64, "is too long" },
        { &removed, EXCEPTIONS_CRC, 4, 1, "checksum of its table, bytes 8384 "
                                          "to 12479, differs" },
        { &removed, EXCEPTIONS_CRC + 4, 4, 1, "reserved bytes" },
        { &blocked, EXCEPTIONS, 8, 3, "3 exceptions in 0 bytes" },
        { &grown, EXCEPTIONS_SIZE, 8, 11, "0 exceptions in 11 bytes" },
        { &grown, EXCEPTIONS_CRC, 4, 1, "reserved bytes" },

        /* those that the builder chose: more than there are, and sizes that do
         * not fit their number or that of the others */

        { &removed, BUILT, 8, 4, "chose 4 exceptions in 0 bytes, of 3 in 52" },
        { &whole, BUILT, 8, 4, "chose 4 exceptions in 30 bytes, of 3 in 52" },
        { &whole, BUILT, 8, UINT64_MAX, "chose 18446744073709551615 " },
        { &whole, BUILT, 8, 0, "chose 0 exceptions in 30 bytes" },
        { &whole, BUILT, 8, 3, "chose 3 exceptions in 30 bytes" },
        { &whole, BUILT_SIZE, 8, 10, "chose 1 exceptions in 10 bytes" },
        { &whole, BUILT_SIZE, 8, 31, "chose 1 exceptions in 31 bytes" },
        { &whole, BUILT_SIZE, 8, 53, "chose 1 exceptions in 53 bytes" },
        { &whole, BUILT_SIZE, 8, UINT64_MAX, "chose 1 exceptions in " },
        { &grown, BUILT, 8, 1, "chose 1 exceptions in 0 bytes" },
        { &grown, BUILT_SIZE, 8, 11, "chose 0 exceptions in 11 bytes" },

        /* layers: more than possible, fewer than are described, and more */

        { &grown, LAYERS, 8, 17, "17 layers behind" },
        { &grown, LAYERS, 8, 256, "256 layers behind" },
        { &whole, LAYERS, 8, (uint64_t) 1 << 32, "4294967296 layers behind" },
        { &whole, LAYERS, 8, ((uint64_t) 1 << 32) + 3,
          "4294967299 layers behind" },
        { &whole, LAYERS, 8, UINT64_MAX, "18446744073709551615 layers behind" },
        { &grown, LAYERS, 8, 2, "describes more than its 2 layers" },
        { &whole, LAYERS, 8, 0, "describes more than its 0 layers" },
        { &grown, LAYERS, 8, 4, "or these layers" },
        { &grown, LAYERS, 8, 16, "or these layers" },
        { &grown, LAYER_BITS + 8 * 3, 8, 512, "describes more" },
        { &grown, LAYER_BITS + 8 * 15, 8, 512, "describes more" },
        { &grown, LAYER_K + 3, 1, 8, "describes more" },
        { &grown, LAYER_K + 15, 1, 8, "describes more" },
        { &grown, LAYER_LINES + 3, 1, 1, "describes more" },
        { &grown, LAYER_LINES + 15, 1, 1, "describes more" },
        { &grown, LAYER_BITS + 8, 8, 512, "do not make" },
        { &grown, LAYER_BITS + 8, 8, BLOOM_BITS_MAX / 2, "do not make" },

        /* sources: longer than the name, and shorter */

        { &sourced, SOURCE_LEN, 4, 10, "other characters" },
        { &sourced, SOURCE_LEN, 4, 255, "other characters" },
        { &sourced, SOURCE_LEN, 4, 8, "the bytes after the name of its source "
                                      "are not zero" },
        { &sourced, SOURCE_NAME, 1, '%', "is invalid: the name of its source "
          "has other characters than letters, digits and \"._:/-\"" },
        { &sourced, SOURCE_NAME + 8, 1, 0, "other characters" },
        { &sourced, SOURCE_NAME + 4, 1, '\n', "other characters" },
        { &sourced, SOURCE_NAME + 9, 1, 'a', "bytes after the name" },
        { &sourced, LAYER_BITS - 1, 1, 'a', "bytes after the name" },
        { &removed, SOURCE_NAME, 1, 'a', "bytes after the name" },
        { &removed, SOURCE, 1, 0x80, "the position of a source without a "
                                     "name" },
        { &removed, SOURCE + 15, 1, 0x80, "the position of a source without a "
                                          "name" },

        /* copies: without a record to come, within a record, and without a
         * journal */

        { &copied, COPY_SEQUENCE, 8, 0, "is invalid: it cannot be the copy of "
          "a zone at position 1234605616436508552, record 0; copy the zone "
          "again" },
        { &copied, COPY_POSITION, 1, 0x84, "at position 123460561643650854" },
        { &copied, COPY + 15, 1, 0, "cannot be the copy" },
        { &blocked, COPY_SEQUENCE, 8, 1, "at position 0, record 1" },
        { &blocked, COPY + 32, 1, 1, "cannot be the copy" },
        { &blocked, COPY_END - 1, 1, 1, "cannot be the copy" },
        { &copied, COPY_END, 8, 1, "reserved bytes" },
        { &copied, COPY - 1, 1, 1, "reserved bytes" },
        { &blocked, PREFIXES, 8, 1, "reserved bytes" },
    };

    for (i = 0; i < array_len(wrong); i++) {
        assert_value_refused(wrong[i].image, wrong[i].at, wrong[i].len,
                             wrong[i].value, wrong[i].reason);
    }
}


/* Slices that no ring can have: too many of them, and whatever they are said to
 * be. */
TEST(slices_that_cannot_be_are_refused)
{
    size_t  i;

    static const char  cannot[] = "is invalid: its slices cannot be as they are "
                                  "described; let nginx write it again";

    static const struct {
        const bloom_image_t  *image;
        size_t                at;
        size_t                len;
        uint64_t              value;
        const char           *reason;
    } wrong[] = {
        { &ring, SLICES, 4, 0, "is invalid: it cannot have 0 slices; let nginx "
                               "write it again" },
        { &ring, SLICES, 4, BLOOM_PARTS_MAX + 1, "cannot have 57 slices" },
        { &ring, SLICES, 4, 65536 + 5, "cannot have 65541 slices" },
        { &ring, SLICES, 4, UINT32_MAX, "cannot have 4294967295 slices" },
        { &ring, SLICES, 4, 4, "do not make" },
        { &ring, SLICES, 4, 6, "do not make" },
        { &ring, LAYOUT, 4, BLOOM_LAYOUT_CLASSIC, "layout classic cannot" },
        { &ring, BITS, 8, BLOOM_BITS_MAX / 4, "cannot have 2199023255552" },
        { &ring, RESERVED, 1, 1, "cannot have 5 slices" },
        { &ring, SLICES - 1, 1, 1, "cannot have 5 slices" },
        { &ring, SLICES_END, 1, 1, "reserved bytes" },
        { &ring, FLAGS, 4, BLOOM_IMAGE_ESTIMATED, "do not make" },
        { &blocked, FLAGS, 4, BLOOM_IMAGE_RING, "cannot have 0 slices" },
        { &grown, FLAGS, 4, BLOOM_IMAGE_RING, "cannot have 0 slices" },
        { &imported, FLAGS, 4, BLOOM_IMAGE_IMPORTED | BLOOM_IMAGE_RING,
          "cannot have " },

        /* the open slice: one that does not exist, one that is not live, one
         * that was full, and one that was closed */

        { &ring, OPEN, 4, 5, cannot },
        { &ring, OPEN, 4, 64 + 1, cannot },
        { &ring, OPEN, 4, UINT32_MAX, cannot },
        { &ring, OPEN, 4, 2, cannot },
        { &ring, OPEN, 4, 0, cannot },
        { &ring, OPEN, 4, 3, cannot },

        /* live slices: none, not the open one, and slices that do not exist */

        { &ring, LIVE, 8, 0, cannot },
        { &ring, LIVE, 8, 0x19, cannot },
        { &ring, LIVE, 8, 0x3b, cannot },
        { &ring, LIVE, 8, UINT64_C(1) << 63 | 0x1b, cannot },

        /* full ones: the open one, one that is not live, and others */

        { &ring, FULL, 8, 0x03, cannot },
        { &ring, FULL, 8, 0x05, cannot },
        { &ring, FULL, 8, 0x21, cannot },
        { &ring, FULL, 8, UINT64_MAX, cannot },

        /* times: closed before it was opened, open and closed, and those of
         * slices that are not live or do not exist */

        { &ring, CLOSED + 8 * 3, 8, 999, cannot },
        { &ring, OPENED + 8 * 4, 8, 2001, cannot },
        { &ring, CLOSED, 8, 0, cannot },
        { &ring, CLOSED + 8, 8, 4000, cannot },
        { &ring, OPENED + 8 * 2, 8, 1, cannot },
        { &ring, CLOSED + 8 * 2, 8, 1, cannot },
        { &ring, LIVE, 8, 0x13, cannot },
        { &ring, LIVE, 8, 0x0b, cannot },
        { &ring, OPENED + 8 * 5, 8, 1, cannot },
        { &ring, CLOSED + 8 * 55, 8, UINT64_C(1) << 63, cannot },
    };

    for (i = 0; i < array_len(wrong); i++) {
        assert_value_refused(wrong[i].image, wrong[i].at, wrong[i].len,
                             wrong[i].value, wrong[i].reason);
    }

    /* the open slice does not exist, and nothing else is wrong */

    slices.opened[1] = 0;
    assert_value_refused(&ring, OPEN, 4, 64 + 1, cannot);
    slices.opened[1] = 3000;
}


/* A ring has neither layers nor an origin nor a fuse base. */
TEST(slices_are_alone)
{
    size_t         i;
    file_t         file;
    bloom_image_t  image, fuse;

    const bloom_image_t  *images[] = { &grown, &imported, &fuse };

    fuse = example(BLOOM_LAYOUT_FUSE, 3, 0, 512);
    fuse.geometry.fuse.keys = 11;
    fuse.geometry.fuse.room = 1000;
    fuse.geometry.fuse.length = 7;
    fuse.geometry.fuse.segments = 3;
    fuse.geometry.fuse.width = 7;
    fuse.capacity = 1011;

    for (i = 0; i < array_len(images); i++) {
        image = *images[i];
        image.geometry.slices = 2;
        image.flags |= BLOOM_IMAGE_RING;

        memset(&file, 0, sizeof(file));
        file.size = bloom_image_file_size(&image);
        file.bytes = unit_zeros(file.size);
        bloom_image_encode(&image, file.bytes);
        assert_refused(&file, "cannot have 2 slices");
        free(file.bytes);
    }

    /* the header of an origin may reach beyond the slices */

    image = imported;
    image.origin_len = BLOOM_IMAGE_ORIGIN_MAX;
    image.flags |= BLOOM_IMAGE_RING;

    file = example_file(&image);
    bloom_put32(file.bytes + SLICES, 2);
    remake_header_crc(&file);
    assert_refused(&file, "cannot have 2 slices");
    free(file.bytes);
}


/* Each of several values is refused in each of several fields. */
TEST(ranges_of_values_are_refused)
{
    size_t    i;
    char      reason[96];
    file_t    file;
    uint64_t  bits;

    static const uint64_t  lengths[] = {
        0, 1, 63, 4096, 8192 + 64, (uint64_t) 1 << 32, (uint64_t) 1 << 43,
        (uint64_t) 1 << 63, ((uint64_t) 1 << 63) + 8, UINT64_MAX - 4095,
        UINT64_MAX
    };

    static const double  rates[] = {
        0, -0.0, -0.001, 1, 1.5, 1e300, INFINITY, -INFINITY, NAN, -NAN
    };

    static const uint64_t  sizes[] = {
        0, 1, 3 * 11 - 1, 3 * 65547 + 1, MAX + 1, (uint64_t) 1 << 32,
        (uint64_t) 1 << 63, UINT64_MAX - 62, UINT64_MAX
    };

    static const uint64_t  numbers[] = {
        0, 5, MAX, (uint64_t) 1 << 63, UINT64_MAX / 11 + 1, UINT64_MAX
    };

    static const uint64_t  layer_bits[] = {
        0, 1, 511, 513, 1000, BLOOM_BITS_MAX - 512, BLOOM_BITS_MAX,
        BLOOM_BITS_MAX + 512, (uint64_t) 1 << 63, UINT64_MAX - 511, UINT64_MAX
    };

    static const uint32_t  names[] = {
        256, 257, 65535, 65536 + 9, 1u << 24, 1u << 31, UINT32_MAX
    };

    for (i = 0; i < array_len(lengths); i++) {
        assert_value_refused(&blocked, FILE_SIZE, 8, lengths[i],
                             lengths[i] < 8384 ? "is too long"
                                               : "is truncated");
        assert_value_refused(&blocked, PAYLOAD, 8, lengths[i], "do not make");
        assert_value_refused(&blocked, PAYLOAD_SIZE, 8, lengths[i],
                             "do not make");
        assert_value_refused(&blocked, CHUNK_SIZE, 4, lengths[i],
                             "do not make");
        assert_value_refused(&blocked, BITS, 8, lengths[i], "is invalid");
    }

    for (i = 0; i < array_len(rates); i++) {
        memcpy(&bits, &rates[i], sizeof(bits));
        assert_value_refused(&blocked, FPR, 8, bits, "false-positive rate");
    }

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

    for (i = 0; i < array_len(layer_bits); i++) {
        assert_value_refused(&grown, LAYER_BITS + 8, 8, layer_bits[i],
                             "or these layers");
    }

    for (i = 0; i < 256; i++) {
        if (i != 2 && i != 4 && i != 8 && i != 16) {
            assert_value_refused(&grown, LAYER_K + 1, 1, i, "or these layers");
        }

        if (i != 2) {
            assert_value_refused(&grown, LAYER_LINES + 1, 1, i,
                                 "or these layers");
        }
    }

    for (i = 0; i < array_len(names); i++) {
        snprintf(reason, sizeof(reason), "is invalid: the name of its source "
                 "has %u bytes, and at most 255 are possible",
                 (unsigned) names[i]);
        assert_value_refused(i % 2 ? &sourced : &whole, SOURCE_LEN, 4,
                             names[i], reason);
    }
}


/* The lengths agree with each other, but not with the number of bits. */
TEST(lengths_that_do_not_fit_the_bits_are_refused)
{
    file_t  file;

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
    file.size -= 64;
    bloom_put64(file.bytes + PAYLOAD_SIZE, 128);
    bloom_put64(file.bytes + FILE_SIZE, file.size);
    remake_header_crc(&file);
    assert_refused(&file, "1536 bits do not make 128 bytes");

    /* the bits agree too: this is another image, with a damaged chunk */

    bloom_put64(file.bytes + BITS, 1024);
    remake_header_crc(&file);
    assert_refused(&file, "checksum of bytes 8192 to 8319 differs");

    free(file.bytes);
}


static int
is_within(size_t at, size_t begin, size_t len)
{
    return at >= begin && at - begin < len;
}


/* Returns 1 if the highest bit of that byte belongs to the times of a slice which
 * are in order without it, too. */
static int
may_be_another_time(size_t at)
{
    size_t    i;
    uint64_t  bit, opened, closed;

    if (!is_within(at, OPENED, SLICES_END - OPENED)) {
        return 0;
    }

    i = (at - OPENED) / 8 % BLOOM_PARTS_MAX;
    bit = (uint64_t) 0x80 << 8 * (at % 8);

    opened = slices.opened[i] ^ (at < CLOSED ? bit : 0);
    closed = slices.closed[i] ^ (at < CLOSED ? 0 : bit);

    return i == slices.open ? at < CLOSED
                            : (slices.live >> i & 1) && opened <= closed;
}


/*
 * A reader cannot judge hash key, capacity, items, rate, times, build id, and
 * the position of a source, the journal, the position, and the numbers of a
 * copy, nor the header of the source of an imported filter, whose k may be any
 * byte.  The highest byte of a rate is not changed, which would make it
 * negative, and no byte that makes the capacity of a filter with layers too
 * large.  The times of a slice may be any as long as they are in order.
 */
static int
may_differ(const bloom_image_t *image, size_t at)
{
    return is_within(at, HASH_KEY, image->origin ? 0
                     : image->hasher.kind == BLOOM_HASH_MURMUR3 ? 4 : 16)
           || is_within(at, CAPACITY, image->geometry.layers ? 5 : 8)
           || is_within(at, ITEMS, FPR + 7 - ITEMS)
           || is_within(at, CREATED, RESERVED - CREATED)
           || is_within(at, SOURCE, image->source.len ? 16 : 0)
           || is_within(at, COPY, bloom_image_is_copy(image) ? 56 : 0)
           || (image->geometry.slices != 0 && may_be_another_time(at))
           || (image->origin
               && (at == K || at == ORIGIN_LEN
                   || is_within(at, LINKS + 8, 8 + image->origin_len)));
}


/* All others, reserved ones among them, may not differ. */
TEST(only_free_header_fields_may_change)
{
    size_t  i, at;
    file_t  file;

    static const bloom_image_t  *const images[] = {
        &blocked, &classic, &removed, &grown, &sourced, &copied, &whole,
        &imported, &ring
    };

    for (i = 0; i < array_len(images); i++) {
        file = example_file(images[i]);

        for (at = 0; at < HEADER_CRC; at++) {
            file.bytes[at] ^= 0x80;
            remake_header_crc(&file);

            if ((refused(&file, NULL) == NULL) != may_differ(images[i], at)) {
                fail_msg("image %zu: byte %zu may %sdiffer", i, at,
                         may_differ(images[i], at) ? "" : "not ");
            }

            file.bytes[at] ^= 0x80;
        }

        free(file.bytes);
    }
}


/* ---- layers, sources and imported filters ---- */

/* Base and layers together have at most as many bits as a base may have. */
TEST(all_parts_have_at_most_two_to_the_43_bits)
{
    char           error[BLOOM_IMAGE_ERROR_LEN];
    uint8_t        header[BLOOM_IMAGE_PAGE];
    bloom_image_t  image, got;

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


TEST(imported_filters_have_no_layers)
{
    file_t         file;
    bloom_image_t  image;

    image = imported;
    image.capacity = 1000;
    image.geometry.layers = 1;
    image.geometry.layer[0] = grown.geometry.layer[0];

    memset(&file, 0, sizeof(file));
    file.size = bloom_image_file_size(&image);
    file.bytes = unit_zeros(file.size);
    bloom_image_encode(&image, file.bytes);
    assert_refused(&file, "layout double63 cannot have 1003 bits, k 200, lines "
                   "0, or these layers");
    free(file.bytes);
}


/* Bits after the last one are refused, all other bits are accepted. */
TEST(bits_after_the_last_one_are_refused)
{
    size_t    i;
    file_t    file;
    uint64_t  words[16];

    for (i = 0; i < 1024; i++) {         /* 1003 bits in 128 bytes */
        memset(words, 0, sizeof(words));
        words[i / 64] = (uint64_t) 1 << i % 64;

        file = file_of(&imported, words, NULL);

        if (i < 1003) {
            assert_null(refused(&file, NULL));

        } else {
            assert_refused(&file, "after its last one");
        }

        free(file.bytes);
    }
}


/* Changes a byte of the exceptions and corrects all checksums. */
TEST(bytes_after_the_entries_are_refused)
{
    size_t  i;
    file_t  file;

    file = example_file(&removed);

    for (i = 0; i < 64; i++) {
        file.bytes[DATA_AT + i] ^= 0x80;
        remake_exceptions_crc(&file, &removed);

        if (i < 52) {
            assert_null(refused(&file, NULL));

        } else {
            assert_refused(&file, "bytes after its exceptions are not zero");
        }

        file.bytes[DATA_AT + i] ^= 0x80;
    }

    free(file.bytes);
}
