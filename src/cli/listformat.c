/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the keys in the lines of published lists.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bloom_ascii.h"
#include "bloom_host.h"
#include "bloom_json.h"
#include "cli.h"
#include "listformat.h"
#include "units.h"


int
listformat_parse(listformat_t *list, const char *text)
{
    uint64_t  number;

    memset(list, 0, sizeof(*list));

    if (strcmp(text, "lines") == 0) {
        list->kind = LISTFORMAT_LINES;

    } else if (strcmp(text, "hosts") == 0) {
        list->kind = LISTFORMAT_HOSTS;

    } else if (strcmp(text, "adblock-domains") == 0) {
        list->kind = LISTFORMAT_ADBLOCK;

    } else if (strcmp(text, "json") == 0) {
        list->kind = LISTFORMAT_JSON;

    } else if (strncmp(text, "csv:", 4) == 0 && text[4] != '\0') {
        list->kind = LISTFORMAT_CSV;
        list->column = text + 4;

        if (parse_count(list->column, &number) == 0 && number != 0) {
            list->column = NULL;
            list->index = number - 1;
        }

    } else {
        return -1;
    }

    return 0;
}


static int
is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}


static void
trim(bloom_key_t *text)
{
    while (text->len != 0 && is_blank(text->data[0])) {
        text->data++;
        text->len--;
    }

    while (text->len != 0 && is_blank(text->data[text->len - 1])) {
        text->len--;
    }
}


static void
skip(bloom_key_t *text, size_t len)
{
    text->data += len;
    text->len -= len;
}


static int
begins(const bloom_key_t *text, const char *with)
{
    return text->len >= strlen(with)
           && memcmp(text->data, with, strlen(with)) == 0;
}


static int
equals(const bloom_key_t *text, const char *other)
{
    size_t  i;

    for (i = 0; i < text->len; i++) {
        if (other[i] == '\0'
            || bloom_lower(text->data[i]) != bloom_lower((uint8_t) other[i]))
        {
            return 0;
        }
    }

    return other[i] == '\0';
}


/* Takes the next word of a text.  Returns 0 if no word is left. */
static int
next_word(bloom_key_t *text, bloom_key_t *word)
{
    trim(text);

    for (word->data = text->data, word->len = 0;
         word->len < text->len && !is_blank(text->data[word->len]);
         word->len++)
    {
        /* void */
    }

    skip(text, word->len);

    return word->len != 0;
}


static listformat_line_e
next_of_lines(listformat_line_t *at, bloom_key_t *key)
{
    size_t  i;

    trim(&at->line);

    if (at->line.len == 0) {
        return LISTFORMAT_EMPTY;
    }

    if (begins(&at->line, "#") || begins(&at->line, "!")) {
        return LISTFORMAT_COMMENT;
    }

    *key = at->line;

    for (i = 1; i < key->len; i++) {
        if (key->data[i] == '#' && is_blank(key->data[i - 1])) {
            key->len = i;
            trim(key);
            break;
        }
    }

    return LISTFORMAT_KEY;
}


/* Returns 1 for a name that hosts files have for the machine itself. */
static int
is_local(const bloom_key_t *name)
{
    size_t  i;

    static const char *const  names[] = {
        "localhost", "localhost.localdomain", "local", "broadcasthost",
        "ip6-localhost", "ip6-loopback", "ip6-localnet", "ip6-mcastprefix",
        "ip6-allnodes", "ip6-allrouters", "ip6-allhosts", "0.0.0.0"
    };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (equals(name, names[i])) {
            return 1;
        }
    }

    return 0;
}


static listformat_line_e
next_of_hosts(listformat_line_t *at, bloom_key_t *key, const char **why)
{
    int             found;
    bloom_host_t    address;
    const uint8_t  *comment;

    found = 0;

    if (!at->begun) {
        trim(&at->line);

        if (at->line.len == 0) {
            return LISTFORMAT_EMPTY;
        }

        comment = memchr(at->line.data, '#', at->line.len);

        if (comment == at->line.data) {
            return LISTFORMAT_COMMENT;
        }

        if (comment != NULL) {
            at->line.len = (size_t) (comment - at->line.data);
        }

        (void) next_word(&at->line, key);

        if (bloom_host_parse(&address, key->data, key->len) != NULL
            || address.kind == BLOOM_HOST_NAME)
        {
            *why = "does not begin with an address";
            return LISTFORMAT_BAD;
        }

        trim(&at->line);

        if (at->line.len == 0) {
            *why = "has an address but no name";
            return LISTFORMAT_BAD;
        }

        found = 1;
    }

    while (next_word(&at->line, key)) {
        if (!is_local(key)) {
            return LISTFORMAT_KEY;
        }
    }

    return found ? LISTFORMAT_SKIPPED : LISTFORMAT_END;
}


/* Returns 1 if a rule with these options still applies to the whole domain, for
 * all sites. */
static int
is_whole(bloom_key_t options)
{
    size_t         i;
    bloom_key_t    option;
    const uint8_t *comma;

    static const char *const  names[] = {
        "all", "document", "doc", "important"
    };

    do {
        option = options;
        comma = memchr(options.data, ',', options.len);

        if (comma != NULL) {
            option.len = (size_t) (comma - options.data);
            skip(&options, option.len + 1);
        }

        for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            if (equals(&option, names[i])) {
                break;
            }
        }

        if (i == sizeof(names) / sizeof(names[0])) {
            return 0;
        }

    } while (comma != NULL);

    return 1;
}


static listformat_line_e
next_of_adblock(listformat_line_t *at, bloom_key_t *key)
{
    bloom_key_t    *line, rest;
    const uint8_t  *end;

    line = &at->line;
    trim(line);

    if (line->len == 0) {
        return LISTFORMAT_EMPTY;
    }

    if (begins(line, "!") || begins(line, "[") || begins(line, "# ")
        || equals(line, "#"))
    {
        return LISTFORMAT_COMMENT;
    }

    end = memchr(line->data, '^', line->len);

    if (!begins(line, "||") || end == NULL) {
        return LISTFORMAT_SKIPPED;
    }

    key->data = line->data + 2;
    key->len = (size_t) (end - key->data);

    rest = *line;
    skip(&rest, key->len + 3);

    if (begins(&rest, "|")) {
        skip(&rest, 1);
    }

    if (rest.len != 0) {
        if (rest.data[0] != '$') {
            return LISTFORMAT_SKIPPED;
        }

        skip(&rest, 1);

        if (!is_whole(rest)) {
            return LISTFORMAT_SKIPPED;
        }
    }

    if (key->len == 0 || memchr(key->data, '*', key->len) != NULL
        || memchr(key->data, '/', key->len) != NULL)
    {
        return LISTFORMAT_SKIPPED;
    }

    return LISTFORMAT_KEY;
}


/*
 * Takes the next field of a record; a quoted one is unquoted into `buf`.
 * Returns 1 if another field follows; 0 if it is the last; or -1 if a quote is
 * not closed.
 */
static int
next_field(bloom_key_t *record, bloom_key_t *field, uint8_t *buf)
{
    size_t          i, n;
    const uint8_t  *comma;

    while (record->len != 0 && is_blank(record->data[0])) {
        skip(record, 1);
    }

    if (begins(record, "\"")) {

        for (i = 1, n = 0; i < record->len; i++) {

            if (record->data[i] == '"') {
                if (i + 1 == record->len || record->data[i + 1] != '"') {
                    break;
                }

                i++;
            }

            buf[n++] = record->data[i];
        }

        if (i == record->len) {
            return -1;
        }

        skip(record, i + 1);
        field->data = buf;
        field->len = n;

        trim(record);

        if (record->len == 0) {
            return 0;
        }

        if (record->data[0] != ',') {
            return -1;
        }

        skip(record, 1);

        return 1;
    }

    *field = *record;
    comma = memchr(record->data, ',', record->len);

    if (comma != NULL) {
        field->len = (size_t) (comma - record->data);
        skip(record, field->len + 1);
    }

    trim(field);

    return comma != NULL;
}


static listformat_line_e
next_of_csv(const listformat_t *list, listformat_line_t *at, bloom_key_t *key,
    const char **why)
{
    int          more;
    size_t       i;
    bloom_key_t  blank;

    blank = at->line;
    trim(&blank);

    if (blank.len == 0) {
        return LISTFORMAT_EMPTY;
    }

    if (begins(&blank, "#") || at->number == list->header) {
        return LISTFORMAT_COMMENT;
    }

    for (i = 0, more = 1; i <= list->index; i++) {

        if (!more) {
            *why = "has fewer columns than --from names";
            return LISTFORMAT_BAD;
        }

        more = next_field(&at->line, key, at->buf);

        if (more == -1) {
            *why = "has a quoted field that does not end properly; a record "
                   "must be on one line";
            return LISTFORMAT_BAD;
        }
    }

    trim(key);

    if (key->len == 0) {
        return LISTFORMAT_EMPTY;
    }

    return LISTFORMAT_KEY;
}


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

    skip(text, i + 1);

    return 0;
}


/* Takes the key of an object.  It reads the string with bloom_json, as the
 * member of an array; the result is never longer than the line. */
static listformat_line_e
next_of_json(listformat_line_t *at, bloom_key_t *key, const char **why)
{
    bloom_json_t    json;
    bloom_key_t    *line;
    const uint8_t  *pos, *end;

    static const uint8_t  array[] = "[";
    static const char     begin[] = "{\"key\":", hex[] = ",\"key_hex\":\"";

    line = &at->line;
    trim(line);

    if (line->len == 0) {
        return LISTFORMAT_EMPTY;
    }

    *why = "is not a line that \"ngx-bloom journal --keys --json\" prints";

    if (!begins(line, begin) || line->data[line->len - 1] != '}') {
        return LISTFORMAT_BAD;
    }

    skip(line, sizeof(begin) - 1);

    bloom_json_begin(&json, at->buf);

    pos = array;
    (void) bloom_json_next(&json, key, &pos, array + 1);

    pos = line->data;
    end = line->data + line->len;

    if (bloom_json_next(&json, key, &pos, end) != 1) {
        return LISTFORMAT_BAD;
    }

    skip(line, (size_t) (pos - line->data));

    if (begins(line, hex)) {
        skip(line, sizeof(hex) - 1);

        if (next_hex(line, key, at->buf) != 0) {
            return LISTFORMAT_BAD;
        }
    }

    /* key_hex in another place would be overlooked */

    if ((!begins(line, ",") && !begins(line, "}"))
        || memmem(line->data, line->len, "\"key_hex\"", 9) != NULL)
    {
        return LISTFORMAT_BAD;
    }

    return key->len != 0 ? LISTFORMAT_KEY : LISTFORMAT_EMPTY;
}


int
listformat_header(listformat_t *list, const bloom_key_t *line, uint64_t number,
    const char **why)
{
    int          more, comment;
    size_t       i;
    uint8_t     *buf;
    bloom_key_t  record, field;

    record = *line;
    trim(&record);

    if (list->column == NULL) {
        return 1;
    }

    if (record.len == 0) {
        return 0;
    }

    comment = record.data[0] == '#';

    while (begins(&record, "#")) {
        skip(&record, 1);
    }

    buf = cli_alloc(record.len + 1);

    for (i = 0, more = 1; more == 1; i++) {

        more = next_field(&record, &field, buf);

        if (more != -1 && equals(&field, list->column)) {
            list->index = i;
            list->header = number;
            break;
        }
    }

    free(buf);

    if (!comment && list->header == 0) {
        *why = "is the header, and has no column of that name";
        return -1;
    }

    return !comment;
}


listformat_line_e
listformat_next(const listformat_t *list, listformat_line_t *at,
    bloom_key_t *key, const char **why)
{
    listformat_line_e  is;

    if (at->begun && list->kind != LISTFORMAT_HOSTS) {
        return LISTFORMAT_END;
    }

    switch (list->kind) {

    case LISTFORMAT_LINES:
        is = next_of_lines(at, key);
        break;

    case LISTFORMAT_HOSTS:
        is = next_of_hosts(at, key, why);
        break;

    case LISTFORMAT_ADBLOCK:
        is = next_of_adblock(at, key);
        break;

    case LISTFORMAT_JSON:
        is = next_of_json(at, key, why);
        break;

    case LISTFORMAT_CSV:
        is = next_of_csv(list, at, key, why);
        break;

    default:
        *key = at->line;
        is = key->len != 0 ? LISTFORMAT_KEY : LISTFORMAT_EMPTY;
    }

    at->begun = 1;

    return is;
}
