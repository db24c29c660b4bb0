/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds out what a Redis stream has lost.
 */

#include <string.h>

#include "stream_judge.h"


bloom_position_t
stream_before(bloom_position_t position)
{
    if (position.low-- == 0) {
        position.high--;
    }

    return position;
}


/* Judges a stream that has no entry at the position, though it has or had later
 * ones. */
static stream_verdict_t
judge_absent(const stream_cursor_t *cursor, const stream_facts_t *facts,
    bloom_position_t *missing)
{
    int               begins, kept;
    bloom_position_t  p;

    p = cursor->position;
    begins = p.high == 0 && p.low == 0;

    /* 1: all that was added since is still there */

    kept = facts->counts && cursor->seen_known && facts->added >= cursor->seen
           && facts->added - cursor->seen == facts->length;

    if (facts->length == 0 || bloom_position_cmp(facts->first, p) > 0) {

        *missing = facts->length == 0 ? facts->last
                                      : stream_before(facts->first);

        if (kept || bloom_position_cmp(*missing, p) <= 0
            || bloom_position_cmp(*missing, cursor->complete) <= 0
            || (begins && (!facts->counts || facts->added == facts->length)))
        {
            return STREAM_GOOD;
        }

        /* nothing was ever removed, so the position never was an entry's */

        return facts->counts && facts->added == facts->length
               ? STREAM_REPLACED : STREAM_TRIMMED;
    }

    if (bloom_position_cmp(cursor->anchor, p) == 0
        || (facts->counts && bloom_position_cmp(facts->deleted, p) >= 0))
    {
        return STREAM_GOOD;
    }

    *missing = p;

    return STREAM_REPLACED;
}


stream_verdict_t
stream_judge(const stream_cursor_t *cursor, const stream_facts_t *facts,
    bloom_position_t *missing)
{
    int               order;
    stream_verdict_t  verdict;

    memset(missing, 0, sizeof(*missing));
    order = bloom_position_cmp(facts->last, cursor->position);

    if (order < 0) {

        /* a replica may not have the end yet */

        *missing = facts->last;

        return !facts->primary ? STREAM_WAIT
               : facts->exists ? STREAM_LOST_END : STREAM_DELETED;
    }

    verdict = order == 0 || facts->has_position
              ? STREAM_GOOD : judge_absent(cursor, facts, missing);

    if (verdict != STREAM_GOOD) {
        return facts->current ? verdict : STREAM_WAIT;
    }

    memset(missing, 0, sizeof(*missing));

    if (facts->counts
        && bloom_position_cmp(facts->deleted, cursor->position) > 0
        && bloom_position_cmp(facts->deleted, cursor->complete) > 0)
    {
        *missing = facts->deleted;
    }

    return STREAM_GOOD;
}
