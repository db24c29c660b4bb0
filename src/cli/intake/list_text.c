/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the keys of plain lists.
 */

#include "list_text.h"


/* Returns 1 for a range of addresses, such as 192.0.2.0/24. */
static int
is_range(const bloom_key_t *text)
{
    bloom_key_t  rest, address;

    rest = *text;

    if (!list_until(&rest, &address, '/') || rest.len == 0 || rest.len > 3
        || !list_is_address(&address))
    {
        return 0;
    }

    while (rest.len != 0 && bloom_is_digit(rest.data[0])) {
        list_skip(&rest, 1);
    }

    return rest.len == 0;
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

    if (is_range(&at->key)) {
        return list_skipped(at, "is a range of addresses");
    }

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
    if (at->step++ != 0) {
        return LIST_END;
    }

    list_trim(&at->line);

    if (at->line.len == 0) {
        return LIST_EMPTY;
    }

    if (list_begins(&at->line, "#") || list_begins(&at->line, "!")) {
        return LIST_COMMENT;
    }

    list_cut_comment(&at->line);
    at->key = at->line;

    return at->keys == LIST_ANY ? LIST_KEY : list_text_entry(at);
}


const list_reader_t  list_text = { .name = "lines", .next = next };


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
