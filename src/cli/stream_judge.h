/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function decides whether a Redis stream still has all that follows a
 * position.
 *
 * A follower has read a stream up to its position P.  Entries after P may be
 * missing:
 *
 *     trimmed        first > P, and P itself is no longer there
 *     deleted        no such key; or it was recreated, so P never was in it
 *     lost its end   last < P: a failover to a replica that lacked the end
 *     replaced       first < P < last, but P was never there: a failover that
 *                    lost the end, and new entries since
 *     XDEL           the highest ID that was deleted is after P
 *
 * Redis 7 counts what was ever added, and records the highest ID that XDEL
 * deleted.  With an older Redis, a deleted entry is not noticed, and for the
 * position 0 nobody knows what was trimmed: the first entry that remains is
 * taken for the first one ever.
 */

#ifndef STREAM_JUDGE_H
#define STREAM_JUDGE_H

#include <stdint.h>

#include "bloom_source.h"


/* What the server says about a stream at one moment. */
typedef struct {
    int               exists;
    int               counts;            /* 1: `added`, `deleted` are known */
    int               primary;
    int               current;           /* a primary, or a replica whose link
                                            is up and not silent */
    int               has_position;      /* the position is an entry's */
    uint64_t          length;
    uint64_t          added;
    bloom_position_t  first;             /* if length is not 0 */
    bloom_position_t  last;              /* generated */
    bloom_position_t  deleted;           /* the highest by XDEL */
} stream_facts_t;

/* How far a follower has read, and what it knows about that position. */
typedef struct {
    bloom_position_t  position;
    bloom_position_t  anchor;            /* a position that need not be an
                                            entry's */
    bloom_position_t  complete;          /* entries up to here may be missing */
    uint64_t          seen;              /* entries ever added up to the
                                            position */
    int               seen_known;
} stream_cursor_t;

typedef enum {
    STREAM_GOOD,
    STREAM_WAIT,                         /* a replica that does not know */
    STREAM_TRIMMED,                      /* this and the rest are gaps */
    STREAM_DELETED,
    STREAM_LOST_END,
    STREAM_REPLACED,
    STREAM_XDEL
} stream_verdict_t;


/* Returns the position just before one that is not 0. */
bloom_position_t stream_before(bloom_position_t position);

/*
 * Judges a stream.  If it returns STREAM_GOOD and *missing is not 0, then the
 * entry at *missing was deleted, and the entries before it are to be read
 * first.  If it returns a gap, *missing is its position: entries up to there
 * may be missing, and the follower is to continue after it.
 */
stream_verdict_t stream_judge(const stream_cursor_t *cursor,
    const stream_facts_t *facts, bloom_position_t *missing);


#endif /* STREAM_JUDGE_H */
