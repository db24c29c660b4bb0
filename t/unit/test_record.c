/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check that segments and records that are written can be read, and
 * that their bytes are as documented.
 */

#include "bloom_exceptions.h"
#include "segments.h"


/* ---- segments ---- */


TEST(a_written_segment_header_is_read_back)
{
    char             error[BLOOM_RECORD_ERROR_LEN];
    journal_t        journal;
    bloom_segment_t  segment;

    create(&journal, ROOM);

    assert_int_equal(bloom_segment_decode(&segment, journal.data,
                                          BLOOM_SEGMENT_HEADER, error),
                     BLOOM_SEGMENT_OK);
    assert_int_equal(bloom_segment_decode(&segment, journal.data,
                                          BLOOM_SEGMENT_SIZE, error),
                     BLOOM_SEGMENT_OK);

    assert_int_equal(segment.base, journal.segment.base);
    assert_int_equal(segment.size, journal.segment.size);
    assert_int_equal(segment.sequence, journal.segment.sequence);
    assert_int_equal(segment.created, journal.segment.created);
    assert_int_equal(segment.entry, journal.segment.entry);
    assert_memory_equal(segment.salt, journal.segment.salt,
                        BLOOM_SEGMENT_SALT_LEN);
    assert_memory_equal(segment.journal, journal.segment.journal,
                        BLOOM_JOURNAL_ID_LEN);

    free(journal.data);
}


/* A flip of any bit of the header is detected. */
TEST(flipped_bits_of_a_segment_header_are_detected)
{
    int              bit;
    char             error[BLOOM_RECORD_ERROR_LEN];
    journal_t        journal;
    bloom_segment_t  segment;

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


TEST(refused_segment_headers_have_a_reason)
{
    size_t     i;
    uint32_t   version;
    journal_t  journal;

    static const uint8_t  zeros[BLOOM_SEGMENT_HEADER];

    static const struct {
        size_t    at;
        size_t    bytes;
        uint64_t  value;
    } impossible[] = {
        {  12, 4, 0x01020305 },                    /* byte order */
        {  16, 8, 0 },                             /* size */
        {  16, 8, BLOOM_SEGMENT_MIN - 8 },
        {  16, 8, BLOOM_SEGMENT_MIN + 4 },
        {  16, 8, BLOOM_SEGMENT_MAX + 8 },
        {  16, 8, UINT64_MAX - 7 },
        {  24, 8, 4 },                             /* base */
        {  24, 8, UINT64_MAX - 7 },
        {  32, 8, 0 },                             /* sequence */
        {  88, 8, 1 },                             /* reserved */
        { 116, 8, (uint64_t) 1 << 63 }
    };

    create(&journal, ROOM);

    refused(zeros, 0, BLOOM_SEGMENT_NONE, "is empty");
    refused(zeros, 1, BLOOM_SEGMENT_NONE, "is not a segment");
    refused(zeros, ROOM, BLOOM_SEGMENT_NONE, "is not a segment");

    refused(journal.data, BLOOM_SEGMENT_HEADER - 1, BLOOM_SEGMENT_DAMAGED,
            "is truncated: it has 127 bytes, but a header has 128");
    refused(journal.data, BLOOM_SEGMENT_SIZE + 1, BLOOM_SEGMENT_DAMAGED,
            "is too long");

    for (version = 0; version <= 2; version++) {
        refused_with(&journal, 8, version, 4, BLOOM_SEGMENT_FOREIGN,
                     "but this program reads version 3; use the program that "
                     "wrote it, or move the file away and lose its keys");
    }

    refused_with(&journal, 8, 4, 4, BLOOM_SEGMENT_FOREIGN,
                 "has version 4, but this program reads version 3; use a newer "
                 "program, or move the file away and lose its keys");
    refused_with(&journal, 8, UINT32_MAX, 4, BLOOM_SEGMENT_FOREIGN,
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


TEST(keys_of_all_lengths_are_read_back)
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

    bytes = unit_alloc(BLOOM_KEY_MAX);

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
        assert_int_equal(record_at(&journal, journal.at[i], 1000 + i, &record),
                         BLOOM_RECORD_OK);

        assert_int_equal(record.count, 1);
        assert_int_equal(record.stamp.sequence, 1000 + i);
        assert_int_equal(record.stamp.time, time_of(1000 + i));
        assert_int_equal(record.stamp.durable, 1000 + i - 1);
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

            assert_int_equal(record_at(&journal, BLOOM_SEGMENT_HEADER, 0,
                                       &record),
                             BLOOM_RECORD_OK);
            assert_int_equal(bloom_record_key(&record, &key), 1);
            assert_int_equal(key.len, j);
            assert_memory_equal(key.data, bytes, j);
        }
    }

    free(journal.data);
    free(bytes);
}


TEST(a_record_takes_keys_up_to_its_limits)
{
    size_t                room, n, size;
    uint8_t              *buf, *bytes;
    journal_t             journal;
    bloom_key_t           key;
    bloom_record_t        record;
    bloom_record_maker_t  maker;

    create(&journal, ROOM);
    buf = unit_alloc(2 * BLOOM_RECORD_MAX);
    bytes = unit_zeros(BLOOM_KEY_MAX + 1);

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
    assert_int_equal(seal(&maker, &journal.segment, 8, 1000, 1), SMALL);

    /* a record of exactly the greatest size: two keys */

    bloom_record_begin(&maker, buf, 2 * BLOOM_RECORD_MAX);
    key.len = BLOOM_KEY_MAX;
    assert_int_equal(bloom_record_put(&maker, &key), 0);
    key.len = BLOOM_RECORD_MAX - BLOOM_RECORD_HEADER
              - (3 + BLOOM_KEY_MAX) - 3 + 1;
    assert_int_equal(bloom_record_put(&maker, &key), -1);
    key.len--;
    assert_int_equal(bloom_record_put(&maker, &key), 0);

    size = seal(&maker, &journal.segment, 8, 1000, 1);
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
    size = seal(&maker, &journal.segment, 8, 1000, 1);
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

        size = n ? seal(&maker, &journal.segment, 8, 1000, 1)
                 : BLOOM_RECORD_HEADER;
        assert_true(size <= room);
        assert_int_equal(buf[room], 0xcc);
    }

    free(journal.data);
    free(buf);
    free(bytes);
}


/* Records of changes are tested in test_record_changes.c. */
TEST(records_of_all_types_are_read_back)
{
    uint8_t               buf[2 * SMALL];
    uint32_t              type, kinds;
    uint64_t              position;
    journal_t             journal;
    bloom_key_t           one = { (const uint8_t *) "one", 3 };
    bloom_key_t           key;
    bloom_record_t        record;
    bloom_record_maker_t  maker;

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

        assert_int_equal(bloom_record_size(&maker), SMALL);
        assert_int_equal(seal(&maker, &journal.segment, position, 1000, 5),
                         SMALL);
        assert_int_equal(buf[27], type);
        assert_int_equal(buf[SMALL], 0xcc);

        assert_int_equal(bloom_record_read(&record, &journal.segment, position,
                                           1000, buf, SMALL),
                         BLOOM_RECORD_OK);
        assert_int_equal(record.type, type);
        assert_int_equal(record.size, SMALL);
        assert_int_equal(record.stamp.time, 5);

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

    position += SMALL;

    assert_int_equal(seal(&maker, &journal.segment, position, 1000, 5), SMALL);
    assert_int_equal(bloom_record_read(&record, &journal.segment, position,
                                       1000, buf, SMALL),
                     BLOOM_RECORD_BROKEN);

    /* a restoration says of which kinds, and nothing else */

    for (kinds = 0; kinds < 256; kinds++) {
        bloom_record_begin(&maker, buf, sizeof(buf));
        maker.type = BLOOM_RECORD_RESTORE;
        maker.kinds = kinds;

        assert_int_equal(seal(&maker, &journal.segment, position, 1000, 5),
                         SMALL);
        assert_int_equal(bloom_record_read(&record, &journal.segment, position,
                                           1000, buf, SMALL),
                         kinds == 2 || kinds == 4 || kinds == 6
                         ? BLOOM_RECORD_OK : BLOOM_RECORD_BROKEN);

        if (kinds == 6) {
            assert_int_equal(record.kinds, 6);
        }
    }

    free(journal.data);
}


/*
 * Reads the bytes of an example of docs/journal-format.md, which has them in
 * groups of two, with a comment behind them.  Rows that it leaves out are
 * zeros.
 */
static void
read_example(const char *title, uint8_t *bytes, size_t size)
{
    char      line[200], heading[100];
    FILE     *f;
    size_t    i, at, column;
    unsigned  byte;

    f = fopen("docs/journal-format.md", "r");

    if (f == NULL) {
        fail_msg("run this from the top directory of the checkout");
    }

    snprintf(heading, sizeof(heading), "## %s\n", title);
    memset(bytes, 0, size);

    do {
        assert_non_null(fgets(line, sizeof(line), f));
    } while (strcmp(line, heading) != 0);

    while (fgets(line, sizeof(line), f) != NULL && line[0] != '#') {
        if (sscanf(line, "    %8zx", &at) != 1 || line[12] != ':') {
            continue;
        }

        for (i = 0; i < 16; i++, at++) {
            column = 14 + i / 2 * 5 + i % 2 * 2;

            if (line[column] == ' ') {
                break;
            }

            assert_int_equal(sscanf(line + column, "%2x", &byte), 1);
            assert_true(at < size);
            bytes[at] = (uint8_t) byte;
        }
    }

    fclose(f);
}


#define ID  "\xc0\xc1\xc2\xc3\xc4\xc5\xc6\xc7\xc8\xc9\xca\xcb\xcc\xcd\xce\xcf"

/* t/tool/journal.t compares the same examples with a second writer. */
TEST(the_bytes_are_as_documented)
{
    size_t                i, j, k, at;
    uint8_t               data[512], shown[512];
    bloom_key_t           key, name = { (const uint8_t *) "ids", 3 };
    const uint8_t        *p;
    bloom_stamp_t         stamp;
    bloom_digest_t        digest;
    bloom_record_maker_t  maker;

    static const struct {
        const char       *title;
        bloom_segment_t   segment;
    } examples[] = {
        { "An example",
          { 2 << 24, 1 << 24, 42, 1700000000000, 1, ID,
            "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff"
          } },
        { "An example of other types",
          { 3 << 24, 1 << 24, 43, 1700000000200, 1, ID,
            "\xff\xee\xdd\xcc\xbb\xaa\x99\x88\x77\x66\x55\x44\x33\x22\x11\x00"
          } },
        { "An example of changes",
          { 4 << 24, 1 << 24, 47, 1700000000600, 2, ID,
            "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef"
          } },
    };

    static const struct {
        size_t            example;
        uint32_t          type;
        uint64_t          time;
        uint64_t          durable;
        size_t            count;
        const char       *keys;          /* each after its length */
        uint32_t          removals;
        bloom_position_t  before, after;
        uint64_t          digest;
    } records[] = {
        { 0, BLOOM_RECORD_ADD, 1700000000123, 40, 2, "\3one\2\0\xff" },
        { 1, BLOOM_RECORD_CLEAR, 1700000000300, 42 },
        { 1, BLOOM_RECORD_ADD, 1700000000323, 42, 2, "\3two\5three" },
        { 1, BLOOM_RECORD_REMOVE, 1700000000456, 43, 1, "\3two" },
        { 1, BLOOM_RECORD_RESTORE, 1700000000500, 44 },
        { 2, BLOOM_RECORD_CHANGES, 1700000000700, 46, 2, "\3two\4four", 1,
          { 1700000000000, 2 }, { 1700000000650, 0 }, 0x9dc70ed0b3ee10e3 },
        { 2, BLOOM_RECORD_CHANGES, 1700000000950, 47, 0, NULL, 0,
          { 1700000000900, 1 }, { 1700000000900, 1 }, 0 },
    };

    memset(&stamp, 0, sizeof(stamp));

    for (i = 0, j = 0; i < array_len(examples); i++) {
        memset(data, 0, sizeof(data));
        bloom_segment_encode(&examples[i].segment, data);

        for (k = 0, at = BLOOM_SEGMENT_HEADER;
             j < array_len(records) && records[j].example == i; j++, k++)
        {
            bloom_record_begin(&maker, data + at, sizeof(data) - at);

            if (records[j].type == BLOOM_RECORD_CHANGES) {
                digest.value = records[j].digest;
                digest.since = records[j].before;
                bloom_record_begin_changes(&maker, data + at,
                                           sizeof(data) - at, &name,
                                           records[j].before,
                                           records[j].after, digest);
            }

            maker.type = records[j].type;
            maker.kinds = BLOOM_EXCEPTION_REMOVED;
            maker.removals = records[j].removals;

            for (p = (const uint8_t *) records[j].keys;
                 maker.count < records[j].count; p = key.data + key.len)
            {
                key.data = p + 1;
                key.len = *p;
                assert_int_equal(bloom_record_put(&maker, &key), 0);
            }

            stamp.sequence = examples[i].segment.sequence + k;
            stamp.time = records[j].time;
            stamp.durable = records[j].durable;

            at += bloom_record_seal(&maker, &examples[i].segment,
                                    examples[i].segment.base + at, &stamp);
        }

        read_example(examples[i].title, shown, sizeof(shown));
        assert_memory_equal(data, shown, sizeof(data));
    }
}


/* A record is valid in one place only. */
TEST(a_record_is_valid_in_one_place_only)
{
    int              i;
    uint8_t         *data;
    journal_t        journal;
    bloom_record_t   record;
    bloom_segment_t  other;

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


/* ---- counts of removed keys ---- */


/* Seals a record behind `before`, reads it, and checks what it has counted. */
static void
counts(bloom_record_maker_t *maker, bloom_removals_t before, uint64_t keys,
    uint64_t bytes)
{
    int              again;
    size_t           size;
    uint64_t         position;
    journal_t        journal;
    bloom_stamp_t    stamp;
    bloom_record_t   record;

    create(&journal, ROOM);
    position = journal.segment.base + BLOOM_SEGMENT_HEADER;

    /* the second seal adds no more than the first one */

    for (again = 0; again <= 1; again++) {
        stamp.sequence = 1000;
        stamp.time = 5;
        stamp.durable = 7;
        stamp.removals = before;

        size = bloom_record_seal(maker, &journal.segment, position, &stamp);

        assert_int_equal(stamp.removals.keys, before.keys + keys);
        assert_int_equal(stamp.removals.bytes, before.bytes + bytes);

        assert_int_equal(bloom_record_read(&record, &journal.segment, position,
                                           1000, maker->buf, size),
                         BLOOM_RECORD_OK);
        assert_memory_equal(&record.stamp, &stamp, sizeof(stamp));
        assert_int_equal(bloom_get64(maker->buf + 40), stamp.removals.keys);
        assert_int_equal(bloom_get64(maker->buf + 48), stamp.removals.bytes);
    }

    free(journal.data);
}


TEST(removed_keys_are_counted)
{
    size_t                i, len;
    uint8_t              *buf, *bytes;
    uint32_t              type, first;
    bloom_key_t           name = { (const uint8_t *) "ids", 3 };
    bloom_key_t           key;
    bloom_digest_t        digest = { 7, { 0, 9 } };
    bloom_position_t      here = { 1, 0 }, there = { 2, 0 };
    bloom_record_maker_t  maker;

    static const bloom_removals_t  before[] = {
        { 0, 0 }, { 3, 14 }, { (uint64_t) 1 << 40, (uint64_t) 1 << 50 }
    };

    /* lengths of keys: 302 bytes, of which the first two keys have 2 */

    static const size_t  lens[] = { 1, 1, 300 };

    buf = unit_alloc(BLOOM_RECORD_MAX);
    bytes = unit_zeros(BLOOM_KEY_MAX);
    key.data = bytes;

    for (i = 0; i < array_len(before); i++) {

        for (type = BLOOM_RECORD_ADD; type <= BLOOM_RECORD_CLEAR; type++) {
            bloom_record_begin(&maker, buf, BLOOM_RECORD_MAX);
            maker.type = type;
            maker.kinds = BLOOM_EXCEPTION_REMOVED;

            for (len = 0; !bloom_record_keyless(type) && len < array_len(lens);
                 len++)
            {
                key.len = lens[len];
                assert_int_equal(bloom_record_put(&maker, &key), 0);
            }

            if (type == BLOOM_RECORD_REMOVE) {
                counts(&maker, before[i], 3, 302);

            } else {
                counts(&maker, before[i], 0, 0);
            }
        }

        /* of changes, the first keys, also of a part */

        for (first = 0; first <= array_len(lens); first++) {
            bloom_record_begin_changes(&maker, buf, BLOOM_RECORD_MAX, &name,
                                       here, there, digest);
            maker.removals = first;

            for (len = 0; len < array_len(lens); len++) {
                key.len = lens[len];
                assert_int_equal(bloom_record_put(&maker, &key), 0);
            }

            for (maker.part = 0; maker.part <= 1; maker.part++) {
                counts(&maker, before[i], first, first == 3 ? 302 : first);
            }
        }

        /* a gap has none */

        bloom_record_begin_changes(&maker, buf, BLOOM_RECORD_MAX, &name, there,
                                   there, digest);
        counts(&maker, before[i], 0, 0);
    }

    /* the longest key */

    bloom_record_begin(&maker, buf, BLOOM_RECORD_MAX);
    maker.type = BLOOM_RECORD_REMOVE;
    key.len = BLOOM_KEY_MAX;
    assert_int_equal(bloom_record_put(&maker, &key), 0);
    counts(&maker, before[1], 1, BLOOM_KEY_MAX);

    free(buf);
    free(bytes);
}
