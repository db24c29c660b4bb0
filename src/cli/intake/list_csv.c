/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the keys in a column of separated values.
 */

#include "list_csv.h"
#include "list_csv_fields.h"
#include "list_text.h"


/* What a record says about its key. */
typedef struct {
    const list_csv_type_t  *type;        /* NULL: unknown */
    const char             *why;         /* why it does not count, or NULL */
} about_t;


static const uint8_t *
end(const void *state, const uint8_t *p, const uint8_t *last, int *open)
{
    return list_csv_record(((const list_csv_t *) state)->separator, p, last,
                           open);
}


/* Learns about the key from another column. */
static void
learn(about_t *about, const list_csv_t *csv, size_t column,
    const bloom_key_t *field)
{
    size_t  i;

    if (column == csv->beside[0]) {
        about->type = list_csv_type(field);
    }

    for (i = 0; i < LIST_CSV_STATUSES; i++) {
        if (column == csv->beside[1 + i] && about->why == NULL
            && !list_equals(field, "yes") && !list_equals(field, "true")
            && !list_equals(field, "1"))
        {
            about->why = list_csv_statuses[i].why;
        }
    }
}


/* Finds the key of a record, and learns about it.  Returns NULL, or why the
 * record is invalid. */
static const char *
read_fields(list_line_t *at, about_t *about)
{
    int                more;
    size_t             i, used;
    uint8_t            *buf;
    bloom_key_t         field;
    const uint8_t      *eol;
    const list_csv_t   *csv;

    csv = at->state;
    used = 0;
    more = 1;

    /* if the quotes of a record with several lines are wrong, it may have
     * swallowed other records: so these are read to their end */

    eol = memrchr(at->line.data, '\n', at->line.len);

    for (i = 0;
         i < csv->fields || (more && eol != NULL && at->line.data <= eol);
         i++)
    {
        if (!more) {
            return i <= csv->column ? "has fewer columns than --from names"
                                    : "has fewer columns than the header";
        }

        buf = at->buf + used;
        more = list_csv_field(csv->separator, &at->line, &field, buf);

        if (more == -1) {
            return "has a quoted field that does not end properly";
        }

        learn(about, csv, i, &field);

        if (i == csv->column) {
            at->key = field;
            used = field.data == buf ? field.len : 0;
        }
    }

    return NULL;
}


/* Removes blanks and line ends around a host or a URL, of which they are no
 * part: so a range of addresses is seen as one. */
static void
trim_place(bloom_key_t *key)
{
    list_trim(key);

    while (list_begins(key, "\n")) {
        list_skip(key, 1);
        list_trim(key);
    }

    while (list_ends(key, '\n')) {
        key->len--;
        list_trim(key);
    }
}


/* Reads a key as its type says. */
static list_result_e
read_typed(list_line_t *at, const list_csv_type_t *type)
{
    bloom_key_t  pair;

    if (type == NULL) {
        return list_skipped(at, "is of a type that stands for no host, URL or "
                                "address");
    }

    if (type->kind == LIST_CSV_OTHER) {
        return list_skipped(at, type->why);
    }

    if (type->kind == LIST_CSV_URI && list_scheme(&at->key) == 0) {
        return list_skipped(at, "is a path without a host");
    }

    if (type->kind == LIST_CSV_PAIR) {
        pair = at->key;
        (void) list_until(&pair, &at->key, '|');

        if (at->key.len == 0) {
            return list_bad(at, "has no host");
        }

        at->line = pair;
        at->mode = pair.len != 0;
    }

    return list_text_entry(at);
}


static list_result_e
next(list_line_t *at)
{
    about_t            about;
    const char        *why;
    list_result_e      what;
    const list_csv_t  *csv;

    if (at->step++ != 0) {

        /* the address of a pair */

        if (at->step == 2 && at->mode) {
            at->key = at->line;
            return list_text_entry(at);
        }

        return LIST_END;
    }

    csv = at->state;

    what = list_csv_what(csv->separator, &at->line);

    if (what != LIST_KEY) {
        return what;
    }

    if (at->number == csv->header) {
        return LIST_COMMENT;
    }

    memset(&about, 0, sizeof(about));
    why = read_fields(at, &about);

    if (why != NULL) {
        return list_bad(at, why);
    }

    if (at->keys != LIST_ANY) {
        trim_place(&at->key);
    }

    if (at->key.len == 0) {
        return LIST_EMPTY;
    }

    if (about.why != NULL) {
        return list_skipped(at, about.why);
    }

    if (at->keys == LIST_ANY) {
        return LIST_KEY;
    }

    return csv->beside[0] != LIST_CSV_NONE ? read_typed(at, about.type)
                                           : list_text_entry(at);
}


static const char *
describe(const void *state)
{
    return ((const list_csv_t *) state)->described;
}


const list_reader_t  list_csv = {
    .name = "csv",
    .state = sizeof(list_csv_t),
    .in_order = 1,
    .begin = list_csv_begin,
    .end = end,
    .opens = "quotes",
    .next = next,
    .describe = describe
};
