/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests judge what a Redis stream has lost, case by case.
 */

#include "unit.h"

#include "stream_judge.h"


#define HISTORY  "0123456789abcdef0123456789abcdef01234567"


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


/* A stream whose position is an entry's if it is within the entries. */
static void
judged(const stream_cursor_t *cursor, stream_facts_t facts,
    stream_verdict_t expected, bloom_position_t position)
{
    stream_judgment_t  judgment;

    facts.has_position = facts.length != 0
                         && cursor->position.low == 0
                         && bloom_position_cmp(cursor->position, facts.first)
                            >= 0
                         && bloom_position_cmp(cursor->position, facts.last)
                            <= 0;

    judgment = stream_judge(cursor, &facts);
    assert_int_equal(judgment.verdict, expected);
    assert_int_equal(bloom_position_cmp(judgment.missing, position), 0);
}


/* A stream with later entries than the position, which is no entry's. */
static void
judged_absent(const stream_cursor_t *cursor, stream_facts_t facts,
    stream_verdict_t expected)
{
    stream_judgment_t  judgment;

    judgment = stream_judge(cursor, &facts);
    assert_int_equal(judgment.verdict, expected);
    assert_int_equal(bloom_position_cmp(judgment.missing,
                                        expected == STREAM_GOOD
                                        ? none : cursor->position), 0);
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


TEST(whole)
{
    stream_facts_t   facts;
    stream_cursor_t  cursor = { { 7, 0 } };

    judged(&cursor, stream(1, 10, 10), STREAM_GOOD, none);
    judged(&cursor, stream(7, 10, 10), STREAM_GOOD, none);

    /* all is trimmed, but the zone has all */

    judged(&cursor, stream(0, 7, 7), STREAM_GOOD, none);

    /* a zone without changes, and no stream yet */

    cursor.position = none;
    memset(&facts, 0, sizeof(facts));
    facts.primary = 1;
    facts.current = 1;
    judged(&cursor, facts, STREAM_GOOD, none);

    /* nothing was ever removed */

    judged(&cursor, stream(5, 10, 6), STREAM_GOOD, none);
}


TEST(trimmed)
{
    stream_facts_t   facts;
    stream_cursor_t  cursor = { { 7, 0 } };

    judged(&cursor, stream(9, 12, 12), STREAM_TRIMMED, stream_before(at(9)));
    judged(&cursor, stream(0, 12, 12), STREAM_TRIMMED, at(12));

    /* the position itself is trimmed, but it may be that only it is; that is
     * known if all that was added is counted */

    judged(&cursor, stream(8, 12, 12), STREAM_TRIMMED, stream_before(at(8)));

    know(&cursor, 7);
    judged(&cursor, stream(8, 12, 12), STREAM_GOOD, none);
    judged(&cursor, stream(9, 12, 12), STREAM_TRIMMED, stream_before(at(9)));
    judged(&cursor, stream(0, 12, 7), STREAM_GOOD, none);

    /* the figures are of another server, or of none */

    facts = stream(8, 12, 12);
    facts.history[0] ^= 1;
    judged(&cursor, facts, STREAM_TRIMMED, stream_before(at(8)));
    facts.history[0] = '\0';
    judged(&cursor, facts, STREAM_TRIMMED, stream_before(at(8)));

    cursor.seen_known = 0;

    /* the follower goes on just before the first entry */

    cursor.position = stream_before(at(9));
    judged(&cursor, stream(9, 12, 12), STREAM_GOOD, none);
    judged(&cursor, stream(10, 12, 12), STREAM_TRIMMED, stream_before(at(10)));

    /* what the image has need not be there */

    cursor.position = at(3);
    cursor.complete = at(9);
    judged(&cursor, stream(9, 12, 12), STREAM_GOOD, none);
    judged(&cursor, stream(10, 12, 12), STREAM_TRIMMED, stream_before(at(10)));

    /* from the beginning, if something was removed */

    memset(&cursor, 0, sizeof(cursor));
    judged(&cursor, stream(5, 10, 10), STREAM_TRIMMED, stream_before(at(5)));

    /* a replica whose link is down is not sure */

    facts = stream(5, 10, 10);
    facts.primary = 0;
    judged(&cursor, facts, STREAM_TRIMMED, stream_before(at(5)));
    facts.current = 0;
    judged(&cursor, facts, STREAM_WAIT, stream_before(at(5)));

    /* all that was added is trimmed */

    judged(&cursor, stream(0, 12, 12), STREAM_TRIMMED, at(12));

    /* an older Redis does not count: what remains is all there ever was, for a
     * zone at the beginning alone */

    facts = stream(5, 10, 0);
    facts.counts = 0;
    judged(&cursor, facts, STREAM_GOOD, none);

    cursor.position = at(3);
    judged(&cursor, facts, STREAM_TRIMMED, stream_before(at(5)));
}


/* A zone begins at 0, and an entry behind the first one was deleted. */
TEST(deleted_from_the_beginning)
{
    stream_facts_t   facts;
    stream_cursor_t  cursor = { { 0, 0 } };

    facts = stream(5, 10, 7);
    facts.deleted = at(4);
    judged(&cursor, facts, STREAM_TRIMMED, stream_before(at(5)));

    /* the follower has reported that, and goes on */

    cursor.position = stream_before(at(5));
    judged(&cursor, facts, STREAM_GOOD, none);
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

    /* figures that contradict each other */

    facts = stream(9, 12, 6);
    judged(&cursor, facts, STREAM_TRIMMED, stream_before(at(9)));
    facts = stream(9, 12, 10);
    judged(&cursor, facts, STREAM_TRIMMED, stream_before(at(9)));

    /* from the beginning */

    memset(&cursor, 0, sizeof(cursor));
    facts = stream(5, 10, 10);
    assert_int_equal(stream_judge(&cursor, &facts).entries, 4);
}


TEST(recreated)
{
    stream_cursor_t  cursor = { { 7, 0 } };

    judged(&cursor, stream(8, 12, 5), STREAM_REPLACED, stream_before(at(8)));
    judged(&cursor, stream(2, 5, 4), STREAM_LOST_END, at(5));

    /* the position was chosen, and nothing was ever removed */

    cursor.anchor = at(7);
    judged(&cursor, stream(8, 12, 5), STREAM_GOOD, none);
    judged(&cursor, stream(8, 12, 6), STREAM_TRIMMED, stream_before(at(8)));
}


TEST(failed_over)
{
    stream_facts_t   facts;
    stream_cursor_t  cursor = { { 7, 0 } };

    judged(&cursor, stream(1, 5, 5), STREAM_LOST_END, at(5));

    facts = stream(1, 5, 5);
    facts.primary = 0;
    judged(&cursor, facts, STREAM_WAIT, at(5));

    /* new entries since, but none at the position */

    facts = stream(1, 9, 8);
    judged_absent(&cursor, facts, STREAM_REPLACED);

    /* an operator deleted the entry, or chose the position */

    facts.deleted = at(7);
    judged_absent(&cursor, facts, STREAM_GOOD);

    facts.deleted = none;
    cursor.anchor = at(7);
    judged_absent(&cursor, facts, STREAM_GOOD);
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
    judged_absent(&cursor, facts, STREAM_GOOD);

    /* a failover begins another history */

    facts.history[0] ^= 1;
    judged_absent(&cursor, facts, STREAM_REPLACED);

    /* the last ID moved, but not the entries, so the zone has all of them */

    memset(&cursor, 0, sizeof(cursor));
    cursor.position = at(7);
    facts = stream(1, 7, 7);
    facts.last = at(9);
    stream_note(&cursor, &facts);
    assert_true(cursor.seen_known && cursor.seen == 7);

    facts = stream(10, 12, 10);
    judged(&cursor, facts, STREAM_GOOD, none);

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


TEST(entry_deleted)
{
    stream_facts_t   facts;
    stream_cursor_t  cursor = { { 7, 0 } };

    facts = stream(1, 12, 12);
    facts.deleted = at(6);
    judged(&cursor, facts, STREAM_GOOD, none);

    facts.deleted = at(9);
    judged(&cursor, facts, STREAM_GOOD, at(9));

    cursor.complete = at(9);
    judged(&cursor, facts, STREAM_GOOD, none);
}
