/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the keys in the JSON of `ngx-bloom journal`.
 */

#include "bloom_json.h"
#include "list_json.h"


/* Takes hexadecimal digits and the quote after them.  Returns 0, or -1 if there
 * is something else. */
static int
next_hex(bloom_key_t *text, bloom_key_t *key, uint8_t *buf)
{
    int     high, low;
    size_t  i;

    for (i = 0; i + 1 < text->len && text->data[i] != '"'; i += 2) {

        high = bloom_hex_digit(text->data[i]);
        low = bloom_hex_digit(text->data[i + 1]);

        if (high == -1 || low == -1) {
            return -1;
        }

        buf[i / 2] = (uint8_t) (high << 4 | low);
    }

    key->data = buf;
    key->len = i / 2;

    if (i >= text->len || text->data[i] != '"') {
        return -1;
    }

    list_skip(text, i + 1);

    return 0;
}


/* Takes the key of an object.  It reads the string with bloom_json, as the
 * member of an array; the result is never longer than the line. */
static list_result_e
next(list_line_t *at)
{
    bloom_json_t    json;
    bloom_key_t    *line, *key;
    const uint8_t  *pos, *end;

    static const uint8_t  array[] = "[";
    static const char     begin[] = "{\"key\":", hex[] = ",\"key_hex\":\"";

    if (at->step++ != 0) {
        return LIST_END;
    }

    key = &at->key;
    line = &at->line;
    list_trim(line);

    if (line->len == 0) {
        return LIST_EMPTY;
    }

    at->why = "is not a line that \"ngx-bloom journal --keys --json\" prints";

    if (!list_begins(line, begin) || line->data[line->len - 1] != '}') {
        return LIST_BAD;
    }

    list_skip(line, sizeof(begin) - 1);

    bloom_json_begin(&json, at->buf, line->len);

    pos = array;
    (void) bloom_json_next(&json, key, &pos, array + 1);

    pos = line->data;
    end = line->data + line->len;

    if (bloom_json_next(&json, key, &pos, end) != 1) {
        return LIST_BAD;
    }

    list_skip(line, (size_t) (pos - line->data));

    if (list_begins(line, hex)) {
        list_skip(line, sizeof(hex) - 1);

        if (next_hex(line, key, at->buf) != 0) {
            return LIST_BAD;
        }
    }

    /* key_hex in another place would be overlooked */

    if ((!list_begins(line, ",") && !list_begins(line, "}"))
        || memmem(line->data, line->len, "\"key_hex\"", 9) != NULL)
    {
        return LIST_BAD;
    }

    return key->len != 0 ? LIST_KEY : LIST_EMPTY;
}


const list_reader_t  list_json = { .name = "json", .next = next, .any = 1 };
