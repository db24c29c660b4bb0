/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests judge what a Redis stream has lost, case by case.
 */

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stream_judge.h"


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
    facts.last = at(last);

    return facts;
}


static void
judged(const stream_cursor_t *cursor, stream_facts_t facts,
    stream_verdict_t expected, bloom_position_t position)
{
    bloom_position_t  missing;

    facts.has_position = facts.length != 0
                         && cursor->position.low == 0
                         && bloom_position_cmp(cursor->position, facts.first)
                            >= 0
                         && bloom_position_cmp(cursor->position, facts.last)
                            <= 0;

    assert_int_equal(stream_judge(cursor, &facts, &missing), expected);
    assert_int_equal(bloom_position_cmp(missing, position), 0);
}


static void
before(void **state)
{
    bloom_position_t  position = { 5, 0 };

    (void) state;

    position = stream_before(position);
    assert_true(position.high == 4 && position.low == UINT64_MAX);

    position = stream_before(position);
    assert_true(position.high == 4 && position.low == UINT64_MAX - 1);
}


static void
whole(void **state)
{
    stream_facts_t   facts;
    stream_cursor_t  cursor = { { 7, 0 } };

    (void) state;

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


static void
trimmed(void **state)
{
    stream_facts_t   facts;
    stream_cursor_t  cursor = { { 7, 0 } };

    (void) state;

    judged(&cursor, stream(9, 12, 12), STREAM_TRIMMED, stream_before(at(9)));
    judged(&cursor, stream(0, 12, 12), STREAM_TRIMMED, at(12));

    /* the position itself is trimmed, but it may be that only it is; that is
     * known if all that was added is counted */

    judged(&cursor, stream(8, 12, 12), STREAM_TRIMMED, stream_before(at(8)));

    cursor.seen = 7;
    cursor.seen_known = 1;
    judged(&cursor, stream(8, 12, 12), STREAM_GOOD, none);
    judged(&cursor, stream(9, 12, 12), STREAM_TRIMMED, stream_before(at(9)));
    judged(&cursor, stream(0, 12, 7), STREAM_GOOD, none);
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
static void
deleted_from_the_beginning(void **state)
{
    stream_facts_t   facts;
    stream_cursor_t  cursor = { { 0, 0 } };

    (void) state;

    facts = stream(5, 10, 7);
    facts.deleted = at(4);
    judged(&cursor, facts, STREAM_TRIMMED, stream_before(at(5)));

    /* the follower has reported that, and goes on */

    cursor.position = stream_before(at(5));
    judged(&cursor, facts, STREAM_GOOD, none);
}


static void
deleted(void **state)
{
    stream_facts_t   facts;
    stream_cursor_t  cursor = { { 7, 0 } };

    (void) state;

    memset(&facts, 0, sizeof(facts));
    facts.primary = 1;
    facts.current = 1;
    judged(&cursor, facts, STREAM_DELETED, none);

    facts.primary = 0;
    judged(&cursor, facts, STREAM_WAIT, none);

    /* recreated, with later entries or earlier ones */

    judged(&cursor, stream(8, 12, 5), STREAM_REPLACED, stream_before(at(8)));
    judged(&cursor, stream(2, 5, 4), STREAM_LOST_END, at(5));
}


static void
failed_over(void **state)
{
    stream_facts_t    facts;
    stream_cursor_t   cursor = { { 7, 0 } };
    bloom_position_t  missing;

    (void) state;

    judged(&cursor, stream(1, 5, 5), STREAM_LOST_END, at(5));

    facts = stream(1, 5, 5);
    facts.primary = 0;
    judged(&cursor, facts, STREAM_WAIT, at(5));

    /* new entries since, but none at the position */

    facts = stream(1, 9, 8);
    assert_int_equal(stream_judge(&cursor, &facts, &missing), STREAM_REPLACED);
    assert_int_equal(bloom_position_cmp(missing, at(7)), 0);

    /* an operator deleted the entry, or chose the position */

    facts.deleted = at(7);
    assert_int_equal(stream_judge(&cursor, &facts, &missing), STREAM_GOOD);

    facts.deleted = none;
    cursor.anchor = at(7);
    assert_int_equal(stream_judge(&cursor, &facts, &missing), STREAM_GOOD);
}


static void
entry_deleted(void **state)
{
    stream_facts_t   facts;
    stream_cursor_t  cursor = { { 7, 0 } };

    (void) state;

    facts = stream(1, 12, 12);
    facts.deleted = at(6);
    judged(&cursor, facts, STREAM_GOOD, none);

    facts.deleted = at(9);
    judged(&cursor, facts, STREAM_GOOD, at(9));

    cursor.complete = at(9);
    judged(&cursor, facts, STREAM_GOOD, none);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(before),
        cmocka_unit_test(whole),
        cmocka_unit_test(trimmed),
        cmocka_unit_test(deleted_from_the_beginning),
        cmocka_unit_test(deleted),
        cmocka_unit_test(failed_over),
        cmocka_unit_test(entry_deleted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
