/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check records of changes from a source: that their keys, parts
 * and positions are read back, that their bytes are as documented, and that
 * those which violate the format are broken.
 */

#include "segments.h"

#define AT      BLOOM_SEGMENT_HEADER     /* where each test's record is */
#define BODY    (AT + 32)
#define NAME    (BODY + 61)


static bloom_key_t
key_of(const char *text)
{
    bloom_key_t  key = { (const uint8_t *) text, strlen(text) };

    return key;
}


static bloom_position_t
at(uint64_t high, uint64_t low)
{
    bloom_position_t  position = { high, low };

    return position;
}


static bloom_digest_t
digest_of(uint64_t value, bloom_position_t since)
{
    bloom_digest_t  digest = { value, since };

    return digest;
}


/* Writes a record of changes: the first `removals` of the keys were removed.
 * Returns its size. */
static size_t
write_changes(journal_t *journal, const char *name, bloom_position_t before,
    bloom_position_t after, const char *const *keys, uint32_t removals)
{
    size_t                size;
    bloom_key_t           key;
    bloom_record_maker_t  maker;

    memset(journal->data + AT, 0, journal->size - AT);

    key = key_of(name);
    bloom_record_begin_changes(&maker, journal->data + AT, journal->size - AT,
                               &key, before, after,
                               digest_of(0x8877665544332211, before));

    for ( /* void */ ; *keys != NULL; keys++) {
        key = key_of(*keys);
        assert_int_equal(bloom_record_put(&maker, &key), 0);
    }

    maker.removals = removals;

    size = bloom_record_size(&maker);
    assert_int_equal(bloom_record_seal(&maker, &journal->segment,
                                       journal->segment.base + AT, 1000, 5),
                     size);

    return size;
}


static bloom_record_e
read_changes(bloom_record_t *record, const journal_t *journal, size_t size)
{
    uint8_t         *exact;
    bloom_record_e   rc;
    bloom_record_t   same;

    /* the memory ends with the record: no byte after it is read */

    exact = malloc(size);
    assert_non_null(exact);
    memcpy(exact, journal->data + AT, size);
    rc = bloom_record_read(&same, &journal->segment,
                           journal->segment.base + AT, 1000, exact, size);
    free(exact);

    memset(record, 0xcc, sizeof(*record));
    assert_int_equal(bloom_record_read(record, &journal->segment,
                                       journal->segment.base + AT, 1000,
                                       journal->data + AT, size), rc);

    return rc;
}


/* Checks that a record has these keys and no other. */
static void
has_keys(bloom_record_t record, const char *const *keys, size_t n)
{
    bloom_key_t  key;

    assert_int_equal(record.count, n);

    for ( /* void */ ; n > 0; n--, keys++) {
        assert_int_equal(bloom_record_key(&record, &key), 1);
        assert_int_equal(key.len, strlen(*keys));
        assert_memory_equal(key.data, *keys, key.len);
    }

    assert_int_equal(bloom_record_key(&record, &key), 0);
}


static void
check_round_trip(const char *name, bloom_position_t before,
    bloom_position_t after, const char *const *keys, uint32_t removals)
{
    size_t          size, n, i;
    journal_t       journal;
    bloom_record_t  record, part;

    create(&journal, ROOM);
    journal.segment.version = 2;

    for (n = 0, size = 32 + 61 + strlen(name); keys[n] != NULL; n++) {
        size += 1 + strlen(keys[n]);
    }

    size = (size + 7) / 8 * 8;

    assert_int_equal(write_changes(&journal, name, before, after, keys,
                                   removals), size);
    assert_int_equal(journal.data[AT + 27], 5);
    assert_int_equal(read_changes(&record, &journal, size), BLOOM_RECORD_OK);

    assert_int_equal(record.type, BLOOM_RECORD_CHANGES);
    assert_int_equal(record.sequence, 1000);
    assert_int_equal(record.time, 5);
    assert_int_equal(record.size, size);
    assert_int_equal(bloom_position_cmp(record.before, before), 0);
    assert_int_equal(bloom_position_cmp(record.after, after), 0);
    assert_int_equal(record.digest.value, 0x8877665544332211);
    assert_int_equal(bloom_position_cmp(record.digest.since, before), 0);
    assert_int_equal(record.source.len, strlen(name));
    assert_memory_equal(record.source.data, name, strlen(name));
    assert_int_equal(record.removals, removals);

    has_keys(record, keys, n);

    for (i = 0; i < 2; i++) {

        /* in any order, also again */

        bloom_record_part(&record, BLOOM_RECORD_ADD, &part);
        assert_int_equal(part.type, BLOOM_RECORD_ADD);
        assert_int_equal(part.sequence, 1000);
        assert_int_equal(part.time, 5);
        has_keys(part, keys + removals, n - removals);

        bloom_record_part(&record, BLOOM_RECORD_REMOVE, &part);
        assert_int_equal(part.type, BLOOM_RECORD_REMOVE);
        has_keys(part, keys, removals);
    }

    assert_int_equal(bloom_record_find(&part, &journal.segment,
                                       journal.segment.base + AT, 0,
                                       journal.data + AT, journal.size - AT),
                     0);

    free(journal.data);
}


static void
test_changes_are_read_back(void **state)
{
    char    name[BLOOM_SOURCE_NAME_MAX + 1];
    size_t  len;

    static const char  *const keys[] = { "one", "two", "three", "4", NULL };
    static const char  *const none[] = { NULL };

    (void) state;

    check_round_trip("ids", at(0, 0), at(0, 1), keys, 0);
    check_round_trip("ids", at(1, 5), at(2, 0), keys, 1);
    check_round_trip("ids", at(1, UINT64_MAX), at(2, 0), keys, 3);
    check_round_trip("ids", at(0, 0), at(UINT64_MAX, UINT64_MAX), keys, 4);

    /* no keys: the position moves, or there was a gap */

    check_round_trip("ids", at(1, 5), at(1, 6), none, 0);
    check_round_trip("ids", at(1, 5), at(1, 5), none, 0);
    check_round_trip("ids", at(0, 0), at(0, 0), none, 0);

    for (len = 1; len <= BLOOM_SOURCE_NAME_MAX; len++) {
        memset(name, 'n', len);
        name[len] = '\0';
        check_round_trip(name, at(1, 0), at(2, 0), keys, len % 5);
        check_round_trip(name, at(1, 0), at(2, 0), none, 0);
    }
}


/* A part has changes of both kinds, or none; the source stays where it was. */
static void
test_a_part_leaves_the_source_where_it_was(void **state)
{
    size_t                size;
    uint8_t               bad;
    journal_t             journal;
    bloom_key_t           name, key;
    bloom_record_t        record;
    bloom_record_maker_t  maker;

    static const char  *const keys[] = { "gone", "here" };

    (void) state;

    create(&journal, ROOM);
    journal.segment.version = 2;

    name = key_of("ids");
    bloom_record_begin_changes(&maker, journal.data + AT, journal.size - AT,
                               &name, at(1, 0), at(2, 0),
                               digest_of(7, at(0, 9)));
    key = key_of("gone");
    assert_int_equal(bloom_record_put(&maker, &key), 0);
    maker.removals = 1;
    key = key_of("here");
    assert_int_equal(bloom_record_put(&maker, &key), 0);

    for (maker.part = 0; maker.part <= 2; maker.part++) {

        size = bloom_record_seal(&maker, &journal.segment,
                                 journal.segment.base + AT, 1000, 5);

        if (maker.part == 2) {
            assert_int_equal(read_changes(&record, &journal, size),
                             BLOOM_RECORD_BROKEN);
            continue;
        }

        assert_int_equal(read_changes(&record, &journal, size),
                         BLOOM_RECORD_OK);
        assert_int_equal(record.part, maker.part);
        assert_int_equal(record.removals, 1);
        has_keys(record, keys, 2);

        assert_int_equal(bloom_position_cmp(bloom_record_reached(&record),
                                            maker.part ? at(1, 0) : at(2, 0)),
                         0);
    }

    /* a gap is no part */

    for (bad = 0; bad <= 1; bad++) {
        bloom_record_begin_changes(&maker, journal.data + AT,
                                   journal.size - AT, &name, at(1, 0),
                                   at(1, 0), digest_of(0, at(1, 0)));
        maker.part = bad;
        size = bloom_record_seal(&maker, &journal.segment,
                                 journal.segment.base + AT, 1000, 5);
        assert_int_equal(read_changes(&record, &journal, size),
                         bad ? BLOOM_RECORD_BROKEN : BLOOM_RECORD_OK);
    }

    free(journal.data);
}


static void
test_the_type_is_known(void **state)
{
    uint32_t  type;

    (void) state;

    for (type = 0; type < 300; type++) {
        assert_int_equal(bloom_record_known(type), type <= 3 || type == 5);
    }

    assert_int_equal(bloom_record_known(UINT32_MAX), 0);
    assert_int_equal(bloom_record_version(BLOOM_RECORD_CHANGES), 2);
    assert_int_equal(bloom_record_keyless(BLOOM_RECORD_CHANGES), 0);
}


/* The bytes of the example of changes in docs/journal-format.md. */
static void
test_the_bytes_are_as_documented(void **state)
{
    size_t                size;
    uint8_t               data[BLOOM_RECORD_CHANGES_MIN];
    bloom_key_t           name, key;
    bloom_segment_t       segment;
    bloom_record_maker_t  maker;

    static const uint8_t  first[] = {
        0x70, 0x00, 0x00, 0x00, 0x62, 0x16, 0xde, 0x23,
        0x2f, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0xbc, 0x6a, 0xe5, 0xcf, 0x8b, 0x01, 0x00, 0x00,
        0x02, 0x00, 0x00, 0x05, 0x10, 0x35, 0x0b, 0x1a,
        0x00, 0x68, 0xe5, 0xcf, 0x8b, 0x01, 0x00, 0x00,
        0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x8a, 0x6a, 0xe5, 0xcf, 0x8b, 0x01, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0xe3, 0x10, 0xee, 0xb3, 0xd0, 0x0e, 0xc7, 0x9d,
        0x00, 0x68, 0xe5, 0xcf, 0x8b, 0x01, 0x00, 0x00,
        0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x01, 0x00, 0x00, 0x00, 0x03, 0x69, 0x64, 0x73,
        0x03, 0x74, 0x77, 0x6f, 0x04, 0x66, 0x6f, 0x75,
        0x72, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00
    };

    static const uint8_t  second[] = {
        0x60, 0x00, 0x00, 0x00, 0xdc, 0xe5, 0x08, 0x82,
        0x30, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0xb6, 0x6b, 0xe5, 0xcf, 0x8b, 0x01, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x05, 0x51, 0x2c, 0x2d, 0x6f,
        0x84, 0x6b, 0xe5, 0xcf, 0x8b, 0x01, 0x00, 0x00,
        0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x84, 0x6b, 0xe5, 0xcf, 0x8b, 0x01, 0x00, 0x00,
        0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x84, 0x6b, 0xe5, 0xcf, 0x8b, 0x01, 0x00, 0x00,
        0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x03, 0x69, 0x64, 0x73
    };

    (void) state;

    memset(&segment, 0, sizeof(segment));
    segment.version = 2;
    segment.base = 4 * BLOOM_SEGMENT_SIZE;
    segment.size = BLOOM_SEGMENT_SIZE;
    memcpy(segment.salt, "\x01\x23\x45\x67\x89\xab\xcd\xef"
                         "\x01\x23\x45\x67\x89\xab\xcd\xef", 16);

    name = key_of("ids");
    bloom_record_begin_changes(&maker, data, sizeof(data), &name,
                               at(1700000000000, 2), at(1700000000650, 0),
                               digest_of(0x9dc70ed0b3ee10e3, at(1700000000000, 2)));
    key = key_of("two");
    assert_int_equal(bloom_record_put(&maker, &key), 0);
    maker.removals = 1;
    key = key_of("four");
    assert_int_equal(bloom_record_put(&maker, &key), 0);

    size = bloom_record_seal(&maker, &segment, segment.base + AT, 47,
                             1700000000700);
    assert_int_equal(size, sizeof(first));
    assert_memory_equal(data, first, size);

    bloom_record_begin_changes(&maker, data, sizeof(data), &name,
                               at(1700000000900, 1), at(1700000000900, 1),
                               digest_of(0, at(1700000000900, 1)));
    size = bloom_record_seal(&maker, &segment,
                             segment.base + AT + sizeof(first), 48,
                             1700000000950);
    assert_int_equal(size, sizeof(second));
    assert_memory_equal(data, second, size);
}


/* A record is sealed again for another place and with other changes behind. */
static void
test_changes_can_be_sealed_for_another_place(void **state)
{
    size_t                size;
    uint8_t               buf[BLOOM_RECORD_CHANGES_MIN + 64];
    journal_t             journal;
    bloom_key_t           name, key;
    bloom_record_t        record;
    bloom_record_maker_t  maker;

    static const char  *const keys[] = { "gone", "here", "too" };

    (void) state;

    create(&journal, ROOM);

    name = key_of("ids");
    bloom_record_begin_changes(&maker, buf, sizeof(buf), &name, at(1, 0),
                               at(2, 0), digest_of(7, at(0, 9)));
    key = key_of("gone");
    assert_int_equal(bloom_record_put(&maker, &key), 0);
    maker.removals = maker.count;
    key = key_of("here");
    assert_int_equal(bloom_record_put(&maker, &key), 0);

    size = bloom_record_seal(&maker, &journal.segment, 160, 1000, 5);
    assert_int_equal(bloom_record_seal(&maker, &journal.segment, 800, 1010, 6),
                     size);

    assert_int_equal(bloom_record_read(&record, &journal.segment, 160, 0, buf,
                                       size), BLOOM_RECORD_BROKEN);
    assert_int_equal(bloom_record_read(&record, &journal.segment, 800, 1010,
                                       buf, size), BLOOM_RECORD_OK);
    assert_int_equal(record.removals, 1);
    assert_int_equal(bloom_position_cmp(record.after, at(2, 0)), 0);
    has_keys(record, keys, 2);

    /* the padding of the first seal gives way to another key */

    key = key_of("too");
    assert_int_equal(bloom_record_put(&maker, &key), 0);
    size = bloom_record_seal(&maker, &journal.segment, 240, 1011, 7);
    assert_int_equal(bloom_record_read(&record, &journal.segment, 240, 1011,
                                       buf, size), BLOOM_RECORD_OK);
    has_keys(record, keys, 3);

    /* nothing of it is left in a plain record */

    bloom_record_begin(&maker, buf, sizeof(buf));
    assert_int_equal(bloom_record_put(&maker, &key), 0);
    assert_int_equal(bloom_record_seal(&maker, &journal.segment, 8, 1000, 5),
                     40);
    assert_int_equal(bloom_record_read(&record, &journal.segment, 8, 1000, buf,
                                       40), BLOOM_RECORD_OK);
    has_keys(record, keys + 2, 1);

    free(journal.data);
}


/* The least room is enough for the longest name, and is never exceeded. */
static void
test_changes_keep_within_their_room(void **state)
{
    char                  name[BLOOM_SOURCE_NAME_MAX + 1];
    size_t                room, n, size;
    uint8_t               buf[BLOOM_RECORD_CHANGES_MIN + 64];
    journal_t             journal;
    bloom_key_t           source, key;
    bloom_record_t        record;
    bloom_record_maker_t  maker;

    (void) state;

    create(&journal, ROOM);
    memset(name, 'n', BLOOM_SOURCE_NAME_MAX);
    name[BLOOM_SOURCE_NAME_MAX] = '\0';
    source = key_of(name);
    key = key_of("k");

    for (room = BLOOM_RECORD_CHANGES_MIN; room < sizeof(buf); room++) {
        memset(buf, 0xcc, sizeof(buf));
        bloom_record_begin_changes(&maker, buf, room, &source, at(1, 0),
                                   at(2, 0), digest_of(7, at(0, 9)));

        for (n = 0; bloom_record_put(&maker, &key) == 0; n++) {
            /* void */
        }

        assert_int_equal(n, (room / 8 * 8 - 32 - 61 - 255) / 2);
        size = bloom_record_seal(&maker, &journal.segment, 8, 1000, 5);
        assert_true(size <= room);
        assert_int_equal(buf[room], 0xcc);
        assert_int_equal(bloom_record_read(&record, &journal.segment, 8, 1000,
                                           buf, size), BLOOM_RECORD_OK);
        assert_int_equal(record.count, n);
    }

    free(journal.data);
}


/* ---- violations of the format ---- */


/* Changes bytes of the record and corrects the checksums. */
static bloom_record_e
read_with(journal_t *journal, size_t size, size_t offset, const void *bytes,
    size_t len)
{
    uint8_t         was[64];
    bloom_record_e  rc;
    bloom_record_t  record;

    memcpy(was, journal->data + offset, len);
    memcpy(journal->data + offset, bytes, len);
    make_checksums(journal, AT, size);

    rc = read_changes(&record, journal, size);

    if (rc == BLOOM_RECORD_BROKEN) {
        assert_int_equal(bloom_record_find(&record, &journal->segment,
                                           journal->segment.base + AT, 0,
                                           journal->data + AT,
                                           journal->size - AT),
                         journal->size - AT);
    }

    memcpy(journal->data + offset, was, len);
    make_checksums(journal, AT, size);

    return rc;
}


#define with(offset, bytes)                                                  \
    read_with(&journal, size, offset, bytes, sizeof(bytes) - 1)


static void
test_wrong_numbers_of_removals_are_broken(void **state)
{
    size_t     size;
    journal_t  journal;

    static const char  *const keys[] = { "a", "b", "c", NULL };
    static const char  *const none[] = { NULL };

    (void) state;

    create(&journal, ROOM);
    size = write_changes(&journal, "ids", at(1, 0), at(2, 0), keys, 1);

    assert_int_equal(with(BODY + 56, "\0\0\0\0"), BLOOM_RECORD_OK);
    assert_int_equal(with(BODY + 56, "\3\0\0\0"), BLOOM_RECORD_OK);
    assert_int_equal(with(BODY + 56, "\4\0\0\0"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(BODY + 56, "\1\0\0\1"), BLOOM_RECORD_OK);
    assert_int_equal(with(BODY + 56, "\1\0\0\2"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(BODY + 56, "\4\0\0\1"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(BODY + 56, "\xff\xff\xff\xff"), BLOOM_RECORD_BROKEN);

    /* wrong numbers of keys */

    assert_int_equal(with(AT + 24, "\2\0\0"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(AT + 24, "\4\0\0"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(AT + 24, "\0\0\0"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(AT + 24, "\xff\xff\xff"), BLOOM_RECORD_BROKEN);

    size = write_changes(&journal, "ids", at(1, 0), at(2, 0), none, 0);
    assert_int_equal(with(BODY + 56, "\0\0\0\0"), BLOOM_RECORD_OK);
    assert_int_equal(with(BODY + 56, "\1\0\0\0"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(AT + 24, "\1\0\0"), BLOOM_RECORD_BROKEN);

    free(journal.data);
}


static void
test_positions_that_go_back_are_broken(void **state)
{
    size_t     size;
    journal_t  journal;

    static const char  *const keys[] = { "a", NULL };
    static const char  *const none[] = { NULL };

    (void) state;

    create(&journal, ROOM);
    size = write_changes(&journal, "ids", at(5, 5), at(6, 0), keys, 0);

#define position(high, low)  high "\0\0\0\0\0\0\0" low "\0\0\0\0\0\0\0"

    assert_int_equal(with(BODY, position("\6", "\0")), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(BODY, position("\6", "\1")), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(BODY, position("\7", "\0")), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(BODY, position("\5", "\6")), BLOOM_RECORD_OK);

    /* the digest begins before the changes */

    assert_int_equal(with(BODY + 40, position("\5", "\5")), BLOOM_RECORD_OK);
    assert_int_equal(with(BODY + 40, position("\0", "\0")), BLOOM_RECORD_OK);
    assert_int_equal(with(BODY + 40, position("\4", "\6")), BLOOM_RECORD_OK);
    assert_int_equal(with(BODY + 40, position("\5", "\6")),
                     BLOOM_RECORD_BROKEN);
    assert_int_equal(with(BODY + 40, position("\6", "\0")),
                     BLOOM_RECORD_BROKEN);
    assert_int_equal(with(BODY, position("\5", "\4")), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(BODY + 16, position("\5", "\5")),
                     BLOOM_RECORD_BROKEN);
    assert_int_equal(with(BODY + 16, position("\5", "\4")),
                     BLOOM_RECORD_BROKEN);
    assert_int_equal(with(BODY + 16, position("\4", "\6")),
                     BLOOM_RECORD_BROKEN);
    assert_int_equal(with(BODY + 16, position("\5", "\6")), BLOOM_RECORD_OK);

    /* without keys, both may be equal: a gap */

    size = write_changes(&journal, "ids", at(5, 5), at(6, 0), none, 0);

    assert_int_equal(with(BODY, position("\6", "\0")), BLOOM_RECORD_OK);
    assert_int_equal(with(BODY, position("\6", "\1")), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(BODY, position("\7", "\0")), BLOOM_RECORD_BROKEN);

    free(journal.data);
}


static void
test_invalid_names_are_broken(void **state)
{
    size_t     size;
    journal_t  journal;

    static const char  *const keys[] = { "aaa", NULL };
    static const char  *const none[] = { NULL };

    (void) state;

    create(&journal, ROOM);
    size = write_changes(&journal, "ids", at(1, 0), at(2, 0), keys, 0);
    assert_int_equal(size, 104);

    assert_int_equal(with(NAME, "IDS"), BLOOM_RECORD_OK);
    assert_int_equal(with(NAME, "i s"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(NAME, "i\0s"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(NAME, "\xc3\xa4s"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(NAME, "id\n"), BLOOM_RECORD_BROKEN);

    /* a length that does not fit the name and the keys */

    assert_int_equal(with(NAME - 1, "\0"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(NAME - 1, "\2"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(NAME - 1, "\4"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(NAME - 1, "\xff"), BLOOM_RECORD_BROKEN);

    /* a name of valid characters that runs over the record's end, by one byte
     * and by many; and one that leaves no room for the keys */

    size = write_changes(&journal, "123", at(1, 0), at(2, 0), none, 0);
    assert_int_equal(size, 96);
    memset(journal.data + NAME, 'n', 300);
    make_checksums(&journal, AT, size);

    assert_int_equal(with(NAME - 1, "\3"), BLOOM_RECORD_OK);
    assert_int_equal(with(NAME - 1, "\4"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(NAME - 1, "\xff"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(AT + 24, "\1\0\0"), BLOOM_RECORD_BROKEN);

    free(journal.data);
}


static void
test_sizes_that_do_not_fit_are_broken(void **state)
{
    size_t          size, i;
    journal_t       journal;
    bloom_record_t  record;

    static const char  *const none[] = { NULL };

    (void) state;

    create(&journal, ROOM);

    /* too short for the fields before the keys, which are not read then */

    size = write_changes(&journal, "123", at(1, 0), at(2, 0), none, 0);

    for (i = 40; i < size; i += 8) {
        journal.data[AT] = (uint8_t) i;
        make_checksums(&journal, AT, i);
        assert_int_equal(read_changes(&record, &journal, i),
                         BLOOM_RECORD_BROKEN);
    }

    journal.data[AT] = (uint8_t) size;
    make_checksums(&journal, AT, size);
    assert_int_equal(read_at(&journal, AT, 1000), BLOOM_RECORD_OK);

    /* more padding than necessary */

    journal.data[AT] = (uint8_t) (size + 8);
    make_checksums(&journal, AT, size + 8);
    assert_int_equal(read_at(&journal, AT, 1000), BLOOM_RECORD_BROKEN);

    /* padding that is not zero, and a key that violates the format */

    size = write_changes(&journal, "i", at(1, 0), at(2, 0), none, 0);
    assert_int_equal(with(AT + size - 1, "x"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(AT + 24, "\1\0\0"), BLOOM_RECORD_BROKEN);
    assert_int_equal(with(NAME + 1, "\1"), BLOOM_RECORD_BROKEN);

    free(journal.data);
}


/* A flip of any bit is detected. */
static void
test_every_damaged_byte_is_detected(void **state)
{
    size_t          i, size;
    journal_t       journal;
    bloom_record_t  record;

    static const char  *const keys[] = { "gone", "here", NULL };

    (void) state;

    create(&journal, ROOM);
    size = write_changes(&journal, "ids", at(1, 0), at(2, 0), keys, 1);

    for (i = 0; i < 8 * size; i++) {
        journal.data[AT + i / 8] ^= (uint8_t) (1 << i % 8);
        assert_int_equal(read_changes(&record, &journal, size),
                         BLOOM_RECORD_BROKEN);
        journal.data[AT + i / 8] ^= (uint8_t) (1 << i % 8);
    }

    assert_int_equal(read_changes(&record, &journal, size), BLOOM_RECORD_OK);

    free(journal.data);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_changes_are_read_back),
        cmocka_unit_test(test_a_part_leaves_the_source_where_it_was),
        cmocka_unit_test(test_the_type_is_known),
        cmocka_unit_test(test_the_bytes_are_as_documented),
        cmocka_unit_test(test_changes_can_be_sealed_for_another_place),
        cmocka_unit_test(test_changes_keep_within_their_room),
        cmocka_unit_test(test_wrong_numbers_of_removals_are_broken),
        cmocka_unit_test(test_positions_that_go_back_are_broken),
        cmocka_unit_test(test_invalid_names_are_broken),
        cmocka_unit_test(test_sizes_that_do_not_fit_are_broken),
        cmocka_unit_test(test_every_damaged_byte_is_detected),
    };

    return cmocka_run_group_tests_name("record_changes", tests, NULL, NULL);
}
