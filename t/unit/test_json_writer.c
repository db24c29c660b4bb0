/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests write JSON of every kind and compare it with what it must be.
 */

#include <math.h>

#include "unit.h"

#include "bloom_json_writer.h"


#define array(text)  text, sizeof(text) - 1


typedef struct {
    char    text[1024];
    size_t  len;
} output_t;


static void
take(void *data, const void *bytes, size_t len)
{
    output_t  *output = data;

    assert_true(output->len + len < sizeof(output->text));

    memcpy(output->text + output->len, bytes, len);
    output->len += len;
    output->text[output->len] = '\0';
}


static void
begin(bloom_json_writer_t *json, output_t *output)
{
    memset(output, 0, sizeof(output_t));
    bloom_json_writer_init(json, take, output);
}


TEST(values)
{
    output_t             output;
    bloom_json_writer_t  json;

    begin(&json, &output);

    bloom_json_put_object(&json, NULL);
    bloom_json_put_text(&json, "t", "a");
    bloom_json_put_bytes(&json, "b", "\xff\"\0", 3);
    bloom_json_put_hex(&json, "h", "\x00\xAB", 2);
    bloom_json_put_count(&json, "c", UINT64_MAX);
    bloom_json_put_number(&json, "n", 0.1234567890123);
    bloom_json_put_rate(&json, "r", 0.1234567890123);
    bloom_json_put_rate(&json, "tiny", 1e-9);
    bloom_json_put_rate(&json, "nan", NAN);
    bloom_json_put_number(&json, "inf", INFINITY);
    bloom_json_put_seconds(&json, "s", 12000);
    bloom_json_put_seconds(&json, "ms", 12034);
    bloom_json_put_time(&json, "time", 1700000000089);
    bloom_json_put_time(&json, "no_time", 0);
    bloom_json_put_time(&json, "too_late", 253402300800000);
    bloom_json_put_text(&json, "no_text", NULL);
    bloom_json_put_bool(&json, "yes", 2);
    bloom_json_put_bool(&json, "no", 0);
    bloom_json_put_null(&json, "null");
    bloom_json_put_end(&json);

    assert_string_equal(output.text,
        "{\"t\":\"a\",\"b\":\"\xEF\xBF\xBD\\\"\\u0000\",\"h\":\"00ab\","
        "\"c\":18446744073709551615,\"n\":0.1234567890123,\"r\":0.123457,"
        "\"tiny\":1e-09,\"nan\":null,\"inf\":null,\"s\":12,\"ms\":12.034,"
        "\"time\":\"2023-11-14T22:13:20.089Z\",\"no_time\":null,"
        "\"too_late\":null,\"no_text\":null,"
        "\"yes\":true,\"no\":false,\"null\":null}");
}


TEST(nesting)
{
    output_t             output;
    bloom_json_writer_t  json;

    begin(&json, &output);

    bloom_json_put_array(&json, NULL);
    bloom_json_put_object(&json, NULL);
    bloom_json_put_end(&json);
    bloom_json_put_object(&json, NULL);
    bloom_json_put_array(&json, "in");
    bloom_json_put_end(&json);
    bloom_json_put_array(&json, "also");
    bloom_json_put_count(&json, NULL, 1);
    bloom_json_put_count(&json, NULL, 2);
    bloom_json_put_end(&json);
    bloom_json_put_end(&json);
    bloom_json_put_text(&json, NULL, "last");
    bloom_json_put_end(&json);

    assert_string_equal(output.text,
                        "[{},{\"in\":[],\"also\":[1,2]},\"last\"]");
}


TEST(lines)
{
    output_t             output;
    bloom_json_writer_t  json;

    begin(&json, &output);
    json.lines = 1;

    bloom_json_put_object(&json, NULL);
    bloom_json_put_count(&json, "a", 1);
    bloom_json_put_array(&json, "b");
    bloom_json_put_object(&json, NULL);
    bloom_json_put_count(&json, "c", 2);
    bloom_json_put_count(&json, "d", 3);
    bloom_json_put_end(&json);
    bloom_json_put_end(&json);
    bloom_json_put_end(&json);

    assert_string_equal(output.text,
                        "{\n  \"a\": 1,\n  \"b\": [{\"c\":2,\"d\":3}]\n}");
}


TEST(long_text)
{
    size_t               i, len;
    char                 text[150];
    output_t             output;
    bloom_json_writer_t  json;

    /* every length around that of the writer's buffer */

    for (len = 0; len < sizeof(text); len++) {
        memset(text, '\x01', len);

        begin(&json, &output);
        bloom_json_put_bytes(&json, NULL, text, len);

        assert_int_equal(output.len, 6 * len + 2);

        for (i = 0; i < len; i++) {
            assert_memory_equal(output.text + 1 + 6 * i, "\\u0001", 6);
        }
    }
}


TEST(strings_are_escaped_for_writing)
{
    size_t               i, len;
    output_t             output;
    bloom_json_writer_t  json;

    static const struct {
        const char  *text;
        size_t       len;
        const char  *escaped;
    } texts[] = {
        { array(""), "" },
        { array("plain"), "plain" },
        { array("a\"b\\c/d"), "a\\\"b\\\\c/d" },
        { array("\0\n\x1f\x7f"), "\\u0000\\u000a\\u001f\\u007f" },
        { array("\xc3\xa9\xf0\x9f\x98\x80"), "\xc3\xa9\xf0\x9f\x98\x80" },
        { array("\xc2\x80\xc2\x9f\xc2\xa0"), "\\u0080\\u009f\xc2\xa0" },
        { array("\xd8\x9c\xe2\x80\xae\xe2\x81\xa6\xe2\x80\xa8"),
          "\\u061c\\u202e\\u2066\\u2028" },
        { array("\xff" "a\xc3"), "\xef\xbf\xbd" "a\xef\xbf\xbd" },
        { array("\xed\xa0\x80"),
          "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
    };

    for (i = 0; i < array_len(texts); i++) {
        begin(&json, &output);
        bloom_json_put_bytes(&json, NULL, texts[i].text, texts[i].len);

        len = strlen(texts[i].escaped);
        assert_int_equal(output.len, len + 2);
        assert_memory_equal(output.text + 1, texts[i].escaped, len);
    }
}
