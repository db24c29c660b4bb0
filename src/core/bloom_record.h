/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A journal holds the keys added to a zone since its image, in order, on disk.
 *
 * It is one endless sequence of bytes, and a position in it is a 64-bit
 * number.  Segments, files of a fixed size, hold it piece by piece:
 *
 *     segment     | header 128 | record | record | ... | zeros to its end |
 *     positions   base        base + 128              base + size = next base
 *
 *     record      | header 32 | key | key | ... | zeros to a multiple of 8 |
 *     key         length (LEB128), bytes
 *
 * A record is what one addition appended: one key or many.  Sequence numbers
 * count records, without a gap; times never run backwards.
 *
 * The end is where zeros begin.  A record that was being written when the
 * machine stopped fails a checksum, or has zeros where its header should be:
 * the tail is torn there and cut.  A valid record behind a broken one is never
 * dropped: that is damage, not a tail.  bloom_record_find() tells them apart.
 *
 * A record's header has a checksum of its own, which begins with the segment's
 * random salt and the record's position, and a checksum of the keys.  So no
 * key, whatever its bytes, can pose as a record, nor a record of another place
 * as one of this; and a record whose keys alone are broken says how far it
 * goes, so that finding the next one looks at every byte about once, whatever
 * the bytes are.
 *
 * Numbers are little-endian.  docs/journal-format.md has each field.
 */

#ifndef BLOOM_RECORD_H
#define BLOOM_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_key.h"

#pragma GCC visibility push(hidden)


#define BLOOM_JOURNAL_VERSION    1

#define BLOOM_SEGMENT_HEADER     128
#define BLOOM_SEGMENT_SIZE       (16 * 1024 * 1024)     /* as a rule */
#define BLOOM_SEGMENT_MIN        (BLOOM_SEGMENT_HEADER + BLOOM_RECORD_MAX)
#define BLOOM_SEGMENT_MAX        (1024 * 1024 * 1024)
#define BLOOM_SEGMENT_SALT_LEN   16

#define BLOOM_RECORD_HEADER      32
#define BLOOM_RECORD_MAX         (128 * 1024)           /* header included */
#define BLOOM_RECORD_KEY_MAX     65535

#define BLOOM_RECORD_ERROR_LEN   256


typedef struct {
    uint64_t  base;                      /* position of its first byte */
    uint64_t  size;                      /* bytes, header included */
    uint64_t  sequence;                  /* no record in it has a lower one */
    uint64_t  created;                   /* ms since 1970-01-01 UTC */
    uint8_t   salt[BLOOM_SEGMENT_SALT_LEN];
} bloom_segment_t;


typedef struct {
    uint64_t        sequence;
    uint64_t        time;                /* ms since 1970-01-01 UTC */
    uint32_t        count;               /* keys, at least 1 */
    uint32_t        size;                /* bytes, header and padding too */
    const uint8_t  *keys;                /* what bloom_record_key() walks */
    const uint8_t  *end;                 /* behind the last key */
} bloom_record_t;


/* ---- segments ---- */

void bloom_segment_encode(const bloom_segment_t *segment,
    uint8_t header[BLOOM_SEGMENT_HEADER]);

typedef enum {
    BLOOM_SEGMENT_OK = 0,
    BLOOM_SEGMENT_DAMAGED,
    BLOOM_SEGMENT_NEWER,                 /* than this program */
    BLOOM_SEGMENT_NONE                   /* something else */
} bloom_segment_e;

/*
 * Anything but OK comes with `error`, BLOOM_RECORD_ERROR_LEN bytes: a phrase
 * to follow the file's name.  `file_size` may be less than the segment's size,
 * where a file was cut: what is missing counts as zeros, in the header, too.
 */
bloom_segment_e bloom_segment_decode(bloom_segment_t *segment,
    const uint8_t header[BLOOM_SEGMENT_HEADER], uint64_t file_size,
    char *error);


/* ---- writing ---- */

/* A record being made, in the caller's memory. */
typedef struct {
    uint8_t   *buf;
    size_t     room;                     /* at most BLOOM_RECORD_MAX */
    size_t     len;
    uint32_t   count;
} bloom_record_maker_t;

/* `room` is at least BLOOM_RECORD_HEADER. */
void bloom_record_begin(bloom_record_maker_t *maker, uint8_t *buf,
    size_t room);

/* 0, or -1 if there is no room for the key, or it is too long or empty. */
int bloom_record_put(bloom_record_maker_t *maker, const bloom_key_t *key);

/*
 * Pads and seals a record of at least one key for its place; its size, a
 * multiple of 8.  It may be sealed again for another place.
 *
 * The caller sees to the order: `position` is a multiple of 8 behind all
 * records before, with room for this one in the segment; `sequence` is that of
 * the record before and one more; `time` is not less than that record's.
 */
size_t bloom_record_seal(bloom_record_maker_t *maker,
    const bloom_segment_t *segment, uint64_t position, uint64_t sequence,
    uint64_t time);


/* ---- reading ---- */

typedef enum {
    BLOOM_RECORD_OK = 0,
    BLOOM_RECORD_END,                    /* zeros: nothing was written here */
    BLOOM_RECORD_BROKEN                  /* torn, damaged, or no record */
} bloom_record_e;

/*
 * The record at `position` of a segment, of which `len` bytes from there to
 * the segment's end are at `buf`.  Sequence 0 takes any number, otherwise it
 * must be that very one.
 *
 * For whoever follows a journal while others append: END and BROKEN mean "not
 * yet".
 */
bloom_record_e bloom_record_read(bloom_record_t *record,
    const bloom_segment_t *segment, uint64_t position, uint64_t sequence,
    const uint8_t *buf, size_t len);

/* The next key; 1, or 0 behind the last. */
int bloom_record_key(bloom_record_t *record, bloom_key_t *key);

/*
 * The first valid record at `position` or behind that has at least that
 * sequence number: its distance from `buf`, or `len` if there is none.
 *
 * For whoever reads a journal at rest, from record to record: 0 as a rule; a
 * distance is damage, of zeros too, as a machine that stops may have written
 * what came later and not what came first; at `len` the segment ends, and what
 * is not zero there is a torn tail.
 */
size_t bloom_record_find(bloom_record_t *record,
    const bloom_segment_t *segment, uint64_t position, uint64_t sequence,
    const uint8_t *buf, size_t len);

/* How many bytes from the first to the last that is not zero; 0: all are. */
size_t bloom_record_tail(const uint8_t *buf, size_t len);


#pragma GCC visibility pop

#endif /* BLOOM_RECORD_H */
