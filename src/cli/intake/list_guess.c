/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds out which format a list has.
 *
 * It counts the lines that each format has.  A list has a format if nine of ten
 * of its lines fit it: broken and unusual lines are for the reader to report.
 */

#include <inttypes.h>
#include <stdio.h>

#include "keyform.h"
#include "list_adblock.h"
#include "list_csv.h"
#include "list_guess.h"


#define KNOWN  "lines, adblock, hosts, dnsmasq, rpz, json, and csv with a " \
               "column " LIST_CSV_KNOWN


typedef struct {
    unsigned  lines;                     /* that are not comments or empty */
    unsigned  adblock;                   /* what only Adblock lists have */
    unsigned  remarks;                   /* lines that begin with ! */
    unsigned  hosts;                     /* an address and a name */
    unsigned  dnsmasq;
    unsigned  rpz;
    unsigned  names;                     /* a name or an address */
    unsigned  urls;
    unsigned  json;
} counts_t;


/* Returns 1 for text that nothing but a list of keys can be: a name with a dot,
 * or an address. */
static int
is_name(const bloom_key_t *word)
{
    size_t       i;
    bloom_key_t  host, rest;

    rest = *word;
    list_cut_wildcard(&rest);

    if (list_is_address(&rest)) {
        return list_has(&rest, '.') || list_has(&rest, ':');
    }

    (void) list_until(&rest, &host, '/');

    for (i = 0; i < host.len; i++) {
        if (!bloom_is_alpha(host.data[i]) && !bloom_is_digit(host.data[i])
            && memchr(".-_:", host.data[i], 4) == NULL && host.data[i] < 0x80)
        {
            return 0;
        }
    }

    return list_has(&host, '.') && host.len > 2;
}


/* Counts the words of a zone file. */
static int
is_rpz(bloom_key_t line)
{
    int          i;
    bloom_key_t  word;

    if (list_begins(&line, "$TTL") || list_begins(&line, "$ORIGIN")) {
        return 1;
    }

    for (i = 0; i < 4 && list_word(&line, &word); i++) {
        if (i != 0 && (list_equals(&word, "CNAME") || list_equals(&word, "SOA")
                       || list_equals(&word, "NS") || list_equals(&word, "A")
                       || list_equals(&word, "AAAA")
                       || list_equals(&word, "TXT")))
        {
            return 1;
        }
    }

    return 0;
}


static void
count(counts_t *n, bloom_key_t line)
{
    bloom_key_t  word, rest;

    list_trim(&line);

    if (line.len == 0 || list_begins(&line, ";")) {
        return;
    }

    if (list_adblock_is_rule(&line)) {
        n->adblock++;
        n->lines++;
        return;
    }

    if (list_begins(&line, "!")) {
        n->remarks++;
        return;
    }

    if (list_begins(&line, "#")) {
        return;
    }

    n->lines++;
    rest = line;
    list_cut_comment(&rest);
    (void) list_word(&rest, &word);
    list_trim(&rest);

    n->json += list_begins(&line, "{\"key\":");
    n->dnsmasq += list_begins(&line, "address=/")
                  || list_begins(&line, "server=/")
                  || list_begins(&line, "local=/");
    n->hosts += rest.len != 0 && list_is_address(&word);
    n->rpz += is_rpz(line);

    if (rest.len == 0) {
        if (list_scheme(&word) != 0) {
            n->urls++;

        } else if (is_name(&word)) {
            n->names += !list_has(&word, '/');
            n->urls += list_has(&word, '/');
        }
    }
}


static int
most(unsigned part, unsigned all)
{
    return all != 0 && part >= all - all / 10;
}


/* Returns what a file is that is no list, or NULL. */
static const char *
why_none(const uint8_t *data, size_t len)
{
    size_t       i, controls;
    bloom_key_t  text;

    for (i = 0, controls = 0; i < len; i++) {
        controls += data[i] < ' ' && data[i] != '\t' && data[i] != '\n'
                    && data[i] != '\r';
    }

    if (controls != 0 && (memchr(data, '\0', len) || controls > len / 100)) {
        return "has binary data";
    }

    text.data = data;
    text.len = len;

    do {
        while (list_begins(&text, "\n")) {
            list_skip(&text, 1);
        }

        list_trim(&text);
    } while (list_begins(&text, "\n"));

    return text.len == 0 ? "is empty"
           : text.data[0] == '<' ? "is a web page or XML" : NULL;
}


/* Returns the name of the format that the counts stand for, or NULL. */
static const char *
judge(const counts_t *n)
{
    if (most(n->json, n->lines)) {
        return "json";
    }

    if (most(n->dnsmasq, n->lines)) {
        return "dnsmasq";
    }

    if (most(n->hosts, n->lines)) {
        return "hosts";
    }

    /* a generic rule of Adblock lists, such as -ads-, looks like nothing */

    if ((n->adblock != 0 && n->adblock + n->names + n->hosts > n->lines / 2)
        || (n->remarks != 0 && n->names + n->hosts + n->adblock != 0
            && most(n->names + n->hosts + n->adblock, n->lines)))
    {
        return "adblock";
    }

    if (most(n->rpz, n->lines) || (n->rpz > 4 && n->rpz > n->lines / 2)) {
        return "rpz";
    }

    return most(n->names + n->urls, n->lines) ? "lines" : NULL;
}


/* The formats that a list without the header of a csv can have.  Names are
 * lines, unless there are rules. */
static const char *const  formats[] = { "lines", "hosts", "dnsmasq", "rpz",
                                        "json", "adblock" };

#define FORMATS  (sizeof(formats) / sizeof(formats[0]))


/* Returns how many lines fit one of the formats. */
static unsigned
fitting(const counts_t *n, size_t format)
{
    const unsigned  lines[FORMATS] = {
        n->names + n->urls, n->hosts, n->dnsmasq, n->rpz, n->json,
        n->adblock + n->names + n->hosts
    };

    return lines[format];
}


/* Returns the format that most lines fit, and stores how many do. */
static size_t
closest(const counts_t *n, unsigned *lines)
{
    size_t  i, best;

    *lines = 0;

    for (i = 0, best = 0; i < FORMATS; i++) {
        if (fitting(n, i) > *lines
            && (i != FORMATS - 1 || n->adblock + n->remarks != 0))
        {
            *lines = fitting(n, i);
            best = i;
        }
    }

    return best;
}


/* Stores which line is the first that does not fit the closest format.
 * Returns NULL. */
static const char *
refuse_line(char why[LIST_GUESS_WHY], const counts_t *n, bloom_key_t text)
{
    char         shown[KEYFORM_SHOWN];
    size_t       format;
    counts_t     one;
    unsigned     lines;
    uint64_t     number;
    bloom_key_t  line;

    format = closest(n, &lines);
    number = 0;

    do {
        (void) list_until(&text, &line, '\n');
        list_trim(&line);
        number++;

        memset(&one, 0, sizeof(one));
        count(&one, line);
    } while (text.len != 0 && (one.lines == 0 || fitting(&one, format) != 0));

    (void) keyform_show(shown, &line);

    if (lines == 0) {
        snprintf(why, LIST_GUESS_WHY, "line %" PRIu64 ": \"%s\" has none of "
                 "the formats that --from auto knows: " KNOWN, number, shown);

    } else {
        snprintf(why, LIST_GUESS_WHY, "line %" PRIu64 ": \"%s\" does not fit "
                 "--from %s, and too few of the lines do (%u of %u); --from "
                 "auto knows " KNOWN, number, shown, formats[format], lines,
                 n->lines);
    }

    return NULL;
}


/* Stores why the file is refused.  Returns NULL. */
static const char *
refuse(char why[LIST_GUESS_WHY], const char *reason)
{
    snprintf(why, LIST_GUESS_WHY, "%s", reason);

    return NULL;
}


const char *
list_guess(const uint8_t *data, size_t len, char why[LIST_GUESS_WHY])
{
    char          refused[LIST_WHY];
    counts_t      n;
    list_csv_t    csv;
    bloom_key_t   text, line;
    const char   *format, *none;
    list_begin_t  with;

    none = why_none(data, len);

    if (none != NULL) {
        return refuse(why, none);
    }

    memset(&n, 0, sizeof(n));
    text.data = data;
    text.len = len;

    while (text.len != 0) {
        (void) list_until(&text, &line, '\n');
        count(&n, line);
    }

    if (n.lines == 0) {
        return refuse(why, "has only comments");
    }

    with.column = NULL;
    with.keys = LIST_URLS;
    with.data = data;
    with.len = len;
    with.why = refused;
    memset(&csv, 0, sizeof(csv));

    if (list_csv.begin(&csv, &with) == 0) {
        return list_csv_format(&csv);
    }

    format = judge(&n);

    if (format == NULL && list_csv_is_table(&csv)) {
        return refuse(why, refused);
    }

    text.data = data;
    text.len = len;

    return format != NULL ? format : refuse_line(why, &n, text);
}
