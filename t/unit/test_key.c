/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests split streams into keys, which must not depend on where a stream
 * is cut into pieces, and decode keys.
 */

#include "unit.h"

#include "bloom_key.h"


/* Memory for the keys of a text, each written as "<length>:<bytes>;". */
typedef struct {
    char    text[4096];
    size_t  len;
} list_t;


static void
list_add(list_t *list, bloom_key_t key)
{
    int  n;

    n = sprintf(list->text + list->len, "%zu:", key.len);
    list->len += (size_t) n;

    memcpy(list->text + list->len, key.data, key.len);
    list->len += key.len;
    list->text[list->len++] = ';';
}


static void
split_whole(list_t *list, const void *text, size_t len, bloom_split_e split)
{
    bloom_key_t     key;
    const uint8_t  *pos, *end;

    list->len = 0;
    pos = text;
    end = pos + len;

    while (bloom_key_next(&key, &pos, end, split, 1)) {
        list_add(list, key);
    }

    assert_ptr_equal(pos, end);
}


/*
 * Splits a stream as a reader does: the rest of a piece is put in front of the
 * next one.  Each piece is in memory of exactly its size, for the sanitizers.
 */
static void
split_pieces(list_t *list, const uint8_t *text, const size_t *cuts, size_t n,
    bloom_split_e split)
{
    size_t          i, rest, len;
    uint8_t        *piece;
    bloom_key_t     key;
    const uint8_t  *pos, *end;

    list->len = 0;

    for (rest = 0, i = 0; i + 1 < n; i++) {
        len = rest + cuts[i + 1] - cuts[i];
        piece = unit_copy(text + cuts[i] - rest, len);

        pos = piece;
        end = piece + len;

        while (bloom_key_next(&key, &pos, end, split, i + 2 == n)) {
            assert_in_range((uintptr_t) key.data, (uintptr_t) piece,
                            (uintptr_t) end);
            assert_true(key.len <= (size_t) (end - key.data));
            list_add(list, key);
        }

        rest = (size_t) (end - pos);
        free(piece);
    }

    assert_int_equal(rest, 0);
}


#define assert_keys(in, split, expected)                                     \
    do {                                                                     \
        list_t  keys_;                                                       \
        split_whole(&keys_, in, sizeof(in) - 1, split);                      \
        assert_int_equal(keys_.len, sizeof(expected) - 1);                   \
        assert_memory_equal(keys_.text, expected, sizeof(expected) - 1);     \
    } while (0)


TEST(lines_are_split_at_line_ends)
{
    assert_keys("", BLOOM_SPLIT_LINES, "");
    assert_keys("\n", BLOOM_SPLIT_LINES, "0:;");
    assert_keys("\r\n", BLOOM_SPLIT_LINES, "0:;");
    assert_keys("one\ntwo\n", BLOOM_SPLIT_LINES, "3:one;3:two;");
    assert_keys("one\ntwo", BLOOM_SPLIT_LINES, "3:one;3:two;");
    assert_keys("one\r\ntwo\r\n", BLOOM_SPLIT_LINES, "3:one;3:two;");
    assert_keys("one\r\ntwo\r", BLOOM_SPLIT_LINES, "3:one;3:two;");
    assert_keys("one\n\ntwo\n", BLOOM_SPLIT_LINES, "3:one;0:;3:two;");

    /* only one CR before the LF is part of the delimiter */

    assert_keys("a\rb\r\r\nc", BLOOM_SPLIT_LINES, "4:a\rb\r;1:c;");

    /* all other bytes belong to the key: spaces, NUL, 0x80 to 0xff */

    assert_keys(" a \t\n\0\xff\x80\n", BLOOM_SPLIT_LINES,
                "4: a \t;3:\0\xff\x80;");
}


TEST(nul_separated_keys_are_split_at_nuls)
{
    assert_keys("", BLOOM_SPLIT_NUL, "");
    assert_keys("\0", BLOOM_SPLIT_NUL, "0:;");
    assert_keys("one\0two\0", BLOOM_SPLIT_NUL, "3:one;3:two;");
    assert_keys("one\0two", BLOOM_SPLIT_NUL, "3:one;3:two;");

    /* nothing is stripped */

    assert_keys("one\r\0two\n\0\r\n", BLOOM_SPLIT_NUL,
                "4:one\r;4:two\n;2:\r\n;");
}


TEST(a_rest_without_delimiter_is_not_a_key_yet)
{
    bloom_key_t     key;
    const uint8_t  *text, *pos;

    text = (const uint8_t *) "one\ntw";
    pos = text;

    assert_int_equal(bloom_key_next(&key, &pos, text + 6, BLOOM_SPLIT_LINES,
                                    0), 1);
    assert_ptr_equal(pos, text + 4);

    assert_int_equal(bloom_key_next(&key, &pos, text + 6, BLOOM_SPLIT_LINES,
                                    0), 0);
    assert_ptr_equal(pos, text + 4);

    assert_int_equal(bloom_key_next(&key, &pos, text + 6, BLOOM_SPLIT_LINES,
                                    1), 1);
    assert_ptr_equal(key.data, text + 4);
    assert_int_equal(key.len, 2);
}


/* Every way to cut a text into three pieces gives the same keys. */
TEST(keys_do_not_depend_on_where_a_stream_is_cut)
{
    size_t         a, b, len;
    list_t         whole, pieces;
    bloom_split_e  split;

    static const char  text[] = "one\r\ntwo\n\n\r\nthr\ree\r\r\n\0nul\0\0\r\n"
                                "\xc3\xa9t\xc3\xa9\nlast\r";

    len = sizeof(text) - 1;

    for (split = BLOOM_SPLIT_LINES; split <= BLOOM_SPLIT_NUL; split++) {
        split_whole(&whole, text, len, split);
        assert_true(whole.len > len);

        for (a = 0; a <= len; a++) {
            for (b = a; b <= len; b++) {
                const size_t  cuts[] = { 0, a, b, len };

                split_pieces(&pieces, (const uint8_t *) text, cuts,
                             array_len(cuts), split);

                assert_int_equal(pieces.len, whole.len);
                assert_memory_equal(pieces.text, whole.text, whole.len);
            }
        }
    }
}


TEST(a_byte_order_mark_is_recognised)
{
    assert_int_equal(bloom_key_mark((const uint8_t *) "\xef\xbb\xbf", 3), 3);
    assert_int_equal(bloom_key_mark((const uint8_t *) "\xef\xbb\xbfone", 6), 3);
    assert_int_equal(bloom_key_mark((const uint8_t *) "\xef\xbb", 2), 0);
    assert_int_equal(bloom_key_mark((const uint8_t *) "\xef\xbb\xbe", 3), 0);
    assert_int_equal(bloom_key_mark((const uint8_t *) "one", 3), 0);
    assert_int_equal(bloom_key_mark(NULL, 0), 0);
}


static const struct {
    const char  *in;
    const char  *uri;
    const char  *form;
} decodings[] = {
    { "",           "",           "" },
    { "plain",      "plain",      "plain" },
    { "%41",        "A",          "A" },
    { "%41%42c",    "ABc",        "ABc" },
    { "a+b",        "a+b",        "a b" },
    { "a%2Bb",      "a+b",        "a+b" },
    { "a%20b",      "a b",        "a b" },
    { "%c3%A9",     "\xc3\xa9",   "\xc3\xa9" },
    { "%fF%Ff",     "\xff\xff",   "\xff\xff" },
    { "%2541",      "%41",        "%41" },          /* once only */
    { "http%3A%2F%2Fa.b%2F%3Fq%3D1+2", "http://a.b/?q=1+2",
      "http://a.b/?q=1 2" },

    /* digits behind another character are no escape */

    { "!41(41",     "!41(41",     "!41(41" },

    /* an invalid escape stays as it is */

    { "%",          "%",          "%" },
    { "%4",         "%4",         "%4" },
    { "100%",       "100%",       "100%" },
    { "%zz",        "%zz",        "%zz" },
    { "%4g",        "%4g",        "%4g" },
    { "%g4",        "%g4",        "%g4" },
    { "%%41",       "%A",         "%A" },
    { "%4%41",      "%4A",        "%4A" },
    { "%+1",        "%+1",        "% 1" },
    { "%\x11\x12",  "%\x11\x12",  "%\x11\x12" },    /* 0x31, 0x32 less 0x20 */
    { "%u0041",     "%u0041",     "%u0041" },
};


static void
decode_one(const char *in, const char *expected, bloom_decode_e how)
{
    size_t   len, n;
    uint8_t  out[64], in_place[64];

    len = strlen(in);
    n = bloom_key_decode(out, (const uint8_t *) in, len, how);

    assert_int_equal(n, strlen(expected));
    assert_memory_equal(out, expected, n);

    memcpy(in_place, in, len);

    assert_int_equal(bloom_key_decode(in_place, in_place, len, how), n);
    assert_memory_equal(in_place, expected, n);
}


TEST(escapes_are_decoded_in_each_mode)
{
    size_t  i;

    for (i = 0; i < array_len(decodings); i++) {
        decode_one(decodings[i].in, decodings[i].in, BLOOM_DECODE_OFF);
        decode_one(decodings[i].in, decodings[i].uri, BLOOM_DECODE_URI);
        decode_one(decodings[i].in, decodings[i].form, BLOOM_DECODE_FORM);
    }
}


TEST(every_escaped_byte_is_decoded)
{
    int      b;
    char     lower[4], upper[4];
    uint8_t  out[3];

    for (b = 0; b < 256; b++) {
        sprintf(lower, "%%%02x", b);
        sprintf(upper, "%%%02X", b);

        assert_int_equal(bloom_key_decode(out, (uint8_t *) lower, 3,
                                          BLOOM_DECODE_URI), 1);
        assert_int_equal(out[0], b);

        assert_int_equal(bloom_key_decode(out, (uint8_t *) upper, 3,
                                          BLOOM_DECODE_FORM), 1);
        assert_int_equal(out[0], b);
    }

    assert_int_equal(bloom_key_decode(NULL, NULL, 0, BLOOM_DECODE_OFF), 0);
    assert_int_equal(bloom_key_decode(NULL, NULL, 0, BLOOM_DECODE_FORM), 0);
}
