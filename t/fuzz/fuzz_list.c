/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the readers of lists: the division into blocks and records, and the
 * entries of each record.  The first byte chooses the format, the second one
 * the keys, and the third one where the first block ends.
 */

#include "fuzz.h"

#include "list_guess.h"
#include "listformat.h"


static const char *const  formats[] = {
    "lines", "adblock", "hosts", "dnsmasq", "rpz", "csv:1", "csv:3", "csv:url",
    "json"
};

enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };


/* Reads a record from memory that ends where it ends. */
static void
read_record(const listformat_t *list, list_rpz_t *zone, list_keys_e keys,
    const uint8_t *data, size_t len, uint64_t number)
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
    at.zone = zone;

    for (n = 0; ; n++) {
        result = listformat_next(list, &at, number);

        if (result == LIST_END) {
            break;
        }

        /* a record ends, and has fewer entries than bytes */

        expect(n <= len + 1);

        if (result == LIST_KEY || result == LIST_EXCEPTION) {
            expect(at.key.len != 0);
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

    expect(listformat_next(list, &at, number) == LIST_END);

    free(copy);
    free(at.buf);
}


/* Reads whole records one by one.  Returns 1 if one of them ends at `end`. */
static int
read_records(listformat_t *list, list_rpz_t *zone, list_keys_e keys,
    const uint8_t *data, size_t len, const uint8_t *end)
{
    int             open, known, at_end;
    uint64_t        number;
    bloom_key_t     record;
    const uint8_t  *p, *next;

    known = list->kind != LISTFORMAT_CSV;
    at_end = end == data;

    for (p = data, number = 1; p < data + len; p = next + 1, number++) {
        open = 0;

        if (listformat_has_records(list)) {
            next = listformat_end(list, p, data + len, &open);

        } else {
            next = memchr(p, '\n', (size_t) (data + len - p));
            next = next != NULL ? next : data + len;
        }

        expect(!open && next >= p && next <= data + len);
        expect(next == data + len || *next == '\n');

        record.data = p;
        record.len = (size_t) (next - p);

        if (!known) {
            known = listformat_header(list, &record, number);

            if (known == -1) {
                list->header = 0;
            }
        }

        read_record(list, zone, keys, p, record.len, number);
        at_end |= next + 1 == end;
    }

    return at_end;
}


static int
same_name(const list_rpz_name_t *a, const list_rpz_name_t *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int            open;
    size_t         whole, first;
    list_rpz_t     passed, read;
    char           why[LIST_GUESS_WHY];
    const char    *format;
    list_keys_e    keys;
    listformat_t   list;

    if (size < 3) {
        return 0;
    }

    format = list_guess(data + 3, size - 3, why);

    if (format == NULL) {
        expect(strlen(why) > 0 && strlen(why) < LIST_GUESS_WHY - 1);

    } else {
        expect(listformat_parse(&list, format) == NULL);
        expect(list.kind != LISTFORMAT_AUTO);
    }

    expect(listformat_parse(&list, formats[data[0] % FORMATS]) == NULL);

    keys = data[1] % 3;
    first = data[2] < size - 3 ? data[2] : size - 3;

    data += 3;
    size -= 3;

    /* a shorter block ends where a record of the longer one ends */

    first = listformat_whole(&list, data, first, &open);
    whole = listformat_whole(&list, data, size, &open);
    expect(first <= whole && whole <= size);

    memset(&read, 0, sizeof(read));
    expect(read_records(&list, &read, keys, data, whole, data + first));

    if (list.kind == LISTFORMAT_RPZ) {

        /* what the records say about later ones is known without reading
         * them */

        memset(&passed, 0, sizeof(passed));
        list_rpz_pass(&passed, data, first);
        list_rpz_pass(&passed, data + first, whole - first);

        expect(same_name(&passed.origin, &read.origin));
        expect(same_name(&passed.zone, &read.zone));
        expect(passed.has_owner == read.has_owner);
        expect(!read.has_owner || same_name(&passed.owner, &read.owner));
    }

    if (!open && whole < size) {
        read_record(&list, &read, keys, data + whole, size - whole, 1);
    }

    return 0;
}
