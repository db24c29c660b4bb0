/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the keys of plain lists.
 */

#include "list_dnsmasq.h"
#include "list_no_key.h"
#include "list_text.h"


/* Returns the reason why a text without a scheme is a rule of another kind, or
 * NULL. */
static const char *
why_rule(const bloom_key_t *text)
{
    size_t       len;
    bloom_key_t  host;

    /* most texts have none of what follows */

    if (text->len == 0
        || (memchr("|@^(", text->data[0], 4) == NULL && !list_ends(text, '$')
            && !list_has(text, '\\') && !list_has(text, '*')))
    {
        return NULL;
    }

    if (list_begins(text, "||") || list_begins(text, "@@")) {
        return "is a rule of Adblock lists" LIST_USE_FROM "adblock";
    }

    for (len = 0; len < text->len; len++) {
        if (memchr("/?#", text->data[len], 3) != NULL) {
            break;
        }
    }

    host.data = text->data;
    host.len = len;

    if (list_begins(&host, "^") || list_begins(&host, "(")
        || list_ends(&host, '$')
        || memmem(host.data, host.len, "\\.", 2) != NULL)
    {
        return "is a regular expression";
    }

    list_cut_wildcard(&host);

    return list_has(&host, '*') ? "has a wildcard" : NULL;
}


/* Copies a URL without the "*." before its host. */
static void
copy_without_wildcard(list_line_t *at, size_t scheme)
{
    bloom_key_t  rest;

    rest = at->key;
    list_skip(&rest, scheme);
    list_cut_wildcard(&rest);

    memmove(at->buf, at->key.data, scheme);
    memmove(at->buf + scheme, rest.data, rest.len);

    at->key.data = at->buf;
    at->key.len = scheme + rest.len;
}


/* Takes the host of a URL that has no path but "/". */
static list_result_e
take_host(list_line_t *at, size_t scheme)
{
    bloom_key_t  rest;

    rest = at->key;
    list_skip(&rest, scheme);

    if (scheme == 0 && !list_has(&rest, '/')) {
        return LIST_KEY;
    }

    at->why = list_no_key(at->keys, &at->key);

    if (at->why != NULL) {
        return LIST_SKIPPED;                 /* its host alone would be a key */
    }

    (void) list_until(&rest, &at->key, '/');

    if (rest.len != 0 || list_has(&at->key, '?')) {
        return list_skipped(at, "has a path; use --form url");
    }

    return at->key.len != 0 ? LIST_KEY : list_bad(at, "has no host");
}


list_result_e
list_text_entry(list_line_t *at)
{
    size_t  scheme;

    scheme = list_scheme(&at->key);

    if (at->key.len > scheme + 2
        && memcmp(at->key.data + scheme, "*.", 2) == 0)
    {
        copy_without_wildcard(at, scheme);
    }

    return at->keys == LIST_HOSTS ? take_host(at, scheme) : LIST_KEY;
}


static list_result_e
next(list_line_t *at)
{
    const char  *element;

    if (at->step++ != 0) {
        return LIST_END;
    }

    list_trim(&at->line);

    if (at->line.len == 0) {
        return LIST_EMPTY;
    }

    if (list_begins(&at->line, "#") || list_begins(&at->line, "!")
        || (at->keys != LIST_ANY && list_begins(&at->line, ";")))
    {
        return LIST_COMMENT;
    }

    list_cut_comment(&at->line);
    at->key = at->line;

    if (at->keys == LIST_ANY) {
        return LIST_KEY;
    }

    at->why = list_scheme(&at->key) == 0 ? why_rule(&at->key) : NULL;

    if (at->why == NULL) {
        return list_text_entry(at);
    }

    element = list_no_key(at->keys, &at->key);
    at->why = element != NULL ? element : at->why;

    return LIST_SKIPPED;
}


static int
owns(const bloom_key_t *line)
{
    return why_rule(line) == NULL && !list_dnsmasq.owns(line);
}


const list_reader_t  list_text = {
    .name = "lines",
    .next = next,
    .owns = owns
};


static list_result_e
next_key(list_line_t *at)
{
    if (at->step++ != 0) {
        return LIST_END;
    }

    at->key = at->line;

    return at->key.len != 0 ? LIST_KEY : LIST_EMPTY;
}


const list_reader_t  list_keys = { .name = "keys", .next = next_key };
