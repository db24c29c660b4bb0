
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bloom_journal.h"
#include "bloom_bytes.h"
#include "bloom_crc.h"


static const uint8_t  magic[8] = { 0x89, 'B', 'L', 'M', 'J', 'N', 'L', 0x0a };

#define ORDER_MARK       0x01020304

/* Offsets in a segment's header. */
#define AT_MAGIC         0
#define AT_VERSION       8
#define AT_ORDER         12
#define AT_SIZE          16
#define AT_BASE          24
#define AT_SEQUENCE      32
#define AT_CREATED       40
#define AT_SALT          48
#define AT_RESERVED      64
#define AT_CRC           (BLOOM_SEGMENT_HEADER - 4)

/* Offsets in a record's header. */
#define AT_RECORD_SIZE   0               /* with header and padding */
#define AT_RECORD_CRC    4               /* of all that follows it */
#define AT_RECORD_SEQ    8
#define AT_RECORD_TIME   16
#define AT_RECORD_COUNT  24
#define AT_RECORD_KEYS   28              /* bytes of keys, without padding */

#define RECORD_ALIGN     8
#define KEY_HEADER_MAX   3               /* LEB128 of BLOOM_JOURNAL_KEY_MAX */


void
bloom_segment_encode(const bloom_segment_t *segment,
    uint8_t h[BLOOM_SEGMENT_HEADER])
{
    memset(h, 0, BLOOM_SEGMENT_HEADER);

    memcpy(h + AT_MAGIC, magic, sizeof(magic));
    bloom_put32(h + AT_VERSION, BLOOM_JOURNAL_VERSION);
    bloom_put32(h + AT_ORDER, ORDER_MARK);
    bloom_put64(h + AT_SIZE, segment->size);
    bloom_put64(h + AT_BASE, segment->base);
    bloom_put64(h + AT_SEQUENCE, segment->sequence);
    bloom_put64(h + AT_CREATED, segment->created);
    memcpy(h + AT_SALT, segment->salt, BLOOM_SEGMENT_SALT_LEN);

    bloom_put32(h + AT_CRC, bloom_crc32c(0, h, AT_CRC));
}


#define fail(...)                                                            \
    (snprintf(error, BLOOM_JOURNAL_ERROR_LEN, __VA_ARGS__), -1)


int
bloom_segment_decode(bloom_segment_t *segment,
    const uint8_t h[BLOOM_SEGMENT_HEADER], uint64_t file_size, char *error)
{
    uint32_t  version;

    if (file_size < BLOOM_SEGMENT_HEADER) {
        return fail("is truncated: it has %" PRIu64 " bytes, and its header "
                    "alone %d", file_size, BLOOM_SEGMENT_HEADER);
    }

    if (memcmp(h + AT_MAGIC, magic, sizeof(magic)) != 0) {
        return fail("is not a segment of a journal: it does not begin as one");
    }

    version = bloom_get32(h + AT_VERSION);

    if (version > BLOOM_JOURNAL_VERSION) {
        return fail("is of version %" PRIu32 " and this program reads up to "
                    "version %d; use a newer program, or move the file away "
                    "and lose its keys", version, BLOOM_JOURNAL_VERSION);
    }

    if (bloom_get32(h + AT_CRC) != bloom_crc32c(0, h, AT_CRC)) {
        return fail("is damaged: the checksum of its header differs");
    }

    segment->size = bloom_get64(h + AT_SIZE);
    segment->base = bloom_get64(h + AT_BASE);
    segment->sequence = bloom_get64(h + AT_SEQUENCE);
    segment->created = bloom_get64(h + AT_CREATED);
    memcpy(segment->salt, h + AT_SALT, BLOOM_SEGMENT_SALT_LEN);

    if (version != BLOOM_JOURNAL_VERSION
        || bloom_get32(h + AT_ORDER) != ORDER_MARK
        || segment->size < BLOOM_SEGMENT_HEADER + BLOOM_RECORD_MAX
        || segment->size % RECORD_ALIGN != 0
        || segment->base % RECORD_ALIGN != 0
        || segment->base + segment->size < segment->base
        || segment->sequence == 0
        || file_size > segment->size)
    {
        return fail("is impossible: version %" PRIu32 ", %" PRIu64 " bytes "
                    "from position %" PRIu64 " and record %" PRIu64 " on, in "
                    "a file of %" PRIu64 " bytes", version, segment->size,
                    segment->base, segment->sequence, file_size);
    }

    return 0;
}


void
bloom_record_begin(bloom_record_maker_t *maker, uint8_t *buf, size_t room)
{
    maker->buf = buf;
    maker->room = room < BLOOM_RECORD_MAX ? room : BLOOM_RECORD_MAX;
    maker->len = BLOOM_RECORD_HEADER;
    maker->count = 0;
}


int
bloom_record_put(bloom_record_maker_t *maker, const bloom_key_t *key)
{
    size_t    rest;
    uint8_t  *p;

    if (key->len == 0 || key->len > BLOOM_JOURNAL_KEY_MAX
        || maker->len + KEY_HEADER_MAX + key->len + RECORD_ALIGN
           > maker->room)
    {
        return -1;
    }

    p = maker->buf + maker->len;

    for (rest = key->len; rest > 0x7f; rest >>= 7) {
        *p++ = (uint8_t) (rest | 0x80);
    }

    *p++ = (uint8_t) rest;

    memcpy(p, key->data, key->len);

    maker->len = (size_t) (p - maker->buf) + key->len;
    maker->count++;

    return 0;
}


static uint32_t
record_crc(const bloom_segment_t *segment, uint64_t position,
    const uint8_t *record, size_t size)
{
    uint8_t   place[8];
    uint32_t  crc;

    bloom_put64(place, position);

    crc = bloom_crc32c(0, segment->salt, BLOOM_SEGMENT_SALT_LEN);
    crc = bloom_crc32c(crc, place, sizeof(place));

    return bloom_crc32c(crc, record + AT_RECORD_SEQ, size - AT_RECORD_SEQ);
}


size_t
bloom_record_seal(bloom_record_maker_t *maker, const bloom_segment_t *segment,
    uint64_t position, uint64_t sequence, uint64_t time)
{
    size_t    size;
    uint8_t  *h;

    h = maker->buf;
    size = (maker->len + RECORD_ALIGN - 1) & ~(size_t) (RECORD_ALIGN - 1);

    memset(h + maker->len, 0, size - maker->len);

    bloom_put32(h + AT_RECORD_SIZE, (uint32_t) size);
    bloom_put64(h + AT_RECORD_SEQ, sequence);
    bloom_put64(h + AT_RECORD_TIME, time);
    bloom_put32(h + AT_RECORD_COUNT, maker->count);
    bloom_put32(h + AT_RECORD_KEYS,
                (uint32_t) (maker->len - BLOOM_RECORD_HEADER));
    bloom_put32(h + AT_RECORD_CRC, record_crc(segment, position, h, size));

    return size;
}


bloom_record_e
bloom_record_read(bloom_record_t *record, const bloom_segment_t *segment,
    uint64_t position, uint64_t sequence, const uint8_t *buf, size_t len)
{
    size_t       keys;
    uint32_t     size, count;
    bloom_key_t  key;

    if (len < RECORD_ALIGN) {
        return BLOOM_RECORD_END;
    }

    size = bloom_get32(buf + AT_RECORD_SIZE);

    if (size == 0 && bloom_get32(buf + AT_RECORD_CRC) == 0) {
        return BLOOM_RECORD_END;
    }

    if (size <= BLOOM_RECORD_HEADER || size > BLOOM_RECORD_MAX || size > len
        || size % RECORD_ALIGN != 0
        || bloom_get32(buf + AT_RECORD_CRC)
           != record_crc(segment, position, buf, size))
    {
        return BLOOM_RECORD_BROKEN;
    }

    record->sequence = bloom_get64(buf + AT_RECORD_SEQ);
    record->time = bloom_get64(buf + AT_RECORD_TIME);
    record->count = bloom_get32(buf + AT_RECORD_COUNT);
    record->size = size;
    keys = bloom_get32(buf + AT_RECORD_KEYS);

    if (keys > size - BLOOM_RECORD_HEADER || record->count == 0
        || record->sequence < segment->sequence
        || (sequence != 0 && record->sequence != sequence))
    {
        return BLOOM_RECORD_BROKEN;
    }

    record->keys = buf + BLOOM_RECORD_HEADER;
    record->end = record->keys + keys;

    /* a writer that breaks the format is found here, not while keys are used */

    for (count = 0; bloom_record_key(record, &key) == 1; count++) {
        /* void */
    }

    if (count != record->count || record->keys != record->end) {
        return BLOOM_RECORD_BROKEN;
    }

    record->keys = buf + BLOOM_RECORD_HEADER;

    return BLOOM_RECORD_OK;
}


int
bloom_record_key(bloom_record_t *record, bloom_key_t *key)
{
    size_t          len;
    unsigned        shift;
    const uint8_t  *p;

    p = record->keys;

    for (len = 0, shift = 0; /* void */ ; shift += 7) {

        if (p == record->end || shift == 7 * KEY_HEADER_MAX) {
            return 0;
        }

        len |= (size_t) (*p & 0x7f) << shift;

        if ((*p++ & 0x80) == 0) {
            break;
        }
    }

    if (len == 0 || len > BLOOM_JOURNAL_KEY_MAX
        || len > (size_t) (record->end - p))
    {
        return 0;
    }

    key->data = p;
    key->len = len;

    record->keys = p + len;

    return 1;
}


size_t
bloom_record_find(const bloom_segment_t *segment, uint64_t position,
    uint64_t sequence, const uint8_t *buf, size_t len)
{
    size_t          at;
    bloom_record_t  record;

    for (at = RECORD_ALIGN; at + RECORD_ALIGN <= len; at += RECORD_ALIGN) {

        if (bloom_record_read(&record, segment, position + at, 0, buf + at,
                              len - at)
            == BLOOM_RECORD_OK
            && record.sequence >= sequence)
        {
            return at;
        }
    }

    return len;
}
