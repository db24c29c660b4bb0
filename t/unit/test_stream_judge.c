/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests judge what a Redis stream has lost, case by case.
 */

#include "unit.h"

#include "stream_judge.h"


#define HISTORY     "0123456789abcdef0123456789abcdef01234567"
#define NO_HISTORY  '-'


static const bloom_position_t  none;


static bloom_position_t
at(uint64_t high)
{
    bloom_position_t  position = { high, 0 };

    return position;
}


/* A stream of a primary with entries `first` to `last`, of which `added` were
 * ever added. */
static stream_facts_t
stream(uint64_t first, uint64_t last, uint64_t added)
{
    stream_facts_t  facts;

    memset(&facts, 0, sizeof(facts));

    facts.exists = 1;
    facts.counts = 1;
    facts.primary = 1;
    facts.current = 1;
    facts.length = first == 0 ? 0 : last - first + 1;
    facts.added = added;
    facts.first = at(first);
    facts.end = first == 0 ? none : at(last);
    facts.last = at(last);
    strcpy(facts.history, HISTORY);

    return facts;
}


/* Makes a cursor know that up to its position `seen` entries were added. */
static void
know(stream_cursor_t *cursor, uint64_t seen)
{
    strcpy(cursor->history, HISTORY);
    cursor->seen = seen;
    cursor->seen_known = 1;
}


TEST(before)
{
    bloom_position_t  position = { 5, 0 };

    position = stream_before(position);
    assert_true(position.high == 4 && position.low == UINT64_MAX);

    position = stream_before(position);
    assert_true(position.high == 4 && position.low == UINT64_MAX - 1);
}


#define NONE       { 0, 0 }
#define AT(n)      { n, 0 }
#define BEFORE(n)  { (n) - 1, UINT64_MAX }


/* A zone's position; the first and the last entry of the stream and how many
 * were ever added; what is judged, and what is missing at the least. */
static const struct {
    bloom_position_t  position;
    uint64_t          first, last, added;
    stream_verdict_t  verdict;
    bloom_position_t  missing;

    /* what the follower knows: the image is complete up to an entry; the
     * position was chosen; how many entries it has seen */

    uint64_t          complete, anchor, seen;

    /* what is unusual about the stream: a deleted entry, no entry at the
     * position, a server that does not count, a replica, one whose link is
     * down, the first character of its history */

    uint64_t          deleted;
    int               gone, uncounted, replica, cut_off;
    char              history;
} cases[] = {
    { AT(7), 1, 10, 10, STREAM_GOOD, NONE },
    { AT(7), 7, 10, 10, STREAM_GOOD, NONE },

    /* all is trimmed, but the zone has all */
    { AT(7), 0, 7, 7, STREAM_GOOD, NONE },

    /* nothing was ever removed */
    { NONE, 5, 10, 6, STREAM_GOOD, NONE },

    { AT(7), 9, 12, 12, STREAM_TRIMMED, BEFORE(9) },
    { AT(7), 0, 12, 12, STREAM_TRIMMED, AT(12) },

    /* the position itself is trimmed, but it may be that only it is; that is
     * known if all that was added is counted */
    { AT(7), 8, 12, 12, STREAM_TRIMMED, BEFORE(8) },
    { AT(7), 8, 12, 12, STREAM_GOOD, NONE, .seen = 7 },
    { AT(7), 9, 12, 12, STREAM_TRIMMED, BEFORE(9), .seen = 7 },
    { AT(7), 0, 12, 7, STREAM_GOOD, NONE, .seen = 7 },

    /* figures that contradict each other */
    { AT(7), 9, 12, 6, STREAM_TRIMMED, BEFORE(9), .seen = 7 },
    { AT(7), 9, 12, 10, STREAM_TRIMMED, BEFORE(9), .seen = 7 },

    /* the figures are of another server, or of none */
    { AT(7), 8, 12, 12, STREAM_TRIMMED, BEFORE(8), .seen = 7, .history = 'x' },
    { AT(7), 8, 12, 12, STREAM_TRIMMED, BEFORE(8), .seen = 7,
      .history = NO_HISTORY },

    /* the follower goes on just before the first entry */
    { BEFORE(9), 9, 12, 12, STREAM_GOOD, NONE },
    { BEFORE(9), 10, 12, 12, STREAM_TRIMMED, BEFORE(10) },

    /* what the image has need not be there */
    { AT(3), 9, 12, 12, STREAM_GOOD, NONE, .complete = 9 },
    { AT(3), 10, 12, 12, STREAM_TRIMMED, BEFORE(10), .complete = 9 },

    /* from the beginning, if something was removed */
    { NONE, 5, 10, 10, STREAM_TRIMMED, BEFORE(5) },

    /* a replica whose link is down is not sure */
    { NONE, 5, 10, 10, STREAM_TRIMMED, BEFORE(5), .replica = 1 },
    { NONE, 5, 10, 10, STREAM_WAIT, BEFORE(5), .replica = 1, .cut_off = 1 },

    /* all that was added is trimmed */
    { NONE, 0, 12, 12, STREAM_TRIMMED, AT(12) },

    /* an older Redis does not count: what remains is all there ever was, for a
     * zone at the beginning alone */
    { NONE, 5, 10, 0, STREAM_GOOD, NONE, .uncounted = 1 },
    { AT(3), 5, 10, 0, STREAM_TRIMMED, BEFORE(5), .uncounted = 1 },

    /* a zone begins at 0, and an entry behind the first one was deleted; the
     * follower has reported that, and goes on */
    { NONE, 5, 10, 7, STREAM_TRIMMED, BEFORE(5), .deleted = 4 },
    { BEFORE(5), 5, 10, 7, STREAM_GOOD, NONE, .deleted = 4 },

    /* the stream was recreated; or the position was chosen, and nothing was
     * ever removed */
    { AT(7), 8, 12, 5, STREAM_REPLACED, BEFORE(8) },
    { AT(7), 2, 5, 4, STREAM_LOST_END, AT(5) },
    { AT(7), 8, 12, 5, STREAM_GOOD, NONE, .anchor = 7 },
    { AT(7), 8, 12, 6, STREAM_TRIMMED, BEFORE(8), .anchor = 7 },

    /* a failover lost the end; there are new entries since, but none at the
     * position; or an operator deleted the entry, or chose the position */
    { AT(7), 1, 5, 5, STREAM_LOST_END, AT(5) },
    { AT(7), 1, 5, 5, STREAM_WAIT, AT(5), .replica = 1 },
    { AT(7), 1, 9, 8, STREAM_REPLACED, AT(7), .gone = 1 },
    { AT(7), 1, 9, 8, STREAM_GOOD, NONE, .gone = 1, .deleted = 7 },
    { AT(7), 1, 9, 8, STREAM_GOOD, NONE, .gone = 1, .anchor = 7 },

    /* an entry was deleted */
    { AT(7), 1, 12, 12, STREAM_GOOD, NONE, .deleted = 6 },
    { AT(7), 1, 12, 12, STREAM_GOOD, AT(9), .deleted = 9 },
    { AT(7), 1, 12, 12, STREAM_GOOD, NONE, .deleted = 9, .complete = 9 },
};


TEST(streams_are_judged)
{
    size_t             i;
    stream_facts_t     facts;
    stream_cursor_t    cursor;
    stream_judgment_t  judgment;

    for (i = 0; i < array_len(cases); i++) {
        memset(&cursor, 0, sizeof(cursor));
        cursor.position = cases[i].position;
        cursor.complete = at(cases[i].complete);
        cursor.anchor = at(cases[i].anchor);

        if (cases[i].seen != 0) {
            know(&cursor, cases[i].seen);
        }

        facts = stream(cases[i].first, cases[i].last, cases[i].added);
        facts.deleted = at(cases[i].deleted);
        facts.counts = !cases[i].uncounted;
        facts.primary = !cases[i].replica;
        facts.current = !cases[i].cut_off;

        if (cases[i].history != '\0') {
            facts.history[0] = cases[i].history == NO_HISTORY
                               ? '\0' : cases[i].history;
        }

        /* the position is an entry's if it is within the entries */

        facts.has_position = !cases[i].gone && facts.length != 0
                             && cursor.position.low == 0
                             && cursor.position.high >= cases[i].first
                             && cursor.position.high <= cases[i].last;

        judgment = stream_judge(&cursor, &facts);

        if (judgment.verdict != cases[i].verdict
            || bloom_position_cmp(judgment.missing, cases[i].missing) != 0)
        {
            fail_msg("case %zu: judged otherwise", i);
        }
    }
}


/* A zone without changes, and no stream yet. */
TEST(a_stream_that_does_not_exist_has_lost_nothing)
{
    stream_facts_t     facts;
    stream_cursor_t    cursor;
    stream_judgment_t  judgment;

    memset(&cursor, 0, sizeof(cursor));
    memset(&facts, 0, sizeof(facts));
    facts.primary = 1;
    facts.current = 1;

    judgment = stream_judge(&cursor, &facts);
    assert_int_equal(judgment.verdict, STREAM_GOOD);
    assert_int_equal(bloom_position_cmp(judgment.missing, none), 0);
}


/* The number of entries that are missing is known, or it is not. */
TEST(counted)
{
    stream_facts_t   facts;
    stream_cursor_t  cursor = { { 7, 0 } };

    facts = stream(10, 12, 12);
    assert_int_equal(stream_judge(&cursor, &facts).entries, 0);

    know(&cursor, 7);
    assert_int_equal(stream_judge(&cursor, &facts).entries, 2);

    facts = stream(0, 12, 12);
    assert_int_equal(stream_judge(&cursor, &facts).entries, 5);

    facts.counts = 0;
    assert_int_equal(stream_judge(&cursor, &facts).entries, 0);

    /* from the beginning */

    memset(&cursor, 0, sizeof(cursor));
    facts = stream(5, 10, 10);
    assert_int_equal(stream_judge(&cursor, &facts).entries, 4);
}


/* A follower that saw an entry knows that it was deleted later, also if the
 * server records no deletions. */
TEST(seen_before)
{
    stream_facts_t   facts;
    stream_cursor_t  cursor = { { 7, 0 } };

    /* it was the last one when the follower looked */

    facts = stream(1, 7, 0);
    facts.counts = 0;
    stream_note(&cursor, &facts);
    assert_string_equal(cursor.history, HISTORY);

    facts = stream(1, 9, 0);
    facts.counts = 0;
    assert_int_equal(stream_judge(&cursor, &facts).verdict, STREAM_GOOD);

    /* a failover begins another history */

    facts.history[0] ^= 1;
    assert_int_equal(stream_judge(&cursor, &facts).verdict, STREAM_REPLACED);

    /* the last ID moved, but not the entries, so the zone has all of them */

    memset(&cursor, 0, sizeof(cursor));
    cursor.position = at(7);
    facts = stream(1, 7, 7);
    facts.last = at(9);
    stream_note(&cursor, &facts);
    assert_true(cursor.seen_known && cursor.seen == 7);

    facts = stream(10, 12, 10);
    assert_int_equal(stream_judge(&cursor, &facts).verdict, STREAM_GOOD);

    /* an entry in the middle is seen, but not how many there were */

    memset(&cursor, 0, sizeof(cursor));
    cursor.position = at(7);
    facts = stream(1, 9, 9);
    facts.has_position = 1;
    stream_note(&cursor, &facts);
    assert_string_equal(cursor.history, HISTORY);
    assert_false(cursor.seen_known);

    /* a position that is not there is not seen */

    memset(&cursor, 0, sizeof(cursor));
    cursor.position = at(7);
    facts.has_position = 0;
    stream_note(&cursor, &facts);
    assert_string_equal(cursor.history, "");

    /* an entry that was read is seen */

    know(&cursor, 7);
    stream_advance(&cursor, &facts, at(9), 2);
    assert_int_equal(cursor.position.high, 9);
    assert_int_equal(cursor.seen, 9);
    assert_string_equal(cursor.history, HISTORY);
}
