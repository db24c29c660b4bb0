/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The file "base" of a zone's state directory says what the zone stands on: the
 * image that a start begins with, and the position in the journal from which
 * records follow it.  It has two entries:
 *
 *     0        entry 0
 *     4096     entry 1
 *
 * An entry takes 4096 bytes, of which the last four are a checksum.  The valid
 * entry with the greater number counts.  A writer overwrites the other one, so
 * a write that was interrupted changes nothing.
 *
 * Numbers are little-endian.  docs/state.md describes each field.
 */

#ifndef BLOOM_BASE_H
#define BLOOM_BASE_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_digest.h"
#include "bloom_image.h"
#include "bloom_record.h"
#include "bloom_source.h"

#pragma GCC visibility push(hidden)


#define BLOOM_BASE_VERSION     1
#define BLOOM_BASE_ENTRY       4096
#define BLOOM_BASE_SIZE        (2 * BLOOM_BASE_ENTRY)
#define BLOOM_BASE_ERROR_LEN   256


/* What a zone stands on.  Never renumbered. */
typedef enum {
    BLOOM_BASE_EMPTY = 0,                /* an empty filter */
    BLOOM_BASE_FILE,                     /* the image of file= */
    BLOOM_BASE_UPLOAD,                   /* an image that was uploaded */
    BLOOM_BASE_CHECKPOINT                /* its older checkpoint */
} bloom_base_e;

/* How much of a source a zone has. */
typedef struct {
    uint64_t          source;            /* identifies its name, odd; 0: not
                                            set, and all others are 0 */
    bloom_position_t  position;          /* the zone has the changes up to
                                            here, */
    bloom_position_t  gap;               /* if its image is at this position or
                                            later; 0: whatever its image is */
    uint64_t          lost;              /* 1: the source has lost changes
                                            before the gap; 0: only instances
                                            with an older image lack them */
    bloom_digest_t    digest;            /* of the changes, at `position`;
                                            digest.since is not after it */
    bloom_position_t  due;               /* position before a clear; the zone
                                            lacks changes until it is here
                                            again or gets a sign of life */
} bloom_reached_t;

/* A point of the journal, between two records, and what the records before it
 * come to. */
typedef struct {
    uint64_t          position;          /* where the next record, or the
                                            segment with it, begins; a multiple
                                            of 8 */
    uint64_t          sequence;          /* of the next record, at least 1 */
    uint64_t          time;              /* of the record before, ms since 1970;
                                            0: there was none */
    bloom_removals_t  removals;          /* of the records before */
    bloom_reached_t   place;             /* in the zone's source */
} bloom_point_t;

/* An image that was accepted. */
typedef struct {
    uint8_t           build_id[BLOOM_IMAGE_BUILD_ID_LEN];
    uint64_t          keys;
    uint64_t          as_of;             /* ms since 1970, as it states it; 0:
                                            not stated */
    uint64_t          loaded;            /* time of its first load, ms since
                                            1970 */
    bloom_position_t  position;          /* in the zone's source */
} bloom_accepted_t;

/* An entry. */
typedef struct {
    uint64_t          number;            /* at least 1; grows with each write */
    uint8_t           journal[BLOOM_JOURNAL_ID_LEN];
    bloom_base_e      kind;
    uint8_t           build_id[BLOOM_IMAGE_BUILD_ID_LEN];
                                         /* of the image: of file=, of the
                                            upload, or of the one that the
                                            checkpoints were made from; zeros:
                                            of an empty filter */
    uint8_t           replaced[BLOOM_IMAGE_BUILD_ID_LEN];
                                         /* of the image of file= in whose place
                                            an upload was put; else zeros */
    bloom_point_t     from;              /* where the journal begins */
    uint64_t          dropped;           /* time of the newest record that was
                                            removed from the journal, ms since
                                            1970; 0: none */
    uint64_t          floor;             /* the greatest time that a record had,
                                            ms since 1970; no less than the
                                            times of points and `dropped` */
    uint64_t          lost;              /* keys that were added up to this time
                                            may be lost, ms since 1970; 0: no
                                            key */
    uint64_t          lost_keys;         /* how many are known to be */
    bloom_point_t     checkpoint[2];     /* the older and the newer one, in the
                                            order of the journal, not before
                                            `from`; a single one is the newer
                                            one; position 0: none, and all else
                                            is 0 */
    uint32_t          checksum[2];       /* of the checkpoints' files: what
                                            bloom_image_checksum() returns; 0:
                                            none */
    bloom_accepted_t  accepted[2];       /* the last one and the one before;
                                            loaded 0:
                                            none, and all else is 0 */
} bloom_base_t;


/* Removes a checkpoint, 0 or 1, from an entry. */
void bloom_base_forget(bloom_base_t *base, unsigned number);

/*
 * Checks that an entry may have these values and combinations of them, which a
 * writer ensures.  Returns NULL, or what is wrong: a phrase to follow "the
 * entry".
 */
const char *bloom_base_check(const bloom_base_t *base);

/* Writes an entry, which has passed bloom_base_check(): a reader refuses any
 * other. */
void bloom_base_encode(const bloom_base_t *base,
    uint8_t entry[BLOOM_BASE_ENTRY]);

/* What a file "base" contains. */
typedef enum {
    BLOOM_BASE_OK = 0,
    BLOOM_BASE_DAMAGED,                  /* no entry counts */
    BLOOM_BASE_FOREIGN                   /* it has another version */
} bloom_base_result_e;

/*
 * Finds the entry that counts in the first `len` bytes of a file; bytes that
 * the file lacks count as zeros, and those behind both entries are ignored.
 * Returns BLOOM_BASE_OK with *base and, in *which, its number in the file, 0 or
 * 1; otherwise `error` (BLOOM_BASE_ERROR_LEN bytes) gets a phrase to follow the
 * file's name, and the others keep their values.
 *
 * An entry of another version, if its checksum is right, makes the file
 * FOREIGN even if the other entry is valid: that one may be the older one.  Two
 * valid entries that differ, but not in their numbers, or that are of different
 * journals, are DAMAGED.
 */
bloom_base_result_e bloom_base_decode(bloom_base_t *base, unsigned *which,
    const uint8_t *data, size_t len, char *error);


#pragma GCC visibility pop

#endif /* BLOOM_BASE_H */
