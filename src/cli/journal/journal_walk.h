/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A walk reads the records of a journal in order, segment by segment, and tells
 * the end of the journal from a hole in it.
 *
 * A record that is missing is a hole if a later record says that it was on
 * disk; then the records behind it count.  Otherwise it is the end, and nothing
 * behind it counts, because a machine that stops may have written later records
 * to disk, but not earlier ones.
 */

#ifndef JOURNAL_WALK_H
#define JOURNAL_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_record.h"
#include "journal_files.h"


/* How many records and keys there are, and what else the records say. */
typedef struct {
    uint64_t          records;
    uint64_t          added;             /* keys */
    uint64_t          removed;           /* keys */
    uint64_t          restorations;      /* records that end exceptions */
    uint64_t          clears;            /* records that clear the zone */
    uint64_t          changes;           /* records of changes of a source */
    bloom_position_t  reached;           /* position after the last of them */
} journal_counts_t;

/* What a walk has found in a segment. */
typedef struct {
    int               valid;             /* 0: nothing of it counts, because
                                            this program cannot read it, its
                                            header is damaged, or it belongs to
                                            another journal */
    journal_counts_t  counts;
    bloom_stamp_t     first;             /* of the first record, if any */
    bloom_stamp_t     last;              /* of the last record, if any */
    size_t            used;              /* bytes, to the last record's end */
    size_t            torn;              /* bytes behind the journal's end */
    uint64_t          broken;            /* bytes without a valid record, in
                                            holes */
    uint64_t          broken_at;         /* position of the first such byte */
    uint64_t          missing;           /* number of records, in holes */
} journal_found_t;

/* Takes a record that counts.  Its type is known. */
typedef void (*journal_take_pt)(void *data, const piece_t *piece,
    uint64_t position, bloom_record_t *record);

typedef struct {
    piece_t          *pieces;            /* all segments of the journal, in
                                            order of position */
    size_t            n;
    size_t            next;              /* the next one of them */
    journal_take_pt   take;
    void             *data;              /* of take() */

    /* what the segments before say: */
    const piece_t    *first;             /* the first one; NULL: none */
    const piece_t    *before;            /* the last one; NULL: none */
    uint64_t          sequence;          /* of the next record, */
    int               exact;             /* or, if this is 0, at least that */
    int               ended;             /* the journal has ended */
    uint64_t          from;              /* position of the first record that
                                            counts, or where the first segment
                                            may have one; */
    int               whole;             /* nothing was before it, or a clear
                                            has dropped that */
    uint64_t          durable;           /* records up to this sequence were on
                                            disk; 0: not known yet */
} journal_walk_t;


/* Begins a walk through `n` segments. */
void journal_walk_begin(journal_walk_t *walk, piece_t *pieces, size_t n,
    journal_take_pt take, void *data);

/*
 * Reads the next segment, and passes its records to take().  Returns the
 * segment with what was found in it, or NULL after the last segment.  Sets
 * piece->rc and, if that is not CLI_OK, piece->error; the caller prints it.
 */
const piece_t *journal_walk_next(journal_walk_t *walk, journal_found_t *found);

/* Adds the counts of a segment to those of the segments before. */
void journal_walk_sum(journal_counts_t *sum, const journal_counts_t *counts);


#endif /* JOURNAL_WALK_H */
