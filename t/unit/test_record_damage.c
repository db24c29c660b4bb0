/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check that nothing wrong is read from truncated and damaged
 * journals, that every complete record is read, and that the bytes of a key are
 * never taken for a record.
 */

#include "segments.h"


/* ---- torn and damaged ---- */


/* A segment truncated at any byte still has the records before that byte. */
TEST(a_truncated_segment_keeps_complete_records)
{
    size_t           len, whole, i;
    uint8_t         *exact;
    found_t          found;
    journal_t        journal;
    bloom_record_t   record;

    create_small(&journal);

    for (len = BLOOM_SEGMENT_HEADER; len <= journal.used + 64; len++) {

        for (whole = 0; whole < journal.records
                        && journal.at[whole + 1] <= len; whole++)
        {
            /* void */
        }

        /* the file ends there: no byte after it is read */

        exact = unit_copy(journal.data, len);

        read_all(&found, &journal, exact, len);

        assert_int_equal(found.records, whole);
        assert_int_equal(found.seen, ((uint64_t) 1 << whole) - 1);
        assert_int_equal(found.skipped, 0);
        assert_int_equal(found.tail,
                         bloom_record_tail(exact + journal.at[whole],
                                           len - journal.at[whole]));

        for (i = 0; i < whole; i++) {
            assert_int_equal(
                bloom_record_read(&record, &journal.segment,
                                  journal.segment.base + journal.at[i],
                                  1000 + i, exact + journal.at[i],
                                  len - journal.at[i]),
                BLOOM_RECORD_OK);
        }

        assert_int_equal(
            bloom_record_read(&record, &journal.segment,
                              journal.segment.base + journal.at[whole],
                              1000 + whole, exact + journal.at[whole],
                              len - journal.at[whole]),
            found.tail != 0 ? BLOOM_RECORD_BROKEN : BLOOM_RECORD_END);

        free(exact);

        /* zeros follow instead: a record whose padding was cut is complete */

        exact = unit_zeros(journal.size);
        memcpy(exact, journal.data, len);

        for ( /* void */ ; whole < journal.records; whole++) {
            i = journal.at[whole];

            if (memcmp(exact + i, journal.data + i,
                       journal.at[whole + 1] - i) != 0)
            {
                break;
            }
        }

        read_all(&found, &journal, exact, journal.size);

        assert_int_equal(found.records, whole);
        assert_int_equal(found.seen, ((uint64_t) 1 << whole) - 1);
        assert_int_equal(found.skipped, 0);

        free(exact);
    }

    free(journal.data);
}


/* All records but the damaged one are found, and the damage is noticed. */
TEST(a_damaged_byte_breaks_only_its_record)
{
    int        change;
    size_t     at, hit, size;
    uint8_t    was;
    uint64_t   all;
    found_t    found;
    journal_t  journal, good;

    create_small(&journal);
    create_small(&good);

    all = ((uint64_t) 1 << journal.records) - 1;

    for (at = BLOOM_SEGMENT_HEADER; at < journal.used + 64; at++) {

        for (hit = 0; hit < journal.records && journal.at[hit + 1] <= at;
             hit++)
        {
            /* void */
        }

        was = journal.data[at];

        for (change = 1; change < 256; change++) {
            journal.data[at] = was ^ (uint8_t) change;

            read_all(&found, &good, journal.data, journal.size);

            if (hit == journal.records) {
                assert_int_equal(found.seen, all);
                assert_int_equal(found.skipped, 0);
                assert_int_equal(found.tail, at - journal.used + 1);
                continue;
            }

            size = journal.at[hit + 1] - journal.at[hit];

            assert_int_equal(found.seen, all ^ (uint64_t) 1 << hit);
            assert_int_equal(read_at(&journal, journal.at[hit], 1000 + hit),
                             BLOOM_RECORD_BROKEN);

            if (hit == journal.records - 1) {
                assert_int_equal(found.skipped, 0);
                assert_in_range(found.tail, 1, size);

            } else {
                assert_int_equal(found.skipped, size);
                assert_int_equal(found.tail, 0);
            }
        }

        journal.data[at] = was;
    }

    free(journal.data);
    free(good.data);
}


/* Zeros in place of records are the end if no record follows, else damage. */
TEST(zeros_between_records_are_damage)
{
    size_t     from, to, i;
    uint64_t   seen;
    found_t    found;
    journal_t  journal, good;

    create_small(&journal);
    create_small(&good);

    for (from = 0; from < journal.records; from++) {
        for (to = from + 1; to <= journal.records; to++) {

            memcpy(journal.data, good.data, good.size);
            memset(journal.data + journal.at[from], 0,
                   journal.at[to] - journal.at[from]);

            for (seen = 0, i = 0; i < journal.records; i++) {
                seen |= (uint64_t) (i < from || i >= to) << i;
            }

            read_all(&found, &good, journal.data, journal.size);

            assert_int_equal(found.seen, seen);
            assert_int_equal(found.tail, 0);
            assert_int_equal(found.skipped, to == journal.records ? 0
                             : journal.at[to] - journal.at[from]);
            assert_int_equal(read_at(&journal, journal.at[from], 0),
                             BLOOM_RECORD_END);
        }
    }

    free(journal.data);
    free(good.data);
}


/* A number greater than expected is a gap, a lower one is an old record. */
TEST(sequence_numbers_show_gaps_and_old_records)
{
    journal_t       journal;
    bloom_record_t  record;

    create(&journal, ROOM);
    append_text(&journal, "1000");
    journal.sequence = 1005;
    append_text(&journal, "1005");
    journal.sequence = 1003;
    append_text(&journal, "1003");
    journal.sequence = 1006;
    append_text(&journal, "1006");

#define find_from(i, expected)                                               \
    find_at(&journal, journal.at[i], expected, &record)

    assert_int_equal(find_from(0, 0), 0);
    assert_int_equal(record.stamp.sequence, 1000);
    assert_int_equal(find_from(1, 1001), 0);
    assert_int_equal(record.stamp.sequence, 1005);
    assert_int_equal(find_from(2, 1006), journal.at[3] - journal.at[2]);
    assert_int_equal(record.stamp.sequence, 1006);
    assert_int_equal(find_from(4, 1007), journal.size - journal.at[4]);
    assert_int_equal(find_from(0, 1007), journal.size - journal.at[0]);

    free(journal.data);
}


/* ---- violations of the format ---- */


/* Makes a record of these bytes, whose header says that they are `count`
 * keys. */
static bloom_record_e
read_made(uint32_t size, uint32_t count, const char *keys, size_t len)
{
    uint8_t         *h, *exact;
    journal_t        journal;
    bloom_record_e   rc;
    bloom_record_t   record;

    create(&journal, BLOOM_SEGMENT_HEADER + 2 * BLOOM_RECORD_MAX);

    h = journal.data + BLOOM_SEGMENT_HEADER;
    bloom_put32(h, size);
    bloom_put64(h + 8, 1000);
    bloom_put64(h + 16, time_of(1000));
    bloom_put32(h + 24, count);
    memcpy(h + 56, keys, len);
    make_checksums(&journal, BLOOM_SEGMENT_HEADER,
                   size > 56 && size <= BLOOM_RECORD_MAX + 8 ? size : SMALL);

    rc = read_at(&journal, BLOOM_SEGMENT_HEADER, 1000);

    assert_int_equal(find_at(&journal, BLOOM_SEGMENT_HEADER, 0, &record),
                     rc == BLOOM_RECORD_OK
                     ? 0 : journal.size - BLOOM_SEGMENT_HEADER);

    if (size >= SMALL && size <= BLOOM_RECORD_MAX) {

        /* the memory ends with the record: no byte after it is read */

        exact = unit_copy(h, size);

        assert_int_equal(bloom_record_read(&record, &journal.segment,
                                           journal.segment.base
                                           + BLOOM_SEGMENT_HEADER, 1000, exact,
                                           size), rc);
        free(exact);
    }

    free(journal.data);

    return rc;
}


TEST(records_that_violate_the_format_are_broken)
{
    char  long_key[BLOOM_RECORD_MAX];

#define made(size, count, keys)  read_made(size, count, keys, sizeof(keys) - 1)

    assert_int_equal(made(SMALL, 1, "\1a"), BLOOM_RECORD_OK);
    assert_int_equal(made(SMALL, 2, "\1a\4bcde"), BLOOM_RECORD_OK);
    assert_int_equal(made(SMALL, 4, "\1a\1b\1c\1d"), BLOOM_RECORD_OK);

    /* sizes */

    assert_int_equal(made(56, 1, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(60, 1, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(0, 1, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(8, 1, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(UINT32_MAX - 7, 1, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(SMALL + 8, 1, "\1a"), BLOOM_RECORD_BROKEN);

    /* counts */

    assert_int_equal(made(SMALL, 0, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(SMALL, 0, ""), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(SMALL, 2, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(SMALL, 1, "\1a\1b"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(SMALL, 5, "\1a\1b\1c\1d"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(SMALL, 0xffffff, "\1a\1b\1c\1d"),
                     BLOOM_RECORD_BROKEN);

    /* counts of other types, which are in byte 27 */

    assert_int_equal(made(SMALL, 1 | 1 << 24, "\1a"), BLOOM_RECORD_OK);
    assert_int_equal(made(SMALL, 1 << 24, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(SMALL, 2 | 2 << 24, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(SMALL, 3 << 24, ""), BLOOM_RECORD_OK);
    assert_int_equal(made(SMALL, 3 << 24, "\0\0\0\0\0\0\0x"),
                     BLOOM_RECORD_BROKEN);
    assert_int_equal(made(SMALL, 1 | 3 << 24, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(SMALL + 8, 3 << 24, ""), BLOOM_RECORD_BROKEN);

    /* keys; test_packed_key.c has more of them */

    assert_int_equal(made(SMALL, 1, "\0a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(SMALL, 2, "\1a\0"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(SMALL, 1, "\x08zzzzzzz"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(SMALL, 2, "\x08zzzzzzz"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(SMALL, 1, "\x81"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(SMALL, 1, "\1a\0\0\0\0\0x"), BLOOM_RECORD_BROKEN);

    /* the longest key, and one byte more */

    memset(long_key, 'k', sizeof(long_key));
    memcpy(long_key, "\xff\xff\x03", 3);
    memset(long_key + 3 + 65535, 0, 6);
    assert_int_equal(read_made(56 + 65544, 1, long_key, 65544),
                     BLOOM_RECORD_OK);
    memcpy(long_key, "\x80\x80\x04k", 4);
    long_key[3 + 65535] = 'k';
    assert_int_equal(read_made(56 + 65544, 1, long_key, 65544),
                     BLOOM_RECORD_BROKEN);

    /* the largest record, and a record of 8 bytes more */

    memset(long_key, 'k', sizeof(long_key));
    memcpy(long_key, "\xff\xff\x03", 3);
    memcpy(long_key + 65538, "\xc3\xff\x03", 3);
    assert_int_equal(read_made(BLOOM_RECORD_MAX, 2, long_key,
                               BLOOM_RECORD_MAX - 56), BLOOM_RECORD_OK);
    memcpy(long_key + 65538, "\xcb\xff\x03", 3);
    assert_int_equal(read_made(BLOOM_RECORD_MAX + 8, 2, long_key,
                               BLOOM_RECORD_MAX - 48), BLOOM_RECORD_BROKEN);
}


/* A record can know of no other records that they are on disk than of those
 * before it. */
TEST(what_was_on_disk_is_before_the_record)
{
    size_t          i;
    uint8_t        *h;
    journal_t       journal;
    bloom_record_t  record;

    static const struct {
        uint64_t        durable;
        bloom_record_e  rc;
    } cases[] = {
        { 0, BLOOM_RECORD_OK },
        { 999, BLOOM_RECORD_OK },
        { 1000, BLOOM_RECORD_OK },
        { 1001, BLOOM_RECORD_BROKEN },
        { 1002, BLOOM_RECORD_BROKEN },
        { UINT64_MAX, BLOOM_RECORD_BROKEN }
    };

    create(&journal, ROOM);
    append_text(&journal, "before");
    append_text(&journal, "this");
    append_text(&journal, "after");

    h = journal.data + journal.at[1];

    for (i = 0; i < array_len(cases); i++) {
        bloom_put64(h + 32, cases[i].durable);
        make_checksums(&journal, journal.at[1], SMALL);

        assert_int_equal(record_at(&journal, journal.at[1], 1001, &record),
                         cases[i].rc);
        assert_int_equal(find_from(1, 1001),
                         cases[i].rc == BLOOM_RECORD_OK ? 0 : SMALL);

        if (cases[i].rc == BLOOM_RECORD_OK) {
            assert_int_equal(record.stamp.durable, cases[i].durable);
        }
    }

    free(journal.data);
}


/* A record of a type that is not known is valid, and none of its keys is. */
TEST(records_of_unknown_types_are_found)
{
    uint8_t         *h;
    uint32_t         type;
    journal_t        journal;
    bloom_key_t      key;
    bloom_record_t   record;

    create(&journal, ROOM);
    append_text(&journal, "before");
    append_text(&journal, "newer");
    append_text(&journal, "after");

    h = journal.data + journal.at[1];

    for (type = BLOOM_RECORD_TYPES; type <= 255; type++) {
        bloom_put32(h + 24, 0xabcdef | type << 24);
        make_checksums(&journal, journal.at[1], SMALL);

        assert_int_equal(read_at(&journal, journal.at[1], 1001),
                         BLOOM_RECORD_OK);
        assert_int_equal(find_from(1, 1001), 0);
        assert_int_equal(record.type, type);
        assert_int_equal(record.count, 0xabcdef);
        assert_int_equal(record.size, SMALL);
        assert_int_equal(bloom_record_key(&record, &key), 0);
        assert_int_equal(read_at(&journal, journal.at[2], 1002),
                         BLOOM_RECORD_OK);
    }

    /* if its bytes are damaged, it is broken like any other record */

    h[56] ^= 1;
    assert_int_equal(read_at(&journal, journal.at[1], 1001),
                     BLOOM_RECORD_BROKEN);

    free(journal.data);
}


/* ---- hostile ---- */


/*
 * A record within a key is not found.  Without the salt, it cannot be valid.  A
 * valid record in the right place lies within the key's own record.
 */
TEST(a_record_within_a_key_is_not_found)
{
    int              known, broken;
    size_t           at, inner_at, i;
    uint8_t          bytes[7 + SMALL];
    uint64_t         sequence;
    journal_t        journal;
    bloom_key_t      inner_key = { (const uint8_t *) "evil", 4 };
    bloom_key_t      key = { bytes, sizeof(bytes) };
    bloom_record_t   record;
    bloom_segment_t  guessed;
    bloom_record_maker_t  maker;

    for (known = 0; known <= 1; known++) {

        /* 0: nothing; 1 to 3: a key, the header, or both are damaged */

        for (broken = 0; broken < 4; broken++) {
            create(&journal, ROOM);
            append_text(&journal, "before");

            at = journal.used;
            inner_at = at + BLOOM_RECORD_HEADER + 8;

            guessed = journal.segment;
            guessed.salt[0] ^= known ? 0 : 1;

            memset(bytes, 'p', sizeof(bytes));
            bloom_record_begin(&maker, bytes + 7, SMALL);
            assert_int_equal(bloom_record_put(&maker, &inner_key), 0);
            assert_int_equal(seal(&maker, &guessed,
                                  journal.segment.base + inner_at, 1001, 1),
                             SMALL);

            append(&journal, &key, 1);
            append_text(&journal, "after");

            assert_memory_equal(journal.data + inner_at, bytes + 7, SMALL);

            if (broken & 1) {
                journal.data[at + BLOOM_RECORD_HEADER + 2] ^= 1;
            }

            if (broken & 2) {
                journal.data[at + 16] ^= 1;
            }

            sequence = 1001;
            i = find_at(&journal, at, sequence, &record);

            if (broken == 0) {
                assert_int_equal(i, 0);
                assert_int_equal(record.size, journal.at[2] - at);

            } else if (known && broken & 2) {
                /* the only case in which knowing the salt helps */
                assert_int_equal(i, inner_at - at);

            } else {
                assert_int_equal(i, journal.at[2] - at);
                assert_int_equal(record.stamp.sequence, 1002);
            }

            free(journal.data);
        }
    }
}


/*
 * A full segment that an attacker has made to keep a reader busy: valid headers
 * of the largest records, with keys that are not valid.  A search that read
 * each byte many times would take minutes here.
 */
TEST(a_hostile_segment_is_searched_quickly)
{
    size_t          at;
    uint64_t        seed;
    journal_t       journal;
    bloom_record_t  record;

    create(&journal, BLOOM_SEGMENT_SIZE);
    seed = 1;

    for (at = BLOOM_SEGMENT_HEADER; at < journal.size - BLOOM_RECORD_MAX;
         at += 64)
    {
        bloom_put32(journal.data + at, BLOOM_RECORD_MAX);
        bloom_put64(journal.data + at + 8, 1000);
        bloom_put64(journal.data + at + 16, unit_random(&seed));
        bloom_put32(journal.data + at + 24, 1);
        bloom_put32(journal.data + at + 28, (uint32_t) unit_random(&seed));
        make_header_checksum(&journal, at);
    }

    assert_int_equal(find_at(&journal, BLOOM_SEGMENT_HEADER, 0, &record),
                     journal.size - BLOOM_SEGMENT_HEADER);

    /* noise, with a record at its very end */

    for (at = BLOOM_SEGMENT_HEADER; at < journal.size; at += 8) {
        bloom_put64(journal.data + at, unit_random(&seed));
    }

    journal.used = journal.size - SMALL;
    append_text(&journal, "at last");
    assert_int_equal(journal.used, journal.size);

    assert_int_equal(find_at(&journal, BLOOM_SEGMENT_HEADER, 1000, &record),
                     journal.size - SMALL - BLOOM_SEGMENT_HEADER);

    free(journal.data);
}


TEST(a_tail_ends_at_its_last_byte_that_is_not_zero)
{
    uint8_t  bytes[9] = { 0 };

    assert_int_equal(bloom_record_tail(bytes, 0), 0);
    assert_int_equal(bloom_record_tail(bytes, 9), 0);
    bytes[0] = 1;
    assert_int_equal(bloom_record_tail(bytes, 9), 1);
    bytes[8] = 1;
    assert_int_equal(bloom_record_tail(bytes, 9), 9);
    assert_int_equal(bloom_record_tail(bytes, 8), 1);
}
