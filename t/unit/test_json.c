/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests read JSON arrays of strings, cut into pieces in every way.
 */

#include "unit.h"

#include "bloom_json.h"


#define array(text)  text, sizeof(text) - 1


/* The strings that were read from an input, each after its length. */
typedef struct {
    uint8_t      text[256];
    size_t       len;
    uint64_t     strings;
    uint64_t     offset;
    const char  *error;
} outcome_t;


/* Reads up to `cut`, up to `again`, and the rest.  Each piece is a copy, so
 * that sanitizers notice a read past its end. */
static void
read_pieces(outcome_t *out, const char *json, size_t len, size_t cut,
    size_t again)
{
    int             rc;
    size_t          i, from, to, ends[3];
    uint8_t        *piece, *buf;
    bloom_key_t     key;
    bloom_json_t    reader;
    const uint8_t  *pos;

    ends[0] = cut;
    ends[1] = again;
    ends[2] = len;

    memset(out, 0, sizeof(outcome_t));

    buf = unit_alloc(BLOOM_KEY_MAX);

    bloom_json_begin(&reader, buf, BLOOM_KEY_MAX);

    for (rc = 0, from = 0, i = 0; i < 3 && rc == 0; i++, from = to) {
        to = ends[i];

        piece = unit_copy(json + from, to - from);

        pos = piece;

        while ((rc = bloom_json_next(&reader, &key, &pos, piece + to - from))
               == 1)
        {
            assert_true(out->len + 1 + key.len <= sizeof(out->text));

            out->text[out->len++] = (uint8_t) key.len;
            memcpy(out->text + out->len, key.data, key.len);
            out->len += key.len;
        }

        if (rc == 0) {
            assert_ptr_equal(pos, piece + to - from);

        } else {
            assert_int_equal(rc, -1);
            assert_int_equal(bloom_json_next(&reader, &key, &pos,
                                             piece + to - from), -1);
            assert_int_equal(pos - piece + from, reader.offset);
        }

        free(piece);
    }

    rc = bloom_json_end(&reader);
    assert_int_equal(rc, reader.error ? -1 : 0);

    out->strings = reader.strings;
    out->offset = reader.offset;
    out->error = reader.error;

    free(buf);
}


/* Reads an input as a whole and in three pieces, cut in every way: the result
 * is always the same. */
static void
read_all(outcome_t *whole, const char *json, size_t len)
{
    size_t     cut, again;
    outcome_t  out;

    read_pieces(whole, json, len, len, len);

    for (cut = 0; cut <= len; cut++) {
        for (again = cut; again <= len; again++) {
            read_pieces(&out, json, len, cut, again);

            assert_int_equal(out.len, whole->len);
            assert_memory_equal(out.text, whole->text, sizeof(out.text));
            assert_int_equal(out.strings, whole->strings);
            assert_int_equal(out.offset, whole->offset);
            assert_ptr_equal(out.error, whole->error);
        }
    }
}


static const struct {
    const char  *json;
    size_t       len;
    const char  *strings;
    size_t       strings_len;
} good[] = {
    { array("[]"), array("") },
    { array(" \t\r\n[ \t\r\n] \t\r\n"), array("") },
    { array("[\"\"]"), array("\0") },
    { array("[\"a\"]"), array("\1a") },
    { array(" [ \"a\" , \"bc\" ] "), array("\1a\2bc") },
    { array("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]"), array("\x8\"\\/\b\f\n\r\t") },
    { array("[\"x\\u0041y\"]"), array("\3xAy") },
    { array("[\"\\u0000\",\"\\u007f\\u0080\\u07ff\"]"),
      array("\1\0\5\x7f\xc2\x80\xdf\xbf") },
    { array("[\"\\u0800\\uffff\\uD7ff\\ue000\"]"),
      array("\xc\xe0\xa0\x80\xef\xbf\xbf\xed\x9f\xbf\xee\x80\x80") },
    { array("[\"\\ud800\\uDC00\",\"\\udbff\\udfff\"]"),
      array("\4\xf0\x90\x80\x80\4\xf4\x8f\xbf\xbf") },
    { array("[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \x7f\"]"),
      array("\xb\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \x7f") },
    { array("[\"\xc2\x80\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\""
            "]"),
      array("\xf\xc2\x80\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf")
    },
    { array("[\"[\\\"],{\",\"]\"]"), array("\5[\"],{\1]") },
};


TEST(valid_arrays_are_read)
{
    size_t     i;
    outcome_t  out;

    for (i = 0; i < array_len(good); i++) {
        read_all(&out, good[i].json, good[i].len);

        assert_null(out.error);
        assert_int_equal(out.offset, good[i].len);
        assert_int_equal(out.len, good[i].strings_len);
        assert_memory_equal(out.text, good[i].strings, out.len);
    }
}


/* Invalid inputs with the offset of the wrong byte; the length of the input
 * means that its end is missing. */
static const struct {
    const char  *json;
    size_t       len;
    uint64_t     offset;
    const char  *says;
} bad[] = {
    { array(""), 0, "complete" },
    { array("  "), 2, "complete" },
    { array("["), 1, "complete" },
    { array("[\"a"), 3, "complete" },
    { array("[\"a\""), 4, "complete" },
    { array("[\"a\","), 5, "complete" },
    { array("[\"\\u00"), 6, "complete" },
    { array("{}"), 0, "begin" },
    { array("\"a\""), 0, "begin" },
    { array("\xef\xbb\xbf[]"), 0, "begin" },
    { array("[1]"), 1, "string" },
    { array("[null]"), 1, "string" },
    { array("[[]]"), 1, "string" },
    { array("[,\"a\"]"), 1, "string" },
    { array("[\"a\",]"), 5, "string" },
    { array("[\"a\",,\"b\"]"), 5, "string" },
    { array("[\"a\" \"b\"]"), 5, "\",\"" },
    { array("[\"a\":\"b\"]"), 4, "\",\"" },
    { array("[\"a\"}"), 4, "\",\"" },
    { array("[] x"), 3, "follow" },
    { array("[][]"), 2, "follow" },
    { array("[]\0"), 2, "follow" },
    { array("[\v]"), 1, "string" },
    { array("['a']"), 1, "string" },
    { array("[\"a\nb\"]"), 3, "control" },
    { array("[\"a\0b\"]"), 3, "control" },
    { array("[\"\x1f\"]"), 2, "control" },
    { array("[\"\\x41\"]"), 3, "escape" },
    { array("[\"\\\0\"]"), 3, "escape" },
    { array("[\"\\'\"]"), 3, "escape" },
    { array("[\"\\U0041\"]"), 3, "escape" },
    { array("[\"\\u004g\"]"), 7, "hexadecimal" },
    { array("[\"\\u-041\"]"), 4, "hexadecimal" },
    { array("[\"\\u41\"]"), 6, "hexadecimal" },
    { array("[\"\\udc00\"]"), 7, "low surrogate" },
    { array("[\"\\ud800\"]"), 8, "high surrogate" },
    { array("[\"\\ud800x\"]"), 8, "high surrogate" },
    { array("[\"\\ud800\\n\"]"), 9, "high surrogate" },
    { array("[\"\\ud800\\u0041\"]"), 13, "high surrogate" },
    { array("[\"\\ud800\\ud800\"]"), 13, "high surrogate" },
    { array("[\"\x80\"]"), 2, "UTF-8" },
    { array("[\"\xc0\xaf\"]"), 2, "UTF-8" },
    { array("[\"\xc1\xbf\"]"), 2, "UTF-8" },
    { array("[\"\xe0\x9f\xbf\"]"), 3, "UTF-8" },
    { array("[\"\xed\xa0\x80\"]"), 3, "UTF-8" },
    { array("[\"\xf0\x8f\xbf\xbf\"]"), 3, "UTF-8" },
    { array("[\"\xf4\x90\x80\x80\"]"), 3, "UTF-8" },
    { array("[\"\xf5\x80\x80\x80\"]"), 2, "UTF-8" },
    { array("[\"\xc3\"]"), 3, "UTF-8" },
    { array("[\"\xe2\x82\"]"), 4, "UTF-8" },
    { array("[\"\xf0\x9f\x98x\"]"), 5, "UTF-8" },
    { array("[\"\xff\"]"), 2, "UTF-8" },
};


TEST(invalid_arrays_are_refused_at_the_mistake)
{
    size_t     i;
    outcome_t  out;

    for (i = 0; i < array_len(bad); i++) {
        read_all(&out, bad[i].json, bad[i].len);

        if (out.error == NULL || strstr(out.error, bad[i].says) == NULL
            || out.offset != bad[i].offset)
        {
            print_error("%s: at %d: %s\n", bad[i].json, (int) out.offset,
                        out.error ? out.error : "taken");
            fail();
        }
    }
}


/* Strings before the mistake are read and counted. */
TEST(strings_before_the_mistake_are_read)
{
    outcome_t  out;

    read_all(&out, array("[\"a\",\"bc\",\"d\\x\",\"e\"]"));

    assert_non_null(out.error);
    assert_int_equal(out.strings, 3);
    assert_int_equal(out.len, 5);
    assert_memory_equal(out.text, "\1a\2bc", 5);
}


/* Tests the longest string and a string of one byte more, of each kind of
 * character. */
TEST(strings_longer_than_the_buffer_are_cut)
{
    int             rc;
    char           *json, *p;
    size_t          i, j, n, size, piece;
    uint8_t         buf[BLOOM_KEY_MAX];
    bloom_key_t     key;
    bloom_json_t    reader;
    const uint8_t  *pos, *end;

    static const struct {
        const char  *text;
        size_t       bytes;              /* decoded */
    } kinds[] = {
        { "x", 1 }, { "\\n", 1 }, { "\\u0041", 1 }, { "\xc3\xa9", 2 },
        { "\\u20ac", 3 }, { "\xf0\x9f\x98\x80", 4 }, { "\\ud83d\\ude00", 4 }
    };

    json = unit_alloc(7 * BLOOM_KEY_MAX);

    for (i = 0; i < array_len(kinds); i++) {
        for (n = BLOOM_KEY_MAX; n <= BLOOM_KEY_MAX + 1; n++) {
            for (piece = 1000; piece <= 1000000; piece *= 1000) {

                p = json;
                p += sprintf(p, "[\"");

                for (j = 0; j < n % kinds[i].bytes; j++) {
                    *p++ = 'y';
                }

                for ( /* void */ ; j < n; j += kinds[i].bytes) {
                    p += sprintf(p, "%s", kinds[i].text);
                }

                p += sprintf(p, "\"]");

                bloom_json_begin(&reader, buf, BLOOM_KEY_MAX);

                for (rc = 0, pos = (uint8_t *) json; rc == 0; /* void */ ) {
                    size = (size_t) ((uint8_t *) p - pos);
                    end = pos + (size < piece ? size : piece);

                    assert_true(size != 0);
                    rc = bloom_json_next(&reader, &key, &pos, end);
                }

                assert_int_equal(rc, 1);
                assert_int_equal(key.len, BLOOM_KEY_MAX);
                assert_int_equal(reader.strings, 1);
                assert_int_equal(pos - (uint8_t *) json, p - json - 1);
                assert_int_equal(reader.offset, p - json - 1);
            }
        }
    }

    free(json);
}
