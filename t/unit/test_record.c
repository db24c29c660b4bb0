
/*
 * The journal's format: what is written is read back; of what is cut or
 * damaged nothing wrong is read, and every whole record is; what a key holds
 * never poses as a record.
 */

#include "unit.h"

#include "bloom_bytes.h"
#include "bloom_crc.h"
#include "bloom_record.h"

#define ROOM         4096                /* of a test's segment in memory */
#define RECORDS_MAX  16


/* A segment in memory and where its records are. */
typedef struct {
    bloom_segment_t  segment;
    size_t           size;               /* bytes of `data` */
    size_t           used;               /* up to the last record's end */
    uint64_t         sequence;           /* of the next one */
    size_t           records;
    size_t           at[RECORDS_MAX + 1];
    uint8_t         *data;
} journal_t;


static void
create(journal_t *journal, size_t size)
{
    int  i;

    memset(journal, 0, sizeof(*journal));

    journal->segment.base = 0x123456780;
    journal->segment.size = BLOOM_SEGMENT_SIZE;
    journal->segment.sequence = 1000;
    journal->segment.created = 1700000000000;

    for (i = 0; i < BLOOM_SEGMENT_SALT_LEN; i++) {
        journal->segment.salt[i] = (uint8_t) (0xa0 + i);
    }

    journal->size = size;
    journal->used = BLOOM_SEGMENT_HEADER;
    journal->sequence = journal->segment.sequence;
    journal->at[0] = journal->used;
    journal->data = calloc(1, size);
    assert_non_null(journal->data);

    bloom_segment_encode(&journal->segment, journal->data);
}


static uint64_t
time_of(uint64_t sequence)
{
    return 1700000000000 + 10 * sequence;
}


static void
append(journal_t *journal, const bloom_key_t *keys, size_t n)
{
    size_t                size;
    bloom_record_maker_t  maker;

    bloom_record_begin(&maker, journal->data + journal->used,
                       journal->size - journal->used);

    for ( /* void */ ; n > 0; n--, keys++) {
        assert_int_equal(bloom_record_put(&maker, keys), 0);
    }

    size = bloom_record_seal(&maker, &journal->segment,
                             journal->segment.base + journal->used,
                             journal->sequence, time_of(journal->sequence));
    assert_int_equal(size % 8, 0);

    journal->used += size;
    journal->sequence++;
    journal->records++;

    if (journal->records <= RECORDS_MAX) {
        journal->at[journal->records] = journal->used;
    }
}


static void
append_text(journal_t *journal, const char *text)
{
    bloom_key_t  key = { (const uint8_t *) text, strlen(text) };

    append(journal, &key, 1);
}


/* Seven records: of one key and of several, with every length of padding. */
static void
create_small(journal_t *journal)
{
    size_t       i, j;
    bloom_key_t  keys[3];

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

        append(journal, keys, j);
    }
}


/* What somebody who reads at rest finds. */
typedef struct {
    size_t    records;
    uint64_t  seen;                      /* a bit for each of the journal's */
    size_t    skipped;                   /* bytes of damage */
    size_t    tail;                      /* bytes of a torn tail */
} found_t;


/*
 * Reads the first `len` bytes of `data`, and asserts that each record found is
 * one of the journal, with all of its keys, where it belongs.
 */
static void
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

        i = record.sequence - journal->segment.sequence;
        assert_true(i < journal->records);
        assert_int_equal(at, journal->at[i]);
        assert_int_equal(record.size, journal->at[i + 1] - at);
        assert_int_equal(record.time, time_of(record.sequence));

        assert_int_equal(bloom_record_read(&original, &journal->segment,
                                           journal->segment.base + at,
                                           record.sequence,
                                           journal->data + at,
                                           journal->size - at),
                         BLOOM_RECORD_OK);
        assert_int_equal(record.count, original.count);

        while (bloom_record_key(&original, &original_key) == 1) {
            assert_int_equal(bloom_record_key(&record, &key), 1);
            assert_int_equal(key.len, original_key.len);
            assert_memory_equal(key.data, original_key.data, key.len);
        }

        assert_int_equal(bloom_record_key(&record, &key), 0);

        found->records++;
        found->seen |= (uint64_t) 1 << i;
        sequence = record.sequence + 1;
    }
}


static bloom_record_e
read_at(const journal_t *journal, size_t at, uint64_t sequence)
{
    bloom_record_t  record;

    return bloom_record_read(&record, &journal->segment,
                             journal->segment.base + at, sequence,
                             journal->data + at, journal->size - at);
}


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

    assert_int_equal(segment.base, journal.segment.base);
    assert_int_equal(segment.size, journal.segment.size);
    assert_int_equal(segment.sequence, journal.segment.sequence);
    assert_int_equal(segment.created, journal.segment.created);
    assert_memory_equal(segment.salt, journal.segment.salt,
                        BLOOM_SEGMENT_SALT_LEN);

    free(journal.data);
}


/* Each bit of the header counts. */
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
        assert_true(strncmp(error, "is ", 3) == 0);

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


/* A header with that number at that place, and a checksum that fits. */
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
            "is truncated: it has 127 bytes, and its header alone 128");
    refused(journal.data, BLOOM_SEGMENT_SIZE + 1, BLOOM_SEGMENT_DAMAGED,
            "something was appended");

    refused_with(&journal, 8, 2, 4, BLOOM_SEGMENT_NEWER,
                 "use a newer program");
    refused_with(&journal, 12, 0x04030201, 4, BLOOM_SEGMENT_DAMAGED,
                 "the wrong way round");

    for (i = 0; i < array_len(impossible); i++) {
        refused_with(&journal, impossible[i].at, impossible[i].value,
                     impossible[i].bytes, BLOOM_SEGMENT_DAMAGED,
                     "is impossible");
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
        BLOOM_RECORD_KEY_MAX
    };

    (void) state;

    bytes = malloc(BLOOM_RECORD_KEY_MAX);
    assert_non_null(bytes);

    create(&journal, 256 * 1024);
    seed = 1;

    for (i = 0; i < BLOOM_RECORD_KEY_MAX; i++) {
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

    /* every byte, and keys of nothing but zeros */

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
    bytes = calloc(1, BLOOM_RECORD_KEY_MAX + 1);
    assert_non_null(buf);
    assert_non_null(bytes);

    /* keys that no record takes; it takes another one after them */

    bloom_record_begin(&maker, buf, 2 * BLOOM_RECORD_MAX);
    key.data = bytes;
    key.len = 0;
    assert_int_equal(bloom_record_put(&maker, &key), -1);
    key.len = BLOOM_RECORD_KEY_MAX + 1;
    assert_int_equal(bloom_record_put(&maker, &key), -1);
    key.len = (size_t) 1 << 32 | 1;
    assert_int_equal(bloom_record_put(&maker, &key), -1);
    key.len = SIZE_MAX;
    assert_int_equal(bloom_record_put(&maker, &key), -1);
    key.len = 1;
    assert_int_equal(bloom_record_put(&maker, &key), 0);
    assert_int_equal(bloom_record_seal(&maker, &journal.segment, 8, 1000, 1),
                     40);

    /* a record of the greatest size, to the byte: two keys */

    bloom_record_begin(&maker, buf, 2 * BLOOM_RECORD_MAX);
    key.len = BLOOM_RECORD_KEY_MAX;
    assert_int_equal(bloom_record_put(&maker, &key), 0);
    key.len = BLOOM_RECORD_MAX - BLOOM_RECORD_HEADER
              - (3 + BLOOM_RECORD_KEY_MAX) - 3 + 1;
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

    /* one of as many keys as there can be */

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

    /* no room is ever exceeded */

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


/* The same record, sealed again for another place. */
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


/* A record is at home in one place only. */
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


/* ---- torn and damaged ---- */


/* Of every beginning of a segment, the records that are whole in it. */
static void
test_a_truncated_segment_has_its_whole_records(void **state)
{
    size_t           len, whole, i;
    uint8_t         *exact;
    found_t          found;
    journal_t        journal;
    bloom_record_t   record;

    (void) state;

    create_small(&journal);

    for (len = BLOOM_SEGMENT_HEADER; len <= journal.used + 64; len++) {

        for (whole = 0; whole < journal.records
                        && journal.at[whole + 1] <= len; whole++)
        {
            /* void */
        }

        /* the file is cut there: not a byte behind it is read */

        exact = malloc(len);
        assert_non_null(exact);
        memcpy(exact, journal.data, len);

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

        /* the same with zeros behind it: padding that was cut is whole */

        exact = calloc(1, journal.size);
        assert_non_null(exact);
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


/* All others are found, the one that is hit is not, and it is noticed. */
static void
test_a_damaged_byte_breaks_only_its_record(void **state)
{
    int        change;
    size_t     at, hit, size;
    uint8_t    was;
    uint64_t   all;
    found_t    found;
    journal_t  journal, good;

    (void) state;

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


/* Zeros where records were: the end if none is behind them, else damage. */
static void
test_zeros_between_records_are_damage(void **state)
{
    size_t     from, to, i;
    uint64_t   seen;
    found_t    found;
    journal_t  journal, good;

    (void) state;

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


/* A greater number than expected is a gap, a lesser one is an old record. */
static void
test_sequence_numbers_show_gaps_and_old_records(void **state)
{
    journal_t       journal;
    bloom_record_t  record;

    (void) state;

    create(&journal, ROOM);
    append_text(&journal, "1000");
    journal.sequence = 1005;
    append_text(&journal, "1005");
    journal.sequence = 1003;
    append_text(&journal, "1003");
    journal.sequence = 1006;
    append_text(&journal, "1006");

#define find_from(i, expected)                                               \
    bloom_record_find(&record, &journal.segment,                             \
                      journal.segment.base + journal.at[i], expected,        \
                      journal.data + journal.at[i],                          \
                      journal.size - journal.at[i])

    assert_int_equal(find_from(0, 0), 0);
    assert_int_equal(record.sequence, 1000);
    assert_int_equal(find_from(1, 1001), 0);
    assert_int_equal(record.sequence, 1005);
    assert_int_equal(find_from(2, 1006), journal.at[3] - journal.at[2]);
    assert_int_equal(record.sequence, 1006);
    assert_int_equal(find_from(4, 1007), journal.size - journal.at[4]);
    assert_int_equal(find_from(0, 1007), journal.size - journal.at[0]);

    free(journal.data);
}


/* ---- against the format ---- */


/* Checksums that fit, whatever the record says; made as the format has it. */

static void
make_header_checksum(const journal_t *journal, size_t at)
{
    uint8_t  *h, message[52];

    h = journal->data + at;

    memcpy(message, journal->segment.salt, 16);
    bloom_put64(message + 16, journal->segment.base + at);
    memcpy(message + 24, h, 4);
    memcpy(message + 28, h + 8, 24);

    bloom_put32(h + 4, bloom_crc32c(0, message, sizeof(message)));
}


static void
make_checksums(const journal_t *journal, size_t at, size_t size)
{
    uint8_t  *h;

    h = journal->data + at;

    bloom_put32(h + 28, bloom_crc32c(0, h + 32, size - 32));
    make_header_checksum(journal, at);
}


/* A record of these bytes of keys, said to be `count`. */
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
    memcpy(h + 32, keys, len);
    make_checksums(&journal, BLOOM_SEGMENT_HEADER,
                   size > 32 && size <= BLOOM_RECORD_MAX + 8 ? size : 40);

    rc = read_at(&journal, BLOOM_SEGMENT_HEADER, 1000);

    assert_int_equal(bloom_record_find(&record, &journal.segment,
                                       journal.segment.base
                                       + BLOOM_SEGMENT_HEADER, 0, h,
                                       journal.size - BLOOM_SEGMENT_HEADER),
                     rc == BLOOM_RECORD_OK
                     ? 0 : journal.size - BLOOM_SEGMENT_HEADER);

    if (size >= 40 && size <= BLOOM_RECORD_MAX) {

        /* the same where it ends: not a byte behind it is read */

        exact = malloc(size);
        assert_non_null(exact);
        memcpy(exact, h, size);

        assert_int_equal(bloom_record_read(&record, &journal.segment,
                                           journal.segment.base
                                           + BLOOM_SEGMENT_HEADER, 1000, exact,
                                           size), rc);
        free(exact);
    }

    free(journal.data);

    return rc;
}


static void
test_records_against_the_format_are_broken(void **state)
{
    char  long_key[BLOOM_RECORD_MAX];

    (void) state;

#define made(size, count, keys)  read_made(size, count, keys, sizeof(keys) - 1)

    assert_int_equal(made(40, 1, "\1a"), BLOOM_RECORD_OK);
    assert_int_equal(made(40, 2, "\1a\4bcde"), BLOOM_RECORD_OK);
    assert_int_equal(made(40, 4, "\1a\1b\1c\1d"), BLOOM_RECORD_OK);

    /* sizes */

    assert_int_equal(made(32, 1, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(36, 1, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(0, 1, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(8, 1, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(UINT32_MAX - 7, 1, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(48, 1, "\1a"), BLOOM_RECORD_BROKEN);

    /* counts */

    assert_int_equal(made(40, 0, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(40, 0, ""), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(40, 2, "\1a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(40, 1, "\1a\1b"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(40, 5, "\1a\1b\1c\1d"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(40, UINT32_MAX, "\1a\1b\1c\1d"),
                     BLOOM_RECORD_BROKEN);

    /* keys */

    assert_int_equal(made(40, 1, "\0a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(40, 2, "\1a\0"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(40, 1, "\x08zzzzzzz"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(40, 2, "\x08zzzzzzz"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(40, 1, "\x81"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(40, 1, "\xff\xff\xff\xff\xff\xff\xff\xff"),
                     BLOOM_RECORD_BROKEN);
    assert_int_equal(made(48, 1, "\xff\xff\xff\xff\xff\xff\xff\xff"
                                 "\xff\xff\xff\xff\xff\xff\xff\xff"),
                     BLOOM_RECORD_BROKEN);
    assert_int_equal(made(40, 1, "\1a\0\0\0\0\0x"), BLOOM_RECORD_BROKEN);

    /* lengths in more bytes than they need */

    assert_int_equal(made(40, 1, "\x81\0a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(40, 1, "\x81\x80\0a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(40, 1, "\x81\x80\x80\0a"), BLOOM_RECORD_BROKEN);
    assert_int_equal(made(40, 1, "\x80\0"), BLOOM_RECORD_BROKEN);

    /* the longest key, and one more */

    memset(long_key, 'k', sizeof(long_key));
    memcpy(long_key, "\xff\xff\x03", 3);
    memset(long_key + 3 + 65535, 0, 6);
    assert_int_equal(read_made(32 + 65544, 1, long_key, 65544),
                     BLOOM_RECORD_OK);
    memcpy(long_key, "\x80\x80\x04k", 4);
    long_key[3 + 65535] = 'k';
    assert_int_equal(read_made(32 + 65544, 1, long_key, 65544),
                     BLOOM_RECORD_BROKEN);

    /* the largest record, and one of 8 bytes more */

    memset(long_key, 'k', sizeof(long_key));
    memcpy(long_key, "\xff\xff\x03", 3);
    memcpy(long_key + 65538, "\xdb\xff\x03", 3);
    assert_int_equal(read_made(BLOOM_RECORD_MAX, 2, long_key,
                               BLOOM_RECORD_MAX - 32), BLOOM_RECORD_OK);
    memcpy(long_key + 65538, "\xe3\xff\x03", 3);
    assert_int_equal(read_made(BLOOM_RECORD_MAX + 8, 2, long_key,
                               BLOOM_RECORD_MAX - 24), BLOOM_RECORD_BROKEN);
}


/* ---- hostile ---- */


/*
 * A record within a key is not found.  Without the salt it cannot be valid, and
 * a valid one in the right place lies within the key's own record.
 */
static void
test_a_record_within_a_key_is_not_found(void **state)
{
    int              known, broken;
    size_t           at, inner_at, i;
    uint8_t          bytes[7 + 40];
    uint64_t         sequence;
    journal_t        journal;
    bloom_key_t      inner_key = { (const uint8_t *) "evil", 4 };
    bloom_key_t      key = { bytes, sizeof(bytes) };
    bloom_record_t   record;
    bloom_segment_t  guessed;
    bloom_record_maker_t  maker;

    (void) state;

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
            bloom_record_begin(&maker, bytes + 7, 40);
            assert_int_equal(bloom_record_put(&maker, &inner_key), 0);
            assert_int_equal(
                bloom_record_seal(&maker, &guessed,
                                  journal.segment.base + inner_at, 1001, 1),
                40);

            append(&journal, &key, 1);
            append_text(&journal, "after");

            assert_memory_equal(journal.data + inner_at, bytes + 7, 40);

            if (broken & 1) {
                journal.data[at + BLOOM_RECORD_HEADER + 2] ^= 1;
            }

            if (broken & 2) {
                journal.data[at + 16] ^= 1;
            }

            sequence = 1001;
            i = bloom_record_find(&record, &journal.segment,
                                  journal.segment.base + at, sequence,
                                  journal.data + at, journal.size - at);

            if (broken == 0) {
                assert_int_equal(i, 0);
                assert_int_equal(record.size, journal.at[2] - at);

            } else if (known && broken & 2) {
                /* the one case in which knowing the salt would help */
                assert_int_equal(i, inner_at - at);

            } else {
                assert_int_equal(i, journal.at[2] - at);
                assert_int_equal(record.sequence, 1002);
            }

            free(journal.data);
        }
    }
}


/*
 * A full segment of bytes that somebody made to keep a reader busy: headers
 * that are good, of records as large as can be, with keys that are not.  A
 * search that took each byte up again and again would take minutes here.
 */
static void
test_a_hostile_segment_is_searched_quickly(void **state)
{
    size_t          at;
    uint64_t        seed;
    journal_t       journal;
    bloom_record_t  record;

    (void) state;

    create(&journal, BLOOM_SEGMENT_SIZE);
    seed = 1;

    for (at = BLOOM_SEGMENT_HEADER; at < journal.size - BLOOM_RECORD_MAX;
         at += 32)
    {
        bloom_put32(journal.data + at, BLOOM_RECORD_MAX);
        bloom_put64(journal.data + at + 8, 1000);
        bloom_put64(journal.data + at + 16, unit_random(&seed));
        bloom_put32(journal.data + at + 24, 1);
        bloom_put32(journal.data + at + 28, (uint32_t) unit_random(&seed));
        make_header_checksum(&journal, at);
    }

    assert_int_equal(bloom_record_find(&record, &journal.segment,
                                       journal.segment.base
                                       + BLOOM_SEGMENT_HEADER, 0,
                                       journal.data + BLOOM_SEGMENT_HEADER,
                                       journal.size - BLOOM_SEGMENT_HEADER),
                     journal.size - BLOOM_SEGMENT_HEADER);

    /* noise, with a record at its very end */

    for (at = BLOOM_SEGMENT_HEADER; at < journal.size; at += 8) {
        bloom_put64(journal.data + at, unit_random(&seed));
    }

    journal.used = journal.size - 40;
    append_text(&journal, "at last");
    assert_int_equal(journal.used, journal.size);

    assert_int_equal(bloom_record_find(&record, &journal.segment,
                                       journal.segment.base
                                       + BLOOM_SEGMENT_HEADER, 1000,
                                       journal.data + BLOOM_SEGMENT_HEADER,
                                       journal.size - BLOOM_SEGMENT_HEADER),
                     journal.size - 40 - BLOOM_SEGMENT_HEADER);

    free(journal.data);
}


static void
test_a_tail_ends_at_its_last_byte_that_is_not_zero(void **state)
{
    uint8_t  bytes[9] = { 0 };

    (void) state;

    assert_int_equal(bloom_record_tail(bytes, 0), 0);
    assert_int_equal(bloom_record_tail(bytes, 9), 0);
    bytes[0] = 1;
    assert_int_equal(bloom_record_tail(bytes, 9), 1);
    bytes[8] = 1;
    assert_int_equal(bloom_record_tail(bytes, 9), 9);
    assert_int_equal(bloom_record_tail(bytes, 8), 1);
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
        cmocka_unit_test(test_the_bytes_are_as_documented),
        cmocka_unit_test(test_a_record_is_valid_in_one_place_only),
        cmocka_unit_test(test_a_truncated_segment_has_its_whole_records),
        cmocka_unit_test(test_a_damaged_byte_breaks_only_its_record),
        cmocka_unit_test(test_zeros_between_records_are_damage),
        cmocka_unit_test(test_sequence_numbers_show_gaps_and_old_records),
        cmocka_unit_test(test_records_against_the_format_are_broken),
        cmocka_unit_test(test_a_record_within_a_key_is_not_found),
        cmocka_unit_test(test_a_hostile_segment_is_searched_quickly),
        cmocka_unit_test(test_a_tail_ends_at_its_last_byte_that_is_not_zero),
    };

    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
