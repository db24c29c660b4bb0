/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header has segments of a journal in memory, for tests of the reader.
 */

#ifndef SEGMENTS_H
#define SEGMENTS_H

#include "unit.h"

#include "bloom_bytes.h"
#include "bloom_crc.h"
#include "bloom_record.h"

#define ROOM         4096                /* of a test's segment in memory */
#define RECORDS_MAX  16
#define SMALL        64                  /* size of a record whose keys and
                                            their lengths take up to 8 bytes */


/* A segment in memory, and the places of its records. */
typedef struct {
    bloom_segment_t   segment;
    size_t            size;              /* bytes of `data` */
    size_t            used;              /* end of the last record */
    uint64_t          sequence;          /* of the next record */
    bloom_removals_t  removals;          /* of all records */
    size_t            records;
    size_t            at[RECORDS_MAX + 1];
    uint8_t          *data;
} journal_t;


static inline void
create(journal_t *journal, size_t size)
{
    int  i;

    memset(journal, 0, sizeof(*journal));

    journal->segment.base = 0x123456780;
    journal->segment.size = BLOOM_SEGMENT_SIZE;
    journal->segment.sequence = 1000;
    journal->segment.created = 1700000000000;

    journal->segment.entry = 0x1122334455667788;

    for (i = 0; i < BLOOM_SEGMENT_SALT_LEN; i++) {
        journal->segment.salt[i] = (uint8_t) (0xa0 + i);
        journal->segment.journal[i] = (uint8_t) (0xb0 + i);
    }

    journal->size = size;
    journal->used = BLOOM_SEGMENT_HEADER;
    journal->sequence = journal->segment.sequence;
    journal->at[0] = journal->used;
    journal->data = unit_zeros(size);

    bloom_segment_encode(&journal->segment, journal->data);
}


static inline uint64_t
time_of(uint64_t sequence)
{
    return 1700000000000 + 10 * sequence;
}


/* Seals a record that says that all records before it are on disk, and that no
 * key was removed before.  Returns its size. */
static inline size_t
seal(bloom_record_maker_t *maker, const bloom_segment_t *segment,
    uint64_t position, uint64_t sequence, uint64_t time)
{
    bloom_stamp_t  stamp = { sequence, time, sequence - 1, { 0, 0 } };

    return bloom_record_seal(maker, segment, position, &stamp);
}


/* Appends a record that has been begun. */
static inline void
append_made(journal_t *journal, bloom_record_maker_t *maker,
    const bloom_key_t *keys, size_t n)
{
    size_t         size;
    bloom_stamp_t  stamp;

    for ( /* void */ ; n > 0; n--, keys++) {
        assert_int_equal(bloom_record_put(maker, keys), 0);
    }

    stamp.sequence = journal->sequence;
    stamp.time = time_of(journal->sequence);
    stamp.durable = journal->sequence - 1;
    stamp.removals = journal->removals;

    size = bloom_record_seal(maker, &journal->segment,
                             journal->segment.base + journal->used, &stamp);
    assert_int_equal(size % 8, 0);

    journal->removals = stamp.removals;

    journal->used += size;
    journal->sequence++;
    journal->records++;

    if (journal->records <= RECORDS_MAX) {
        journal->at[journal->records] = journal->used;
    }
}


static inline void
append(journal_t *journal, const bloom_key_t *keys, size_t n)
{
    bloom_record_maker_t  maker;

    bloom_record_begin(&maker, journal->data + journal->used,
                       journal->size - journal->used);
    append_made(journal, &maker, keys, n);
}


static inline void
append_text(journal_t *journal, const char *text)
{
    bloom_key_t  key = { (const uint8_t *) text, strlen(text) };

    append(journal, &key, 1);
}


/* Makes seven records of one or several keys, with every length of padding, and
 * a record of changes before the last one of them. */
static inline void
create_small(journal_t *journal)
{
    size_t                i, j;
    bloom_key_t           keys[3];
    bloom_record_maker_t  maker;

    static const bloom_key_t  name = { (const uint8_t *) "ids", 3 };
    static const bloom_position_t  before = { 1, 0 }, after = { 2, 0 };
    static const bloom_digest_t  digest = { 7, { 0, 9 } };

    static const char  *const text[7][3] = {
        { "a", NULL, NULL }, { "to", "be", "or" }, { "four", "five", NULL },
        { "0123456789abcdef0123456789abcdef", NULL, NULL },
        { "x", "yy", "zzz" }, { "seven-7", NULL, NULL }, { "12", "3", NULL }
    };

    create(journal, ROOM);

    for (i = 0; i < array_len(text); i++) {
        for (j = 0; j < 3 && text[i][j] != NULL; j++) {
            keys[j].data = (const uint8_t *) text[i][j];
            keys[j].len = strlen(text[i][j]);
        }

        if (i == 6) {
            bloom_record_begin_changes(&maker, journal->data + journal->used,
                                       journal->size - journal->used, &name,
                                       before, after, digest);
            maker.removals = 1;
            append_made(journal, &maker, keys, j);
        }

        append(journal, keys, j);
    }
}


static inline bloom_record_e
record_at(const journal_t *journal, size_t at, uint64_t sequence,
    bloom_record_t *record)
{
    return bloom_record_read(record, &journal->segment,
                             journal->segment.base + at, sequence,
                             journal->data + at, journal->size - at);
}


static inline bloom_record_e
read_at(const journal_t *journal, size_t at, uint64_t sequence)
{
    bloom_record_t  record;

    return record_at(journal, at, sequence, &record);
}


/* Returns how many bytes from `at` on are skipped to find a record. */
static inline size_t
find_at(const journal_t *journal, size_t at, uint64_t sequence,
    bloom_record_t *record)
{
    return bloom_record_find(record, &journal->segment,
                             journal->segment.base + at, sequence,
                             journal->data + at, journal->size - at);
}


/* What a reader of a journal at rest has found. */
typedef struct {
    size_t    records;
    uint64_t  seen;                      /* a bit for each record */
    size_t    skipped;                   /* bytes of damage */
    size_t    tail;                      /* bytes of a torn tail */
} found_t;


/*
 * Reads the first `len` bytes of `data`.  Asserts that each record found is a
 * record of the journal, with all of its keys and in its place.
 */
static inline void
read_all(found_t *found, const journal_t *journal, const uint8_t *data,
    size_t len)
{
    size_t          at, n, i;
    uint64_t        sequence;
    bloom_key_t     key, original_key;
    bloom_record_t  record, original;

    memset(found, 0, sizeof(*found));
    sequence = 0;

    for (at = BLOOM_SEGMENT_HEADER; at < len; at += record.size) {

        n = bloom_record_find(&record, &journal->segment,
                              journal->segment.base + at, sequence, data + at,
                              len - at);

        if (n == len - at) {
            found->tail = bloom_record_tail(data + at, n);
            return;
        }

        found->skipped += n;
        at += n;

        i = record.stamp.sequence - journal->segment.sequence;
        assert_true(i < journal->records);
        assert_int_equal(at, journal->at[i]);
        assert_int_equal(record.size, journal->at[i + 1] - at);
        assert_int_equal(record.stamp.time, time_of(record.stamp.sequence));
        assert_int_equal(record.stamp.durable, record.stamp.sequence - 1);

        assert_int_equal(record_at(journal, at, record.stamp.sequence,
                                   &original), BLOOM_RECORD_OK);
        assert_memory_equal(&record.stamp, &original.stamp,
                            sizeof(record.stamp));
        assert_int_equal(record.count, original.count);

        while (bloom_record_key(&original, &original_key) == 1) {
            assert_int_equal(bloom_record_key(&record, &key), 1);
            assert_int_equal(key.len, original_key.len);
            assert_memory_equal(key.data, original_key.data, key.len);
        }

        assert_int_equal(bloom_record_key(&record, &key), 0);

        found->records++;
        found->seen |= (uint64_t) 1 << i;
        sequence = record.stamp.sequence + 1;
    }
}


/* Writes right checksums, computed as the format says, whatever the record. */

static inline void
make_header_checksum(const journal_t *journal, size_t at)
{
    uint8_t  *h, message[76];

    h = journal->data + at;

    memcpy(message, journal->segment.salt, 16);
    bloom_put64(message + 16, journal->segment.base + at);
    memcpy(message + 24, h, 4);
    memcpy(message + 28, h + 8, 48);

    bloom_put32(h + 4, bloom_crc32c(0, message, sizeof(message)));
}


static inline void
make_checksums(const journal_t *journal, size_t at, size_t size)
{
    uint8_t  *h;

    h = journal->data + at;

    bloom_put32(h + 28, bloom_crc32c(0, h + 56, size - 56));
    make_header_checksum(journal, at);
}


#endif /* SEGMENTS_H */
