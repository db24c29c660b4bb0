/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function decides whether a Redis stream still has all that follows a
 * position.
 *
 * A follower has read a stream up to its position P.  Entries after P may be
 * missing:
 *
 *     trimmed        first > P, and P itself is no longer there
 *     lost its end   last < P: a failover to a replica that lacked the end, or
 *                    the stream was recreated
 *     replaced       P was never there: a failover that lost the end, and new
 *                    entries since; or the stream was recreated
 *     XDEL           the highest ID that was deleted is after P
 *
 * The absence of P alone proves nothing: an entry may be trimmed or deleted
 * after a follower had it.  The server's figures show what happened: Redis 7
 * counts what was ever added, and records the highest ID that XDEL deleted.
 * With an older Redis, a deleted entry is not noticed, and for the position 0
 * nobody knows what was trimmed: the first entry that remains is taken for the
 * first one ever.
 *
 * A follower that saw P in the stream knows that P was there for as long as the
 * data has the same history: the replication ID of the server, which a failover
 * and a restart of a primary change.
 */

#ifndef STREAM_JUDGE_H
#define STREAM_JUDGE_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_source.h"


#define STREAM_HISTORY_LEN  40


/* What the server says about a stream.  It looked for the position first, and
 * for the other facts about the stream last. */
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
    bloom_position_t  end;               /* the last entry; 0 if length is 0 */
    bloom_position_t  last;              /* generated */
    bloom_position_t  deleted;           /* the highest by XDEL */
    char              history[STREAM_HISTORY_LEN + 1];    /* "": unknown */
} stream_facts_t;

/* How far a follower has read, and what it knows about that position. */
typedef struct {
    bloom_position_t  position;
    bloom_position_t  anchor;            /* a position that need not be an
                                            entry's */
    bloom_position_t  complete;          /* entries up to here may be missing */
    char              history[STREAM_HISTORY_LEN + 1];    /* in which the
                                            position was seen; "": in none */
    uint64_t          seen;              /* entries ever added up to the
                                            position */
    int               seen_known;
} stream_cursor_t;

typedef enum {
    STREAM_GOOD,
    STREAM_WAIT,                         /* a replica that does not know */
    STREAM_TRIMMED,                      /* this and the rest are gaps */
    STREAM_LOST_END,
    STREAM_REPLACED,
    STREAM_XDEL
} stream_verdict_t;

typedef struct {
    stream_verdict_t  verdict;
    bloom_position_t  missing;           /* entries up to here may be */
    uint64_t          entries;           /* that are missing; 0: unknown */
} stream_judgment_t;


/* Returns the position just before one that is not 0. */
bloom_position_t stream_before(bloom_position_t position);

/*
 * Judges a stream that exists, or a position of 0.  If the verdict is
 * STREAM_GOOD and `missing` is not 0, then the entry at `missing` was deleted,
 * and the entries before it are to be read first.  If the verdict is a gap, the
 * follower is to continue after `missing`.
 */
stream_judgment_t stream_judge(const stream_cursor_t *cursor,
    const stream_facts_t *facts);

/* Records in the cursor of a stream that was judged as good what the facts show
 * about its position. */
void stream_note(stream_cursor_t *cursor, const stream_facts_t *facts);

/* Moves a cursor to the last of `n` entries that were read with the facts. */
void stream_advance(stream_cursor_t *cursor, const stream_facts_t *facts,
    bloom_position_t position, size_t n);


#endif /* STREAM_JUDGE_H */
