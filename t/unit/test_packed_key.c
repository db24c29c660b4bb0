/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check that each key has exactly one packed form, and that no
 * other bytes are read as one.
 */

#include "unit.h"

#include "bloom_packed_key.h"


/* The longest packed key, and one byte more. */
#define ROOM  (3 + BLOOM_KEY_MAX + 1)


static uint8_t  text[BLOOM_KEY_MAX];


TEST(lengths_are_in_leb128)
{
    size_t       i, size;
    uint8_t      packed[ROOM];
    bloom_key_t  key;

    static const struct {
        size_t      len;
        const char *bytes;
    } known[] = {
        { 1, "\x01" },
        { 3, "\x03" },
        { 127, "\x7f" },
        { 128, "\x80\x01" },
        { 300, "\xac\x02" },
        { 16383, "\xff\x7f" },
        { 16384, "\x80\x80\x01" },
        { 65535, "\xff\xff\x03" },
    };

    memset(text, 'k', sizeof(text));

    for (i = 0; i < array_len(known); i++) {
        key.data = text;
        key.len = known[i].len;
        size = strlen(known[i].bytes);

        assert_int_equal(bloom_packed_key_size(key.len), size + key.len);
        assert_ptr_equal(bloom_packed_key_write(packed, &key),
                         packed + size + key.len);
        assert_memory_equal(packed, known[i].bytes, size);
        assert_memory_equal(packed + size, text, key.len);
    }
}


/* No three bytes but the 65535 that are written are read as a length. */
TEST(a_length_has_one_form)
{
    size_t          lengths;
    uint8_t         packed[ROOM], again[ROOM];
    uint32_t        i;
    bloom_key_t     key;
    const uint8_t  *end;

    memset(packed, 0, sizeof(packed));
    lengths = 0;

    for (i = 0; i < 1 << 24; i++) {
        packed[0] = (uint8_t) i;
        packed[1] = (uint8_t) (i >> 8);
        packed[2] = (uint8_t) (i >> 16);

        end = bloom_packed_key_read(&key, packed, packed + ROOM);

        /* count a length once, with zeros behind it */

        if (end == NULL
            || (key.data < packed + 2 && packed[1] != 0)
            || (key.data < packed + 3 && packed[2] != 0))
        {
            continue;
        }

        assert_ptr_equal(end, key.data + key.len);
        assert_ptr_equal(bloom_packed_key_write(again, &key)
                         - (end - packed), again);
        assert_memory_equal(again, packed, (size_t) (key.data - packed));

        lengths++;
    }

    assert_int_equal(lengths, BLOOM_KEY_MAX);
}


TEST(other_bytes_are_no_key)
{
    size_t       i;
    uint8_t     *bytes;
    bloom_key_t  key;

    static const struct {
        const char  *bytes;
        size_t       size;
    } refused[] = {
        { "", 0 },
        { "\0a", 2 },                          /* an empty key */
        { "\x80\0a", 3 },
        { "\x81\0a", 3 },                     /* 1 in two bytes */
        { "\x81\x80\0a", 4 },                 /* 1 in three bytes */
        { "\x81\x80\x80\0a", 5 },             /* 1 in four bytes */
        { "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11 },
        { "\x80", 1 },                         /* truncated */
        { "\xff\xff", 2 },
        { "\x01", 1 },
        { "\x02" "a", 2 },
    };

    for (i = 0; i < array_len(refused); i++) {

        /* memory of exactly that size, for the address sanitizer */

        bytes = unit_copy(refused[i].bytes, refused[i].size);

        if (bloom_packed_key_read(&key, bytes, bytes + refused[i].size)
            != NULL)
        {
            print_error("case %zu is read as a key\n", i);
            fail();
        }

        free(bytes);
    }
}


TEST(a_key_is_read_to_its_end)
{
    size_t          i, size, shorter;
    uint8_t         packed[ROOM];
    bloom_key_t     key, read;
    const uint8_t  *end;

    static const size_t  lengths[] = {
        1, 2, 127, 128, 129, 16383, 16384, 16385, BLOOM_KEY_MAX
    };

    for (i = 0; i < sizeof(text); i++) {
        text[i] = (uint8_t) (i * 7);
    }

    for (i = 0; i < array_len(lengths); i++) {
        key.data = text;
        key.len = lengths[i];
        size = bloom_packed_key_size(key.len);
        (void) bloom_packed_key_write(packed, &key);

        end = bloom_packed_key_read(&read, packed, packed + size);

        assert_ptr_equal(end, packed + size);
        assert_int_equal(read.len, key.len);
        assert_memory_equal(read.data, text, key.len);

        for (shorter = 0; shorter < size; shorter++) {
            assert_null(bloom_packed_key_read(&read, packed,
                                              packed + shorter));
        }
    }

    /* one byte more than a key may have */

    memcpy(packed, "\x80\x80\x04", 3);
    assert_null(bloom_packed_key_read(&read, packed, packed + ROOM));
}
