/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the reader of journals.  The input is the file of a segment, truncated
 * after its last record.  The seeds are made by the writer of t/tool/journal.t,
 * which checks them.
 *
 * For any file, no byte outside it is read, a search moves forward, and a
 * record that is found has the bytes that the writer would have written for the
 * same keys and position.
 *
 * Checksums would make the reader refuse nearly every change at once.  So most
 * mutations also correct the checksums, as an attacker would do.
 */

#include "fuzz.h"

#include "bloom_bytes.h"
#include "bloom_crc.h"
#include "bloom_record.h"

/* Offsets from docs/journal-format.md. */
#define AT_SALT          48
#define AT_BASE          24
#define AT_HEADER_CRC    124
#define AT_RECORD_CRC    4
#define AT_RECORD_SEQ    8
#define AT_KEYS_CRC      28


size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
    unsigned seed);


/* Checks what bloom_record.h promises about a record of changes, and that its
 * two parts have all its keys in order. */
static void
is_change(bloom_record_t record)
{
    int             i, order;
    uint32_t        count;
    bloom_key_t     key, same;
    bloom_record_t  part;

    static const uint32_t  types[] = { BLOOM_RECORD_REMOVE, BLOOM_RECORD_ADD };

    order = bloom_position_cmp(record.before, record.after);

    expect(order < 0 || (order == 0 && record.count == 0));
    expect(record.removals <= record.count);
    expect(bloom_position_cmp(record.digest.since, record.before) <= 0);
    expect(bloom_source_name_valid(record.source.data, record.source.len));

    for (i = 0; i < 2; i++) {
        bloom_record_part(&record, types[i], &part);
        expect(part.type == types[i]);
        expect(part.count == (i == 0 ? record.removals
                                     : record.count - record.removals));
    }

    for (i = 0; i < 2; i++) {
        bloom_record_part(&record, types[i], &part);

        for (count = 0; bloom_record_key(&part, &key) == 1; count++) {
            if (i == 1) {
                continue;
            }

            expect(bloom_record_key(&record, &same) == 1);
            expect(same.data == key.data && same.len == key.len);
        }

        expect(count == part.count);
    }

    /* the first part is read: the second one is the rest */

    bloom_record_part(&record, BLOOM_RECORD_ADD, &part);
    expect(part.keys == record.keys && part.end == record.end);
}


/* Checks that a record written from the same keys has the same bytes. */
static void
is_canonical(const bloom_segment_t *segment, uint64_t position,
    bloom_record_t record, const uint8_t *data)
{
    uint32_t              count, removals;
    bloom_key_t           key;
    bloom_stamp_t         stamp;
    bloom_removals_t      removed = { 0, 0 };
    bloom_record_maker_t  maker;

    static uint8_t  again[BLOOM_RECORD_MAX];

    if (record.type == BLOOM_RECORD_CHANGES) {
        is_change(record);
        bloom_record_begin_changes(&maker, again, sizeof(again),
                                   &record.source, record.before,
                                   record.after, record.digest);
        maker.removals = record.removals;
        maker.part = record.part;
        removals = record.removals;

    } else {
        bloom_record_begin(&maker, again, sizeof(again));
        maker.type = record.type;
        maker.kinds = record.type == BLOOM_RECORD_RESTORE ? record.kinds : 0;
        removals = record.type == BLOOM_RECORD_REMOVE ? record.count : 0;
    }

    for (count = 0; bloom_record_key(&record, &key) == 1; count++) {
        expect(key.len >= 1 && key.len <= BLOOM_KEY_MAX);
        expect(bloom_record_put(&maker, &key) == 0);

        if (count < removals) {
            removed.keys++;
            removed.bytes += key.len;
        }
    }

    expect(count == record.count);
    expect(record.type == BLOOM_RECORD_CHANGES
           || (count == 0) == bloom_record_keyless(record.type));

    /* seal counts the removals of this record again; the input may say
     * anything of those before it */

    stamp = record.stamp;
    stamp.removals.keys -= removed.keys;
    stamp.removals.bytes -= removed.bytes;

    expect(bloom_record_seal(&maker, segment, position, &stamp)
           == record.size);
    expect(memcmp(&stamp, &record.stamp, sizeof(stamp)) == 0);
    expect(memcmp(again, data, record.size) == 0);
}


static void
read_records(const bloom_segment_t *segment, const uint8_t *data, size_t len)
{
    size_t          at, n, tail;
    uint64_t        sequence, number, position;
    bloom_key_t     key;
    bloom_record_e  rc;
    bloom_record_t  record, same;

    sequence = 0;

    for (at = BLOOM_SEGMENT_HEADER; /* void */ ; at += record.size) {

        position = segment->base + at;

        rc = bloom_record_read(&same, segment, position, 0, data + at,
                               len - at);
        n = bloom_record_find(&record, segment, position, sequence, data + at,
                              len - at);

        expect(n <= len - at);

        if (n == len - at) {
            break;
        }

        expect(n % 8 == 0 && record.size <= len - at - n);
        expect(record.stamp.sequence >= sequence
               && record.stamp.sequence >= segment->sequence
               && record.stamp.durable < record.stamp.sequence);
        expect(n != 0 || rc == BLOOM_RECORD_OK);

        at += n;
        position += n;

        number = record.stamp.sequence;

        expect(bloom_record_read(&same, segment, position, number, data + at,
                                 len - at) == BLOOM_RECORD_OK);
        expect(bloom_record_read(&same, segment, position, number ^ 0x100,
                                 data + at, len - at)
               == BLOOM_RECORD_BROKEN || number == 0x100);

        if (bloom_record_known(record.type)) {
            is_canonical(segment, position, record, data + at);

        } else {
            expect(bloom_record_key(&same, &key) == 0);
        }

        sequence = number + 1;
    }

    tail = bloom_record_tail(data + at, len - at);

    expect(tail <= len - at && (tail == 0 || data[at + tail - 1] != 0));
    expect(rc != BLOOM_RECORD_END || tail == 0 || tail > BLOOM_RECORD_HEADER);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t           len;
    uint8_t         *copy, header[BLOOM_SEGMENT_HEADER];
    bloom_segment_t  segment;

    static char  error[BLOOM_RECORD_ERROR_LEN];

    memset(header, 0, sizeof(header));

    if (size != 0) {
        memcpy(header, data, size < sizeof(header) ? size : sizeof(header));
    }

    memset(error, 'x', sizeof(error));

    if (bloom_segment_decode(&segment, header, size, error)
        != BLOOM_SEGMENT_OK)
    {
        len = strnlen(error, sizeof(error));
        expect(len != 0 && len < sizeof(error) - 1);
        return 0;
    }

    expect(segment.size >= size && segment.size <= BLOOM_SEGMENT_MAX);
    expect(segment.base + segment.size > segment.base);

    bloom_segment_encode(&segment, header);
    expect(memcmp(header, data, sizeof(header)) == 0);

    /* memory of exactly that size: sanitizers notice a read beyond */

    copy = malloc(size);
    expect(copy != NULL);
    memcpy(copy, data, size);

    read_records(&segment, copy, size);

    free(copy);

    return 0;
}


/* Corrects the checksums, as far as records follow one another. */
static void
make_checksums(uint8_t *data, size_t size, int keys_too)
{
    size_t    at;
    uint8_t   message[76];
    uint32_t  len;

    if (size < BLOOM_SEGMENT_HEADER) {
        return;
    }

    bloom_put32(data + AT_HEADER_CRC, bloom_crc32c(0, data, AT_HEADER_CRC));

    for (at = BLOOM_SEGMENT_HEADER; at + BLOOM_RECORD_HEADER <= size;
         at += len)
    {
        len = bloom_get32(data + at);

        if (len > size - at || len <= BLOOM_RECORD_HEADER) {
            len = 8;
            continue;
        }

        if (keys_too) {
            bloom_put32(data + at + AT_KEYS_CRC,
                        bloom_crc32c(0, data + at + BLOOM_RECORD_HEADER,
                                     len - BLOOM_RECORD_HEADER));
        }

        memcpy(message, data + AT_SALT, 16);
        bloom_put64(message + 16, bloom_get64(data + AT_BASE) + at);
        memcpy(message + 24, data + at, 4);
        memcpy(message + 28, data + at + AT_RECORD_SEQ, 48);

        bloom_put32(data + at + AT_RECORD_CRC,
                    bloom_crc32c(0, message, sizeof(message)));

        len = (len + 7) & ~(uint32_t) 7;
    }
}


/*
 * Seven of eight mutations correct the checksums, some of them without those of
 * keys.  Most of them do not change the segment's header.
 */
size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    if (seed & 7 && size > BLOOM_SEGMENT_HEADER) {
        size = BLOOM_SEGMENT_HEADER
               + LLVMFuzzerMutate(data + BLOOM_SEGMENT_HEADER,
                                  size - BLOOM_SEGMENT_HEADER,
                                  max - BLOOM_SEGMENT_HEADER);

    } else {
        size = LLVMFuzzerMutate(data, size, max);
    }

    if ((seed >> 3) % 8 != 0) {
        make_checksums(data, size, (seed >> 6) % 4 != 0);
    }

    return size;
}
