/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A journal stores, in order, the changes of a zone that its image may lack:
 * keys that were added, and keys that were removed.  These functions encode and
 * decode it.
 *
 * A journal is one endless sequence of bytes, and a position in it is a 64-bit
 * number.  It is stored in segments, files of a fixed size:
 *
 *     segment     | header 128 | record | record | ... | zeros to its end |
 *     positions   base        base + 128              base + size = next base
 *
 *     record      | header 56 | key | key | ... | zeros to a multiple of 8 |
 *     key         length (LEB128), bytes
 *
 * A record has a type and contains the keys of one change, at least one.  A
 * record that clears the zone has 8 zero bytes instead of keys, and is always
 * the first one of its segment.  A record of changes from a source has, before
 * its keys, the positions of the source before and after them; it may have no
 * keys.  Sequence numbers count records without gaps.  The times of records do
 * not decrease.
 *
 * A journal ends where the zeros begin.  If the machine stopped while a record
 * was being written, the record fails a checksum or has zeros instead of a
 * header: this is a torn tail, which is cut off.  A broken record that is
 * followed by a valid one is a hole: bloom_record_find() finds the valid
 * record.  Each record says which records were on disk when it was written, so
 * a reader can tell a hole that a loss of power left from damage.
 *
 * Each record also counts the removed keys of all records up to itself.  So the
 * headers of two records say how much room the removals between them need.
 *
 * A record has a checksum of its header and one of its keys.  The header's
 * checksum covers the segment's random salt and the record's position, so
 * neither the bytes of a key nor a record from elsewhere can pass for a record
 * here.  If only the keys are broken, the header still gives the record's size.
 * So the search for the next valid record reads every byte about once, whatever
 * the bytes are.
 *
 * Numbers are little-endian.  docs/journal-format.md describes each field.
 */

#ifndef BLOOM_RECORD_H
#define BLOOM_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_digest.h"
#include "bloom_key.h"
#include "bloom_source.h"

#pragma GCC visibility push(hidden)


#define BLOOM_JOURNAL_VERSION    3
#define BLOOM_JOURNAL_ID_LEN     16

#define BLOOM_SEGMENT_HEADER     128
#define BLOOM_SEGMENT_SIZE       (16 * 1024 * 1024)     /* default */
#define BLOOM_SEGMENT_MIN        (BLOOM_SEGMENT_HEADER + BLOOM_RECORD_MAX)
#define BLOOM_SEGMENT_MAX        (1024 * 1024 * 1024)
#define BLOOM_SEGMENT_SALT_LEN   16

#define BLOOM_RECORD_HEADER      56
#define BLOOM_RECORD_MAX         (128 * 1024)           /* header included */

#define BLOOM_RECORD_ERROR_LEN   256


/* The types of records.  Never renumbered. */
#define BLOOM_RECORD_ADD         0       /* keys were added */
#define BLOOM_RECORD_REMOVE      1       /* keys were removed */
#define BLOOM_RECORD_RESTORE     2       /* all keys that were removed before it
                                            are removed no longer; it has no
                                            keys */
#define BLOOM_RECORD_CLEAR       3       /* all that is before it was dropped;
                                            it has no keys */
#define BLOOM_RECORD_CHANGES     4       /* keys were added and removed by a
                                            source; or, without keys, its
                                            position was set */
#define BLOOM_RECORD_TYPES       5       /* types from here on are of newer
                                            programs */

/* Returns 1 if this program knows the type, else 0. */
static inline int
bloom_record_known(uint32_t type)
{
    return type < BLOOM_RECORD_TYPES;
}


/* Returns 1 if records of the type have no keys, else 0. */
static inline int
bloom_record_keyless(uint32_t type)
{
    return type == BLOOM_RECORD_RESTORE || type == BLOOM_RECORD_CLEAR;
}


/* What the header of a segment says. */
typedef struct {
    uint64_t  base;                      /* position of its first byte */
    uint64_t  size;                      /* bytes, header included */
    uint64_t  sequence;                  /* no record in it has a lower one */
    uint64_t  created;                   /* ms since 1970-01-01 UTC */
    uint64_t  entry;                     /* number of the entry of the file
                                            "base" that counted when the segment
                                            was created */
    uint8_t   journal[BLOOM_JOURNAL_ID_LEN];     /* which journal it is of */
    uint8_t   salt[BLOOM_SEGMENT_SALT_LEN];
} bloom_segment_t;


/* How many keys were removed in a part of a journal, and the bytes of these
 * keys.  A key that was removed twice counts twice. */
typedef struct {
    uint64_t  keys;
    uint64_t  bytes;
} bloom_removals_t;


/* What a record says besides its keys. */
typedef struct {
    uint64_t          sequence;
    uint64_t          time;              /* ms since 1970-01-01 UTC */
    uint64_t          durable;           /* all records up to this sequence were
                                            on disk when it was written; less
                                            than `sequence` */
    bloom_removals_t  removals;          /* of all records of the journal up to
                                            this one */
} bloom_stamp_t;


/*
 * A record that has been read; its keys stay in the caller's buffer.  If its
 * type is not known, the record is valid, but bloom_record_key() returns none
 * of its keys: the caller says that a newer program is needed.
 */
typedef struct {
    bloom_stamp_t   stamp;
    uint32_t        type;                /* BLOOM_RECORD_... */
    uint32_t        count;               /* keys: at least 1, but 0 if the type
                                            has no keys, and any number if it is
                                            not known */
    uint32_t        kinds;               /* of BLOOM_RECORD_RESTORE: which
                                            exceptions end, the sum of
                                            BLOOM_EXCEPTION_REMOVED and
                                            BLOOM_EXCEPTION_FEEDBACK */
    uint32_t        size;                /* bytes, with header and padding */
    const uint8_t  *data;                /* its first byte */
    const uint8_t  *keys;                /* next key of bloom_record_key() */
    const uint8_t  *end;                 /* end of the last key */

    /*
     * Of BLOOM_RECORD_CHANGES: the positions of the source before and after
     * the changes, after >= before.  If they are equal, there are no keys, and
     * the source's changes up to this position may be missing: a gap.  A part
     * has only some of the changes between the positions, so the source stays
     * at `before` until a later record has the others.
     */
    bloom_position_t  before;
    bloom_position_t  after;
    uint32_t          part;              /* 1: it is a part; else 0 */
    bloom_digest_t    digest;            /* where the source is then;
                                            digest.since is not after
                                            `before` */
    bloom_key_t       source;            /* its name */
    uint32_t          removals;          /* the first keys, which were removed;
                                            the others were added.  No key
                                            occurs twice */
    const uint8_t    *added;             /* the first key that was added */
} bloom_record_t;


/* Returns the removals of all records before this one. */
bloom_removals_t bloom_record_before(const bloom_record_t *record);

/* Returns where the source is after a record of BLOOM_RECORD_CHANGES. */
static inline bloom_position_t
bloom_record_reached(const bloom_record_t *record)
{
    return record->part ? record->before : record->after;
}


/* ---- segments ---- */

/* Writes the header of a segment. */
void bloom_segment_encode(const bloom_segment_t *segment,
    uint8_t header[BLOOM_SEGMENT_HEADER]);

typedef enum {
    BLOOM_SEGMENT_OK = 0,
    BLOOM_SEGMENT_DAMAGED,
    BLOOM_SEGMENT_FOREIGN,               /* it has another version */
    BLOOM_SEGMENT_NONE                   /* the file is not a segment */
} bloom_segment_e;

/*
 * Decodes and checks the header of a segment.  If the result is not OK, `error`
 * (BLOOM_RECORD_ERROR_LEN bytes) gets the reason: a phrase to follow the file's
 * name.
 *
 * A file may be shorter than its segment if it was truncated: the missing bytes
 * count as zeros.  If bytes of the header are missing, the caller passes zeros
 * for them.
 */
bloom_segment_e bloom_segment_decode(bloom_segment_t *segment,
    const uint8_t header[BLOOM_SEGMENT_HEADER], uint64_t file_size,
    char *error);


/* ---- writing ---- */

/* A record that is being composed in the caller's memory. */
typedef struct {
    uint8_t   *buf;
    size_t     room;                     /* at most BLOOM_RECORD_MAX */
    size_t     len;
    uint32_t   type;                     /* BLOOM_RECORD_...; the caller may set
                                            it after bloom_record_begin() */
    uint32_t   count;
    uint32_t   kinds;                    /* of BLOOM_RECORD_RESTORE, as in
                                            bloom_record_t; set by the caller */
    uint32_t   removals;                 /* of BLOOM_RECORD_CHANGES; set by the
                                            caller */
    uint32_t   part;                     /* of BLOOM_RECORD_CHANGES; set by the
                                            caller */
} bloom_record_maker_t;

/* Begins a record of additions in `buf`; `room` is at least
 * BLOOM_RECORD_HEADER, and 8 bytes more for a type without keys. */
void bloom_record_begin(bloom_record_maker_t *maker, uint8_t *buf,
    size_t room);

/*
 * Begins a record of changes of a source, whose name is valid.  `after` is
 * after `before`; or both are equal, and the record gets no keys.  `digest` is
 * that where the source is then.  The caller sets maker->part to 1 if further
 * records have the other changes between the positions; adds the keys that were
 * removed; sets maker->removals to maker->count; and adds the keys that were
 * added.  `room` is at least BLOOM_RECORD_CHANGES_MIN.
 */
#define BLOOM_RECORD_CHANGES_HEADER  61
#define BLOOM_RECORD_CHANGES_MIN                                             \
    (BLOOM_RECORD_HEADER + BLOOM_RECORD_CHANGES_HEADER                       \
     + BLOOM_SOURCE_NAME_MAX + 8)

void bloom_record_begin_changes(bloom_record_maker_t *maker, uint8_t *buf,
    size_t room, const bloom_key_t *source, bloom_position_t before,
    bloom_position_t after, bloom_digest_t digest);

/* Adds a key to the record.  Returns 0, or -1 if there is no room for the key,
 * or if it is too long or empty. */
int bloom_record_put(bloom_record_maker_t *maker, const bloom_key_t *key);

/* Returns the size of the record when it is sealed, a multiple of 8. */
size_t bloom_record_size(const bloom_record_maker_t *maker);

/*
 * Pads a record and fills in its header for a position in a segment.  The
 * record has at least one key, or none if its type has none.  `stamp` has the
 * removals of all records before; seal adds those of this record.
 * Returns bloom_record_size().  A record may be sealed again for another
 * position, with another stamp.
 *
 * The caller ensures the order of records: `position` is a multiple of 8 at or
 * after the end of the record before, and the segment has room for this record
 * there; the sequence is one more than that record's.  The time should not be
 * less than that record's, but a reader accepts any time.
 */
size_t bloom_record_seal(bloom_record_maker_t *maker,
    const bloom_segment_t *segment, uint64_t position, bloom_stamp_t *stamp);


/* ---- reading ---- */

typedef enum {
    BLOOM_RECORD_OK = 0,
    BLOOM_RECORD_END,                    /* zeros: nothing was written here */
    BLOOM_RECORD_BROKEN                  /* torn, damaged, or not a record */
} bloom_record_e;

/*
 * Reads and checks the record at `position` of a segment.  `buf` has the `len`
 * bytes from there to the segment's end.  If `sequence` is not 0, a record with
 * another sequence number counts as BROKEN.
 *
 * Use this function to follow a journal to which others append; END and BROKEN
 * then mean "not yet".
 */
bloom_record_e bloom_record_read(bloom_record_t *record,
    const bloom_segment_t *segment, uint64_t position, uint64_t sequence,
    const uint8_t *buf, size_t len);

/* Reads the next key.  Returns 1, or 0 after the last key. */
int bloom_record_key(bloom_record_t *record, bloom_key_t *key);

/* Stores in *part the changes of a record of BLOOM_RECORD_CHANGES that are of
 * `type`, as a record of that type: BLOOM_RECORD_ADD or BLOOM_RECORD_REMOVE.
 * It may have no keys. */
void bloom_record_part(const bloom_record_t *record, uint32_t type,
    bloom_record_t *part);

/*
 * Finds the first valid record at or after `position` whose sequence number is
 * at least `sequence`.  Returns its distance from `buf`, or `len` if there is
 * none.
 *
 * Use this function to read a journal record by record while no process appends
 * to it.  The result is normally 0.  A result between 0 and `len` means
 * damage, even if the bytes skipped are zeros: a machine that stops may have
 * written a later record but not an earlier one.  If the result is `len`, no
 * record is left in the segment, and bytes that are not zero are a torn tail.
 */
size_t bloom_record_find(bloom_record_t *record,
    const bloom_segment_t *segment, uint64_t position, uint64_t sequence,
    const uint8_t *buf, size_t len);

/*
 * Reads the sequence number of a torn tail at `position`, as
 * bloom_record_find() takes them.  Returns the number, or 0 if no header is
 * valid there.
 */
uint64_t bloom_record_torn(const bloom_segment_t *segment, uint64_t position,
    const uint8_t *buf, size_t len);

/* Returns the length of `buf` without the zeros at its end. */
size_t bloom_record_tail(const uint8_t *buf, size_t len);


#pragma GCC visibility pop

#endif /* BLOOM_RECORD_H */
