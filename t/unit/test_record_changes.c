/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check records of changes from a source: that their keys, parts
 * and positions are read back, and that those which violate the format are
 * broken.
 */

#include "segments.h"

#define AT      BLOOM_SEGMENT_HEADER     /* where each test's record is */
#define BODY    (AT + 56)
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
    assert_int_equal(seal(&maker, &journal->segment,
                          journal->segment.base + AT, 1000, 5), size);

    return size;
}


static bloom_record_e
read_changes(bloom_record_t *record, const journal_t *journal, size_t size)
{
    uint8_t         *exact;
    bloom_record_e   rc;
    bloom_record_t   same;

    /* the memory ends with the record: no byte after it is read */

    exact = unit_copy(journal->data + AT, size);
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

    for (n = 0, size = 56 + 61 + strlen(name); keys[n] != NULL; n++) {
        size += 1 + strlen(keys[n]);
    }

    size = (size + 7) / 8 * 8;

    assert_int_equal(write_changes(&journal, name, before, after, keys,
                                   removals), size);
    assert_int_equal(journal.data[AT + 27], 4);
    assert_int_equal(read_changes(&record, &journal, size), BLOOM_RECORD_OK);

    assert_int_equal(record.type, BLOOM_RECORD_CHANGES);
    assert_int_equal(record.stamp.sequence, 1000);
    assert_int_equal(record.stamp.time, 5);
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
        assert_int_equal(part.stamp.sequence, 1000);
        assert_int_equal(part.stamp.time, 5);
        has_keys(part, keys + removals, n - removals);

        bloom_record_part(&record, BLOOM_RECORD_REMOVE, &part);
        assert_int_equal(part.type, BLOOM_RECORD_REMOVE);
        has_keys(part, keys, removals);
    }

    assert_int_equal(find_at(&journal, AT, 0, &part), 0);

    free(journal.data);
}


TEST(changes_are_read_back)
{
    char    name[BLOOM_SOURCE_NAME_MAX + 1];
    size_t  len;

    static const char  *const keys[] = { "one", "two", "three", "4", NULL };
    static const char  *const none[] = { NULL };

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
TEST(a_part_leaves_the_source_where_it_was)
{
    size_t                size;
    uint8_t               bad;
    journal_t             journal;
    bloom_key_t           name, key;
    bloom_record_t        record;
    bloom_record_maker_t  maker;

    static const char  *const keys[] = { "gone", "here" };

    create(&journal, ROOM);

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

        size = seal(&maker, &journal.segment, journal.segment.base + AT, 1000,
                    5);

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
        size = seal(&maker, &journal.segment, journal.segment.base + AT, 1000,
                    5);
        assert_int_equal(read_changes(&record, &journal, size),
                         bad ? BLOOM_RECORD_BROKEN : BLOOM_RECORD_OK);
    }

    free(journal.data);
}


TEST(the_type_is_known)
{
    uint32_t  type;

    for (type = 0; type < 300; type++) {
        assert_int_equal(bloom_record_known(type), type <= 4);
    }

    assert_int_equal(bloom_record_known(UINT32_MAX), 0);
    assert_int_equal(bloom_record_keyless(BLOOM_RECORD_CHANGES), 0);
}


/* A record is sealed again for another place and with other changes behind. */
TEST(changes_can_be_sealed_for_another_place)
{
    size_t                size;
    uint8_t               buf[BLOOM_RECORD_CHANGES_MIN + 64];
    journal_t             journal;
    bloom_key_t           name, key;
    bloom_record_t        record;
    bloom_record_maker_t  maker;

    static const char  *const keys[] = { "gone", "here", "too" };

    create(&journal, ROOM);

    name = key_of("ids");
    bloom_record_begin_changes(&maker, buf, sizeof(buf), &name, at(1, 0),
                               at(2, 0), digest_of(7, at(0, 9)));
    key = key_of("gone");
    assert_int_equal(bloom_record_put(&maker, &key), 0);
    maker.removals = maker.count;
    key = key_of("here");
    assert_int_equal(bloom_record_put(&maker, &key), 0);

    size = seal(&maker, &journal.segment, 160, 1000, 5);
    assert_int_equal(seal(&maker, &journal.segment, 800, 1010, 6), size);

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
    size = seal(&maker, &journal.segment, 240, 1011, 7);
    assert_int_equal(bloom_record_read(&record, &journal.segment, 240, 1011,
                                       buf, size), BLOOM_RECORD_OK);
    has_keys(record, keys, 3);

    /* nothing of it is left in a plain record */

    bloom_record_begin(&maker, buf, sizeof(buf));
    assert_int_equal(bloom_record_put(&maker, &key), 0);
    assert_int_equal(seal(&maker, &journal.segment, 8, 1000, 5), SMALL);
    assert_int_equal(bloom_record_read(&record, &journal.segment, 8, 1000, buf,
                                       SMALL), BLOOM_RECORD_OK);
    has_keys(record, keys + 2, 1);

    free(journal.data);
}


/* The least room is enough for the longest name, and is never exceeded. */
TEST(changes_keep_within_their_room)
{
    char                  name[BLOOM_SOURCE_NAME_MAX + 1];
    size_t                room, n, size;
    uint8_t               buf[BLOOM_RECORD_CHANGES_MIN + 64];
    journal_t             journal;
    bloom_key_t           source, key;
    bloom_record_t        record;
    bloom_record_maker_t  maker;

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

        assert_int_equal(n, (room / 8 * 8 - 56 - 61 - 255) / 2);
        size = seal(&maker, &journal.segment, 8, 1000, 5);
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
        assert_int_equal(find_at(journal, AT, 0, &record),
                         journal->size - AT);
    }

    memcpy(journal->data + offset, was, len);
    make_checksums(journal, AT, size);

    return rc;
}


#define OK      BLOOM_RECORD_OK
#define BROKEN  BLOOM_RECORD_BROKEN

#define BEFORE  BODY
#define AFTER   (BODY + 16)
#define SINCE   (BODY + 40)              /* where the digest begins */
#define COUNT   (AT + 24)
#define REMOVED  (BODY + 56)

#define bytes(text)  text, sizeof(text) - 1
#define position(high, low)                                                  \
    bytes(high "\0\0\0\0\0\0\0" low "\0\0\0\0\0\0\0")


TEST(other_values_are_broken)
{
    size_t     i, size;
    journal_t  journal;

    static const char  *const some[] = { "a", "b", "c", NULL };
    static const char  *const none[] = { NULL };

    /* a record with keys, one of them removed; one without */

    static const struct {
        const char *const  *keys;
        uint32_t            removals;
    } records[] = { { some, 1 }, { none, 0 } };

    static const struct {
        size_t          record;
        size_t          at;
        const char     *bytes;
        size_t          len;
        bloom_record_e  rc;
    } cases[] = {
        { 0, REMOVED, bytes("\0\0\0\0"), OK },
        { 0, REMOVED, bytes("\3\0\0\0"), OK },
        { 0, REMOVED, bytes("\4\0\0\0"), BROKEN },
        { 0, REMOVED, bytes("\1\0\0\1"), OK },             /* a part */
        { 0, REMOVED, bytes("\1\0\0\2"), BROKEN },
        { 0, REMOVED, bytes("\4\0\0\1"), BROKEN },
        { 0, REMOVED, bytes("\xff\xff\xff\xff"), BROKEN },
        { 1, REMOVED, bytes("\0\0\0\0"), OK },
        { 1, REMOVED, bytes("\1\0\0\0"), BROKEN },

        { 0, COUNT, bytes("\2\0\0"), BROKEN },
        { 0, COUNT, bytes("\4\0\0"), BROKEN },
        { 0, COUNT, bytes("\0\0\0"), BROKEN },
        { 0, COUNT, bytes("\xff\xff\xff"), BROKEN },
        { 1, COUNT, bytes("\1\0\0"), BROKEN },

        /* positions that go back; without keys, both may be equal: a gap */

        { 0, BEFORE, position("\6", "\0"), BROKEN },
        { 0, BEFORE, position("\6", "\1"), BROKEN },
        { 0, BEFORE, position("\7", "\0"), BROKEN },
        { 0, BEFORE, position("\5", "\6"), OK },
        { 0, BEFORE, position("\5", "\4"), BROKEN },
        { 0, AFTER, position("\5", "\5"), BROKEN },
        { 0, AFTER, position("\5", "\4"), BROKEN },
        { 0, AFTER, position("\4", "\6"), BROKEN },
        { 0, AFTER, position("\5", "\6"), OK },
        { 1, BEFORE, position("\6", "\0"), OK },
        { 1, BEFORE, position("\6", "\1"), BROKEN },
        { 1, BEFORE, position("\7", "\0"), BROKEN },

        /* the digest begins before the changes */

        { 0, SINCE, position("\5", "\5"), OK },
        { 0, SINCE, position("\0", "\0"), OK },
        { 0, SINCE, position("\4", "\6"), OK },
        { 0, SINCE, position("\5", "\6"), BROKEN },
        { 0, SINCE, position("\6", "\0"), BROKEN },

        /* names, and lengths that do not fit the name and the keys */

        { 0, NAME, bytes("IDS"), OK },
        { 0, NAME, bytes("i s"), BROKEN },
        { 0, NAME, bytes("i\0s"), BROKEN },
        { 0, NAME, bytes("\xc3\xa4s"), BROKEN },
        { 0, NAME, bytes("id\n"), BROKEN },
        { 0, NAME - 1, bytes("\0"), BROKEN },
        { 0, NAME - 1, bytes("\2"), BROKEN },
        { 0, NAME - 1, bytes("\4"), BROKEN },
        { 0, NAME - 1, bytes("\xff"), BROKEN },
    };

    create(&journal, ROOM);

    for (i = 0; i < array_len(cases); i++) {
        size = write_changes(&journal, "ids", at(5, 5), at(6, 0),
                             records[cases[i].record].keys,
                             records[cases[i].record].removals);

        if (read_with(&journal, size, cases[i].at, cases[i].bytes,
                      cases[i].len) != cases[i].rc)
        {
            fail_msg("case %zu: other than expected", i);
        }
    }

    /* a name of valid characters that runs over the record's end, by one byte
     * and by many; and one that leaves no room for the keys */

    size = write_changes(&journal, "123", at(1, 0), at(2, 0), none, 0);
    assert_int_equal(size, 120);
    memset(journal.data + NAME, 'n', 300);
    make_checksums(&journal, AT, size);

    assert_int_equal(read_with(&journal, size, NAME - 1, bytes("\3")), OK);
    assert_int_equal(read_with(&journal, size, NAME - 1, bytes("\4")), BROKEN);
    assert_int_equal(read_with(&journal, size, NAME - 1, bytes("\xff")),
                     BROKEN);
    assert_int_equal(read_with(&journal, size, COUNT, bytes("\1\0\0")),
                     BROKEN);

    free(journal.data);
}


TEST(sizes_that_do_not_fit_are_broken)
{
    size_t          size, i;
    journal_t       journal;
    bloom_record_t  record;

    static const char  *const none[] = { NULL };

    create(&journal, ROOM);

    /* too short for the fields before the keys, which are not read then */

    size = write_changes(&journal, "123", at(1, 0), at(2, 0), none, 0);

    for (i = SMALL; i < size; i += 8) {
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

    /* padding that is not zero */

    size = write_changes(&journal, "i", at(1, 0), at(2, 0), none, 0);
    assert_int_equal(read_with(&journal, size, AT + size - 1, bytes("x")),
                     BROKEN);
    assert_int_equal(read_with(&journal, size, NAME + 1, bytes("\1")), BROKEN);

    free(journal.data);
}
