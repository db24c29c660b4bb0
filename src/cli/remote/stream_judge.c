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


static int
same_history(const stream_cursor_t *cursor, const stream_facts_t *facts)
{
    return facts->history[0] != '\0'
           && strcmp(cursor->history, facts->history) == 0;
}


/* Returns how many entries after the position are missing, if all that remain
 * are after it; 0 also if the figures do not show that. */
static uint64_t
count_missing(const stream_cursor_t *cursor, const stream_facts_t *facts,
    int *known)
{
    int       begins;
    uint64_t  seen;

    begins = bloom_position_is_zero(cursor->position);
    seen = begins ? 0 : cursor->seen;

    *known = facts->counts
             && (begins || (cursor->seen_known && same_history(cursor, facts)))
             && facts->added >= seen && facts->added - seen >= facts->length;

    return *known ? facts->added - seen - facts->length : 0;
}


/* Judges a stream whose entries are all after a position that it lacks. */
static void
judge_trimmed(const stream_cursor_t *cursor, const stream_facts_t *facts,
    stream_judgment_t *judgment)
{
    int  known, anchored, nothing_removed;

    anchored = bloom_position_cmp(cursor->anchor, cursor->position) == 0;
    nothing_removed = facts->counts && facts->added == facts->length;

    judgment->missing = facts->length == 0 ? facts->last
                                           : stream_before(facts->first);
    judgment->entries = count_missing(cursor, facts, &known);

    if ((known && judgment->entries == 0)
        || (nothing_removed && anchored)
        || (bloom_position_is_zero(cursor->position) && !facts->counts)
        || bloom_position_cmp(judgment->missing, cursor->position) <= 0
        || bloom_position_cmp(judgment->missing, cursor->complete) <= 0)
    {
        return;
    }

    /* if nothing was ever removed, the position never was an entry's */

    judgment->verdict = nothing_removed ? STREAM_REPLACED : STREAM_TRIMMED;
}


/* Judges a stream with entries before and after a position that it lacks. */
static void
judge_replaced(const stream_cursor_t *cursor, const stream_facts_t *facts,
    stream_judgment_t *judgment)
{
    if (bloom_position_cmp(cursor->anchor, cursor->position) == 0
        || same_history(cursor, facts)
        || (facts->counts
            && bloom_position_cmp(facts->deleted, cursor->position) >= 0))
    {
        return;
    }

    judgment->verdict = STREAM_REPLACED;
    judgment->missing = cursor->position;
}


/* Judges a stream of a primary, or of a replica that lacks nothing. */
static stream_judgment_t
judge(const stream_cursor_t *cursor, const stream_facts_t *facts)
{
    int                order;
    stream_judgment_t  judgment;

    memset(&judgment, 0, sizeof(judgment));
    order = bloom_position_cmp(facts->last, cursor->position);

    if (order < 0) {
        judgment.verdict = STREAM_LOST_END;
        judgment.missing = facts->last;

    } else if (order == 0 || facts->has_position) {
        /* the position is there, or nothing was added after it */

    } else if (facts->length == 0
               || bloom_position_cmp(facts->first, cursor->position) > 0)
    {
        judge_trimmed(cursor, facts, &judgment);

    } else {
        judge_replaced(cursor, facts, &judgment);
    }

    return judgment;
}


stream_judgment_t
stream_judge(const stream_cursor_t *cursor, const stream_facts_t *facts)
{
    stream_judgment_t  judgment;

    judgment = judge(cursor, facts);

    if (judgment.verdict != STREAM_GOOD) {

        /* a replica may not have the end yet */

        if (!facts->current
            || (judgment.verdict == STREAM_LOST_END && !facts->primary))
        {
            judgment.verdict = STREAM_WAIT;
        }

        return judgment;
    }

    memset(&judgment, 0, sizeof(judgment));

    if (facts->counts
        && bloom_position_cmp(facts->deleted, cursor->position) > 0
        && bloom_position_cmp(facts->deleted, cursor->complete) > 0)
    {
        judgment.missing = facts->deleted;
    }

    return judgment;
}


void
stream_note(stream_cursor_t *cursor, const stream_facts_t *facts)
{
    int  whole;

    whole = bloom_position_cmp(facts->end, cursor->position) <= 0;

    if (!same_history(cursor, facts)) {
        cursor->seen_known = 0;
    }

    if (whole || facts->has_position) {
        memcpy(cursor->history, facts->history, sizeof(cursor->history));
    }

    if (whole) {
        cursor->seen = facts->added;
        cursor->seen_known = facts->counts;
    }
}


void
stream_advance(stream_cursor_t *cursor, const stream_facts_t *facts,
    bloom_position_t position, size_t n)
{
    cursor->position = position;
    cursor->seen += n;
    memcpy(cursor->history, facts->history, sizeof(cursor->history));
}
