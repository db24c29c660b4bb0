/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds out which format a list has.
 *
 * Each reader reads the first block.  A list has a format if nine of ten of its
 * lines fit it: broken and unusual lines are for the reader to report.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "keyform.h"
#include "list_adblock.h"
#include "list_csv.h"
#include "list_guess.h"
#include "list_no_key.h"
#include "list_rpz.h"


#define KNOWN  "lines, adblock, hosts, dnsmasq, unbound, rpz, json, and csv "  \
               "with a column " LIST_CSV_KNOWN


/* How the lines of a block fit a format. */
typedef struct {
    unsigned     lines;                  /* that are not comments or empty */
    unsigned     fit;
    unsigned     own;                    /* in the syntax of the format */
    uint64_t     number;                 /* of the first that does not fit */
    bloom_key_t  misfit;
} fit_t;


/* Returns 1 if a record fits a format, 0 if not, or -1 if it is empty or a
 * comment. */
static int
fits(const list_reader_t *reader, list_line_t *at)
{
    int            rc;
    const char    *why;
    bloom_key_t    line;
    list_result_e  result;

    line = at->line;
    list_trim(&line);
    at->step = 0;
    at->mode = 0;
    rc = -1;

    while ((result = reader->next(at)) != LIST_END) {

        switch (result) {

        case LIST_KEY:
        case LIST_EXCEPTION:
            why = list_no_key(at->keys, &at->key);

            if (reader->any || list_is_place(&at->key)
                || (why != NULL && why[list_bare(why)] == '\0'))
            {
                rc = 1;

            } else if (rc == -1) {
                rc = 0;
            }

            break;

        case LIST_SKIPPED:
            if (rc == -1) {
                rc = reader->owns == NULL || reader->owns(&line);
            }

            break;

        case LIST_BAD:
            rc = 0;
            break;

        default: /* LIST_EMPTY, LIST_COMMENT */
            break;
        }
    }

    return rc;
}


/* Lets a reader read the block. */
static void
try(fit_t *fit, const list_reader_t *reader, const list_begin_t *with)
{
    int             rc, open;
    void           *state;
    uint8_t        *buf;
    uint64_t        number;
    bloom_key_t     record;
    list_line_t     at;
    const uint8_t  *p, *end, *next;

    memset(fit, 0, sizeof(*fit));
    memset(&at, 0, sizeof(at));

    end = with->data + with->len;
    state = cli_alloc(reader->state + 1);
    memset(state, 0, reader->state);
    buf = cli_alloc(with->len + LIST_ROOM);

    for (p = with->data, number = 1; p < end; p = next + 1, number++) {

        if (reader->end != NULL) {
            next = reader->end(state, p, end, &open);

        } else {
            next = memchr(p, '\n', (size_t) (end - p));
            next = next != NULL ? next : end;
        }

        record.data = p;
        record.len = (size_t) (next - p);

        at.line = record;
        at.keys = with->keys == LIST_ANY ? LIST_URLS : with->keys;
        at.buf = buf;
        at.number = number;
        at.state = state;

        rc = fits(reader, &at);

        fit->lines += rc != -1;
        fit->fit += rc == 1;
        list_trim(&record);
        fit->own += reader->owns != NULL && reader->owns(&record);

        if (rc == 0 && fit->number == 0) {
            fit->number = number;
            fit->misfit = record;
        }

        while (p < next && (p = memchr(p, '\n', (size_t) (next - p))) != NULL) {
            p++;
            number++;
        }
    }

    free(state);
    free(buf);
}


static int
most(unsigned part, unsigned all)
{
    return all != 0 && part >= all - all / 10;
}


/* Returns 1 if a list has a format that so many lines fit. */
static int
is(const list_reader_t *reader, const fit_t *fit)
{
    /* a generic rule of Adblock lists, such as -ads-, looks like nothing */

    if (reader == &list_adblock) {
        return fit->own != 0 && fit->fit != 0
               && fit->fit >= fit->lines - fit->fit;
    }

    return most(fit->fit, fit->lines)
           || (reader == &list_rpz && fit->fit > 4
               && fit->fit > fit->lines / 2);
}


/* Returns 1 if a file has only blanks and line ends. */
static int
is_empty(bloom_key_t text)
{
    while (text.len != 0
           && (list_is_blank(text.data[0]) || text.data[0] == '\n'))
    {
        list_skip(&text, 1);
    }

    return text.len == 0;
}


/* Says which line is the first that does not fit the closest format.  Returns
 * -1. */
static int
refuse(const list_begin_t *with, const fit_t fit[LIST_READERS])
{
    char     shown[KEYFORM_SHOWN];
    size_t   i, best;

    for (i = 0, best = LIST_READERS - 1; i < LIST_READERS; i++) {

        if (fit[i].lines == 0) {
            snprintf(with->why, LIST_WHY, "has only comments");
            return -1;
        }

        if (fit[i].fit > fit[best].fit
            && (list_readers[i] != &list_adblock || fit[i].own != 0))
        {
            best = i;
        }
    }

    (void) keyform_show(shown, &fit[best].misfit);

    if (fit[best].fit == 0) {
        snprintf(with->why, LIST_WHY, "line %" PRIu64 ": \"%s\" has none of "
                 "the formats that --from auto knows: " KNOWN "; %s",
                 fit[best].number, shown,
                 list_begins(&fit[best].misfit, "\"")
                 ? "--from csv:1 reads the first column of quoted lines"
                 : "without --from, each line is a key");

    } else {
        snprintf(with->why, LIST_WHY, "line %" PRIu64 ": \"%s\" does not fit "
                 "--from %s, and too few of the lines do (%u of %u); --from "
                 "auto knows " KNOWN, fit[best].number, shown,
                 list_readers[best]->name, fit[best].fit, fit[best].lines);
    }

    return -1;
}


int
list_guess(list_format_t *format, const list_begin_t *with)
{
    char          refused[LIST_WHY];
    fit_t         fit[LIST_READERS];
    size_t        i;
    list_csv_t    csv;
    bloom_key_t   text;
    list_begin_t  csv_with;

    text.data = with->data;
    text.len = with->len;

    if (is_empty(text)) {
        snprintf(with->why, LIST_WHY, "is empty");
        return -1;
    }

    csv_with = *with;
    csv_with.why = refused;
    csv_with.keys = with->keys == LIST_ANY ? LIST_URLS : with->keys;
    memset(&csv, 0, sizeof(csv));

    if (list_csv.begin(&csv, &csv_with) == 0) {
        return list_format_parse(format, csv.format) == NULL ? 0 : -1;
    }

    for (i = 0; i < LIST_READERS; i++) {
        try(&fit[i], list_readers[i], with);

        if (is(list_readers[i], &fit[i])) {
            format->reader = list_readers[i];
            format->name = list_readers[i]->name;
            return 0;
        }
    }

    if (csv.table) {
        snprintf(with->why, LIST_WHY, "%s", refused);
        return -1;
    }

    return refuse(with, fit);
}
