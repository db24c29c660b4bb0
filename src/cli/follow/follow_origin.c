/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds where a zone begins that has no changes yet.
 */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "follow_origin.h"

#define HOUR           3600000           /* ms */
#define BEHIND         (HOUR / 2)        /* ms that a clock may be behind */
#define STREAMS_SINCE  1539734400000     /* ms: Redis has streams */


/*
 * Puts a cursor an hour before as_of, if IDs of the stream can be compared with
 * as_of: they must be times, of a clock that is not far behind.
 */
static follow_origin_answer_t
from_image(uint64_t as_of, stream_reader_t *reader, stream_cursor_t *cursor,
    char *why, size_t size)
{
    char                   text[BLOOM_POSITION_TEXT_MAX];
    uint64_t               clock, now, behind;
    struct timespec        ts;
    bloom_position_t       id;
    const stream_facts_t  *facts;

    facts = &reader->moment.facts;

    if (as_of == 0) {
        snprintf(why, size, "its image does not state when its keys were "
                 "complete");
        return FOLLOW_ORIGIN_UNKNOWN;
    }

    if (bloom_position_is_zero(facts->last)) {
        return FOLLOW_ORIGIN_OK;
    }

    if (stream_reader_clock(reader, &clock) != 0) {
        return FOLLOW_ORIGIN_FAILED;
    }

    clock_gettime(CLOCK_REALTIME, &ts);
    now = (uint64_t) ts.tv_sec * 1000;
    now = now > as_of ? now : as_of;
    behind = now > clock ? now - clock : 0;

    if (behind > BEHIND) {
        snprintf(why, size, "the clock of %s is %llu minutes behind, so IDs of "
                 "the stream cannot be compared with the as_of of the image; "
                 "correct the clock", reader->redis.url.shown,
                 (unsigned long long) behind / 60000);
        return FOLLOW_ORIGIN_UNKNOWN;
    }

    /* IDs ascend, so all others are between these */

    id = facts->length != 0 && facts->first.high < STREAMS_SINCE
         ? facts->first : facts->last;

    if (id.high < STREAMS_SINCE || id.high > now + HOUR) {
        bloom_position_write(id, text);
        snprintf(why, size, "the ID %s of the stream is not a recent time in "
                 "milliseconds, so IDs cannot be compared with the as_of of "
                 "the image", text);
        return FOLLOW_ORIGIN_UNKNOWN;
    }

    cursor->complete.high = as_of > behind ? as_of - behind : 0;
    cursor->position.high = as_of > HOUR ? as_of - HOUR : 0;

    return FOLLOW_ORIGIN_OK;
}


follow_origin_answer_t
follow_origin_find(const follow_origin_t *origin, uint64_t as_of,
    stream_reader_t *reader, stream_cursor_t *cursor, char *why, size_t size)
{
    const stream_facts_t    *facts;
    follow_origin_answer_t   answer;

    memset(cursor, 0, sizeof(*cursor));
    facts = &reader->moment.facts;

    if (origin->from == FOLLOW_FROM_IMAGE) {
        answer = from_image(as_of, reader, cursor, why, size);

        if (answer != FOLLOW_ORIGIN_OK) {
            return answer;
        }

    } else if (origin->from == FOLLOW_FROM_ID) {
        cursor->position = origin->id;
    }

    /* the last entry is where a position is found again */

    if (origin->from == FOLLOW_FROM_NOW
        || bloom_position_cmp(cursor->position, facts->end) > 0)
    {
        cursor->position = facts->length != 0 ? facts->end : facts->last;
    }

    cursor->anchor = cursor->position;

    return FOLLOW_ORIGIN_OK;
}
