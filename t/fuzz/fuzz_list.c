/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the readers of lists: the division into records, and the entries
 * of each.  The first byte chooses the format, and the second one the keys.
 */

#include "fuzz.h"

#include "list_guess.h"
#include "list_no_key.h"


static const char *const  formats[] = {
    "lines", "adblock", "hosts", "dnsmasq", "rpz", "csv:1", "csv:3", "csv:url",
    "json", "unbound", "csv:value"
};

enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };


/* Reads a record from memory that ends where it ends. */
static void
read_record(const list_reader_t *reader, void *state, const key_set_t *cancelled,
    list_keys_e keys, const uint8_t *data, size_t len, uint64_t number)
{
    size_t          n, room;
    uint8_t        *copy;
    list_line_t     at;
    list_result_e   result;

    room = len + LIST_ROOM;
    copy = malloc(len + 1);
    memcpy(copy, data, len);
    copy = realloc(copy, len != 0 ? len : 1);

    memset(&at, 0, sizeof(at));
    at.line.data = copy;
    at.line.len = len;
    at.keys = keys;
    at.buf = malloc(room);
    at.number = number;
    at.state = state;
    at.cancelled = cancelled;

    for (n = 0; ; n++) {
        result = reader->next(&at);

        if (result == LIST_END) {
            break;
        }

        /* a record ends, and has fewer entries than bytes */

        expect(n <= len + 1);

        if (result == LIST_KEY || result == LIST_EXCEPTION) {
            expect(at.key.len != 0);
            expect(list_no_key(LIST_ANY, &at.key) == NULL);
            (void) list_no_key(keys, &at.key);
            expect((at.key.data >= copy && at.key.data + at.key.len
                                           <= copy + len)
                   || (at.key.data >= at.buf && at.key.data + at.key.len
                                                <= at.buf + room));

        } else if (result == LIST_SKIPPED || result == LIST_BAD) {
            expect(at.why != NULL && at.why[0] != '\0');

        } else {
            expect(result == LIST_EMPTY || result == LIST_COMMENT);
            expect(n == 0);
        }
    }

    expect(reader->next(&at) == LIST_END);

    free(copy);
    free(at.buf);
}


/* Reads the records one by one. */
static void
read_records(const list_reader_t *reader, void *state,
    const key_set_t *cancelled, list_keys_e keys, const uint8_t *data,
    size_t len)
{
    int             open;
    uint64_t        number;
    const uint8_t  *p, *end, *next;

    end = data + len;

    for (p = data, number = 1; p < end; p = next + 1, number++) {
        open = 0;

        if (reader->end != NULL) {
            next = reader->end(state, p, end, &open);

        } else {
            next = memchr(p, '\n', (size_t) (end - p));
            next = next != NULL ? next : end;
        }

        expect(next >= p && next <= end);
        expect(next == end || *next == '\n');
        expect(!open || next == end);

        read_record(reader, state, cancelled, keys, p, (size_t) (next - p),
                    number);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char             why[LIST_WHY];
    void            *state;
    key_set_t        cancelled;
    list_begin_t     with;
    list_format_t    format;

    if (size < 2) {
        return 0;
    }

    with.data = data + 2;
    with.len = size - 2;
    with.keys = data[1] % 3;
    with.column = NULL;
    with.why = why;

    if (list_guess(&format, &with) == 0) {
        expect(format.reader != NULL && format.name != NULL);

    } else {
        expect(strlen(why) > 0 && strlen(why) < LIST_WHY - 1);
    }

    expect(list_format_parse(&format, formats[data[0] % FORMATS]) == NULL);

    with.column = format.column;
    state = calloc(1, format.reader->state + 1);
    key_set_create(&cancelled);

    if (format.reader->begin == NULL
        || format.reader->begin(state, &with) == 0)
    {
        if (format.reader->pass != NULL) {
            format.reader->pass(state, &cancelled, with.data, with.len);
            memset(state, 0, format.reader->state);
        }

        read_records(format.reader, state, &cancelled, with.keys, with.data,
                     with.len);

    } else {
        expect(strlen(why) > 0 && strlen(why) < LIST_WHY - 1);
    }

    key_set_free(&cancelled);
    free(state);

    return 0;
}
