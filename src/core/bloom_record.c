/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file encodes and decodes the headers of segments and records, and finds
 * the next valid record after a broken one.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bloom_record.h"
#include "bloom_bytes.h"
#include "bloom_crc.h"
#include "bloom_exceptions.h"
#include "bloom_packed_key.h"


static const uint8_t  magic[8] = { 0x89, 'B', 'L', 'M', 'J', 'N', 'L', 0x0a };

#define ORDER_MARK       0x01020304
#define ORDER_REVERSED   0x04030201

/* Offsets in a segment's header. */
#define AT_MAGIC         0
#define AT_VERSION       8
#define AT_ORDER         12
#define AT_SIZE          16
#define AT_BASE          24
#define AT_SEQUENCE      32
#define AT_CREATED       40
#define AT_SALT          48
#define AT_JOURNAL       64
#define AT_ENTRY         80
#define AT_RESERVED      88
#define AT_CRC           (BLOOM_SEGMENT_HEADER - 4)

/* Offsets in a record's header. */
#define AT_RECORD_SIZE   0               /* with header and padding */
#define AT_RECORD_CRC    4               /* of salt, position and header */
#define AT_RECORD_SEQ    8
#define AT_RECORD_TIME   16
#define AT_RECORD_COUNT  24              /* 3 bytes */
#define AT_RECORD_TYPE   27
#define AT_RECORD_KEYS   28              /* CRC of all after the header */
#define AT_RECORD_DURABLE  32
#define AT_RECORD_REMOVED  40            /* keys of removals so far */
#define AT_RECORD_BYTES  48              /* bytes of these keys */

#define RECORD_ALIGN     8
#define KEY_MIN          2               /* a key of one byte */
#define KEYLESS_BODY     8               /* bytes in place of keys */

/* Offsets in a record of changes, before its keys. */
#define AT_BEFORE        (BLOOM_RECORD_HEADER + 0)
#define AT_AFTER         (BLOOM_RECORD_HEADER + 16)
#define AT_DIGEST        (BLOOM_RECORD_HEADER + 32)
#define AT_SINCE         (BLOOM_RECORD_HEADER + 40)
#define AT_REMOVALS      (BLOOM_RECORD_HEADER + 56)      /* 3 bytes */
#define AT_PART          (BLOOM_RECORD_HEADER + 59)
#define AT_NAME_LEN      (BLOOM_RECORD_HEADER + 60)
#define AT_NAME          (BLOOM_RECORD_HEADER + BLOOM_RECORD_CHANGES_HEADER)


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
    memcpy(h + AT_JOURNAL, segment->journal, BLOOM_JOURNAL_ID_LEN);
    bloom_put64(h + AT_ENTRY, segment->entry);

    bloom_put32(h + AT_CRC, bloom_crc32c(0, h, AT_CRC));
}


#define refuse(how, ...)                                                     \
    (snprintf(error, BLOOM_RECORD_ERROR_LEN, __VA_ARGS__),                  \
     BLOOM_SEGMENT_##how)


bloom_segment_e
bloom_segment_decode(bloom_segment_t *segment,
    const uint8_t h[BLOOM_SEGMENT_HEADER], uint64_t file_size, char *error)
{
    uint32_t  version;

    if (file_size == 0) {
        return refuse(NONE, "is empty");
    }

    if (memcmp(h + AT_MAGIC, magic, sizeof(magic)) != 0) {
        return refuse(NONE, "is not a segment of a journal");
    }

    if (file_size < BLOOM_SEGMENT_HEADER) {
        return refuse(DAMAGED, "is truncated: it has %" PRIu64 " bytes, but a "
                      "header has %d; copy it again", file_size,
                      BLOOM_SEGMENT_HEADER);
    }

    if (bloom_get32(h + AT_ORDER) == ORDER_REVERSED) {
        return refuse(DAMAGED, "was written in big-endian byte order, but a "
                      "journal is little-endian on every machine; correct the "
                      "program that wrote it");
    }

    version = bloom_get32(h + AT_VERSION);

    if (version != BLOOM_JOURNAL_VERSION
        && bloom_get32(h + AT_ORDER) == ORDER_MARK)
    {
        return refuse(FOREIGN, "has version %" PRIu32 ", but this program "
                      "reads version %d; use %s, or move the file away and "
                      "lose its keys", version, BLOOM_JOURNAL_VERSION,
                      version > BLOOM_JOURNAL_VERSION ? "a newer program"
                      : "the program that wrote it");
    }

    if (bloom_get32(h + AT_CRC) != bloom_crc32c(0, h, AT_CRC)) {
        return refuse(DAMAGED, "is damaged: the checksum of its header "
                      "differs");
    }

    segment->size = bloom_get64(h + AT_SIZE);
    segment->base = bloom_get64(h + AT_BASE);
    segment->sequence = bloom_get64(h + AT_SEQUENCE);
    segment->created = bloom_get64(h + AT_CREATED);
    segment->entry = bloom_get64(h + AT_ENTRY);
    memcpy(segment->salt, h + AT_SALT, BLOOM_SEGMENT_SALT_LEN);
    memcpy(segment->journal, h + AT_JOURNAL, BLOOM_JOURNAL_ID_LEN);

    if (version != BLOOM_JOURNAL_VERSION
        || bloom_get32(h + AT_ORDER) != ORDER_MARK
        || segment->size < BLOOM_SEGMENT_MIN
        || segment->size > BLOOM_SEGMENT_MAX
        || segment->size % RECORD_ALIGN != 0
        || segment->base % RECORD_ALIGN != 0
        || segment->base + segment->size < segment->base
        || segment->sequence == 0
        || bloom_record_tail(h + AT_RESERVED, AT_CRC - AT_RESERVED) != 0)
    {
        return refuse(DAMAGED, "is invalid: its header says version %" PRIu32
                      ", %" PRIu64 " bytes, position %" PRIu64 ", record %"
                      PRIu64 "; correct the program that wrote it", version,
                      segment->size, segment->base, segment->sequence);
    }

    if (file_size > segment->size) {
        return refuse(DAMAGED, "is too long: it has %" PRIu64 " bytes, but its "
                      "header says %" PRIu64 "; truncate it to that size",
                      file_size, segment->size);
    }

    return BLOOM_SEGMENT_OK;
}


void
bloom_record_begin(bloom_record_maker_t *maker, uint8_t *buf, size_t room)
{
    maker->buf = buf;
    maker->room = room < BLOOM_RECORD_MAX ? room & ~(size_t) (RECORD_ALIGN - 1)
                                          : BLOOM_RECORD_MAX;
    maker->len = BLOOM_RECORD_HEADER;
    maker->type = BLOOM_RECORD_ADD;
    maker->count = 0;
    maker->kinds = 0;
    maker->removals = 0;
    maker->part = 0;
}


void
bloom_record_begin_changes(bloom_record_maker_t *maker, uint8_t *buf,
    size_t room, const bloom_key_t *source, bloom_position_t before,
    bloom_position_t after, bloom_digest_t digest)
{
    bloom_record_begin(maker, buf, room);

    maker->type = BLOOM_RECORD_CHANGES;
    maker->len = AT_NAME + source->len;

    bloom_put64(buf + AT_BEFORE, before.high);
    bloom_put64(buf + AT_BEFORE + 8, before.low);
    bloom_put64(buf + AT_AFTER, after.high);
    bloom_put64(buf + AT_AFTER + 8, after.low);
    bloom_put64(buf + AT_DIGEST, digest.value);
    bloom_put64(buf + AT_SINCE, digest.since.high);
    bloom_put64(buf + AT_SINCE + 8, digest.since.low);
    buf[AT_NAME_LEN] = (uint8_t) source->len;
    memcpy(buf + AT_NAME, source->data, source->len);
}


int
bloom_record_put(bloom_record_maker_t *maker, const bloom_key_t *key)
{
    uint8_t  *end;

    /* padding always fits: room is a multiple of RECORD_ALIGN */

    if (key->len == 0 || key->len > BLOOM_KEY_MAX
        || bloom_packed_key_size(key->len) > maker->room - maker->len)
    {
        return -1;
    }

    end = bloom_packed_key_write(maker->buf + maker->len, key);

    maker->len = (size_t) (end - maker->buf);
    maker->count++;

    return 0;
}


static uint32_t
header_crc(const bloom_segment_t *segment, uint64_t position, const uint8_t *h)
{
    uint8_t   place[8];
    uint32_t  crc;

    bloom_put64(place, position);

    crc = bloom_crc32c(0, segment->salt, BLOOM_SEGMENT_SALT_LEN);
    crc = bloom_crc32c(crc, place, sizeof(place));
    crc = bloom_crc32c(crc, h + AT_RECORD_SIZE, AT_RECORD_CRC);

    return bloom_crc32c(crc, h + AT_RECORD_SEQ,
                        BLOOM_RECORD_HEADER - AT_RECORD_SEQ);
}


static uint32_t
keys_crc(const uint8_t *h, size_t size)
{
    return bloom_crc32c(0, h + BLOOM_RECORD_HEADER,
                        size - BLOOM_RECORD_HEADER);
}


size_t
bloom_record_size(const bloom_record_maker_t *maker)
{
    size_t  len;

    len = bloom_record_keyless(maker->type)
          ? BLOOM_RECORD_HEADER + KEYLESS_BODY : maker->len;

    return (len + RECORD_ALIGN - 1) & ~(size_t) (RECORD_ALIGN - 1);
}


/* Counts the removed keys of a record that is composed. */
static bloom_removals_t
count_removals(const bloom_record_maker_t *maker)
{
    uint32_t          left;
    bloom_key_t       key;
    const uint8_t    *p, *end;
    bloom_removals_t  removals = { 0, 0 };

    p = maker->buf + BLOOM_RECORD_HEADER;
    end = maker->buf + maker->len;
    left = 0;

    if (maker->type == BLOOM_RECORD_REMOVE) {
        left = maker->count;

    } else if (maker->type == BLOOM_RECORD_CHANGES) {
        left = maker->removals;
        p = maker->buf + AT_NAME + maker->buf[AT_NAME_LEN];
    }

    for ( /* void */ ; left > 0; left--) {
        p = bloom_packed_key_read(&key, p, end);

        if (p == NULL) {
            break;
        }

        removals.keys++;
        removals.bytes += key.len;
    }

    return removals;
}


size_t
bloom_record_seal(bloom_record_maker_t *maker, const bloom_segment_t *segment,
    uint64_t position, bloom_stamp_t *stamp)
{
    size_t            size;
    uint8_t          *h;
    bloom_removals_t  removals;

    h = maker->buf;
    size = bloom_record_size(maker);

    memset(h + maker->len, 0, size - maker->len);

    if (maker->type == BLOOM_RECORD_RESTORE) {
        h[BLOOM_RECORD_HEADER] = (uint8_t) maker->kinds;

    } else if (maker->type == BLOOM_RECORD_CHANGES) {
        bloom_put32(h + AT_REMOVALS, maker->removals);
        h[AT_PART] = (uint8_t) maker->part;
    }

    removals = count_removals(maker);
    stamp->removals.keys += removals.keys;
    stamp->removals.bytes += removals.bytes;

    bloom_put32(h + AT_RECORD_SIZE, (uint32_t) size);
    bloom_put64(h + AT_RECORD_SEQ, stamp->sequence);
    bloom_put64(h + AT_RECORD_TIME, stamp->time);
    bloom_put64(h + AT_RECORD_DURABLE, stamp->durable);
    bloom_put64(h + AT_RECORD_REMOVED, stamp->removals.keys);
    bloom_put64(h + AT_RECORD_BYTES, stamp->removals.bytes);
    bloom_put32(h + AT_RECORD_COUNT, maker->count);
    h[AT_RECORD_TYPE] = (uint8_t) maker->type;
    bloom_put32(h + AT_RECORD_KEYS, keys_crc(h, size));
    bloom_put32(h + AT_RECORD_CRC, header_crc(segment, position, h));

    return size;
}


/* Returns 1 if a record of its type may have that size, count and place. */
static int
has_shape(const bloom_record_t *record, const bloom_segment_t *segment,
    uint64_t position)
{
    if (!bloom_record_known(record->type)) {
        return 1;
    }

    if (record->type == BLOOM_RECORD_CHANGES) {
        return record->size >= AT_NAME + 1
               && record->count <= (record->size - AT_NAME) / KEY_MIN;
    }

    if (bloom_record_keyless(record->type)) {
        return record->count == 0
               && record->size == BLOOM_RECORD_HEADER + KEYLESS_BODY
               && (record->type != BLOOM_RECORD_CLEAR
                   || position == segment->base + BLOOM_SEGMENT_HEADER);
    }

    return record->count != 0
           && record->count <= (record->size - BLOOM_RECORD_HEADER) / KEY_MIN;
}


/* Reads a record's header.  Returns 0 with every field of `record` but `end`;
 * -1 if the header is not valid. */
static int
read_header(bloom_record_t *record, const bloom_segment_t *segment,
    uint64_t position, const uint8_t *buf, size_t len)
{
    if (len <= BLOOM_RECORD_HEADER) {
        return -1;
    }

    record->size = bloom_get32(buf + AT_RECORD_SIZE);
    record->stamp.sequence = bloom_get64(buf + AT_RECORD_SEQ);
    record->stamp.time = bloom_get64(buf + AT_RECORD_TIME);
    record->stamp.durable = bloom_get64(buf + AT_RECORD_DURABLE);
    record->stamp.removals.keys = bloom_get64(buf + AT_RECORD_REMOVED);
    record->stamp.removals.bytes = bloom_get64(buf + AT_RECORD_BYTES);
    record->type = buf[AT_RECORD_TYPE];
    record->count = bloom_get32(buf + AT_RECORD_COUNT) & 0xffffff;
    record->data = buf;
    record->keys = buf + BLOOM_RECORD_HEADER;

    if (record->size <= BLOOM_RECORD_HEADER
        || record->size > BLOOM_RECORD_MAX
        || record->size > len
        || record->size % RECORD_ALIGN != 0
        || record->stamp.sequence < segment->sequence
        || record->stamp.durable >= record->stamp.sequence
        || !has_shape(record, segment, position))
    {
        return -1;
    }

    return bloom_get32(buf + AT_RECORD_CRC)
           == header_crc(segment, position, buf) ? 0 : -1;
}


/* Checks what a record without keys has in their place.  Returns 0, or -1 if it
 * is not valid. */
static int
read_body(bloom_record_t *record, const uint8_t *body)
{
    record->end = record->keys;

    if (record->type == BLOOM_RECORD_CLEAR) {
        return bloom_record_tail(body, KEYLESS_BODY) == 0 ? 0 : -1;
    }

    record->kinds = body[0];

    return record->kinds != 0
           && (record->kinds
               & ~(BLOOM_EXCEPTION_REMOVED | BLOOM_EXCEPTION_FEEDBACK)) == 0
           && bloom_record_tail(body + 1, KEYLESS_BODY - 1) == 0 ? 0 : -1;
}


/* Reads what a record of changes has before its keys.  Returns 0, or -1 if it
 * is not valid. */
static int
read_changes(bloom_record_t *record, const uint8_t *buf)
{
    int  order;

    record->before.high = bloom_get64(buf + AT_BEFORE);
    record->before.low = bloom_get64(buf + AT_BEFORE + 8);
    record->after.high = bloom_get64(buf + AT_AFTER);
    record->after.low = bloom_get64(buf + AT_AFTER + 8);
    record->digest.value = bloom_get64(buf + AT_DIGEST);
    record->digest.since.high = bloom_get64(buf + AT_SINCE);
    record->digest.since.low = bloom_get64(buf + AT_SINCE + 8);
    record->removals = bloom_get32(buf + AT_REMOVALS) & 0xffffff;
    record->part = buf[AT_PART];
    record->source.data = buf + AT_NAME;
    record->source.len = buf[AT_NAME_LEN];

    order = bloom_position_cmp(record->before, record->after);

    if (record->source.len > record->size - AT_NAME
        || !bloom_source_name_valid(record->source.data, record->source.len)
        || order > 0 || (order == 0 && (record->count != 0 || record->part))
        || record->part > 1
        || bloom_position_cmp(record->digest.since, record->before) > 0
        || record->removals > record->count)
    {
        return -1;
    }

    record->keys = buf + AT_NAME + record->source.len;

    return 0;
}


/*
 * Checks the keys of a record.  Returns 0 with record->end, or -1 if they do
 * not match the header.  A violation of the format by the writer is also found
 * here, before any key is used.
 */
static int
read_keys(bloom_record_t *record, const uint8_t *buf)
{
    uint32_t        count;
    bloom_key_t     key;
    const uint8_t  *keys, *end;

    if (bloom_get32(buf + AT_RECORD_KEYS) != keys_crc(buf, record->size)) {
        return -1;
    }

    end = buf + record->size;
    record->end = end;

    if (!bloom_record_known(record->type)) {
        record->end = record->keys;
        return 0;
    }

    if (bloom_record_keyless(record->type)) {
        return read_body(record, buf + BLOOM_RECORD_HEADER);
    }

    if (record->type == BLOOM_RECORD_CHANGES && read_changes(record, buf) != 0)
    {
        return -1;
    }

    keys = record->keys;

    for (count = 0; count < record->count; count++) {

        if (record->type == BLOOM_RECORD_CHANGES && count == record->removals)
        {
            record->added = record->keys;
        }

        if (bloom_record_key(record, &key) == 0) {
            return -1;
        }
    }

    record->end = record->keys;
    record->keys = keys;

    if (record->type == BLOOM_RECORD_CHANGES
        && record->removals == record->count)
    {
        record->added = record->end;
    }

    if (end - record->end >= RECORD_ALIGN
        || bloom_record_tail(record->end, (size_t) (end - record->end)) != 0)
    {
        return -1;
    }

    return 0;
}


bloom_record_e
bloom_record_read(bloom_record_t *record, const bloom_segment_t *segment,
    uint64_t position, uint64_t sequence, const uint8_t *buf, size_t len)
{
    size_t  first;

    first = len < BLOOM_RECORD_HEADER ? len : BLOOM_RECORD_HEADER;

    if (bloom_record_tail(buf, first) == 0) {
        return BLOOM_RECORD_END;
    }

    if (read_header(record, segment, position, buf, len) != 0
        || (sequence != 0 && record->stamp.sequence != sequence)
        || read_keys(record, buf) != 0)
    {
        return BLOOM_RECORD_BROKEN;
    }

    return BLOOM_RECORD_OK;
}


int
bloom_record_key(bloom_record_t *record, bloom_key_t *key)
{
    const uint8_t  *end;

    end = bloom_packed_key_read(key, record->keys, record->end);

    if (end == NULL) {
        return 0;
    }

    record->keys = end;

    return 1;
}


bloom_removals_t
bloom_record_before(const bloom_record_t *record)
{
    bloom_key_t       key;
    bloom_record_t    removed;
    bloom_removals_t  before;

    before = record->stamp.removals;
    removed = *record;

    if (record->type == BLOOM_RECORD_CHANGES) {
        bloom_record_part(record, BLOOM_RECORD_REMOVE, &removed);
    }

    if (removed.type == BLOOM_RECORD_REMOVE) {
        while (bloom_record_key(&removed, &key) == 1) {
            before.keys--;
            before.bytes -= key.len;
        }
    }

    return before;
}


void
bloom_record_part(const bloom_record_t *record, uint32_t type,
    bloom_record_t *part)
{
    *part = *record;
    part->type = type;

    if (type == BLOOM_RECORD_REMOVE) {
        part->count = record->removals;
        part->end = record->added;

    } else {
        part->count = record->count - record->removals;
        part->keys = record->added;
    }
}


size_t
bloom_record_find(bloom_record_t *record, const bloom_segment_t *segment,
    uint64_t position, uint64_t sequence, const uint8_t *buf, size_t len)
{
    size_t  at;

    for (at = 0; at < len; /* void */ ) {

        if (read_header(record, segment, position + at, buf + at, len - at)
            != 0)
        {
            at += RECORD_ALIGN;
            continue;
        }

        if (record->stamp.sequence >= sequence
            && read_keys(record, buf + at) == 0)
        {
            return at;
        }

        /* the header is valid, so no other record begins within this one */

        at += record->size;
    }

    return len;
}


uint64_t
bloom_record_torn(const bloom_segment_t *segment, uint64_t position,
    const uint8_t *buf, size_t len)
{
    bloom_record_t  record;

    return read_header(&record, segment, position, buf, len) == 0
           ? record.stamp.sequence : 0;
}


size_t
bloom_record_tail(const uint8_t *buf, size_t len)
{
    while (len > 0 && buf[len - 1] == 0) {
        len--;
    }

    return len;
}
