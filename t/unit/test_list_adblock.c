/* SPDX-License-Identifier: BSD-2-Clause */

/* The reader of Adblock-style lists, in blocks: what the lines before a block
 * say about it, and which rules a $badfilter rule cancels. */

#include "unit.h"

#include "list_adblock.h"
#include "list_adblock_if.h"


/* Reads lines that begin in this state, and writes the keys, each with a blank
 * behind it. */
static void
read_keys(char *keys, void *state, const key_set_t *cancelled,
    const char *lines)
{
    uint8_t         buf[256 + LIST_ROOM];
    bloom_key_t     rest;
    list_line_t     at;
    list_result_e   result;

    keys[0] = '\0';
    rest.data = (const uint8_t *) lines;
    rest.len = strlen(lines);

    while (rest.len != 0) {
        memset(&at, 0, sizeof(at));
        (void) list_until(&rest, &at.line, '\n');
        at.keys = LIST_HOSTS;
        at.buf = buf;
        at.state = state;
        at.cancelled = cancelled;

        while ((result = list_adblock.next(&at)) != LIST_END) {
            if (result == LIST_KEY) {
                strncat(keys, (const char *) at.key.data, at.key.len);
                strcat(keys, " ");
            }
        }
    }
}


static void
pass(void *state, key_set_t *cancelled, const char *lines)
{
    list_adblock.pass(state, cancelled, (const uint8_t *) lines,
                      strlen(lines));
}


TEST(a_block_is_read_in_the_state_at_its_beginning)
{
    int         i;
    char        keys[128];
    uint64_t    state[3][8], at_begin[8];
    key_set_t   cancelled;

    static const char *const  blocks[] = {
        "||a^\n||a.test^\n!#if false\n||b.test^\n!#if env_chromium\n",
        "||c.test^\n!#endif\n||d.test^\n!#else\n||e.test^ \\\n",
        "    f.test\n||g.test^\n!#endif\n||h.test^\n"
    };

    static const char *const  expected[] = {
        "a.test ", "", "g.test h.test "
    };

    assert_true(list_adblock.state <= sizeof(at_begin));

    memset(at_begin, 0, sizeof(at_begin));
    key_set_create(&cancelled);

    for (i = 0; i < 3; i++) {
        memcpy(state[i], at_begin, sizeof(at_begin));
        pass(at_begin, &cancelled, blocks[i]);
    }

    assert_int_equal(cancelled.n, 0);

    /* in another order than they have */

    for (i = 2; i >= 0; i--) {
        read_keys(keys, state[i], &cancelled, blocks[i]);
        assert_string_equal(keys, expected[i]);
    }

    key_set_free(&cancelled);
}


TEST(a_badfilter_rule_cancels_its_twin_in_any_block)
{
    char        keys[128];
    uint64_t    state[8], other[8];
    key_set_t   cancelled;

    static const char  rules[] =
        "||a.test^\n||b.test^$all\n||c.test^$doc,popup\n||d.test^\n"
        "0.0.0.0 e.test\nf.test\n||g.test^$important\n||h.test^$doc,~xhr\n";

    memset(state, 0, sizeof(state));
    memset(other, 0, sizeof(other));
    key_set_create(&cancelled);

    read_keys(keys, state, &cancelled, rules);
    assert_string_equal(keys, "a.test b.test c.test d.test e.test f.test "
                              "g.test h.test ");

    pass(other, &cancelled, "||a.test^$badfilter\n||b.test^$badfilter,doc\n"
         "||c.test^$badfilter,document,xhr\n!#if false\n"
         "||d.test^$badfilter\n!#endif\n||e.test^$badfilter\r\n");
    pass(other, &cancelled, "||f.test^$badfilter\n||g.test^$badfilter\n"
         "||h.test^$~xmlhttprequest,badfilter,doc\n");

    memset(state, 0, sizeof(state));
    read_keys(keys, state, &cancelled, rules);
    assert_string_equal(keys, "b.test d.test g.test ");

    memset(state, 0, sizeof(state));
    read_keys(keys, state, NULL, rules);
    assert_string_equal(keys, "a.test b.test c.test d.test e.test f.test "
                              "g.test h.test ");

    key_set_free(&cancelled);
}


TEST(many_blocks_may_be_open)
{
    int           i;
    bloom_key_t   begin, end;
    adblock_if_t  state;

    memset(&state, 0, sizeof(state));
    begin.data = (const uint8_t *) "!#if false";
    begin.len = 10;
    end.data = (const uint8_t *) "!#endif";
    end.len = 7;

    for (i = 0; i < 100000; i++) {
        assert_int_equal(adblock_if_take(&state, &begin), ADBLOCK_IF_TAKEN);
    }

    for (i = 0; i < 100000; i++) {
        assert_non_null(adblock_if_why(&state));
        assert_int_equal(adblock_if_take(&state, &end), ADBLOCK_IF_TAKEN);
    }

    assert_null(adblock_if_why(&state));
    assert_int_equal(adblock_if_take(&state, &end), ADBLOCK_IF_STRAY);
}
