/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check that segments and records that are written can be read, and
 * that their bytes are as documented.
 */

#include "bloom_exceptions.h"
#include "segments.h"


/* ---- segments ---- */


static void
test_a_written_segment_header_is_read_back(void **state)
{
    char             error[BLOOM_RECORD_ERROR_LEN];
    journal_t        journal;
    bloom_segment_t  segment;

    (void) state;

    create(&journal, ROOM);

    assert_int_equal(bloom_segment_decode(&segment, journal.data,
                                          BLOOM_SEGMENT_HEADER, error),
                     BLOOM_SEGMENT_OK);
    assert_int_equal(bloom_segment_decode(&segment, journal.data,
                                          BLOOM_SEGMENT_SIZE, error),
                     BLOOM_SEGMENT_OK);

    assert_int_equal(segment.version, 1);
    assert_int_equal(segment.base, journal.segment.base);
    assert_int_equal(segment.size, journal.segment.size);
    assert_int_equal(segment.sequence, journal.segment.sequence);
    assert_int_equal(segment.created, journal.segment.created);
    assert_memory_equal(segment.salt, journal.segment.salt,
                        BLOOM_SEGMENT_SALT_LEN);

    journal.segment.version = 2;
    bloom_segment_encode(&journal.segment, journal.data);

    assert_int_equal(bloom_segment_decode(&segment, journal.data,
                                          BLOOM_SEGMENT_SIZE, error),
                     BLOOM_SEGMENT_OK);
    assert_int_equal(segment.version, 2);

    free(journal.data);
}


/* A flip of any bit of the header is detected. */
static void
test_flipped_bits_of_a_segment_header_are_detected(void **state)
{
    int              bit;
    char             error[BLOOM_RECORD_ERROR_LEN];
    journal_t        journal;
    bloom_segment_t  segment;

    (void) state;

    create(&journal, ROOM);

    for (bit = 0; bit < 8 * BLOOM_SEGMENT_HEADER; bit++) {
        journal.data[bit / 8] ^= 1 << bit % 8;

        error[0] = '\0';
        assert_int_not_equal(bloom_segment_decode(&segment, journal.data, ROOM,
                                                  error), BLOOM_SEGMENT_OK);
        assert_true(strncmp(error, "is ", 3) == 0
                    || strncmp(error, "has version ", 12) == 0);

        journal.data[bit / 8] ^= 1 << bit % 8;
    }

    free(journal.data);
}


static void
refused(const uint8_t *header, uint64_t file_size, bloom_segment_e rc,
    const char *expected)
{
    char             error[BLOOM_RECORD_ERROR_LEN];
    bloom_segment_t  segment;

    error[0] = '\0';
    assert_int_equal(bloom_segment_decode(&segment, header, file_size, error),
                     rc);

    if (strstr(error, expected) == NULL) {
        print_error("\"%s\" says nothing of \"%s\"\n", error, expected);
        fail();
    }
}


/* Tests a header with `value` at the offset `at`, and a right checksum. */
static void
refused_with(const journal_t *journal, size_t at, uint64_t value, size_t bytes,
    bloom_segment_e rc, const char *expected)
{
    uint8_t  header[BLOOM_SEGMENT_HEADER];

    memcpy(header, journal->data, sizeof(header));

    if (bytes == 4) {
        bloom_put32(header + at, (uint32_t) value);

    } else {
        bloom_put64(header + at, value);
    }

    bloom_put32(header + 124, bloom_crc32c(0, header, 124));

    refused(header, ROOM, rc, expected);
}


static void
test_refused_segment_headers_have_a_reason(void **state)
{
    size_t     i;
    journal_t  journal;

    static const uint8_t  zeros[BLOOM_SEGMENT_HEADER];

    static const struct {
        size_t    at;
        size_t    bytes;
        uint64_t  value;
    } impossible[] = {
        {   8, 4, 0 },                             /* version */
        {  12, 4, 0x01020305 },                    /* byte order */
        {  16, 8, 0 },                             /* size */
        {  16, 8, BLOOM_SEGMENT_MIN - 8 },
        {  16, 8, BLOOM_SEGMENT_MIN + 4 },
        {  16, 8, BLOOM_SEGMENT_MAX + 8 },
        {  16, 8, UINT64_MAX - 7 },
        {  24, 8, 4 },                             /* base */
        {  24, 8, UINT64_MAX - 7 },
        {  32, 8, 0 },                             /* sequence */
        {  64, 8, 1 },                             /* reserved */
        { 116, 8, (uint64_t) 1 << 63 }
    };

    (void) state;

    create(&journal, ROOM);

    refused(zeros, 0, BLOOM_SEGMENT_NONE, "is empty");
    refused(zeros, 1, BLOOM_SEGMENT_NONE, "is not a segment");
    refused(zeros, ROOM, BLOOM_SEGMENT_NONE, "is not a segment");

    refused(journal.data, BLOOM_SEGMENT_HEADER - 1, BLOOM_SEGMENT_DAMAGED,
            "is truncated: it has 127 bytes, but a header has 128");
    refused(journal.data, BLOOM_SEGMENT_SIZE + 1, BLOOM_SEGMENT_DAMAGED,
            "is too long");

    refused_with(&journal, 8, 3, 4, BLOOM_SEGMENT_NEWER,
                 "use a newer program");
    refused_with(&journal, 12, 0x04030201, 4, BLOOM_SEGMENT_DAMAGED,
                 "big-endian byte order");

    for (i = 0; i < array_len(impossible); i++) {
        refused_with(&journal, impossible[i].at, impossible[i].value,
                     impossible[i].bytes, BLOOM_SEGMENT_DAMAGED,
                     "is invalid");
    }

    free(journal.data);
}


/* ---- records ---- */


static void
test_keys_of_all_lengths_are_read_back(void **state)
{
    size_t          i, j;
    uint8_t        *bytes;
    uint64_t        seed;
    journal_t       journal;
    bloom_key_t     key;
    bloom_record_t  record;

    static const size_t  lens[] = {
        1, 2, 7, 8, 9, 127, 128, 129, 255, 256, 16383, 16384, 16385, 65534,
        BLOOM_KEY_MAX
    };

    (void) state;

    bytes = malloc(BLOOM_KEY_MAX);
    assert_non_null(bytes);

    create(&journal, 256 * 1024);
    seed = 1;

    for (i = 0; i < BLOOM_KEY_MAX; i++) {
        bytes[i] = (uint8_t) unit_random(&seed);
    }

    for (i = 0; i < array_len(lens); i++) {
        key.data = bytes;
        key.len = lens[i];
        append(&journal, &key, 1);
    }

    for (i = 0; i < array_len(lens); i++) {
        assert_int_equal(
            bloom_record_read(&record, &journal.segment,
                              journal.segment.base + journal.at[i], 1000 + i,
                              journal.data + journal.at[i],
                              journal.size - journal.at[i]),
            BLOOM_RECORD_OK);

        assert_int_equal(record.count, 1);
        assert_int_equal(record.sequence, 1000 + i);
        assert_int_equal(record.time, time_of(1000 + i));
        assert_int_equal(record.size, journal.at[i + 1] - journal.at[i]);

        assert_int_equal(bloom_record_key(&record, &key), 1);
        assert_int_equal(key.len, lens[i]);
        assert_memory_equal(key.data, bytes, key.len);
        assert_int_equal(bloom_record_key(&record, &key), 0);
        assert_int_equal(bloom_record_key(&record, &key), 0);
    }

    assert_int_equal(read_at(&journal, journal.used, 0), BLOOM_RECORD_END);

    /* every byte, and keys of zeros only */

    free(journal.data);
    create(&journal, ROOM);

    for (i = 0; i < 256; i++) {
        for (j = 1; j <= 3; j++) {
            memset(bytes, (int) i, j);
            key.data = bytes;
            key.len = j;

            journal.used = BLOOM_SEGMENT_HEADER;
            append(&journal, &key, 1);

            assert_int_equal(
                bloom_record_read(&record, &journal.segment,
                                  journal.segment.base + BLOOM_SEGMENT_HEADER,
                                  0, journal.data + BLOOM_SEGMENT_HEADER,
                                  40),
                BLOOM_RECORD_OK);
            assert_int_equal(bloom_record_key(&record, &key), 1);
            assert_int_equal(key.len, j);
            assert_memory_equal(key.data, bytes, j);
        }
    }

    free(journal.data);
    free(bytes);
}


static void
test_a_record_takes_keys_up_to_its_limits(void **state)
{
    size_t                room, n, size;
    uint8_t              *buf, *bytes;
    journal_t             journal;
    bloom_key_t           key;
    bloom_record_t        record;
    bloom_record_maker_t  maker;

    (void) state;

    create(&journal, ROOM);
    buf = malloc(2 * BLOOM_RECORD_MAX);
    bytes = calloc(1, BLOOM_KEY_MAX + 1);
    assert_non_null(buf);
    assert_non_null(bytes);

    /* keys that no record accepts; after them, it accepts another key */

    bloom_record_begin(&maker, buf, 2 * BLOOM_RECORD_MAX);
    key.data = bytes;
    key.len = 0;
    assert_int_equal(bloom_record_put(&maker, &key), -1);
    key.len = BLOOM_KEY_MAX + 1;
    assert_int_equal(bloom_record_put(&maker, &key), -1);
    key.len = (size_t) 1 << 32 | 1;
    assert_int_equal(bloom_record_put(&maker, &key), -1);
    key.len = SIZE_MAX;
    assert_int_equal(bloom_record_put(&maker, &key), -1);
    key.len = 1;
    assert_int_equal(bloom_record_put(&maker, &key), 0);
    assert_int_equal(bloom_record_seal(&maker, &journal.segment, 8, 1000, 1),
                     40);

    /* a record of exactly the greatest size: two keys */

    bloom_record_begin(&maker, buf, 2 * BLOOM_RECORD_MAX);
    key.len = BLOOM_KEY_MAX;
    assert_int_equal(bloom_record_put(&maker, &key), 0);
    key.len = BLOOM_RECORD_MAX - BLOOM_RECORD_HEADER
              - (3 + BLOOM_KEY_MAX) - 3 + 1;
    assert_int_equal(bloom_record_put(&maker, &key), -1);
    key.len--;
    assert_int_equal(bloom_record_put(&maker, &key), 0);

    size = bloom_record_seal(&maker, &journal.segment, 8, 1000, 1);
    assert_int_equal(size, BLOOM_RECORD_MAX);
    assert_int_equal(bloom_record_read(&record, &journal.segment, 8, 1000, buf,
                                       size), BLOOM_RECORD_OK);
    assert_int_equal(record.count, 2);
    assert_int_equal(bloom_record_read(&record, &journal.segment, 8, 1000, buf,
                                       size - 8), BLOOM_RECORD_BROKEN);

    /* a record of as many keys as possible */

    bloom_record_begin(&maker, buf, BLOOM_RECORD_MAX);
    key.len = 1;

    for (n = 0; bloom_record_put(&maker, &key) == 0; n++) {
        /* void */
    }

    assert_int_equal(n, (BLOOM_RECORD_MAX - BLOOM_RECORD_HEADER) / 2);
    size = bloom_record_seal(&maker, &journal.segment, 8, 1000, 1);
    assert_int_equal(bloom_record_read(&record, &journal.segment, 8, 1000, buf,
                                       size), BLOOM_RECORD_OK);
    assert_int_equal(record.count, n);

    /* the room is never exceeded */

    for (room = BLOOM_RECORD_HEADER; room < 200; room++) {
        memset(buf, 0xcc, 300);
        bloom_record_begin(&maker, buf, room);

        for (n = 0; bloom_record_put(&maker, &key) == 0; n++) {
            /* void */
        }

        assert_int_equal(n, (room / 8 * 8 - BLOOM_RECORD_HEADER) / 2);

        size = n ? bloom_record_seal(&maker, &journal.segment, 8, 1000, 1)
                 : BLOOM_RECORD_HEADER;
        assert_true(size <= room);
        assert_int_equal(buf[room], 0xcc);
    }

    free(journal.data);
    free(buf);
    free(bytes);
}


/* A record is sealed again for another place. */
static void
test_a_record_can_be_sealed_for_another_place(void **state)
{
    uint8_t               buf[64];
    journal_t             journal;
    bloom_key_t           key = { (const uint8_t *) "key", 3 };
    bloom_record_t        record;
    bloom_record_maker_t  maker;

    (void) state;

    create(&journal, ROOM);

    bloom_record_begin(&maker, buf, sizeof(buf));
    assert_int_equal(bloom_record_put(&maker, &key), 0);
    assert_int_equal(bloom_record_seal(&maker, &journal.segment, 160, 1000, 5),
                     40);
    assert_int_equal(bloom_record_seal(&maker, &journal.segment, 800, 1010, 6),
                     40);

    assert_int_equal(bloom_record_read(&record, &journal.segment, 160, 0, buf,
                                       40), BLOOM_RECORD_BROKEN);
    assert_int_equal(bloom_record_read(&record, &journal.segment, 800, 1010,
                                       buf, 40), BLOOM_RECORD_OK);
    assert_int_equal(record.time, 6);

    free(journal.data);
}


/* Each type but an addition needs version 2.  A clear has no keys.  Records of
 * changes are tested in test_record_changes.c. */
static void
test_records_of_all_types_are_read_back(void **state)
{
    uint8_t               buf[64];
    uint32_t              type, kinds;
    uint64_t              position;
    journal_t             journal;
    bloom_key_t           one = { (const uint8_t *) "one", 3 };
    bloom_key_t           key;
    bloom_record_t        record;
    bloom_record_maker_t  maker;

    (void) state;

    create(&journal, ROOM);
    position = journal.segment.base + BLOOM_SEGMENT_HEADER;

    for (type = BLOOM_RECORD_ADD; type <= BLOOM_RECORD_CLEAR; type++) {

        memset(buf, 0xcc, sizeof(buf));
        bloom_record_begin(&maker, buf, sizeof(buf));
        maker.type = type;
        maker.kinds = (type == BLOOM_RECORD_RESTORE) ? 2 : 0;

        if (!bloom_record_keyless(type)) {
            assert_int_equal(bloom_record_put(&maker, &one), 0);
        }

        assert_int_equal(bloom_record_size(&maker), 40);
        assert_int_equal(bloom_record_seal(&maker, &journal.segment, position,
                                           1000, 5),
                         40);
        assert_int_equal(buf[27], type);
        assert_int_equal(buf[40], 0xcc);

        assert_int_equal(bloom_record_read(&record, &journal.segment, position,
                                           1000, buf, 40),
                         BLOOM_RECORD_OK);
        assert_int_equal(record.type, type);
        assert_int_equal(record.size, 40);
        assert_int_equal(record.time, 5);
        assert_int_equal(bloom_record_version(type),
                         type == BLOOM_RECORD_ADD ? 1 : 2);

        if (bloom_record_keyless(type)) {
            assert_int_equal(record.count, 0);

        } else {
            assert_int_equal(record.count, 1);
            assert_int_equal(bloom_record_key(&record, &key), 1);
            assert_memory_equal(key.data, "one", 3);
        }

        assert_int_equal(bloom_record_key(&record, &key), 0);
    }

    /* a clear is valid only as the first record of its segment */

    assert_int_equal(bloom_record_seal(&maker, &journal.segment, position + 40,
                                       1000, 5),
                     40);
    assert_int_equal(bloom_record_read(&record, &journal.segment,
                                       position + 40, 1000, buf, 40),
                     BLOOM_RECORD_BROKEN);

    /* a restoration says of which kinds, and nothing else */

    for (kinds = 0; kinds < 256; kinds++) {
        bloom_record_begin(&maker, buf, sizeof(buf));
        maker.type = BLOOM_RECORD_RESTORE;
        maker.kinds = kinds;

        assert_int_equal(bloom_record_seal(&maker, &journal.segment,
                                           position + 40, 1000, 5),
                         40);
        assert_int_equal(bloom_record_read(&record, &journal.segment,
                                           position + 40, 1000, buf, 40),
                         kinds == 2 || kinds == 4 || kinds == 6
                         ? BLOOM_RECORD_OK : BLOOM_RECORD_BROKEN);

        if (kinds == 6) {
            assert_int_equal(record.kinds, 6);
        }
    }

    free(journal.data);
}


/* The bytes that docs/journal-format.md shows. */
static void
test_the_bytes_are_as_documented(void **state)
{
    size_t                size;
    uint8_t               header[BLOOM_SEGMENT_HEADER], buf[64];
    bloom_key_t           one = { (const uint8_t *) "one", 3 };
    bloom_key_t           two = { (const uint8_t *) "\0\xff", 2 };
    bloom_segment_t       segment;
    bloom_record_maker_t  maker;

    static const uint8_t  expected_header[BLOOM_SEGMENT_HEADER] = {
        0x89, 0x42, 0x4c, 0x4d, 0x4a, 0x4e, 0x4c, 0x0a,
        0x01, 0x00, 0x00, 0x00, 0x04, 0x03, 0x02, 0x01,
        0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00,
        0x2a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x68, 0xe5, 0xcf, 0x8b, 0x01, 0x00, 0x00,
        0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
        0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
        [124] = 0x40, 0xf2, 0xbc, 0x58
    };

    static const uint8_t  expected_record[40] = {
        0x28, 0x00, 0x00, 0x00, 0x21, 0xff, 0xa8, 0xcc,
        0x2a, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x7b, 0x68, 0xe5, 0xcf, 0x8b, 0x01, 0x00, 0x00,
        0x02, 0x00, 0x00, 0x00, 0xd4, 0x37, 0xee, 0x29,
        0x03, 0x6f, 0x6e, 0x65, 0x02, 0x00, 0xff, 0x00
    };

    (void) state;

    segment.version = 1;
    segment.size = BLOOM_SEGMENT_SIZE;
    segment.base = 2 * BLOOM_SEGMENT_SIZE;
    segment.sequence = 42;
    segment.created = 0x18bcfe56800;
    memcpy(segment.salt, "\x00\x11\x22\x33\x44\x55\x66\x77"
                         "\x88\x99\xaa\xbb\xcc\xdd\xee\xff", 16);

    bloom_segment_encode(&segment, header);
    assert_memory_equal(header, expected_header, sizeof(header));

    bloom_record_begin(&maker, buf, sizeof(buf));
    assert_int_equal(bloom_record_put(&maker, &one), 0);
    assert_int_equal(bloom_record_put(&maker, &two), 0);
    size = bloom_record_seal(&maker, &segment,
                             segment.base + BLOOM_SEGMENT_HEADER, 42,
                             segment.created + 123);
    assert_int_equal(size, sizeof(expected_record));
    assert_memory_equal(buf, expected_record, size);
}


/* The bytes of the example of version 2. */
static void
test_the_bytes_of_version_2_are_as_documented(void **state)
{
    size_t                i, at;
    uint8_t               data[296];
    bloom_segment_t       segment;
    bloom_record_maker_t  maker;

    static const bloom_key_t  two = { (const uint8_t *) "two", 3 };
    static const bloom_key_t  three = { (const uint8_t *) "three", 5 };

    static const struct {
        uint32_t            type;
        uint64_t            time;
        const bloom_key_t  *keys[3];
    } records[] = {
        { BLOOM_RECORD_CLEAR, 100, { NULL } },
        { BLOOM_RECORD_ADD, 123, { &two, &three, NULL } },
        { BLOOM_RECORD_REMOVE, 256, { &two, NULL } },
        { BLOOM_RECORD_RESTORE, 300, { NULL } }
    };

    static const uint8_t  expected_header[] = {
        0x02, 0x00, 0x00, 0x00, 0x04, 0x03, 0x02, 0x01
    };

    static const uint8_t  expected[168] = {
        0x28, 0x00, 0x00, 0x00, 0x8e, 0xcf, 0x1d, 0x42,
        0x2b, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x2c, 0x69, 0xe5, 0xcf, 0x8b, 0x01, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x03, 0x8a, 0xb2, 0x28, 0x8c,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x30, 0x00, 0x00, 0x00, 0x3e, 0xd0, 0xf1, 0xac,
        0x2c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x43, 0x69, 0xe5, 0xcf, 0x8b, 0x01, 0x00, 0x00,
        0x02, 0x00, 0x00, 0x00, 0x91, 0xb6, 0x59, 0xfd,
        0x03, 0x74, 0x77, 0x6f, 0x05, 0x74, 0x68, 0x72,
        0x65, 0x65, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x28, 0x00, 0x00, 0x00, 0xe1, 0x75, 0xee, 0x88,
        0x2d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0xc8, 0x69, 0xe5, 0xcf, 0x8b, 0x01, 0x00, 0x00,
        0x01, 0x00, 0x00, 0x01, 0x8a, 0xd5, 0x66, 0xa5,
        0x03, 0x74, 0x77, 0x6f, 0x00, 0x00, 0x00, 0x00,
        0x28, 0x00, 0x00, 0x00, 0xc0, 0x2b, 0xfe, 0x85,
        0x2e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0xf4, 0x69, 0xe5, 0xcf, 0x8b, 0x01, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x02, 0xc4, 0x48, 0x50, 0x1e,
        0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00
    };

    const bloom_key_t *const  *key;

    (void) state;

    segment.version = 2;
    segment.size = BLOOM_SEGMENT_SIZE;
    segment.base = 3 * BLOOM_SEGMENT_SIZE;
    segment.sequence = 43;
    segment.created = 0x18bcfe568c8;
    memcpy(segment.salt, "\xff\xee\xdd\xcc\xbb\xaa\x99\x88"
                         "\x77\x66\x55\x44\x33\x22\x11\x00", 16);

    bloom_segment_encode(&segment, data);
    assert_memory_equal(data + 8, expected_header, sizeof(expected_header));
    assert_int_equal(bloom_get32(data + 124), 0x14feed36);

    at = BLOOM_SEGMENT_HEADER;

    for (i = 0; i < array_len(records); i++) {
        bloom_record_begin(&maker, data + at, sizeof(data) - at);
        maker.type = records[i].type;
        maker.kinds = BLOOM_EXCEPTION_REMOVED;

        for (key = records[i].keys; *key != NULL; key++) {
            assert_int_equal(bloom_record_put(&maker, *key), 0);
        }

        at += bloom_record_seal(&maker, &segment, segment.base + at, 43 + i,
                                segment.created + records[i].time);
    }

    assert_int_equal(at, sizeof(data));
    assert_memory_equal(data + BLOOM_SEGMENT_HEADER, expected,
                        sizeof(expected));
}


/* A record is valid in one place only. */
static void
test_a_record_is_valid_in_one_place_only(void **state)
{
    int              i;
    uint8_t         *data;
    journal_t        journal;
    bloom_record_t   record;
    bloom_segment_t  other;

    (void) state;

    create_small(&journal);
    data = journal.data + journal.at[2];

#define read_as(segment, position, sequence)                                 \
    bloom_record_read(&record, segment, position, sequence, data, 200)

    assert_int_equal(read_as(&journal.segment,
                             journal.segment.base + journal.at[2], 1002),
                     BLOOM_RECORD_OK);
    assert_int_equal(read_as(&journal.segment,
                             journal.segment.base + journal.at[2], 0),
                     BLOOM_RECORD_OK);

    assert_int_equal(read_as(&journal.segment,
                             journal.segment.base + journal.at[2], 1001),
                     BLOOM_RECORD_BROKEN);
    assert_int_equal(read_as(&journal.segment,
                             journal.segment.base + journal.at[2], 1003),
                     BLOOM_RECORD_BROKEN);

    for (i = 0; i < 64; i++) {
        assert_int_equal(read_as(&journal.segment,
                                 (journal.segment.base + journal.at[2])
                                 ^ (uint64_t) 1 << i, 1002),
                         BLOOM_RECORD_BROKEN);
    }

    for (i = 0; i < 8 * BLOOM_SEGMENT_SALT_LEN; i++) {
        other = journal.segment;
        other.salt[i / 8] ^= 1 << i % 8;
        assert_int_equal(read_as(&other, other.base + journal.at[2], 1002),
                         BLOOM_RECORD_BROKEN);
    }

    /* a segment has no record before its first */

    other = journal.segment;
    other.sequence = 1002;
    assert_int_equal(read_as(&other, other.base + journal.at[2], 0),
                     BLOOM_RECORD_OK);
    other.sequence = 1003;
    assert_int_equal(read_as(&other, other.base + journal.at[2], 0),
                     BLOOM_RECORD_BROKEN);

    free(journal.data);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_a_written_segment_header_is_read_back),
        cmocka_unit_test(test_flipped_bits_of_a_segment_header_are_detected),
        cmocka_unit_test(test_refused_segment_headers_have_a_reason),
        cmocka_unit_test(test_keys_of_all_lengths_are_read_back),
        cmocka_unit_test(test_a_record_takes_keys_up_to_its_limits),
        cmocka_unit_test(test_a_record_can_be_sealed_for_another_place),
        cmocka_unit_test(test_records_of_all_types_are_read_back),
        cmocka_unit_test(test_the_bytes_are_as_documented),
        cmocka_unit_test(test_the_bytes_of_version_2_are_as_documented),
        cmocka_unit_test(test_a_record_is_valid_in_one_place_only),
    };

    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
