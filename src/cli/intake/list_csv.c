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

    if (column == csv->type) {
        about->type = list_csv_type(field);
    }

    for (i = 0; i < LIST_CSV_STATUSES; i++) {
        if (column == csv->status[i] && about->why == NULL
            && !list_csv_is_yes(field))
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

        if (csv->learns) {
            learn(about, csv, i, &field);
        }

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
    while (key->len != 0
           && (list_is_blank(key->data[0]) || key->data[0] == '\n'))
    {
        list_skip(key, 1);
    }

    while (key->len != 0 && (list_is_blank(key->data[key->len - 1])
                             || list_ends(key, '\n')))
    {
        key->len--;
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

    if (list_csv_is_void(csv->separator, &at->line, &what)) {
        return what;
    }

    if (at->number == csv->header || (csv->hint && at->number == 1)) {
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

    return csv->type != LIST_CSV_NONE ? read_typed(at, about.type)
                                      : list_text_entry(at);
}


/* Says what was found in a file beside what was asked for, or NULL. */
static const char *
describe(const void *state)
{
    const list_csv_t  *csv = state;

    return csv->described[0] != '\0' ? csv->described : NULL;
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
