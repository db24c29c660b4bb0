/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file takes patterns of Adblock-style lists apart.
 */

#include "bloom_host.h"
#include "list_adblock_pattern.h"

/* The root and three directories in it: the directories of a URL that are
 * looked up (bloom_url.h). */
#define DIRECTORIES  4

#define NOT_HOST     "does not begin with a host"
#define BEGINNING    "is only the beginning of a host"


/* Returns 1 for a pattern that is only a host, which stands for ||host^. */
static int
is_bare_host(const bloom_key_t *line)
{
    if (list_is_address(line)) {
        return 1;
    }

    return list_is_name(line) && line->len >= 3
           && list_has(line, '.') && line->data[0] != '.'
           && line->data[0] != '-' && line->data[0] != '_'
           && !list_ends(line, '.') && !list_ends(line, '-')
           && !list_ends(line, '_');
}


/* Returns 1 for a regular expression. */
static int
is_expression(const bloom_key_t *pattern)
{
    return pattern->len > 2 && pattern->data[0] == '/'
           && list_ends(pattern, '/');
}


/* Removes the anchor of a pattern.  Returns NULL, or the reason to skip it. */
static const char *
cut_anchor(adblock_pattern_t *to, bloom_key_t *pattern)
{
    if (list_begins(pattern, "||")) {
        list_skip(pattern, 2);

        return list_scheme(pattern) == 0
               ? NULL : "has a scheme behind ||, so it matches nothing";
    }

    if (list_begins(pattern, "|http://") || list_begins(pattern, "|https://")) {
        return "is for one scheme, and a key is for all";
    }

    to->whole = 1;

    return is_bare_host(pattern) ? NULL : NOT_HOST;
}


/* Removes what may follow the URL of a pattern: *, | and ^. */
static void
cut_end(adblock_pattern_t *to, bloom_key_t *pattern)
{
    while (list_ends(pattern, '*')) {
        pattern->len--;
    }

    if (list_ends(pattern, '|')) {
        pattern->len--;
        to->ended = 1;
    }

    if (list_ends(pattern, '^')) {
        pattern->len--;
        to->whole = 1;
    }
}


/* Divides a pattern into host and path. */
static void
divide(adblock_pattern_t *to, const bloom_key_t *pattern)
{
    size_t  i;

    for (i = 0; i < pattern->len; i++) {
        if (pattern->data[i] == '/' || pattern->data[i] == '?') {
            break;
        }
    }

    to->host = *pattern;
    to->host.len = i;
    to->path = *pattern;
    list_skip(&to->path, i);
}


/* Checks a host without ^ behind it: that may be all of the host, or not. */
static int
is_beginning(const bloom_key_t *last)
{
    return last->len < 2 || list_ends(last, '-')
           || bloom_is_digit(last->data[0]);
}


/* Returns 1 for a part of an IPv4 address, which the form host completes. */
static int
is_part_of_address(const bloom_key_t *host, const bloom_key_t *last)
{
    size_t    i;
    unsigned  dots;

    for (i = 0; i < last->len; i++) {
        if (!bloom_is_digit(last->data[i])) {
            return 0;
        }
    }

    for (i = 0, dots = 0; i < host->len; i++) {
        dots += host->data[i] == '.';
    }

    return dots != 3;
}


/* Returns 1 for a host with a port; IPv6 has several colons, or brackets. */
static int
has_port(const bloom_key_t *host)
{
    const uint8_t  *colon;

    colon = memchr(host->data, ':', host->len);

    return colon != NULL
           && (list_begins(host, "[")
               ? !list_ends(host, ']')
               : colon == memrchr(host->data, ':', host->len));
}


/* Checks the host of a pattern.  Returns NULL, or the reason to skip it. */
static const char *
check_host(const adblock_pattern_t *pattern)
{
    int           open;
    size_t        i;
    bloom_key_t   last;
    const char   *why;

    if (pattern->host.len == 0 || list_begins(&pattern->host, ".")
        || list_has(&pattern->host, '@'))
    {
        return NOT_HOST;
    }

    if (has_port(&pattern->host)) {
        return "is for one port, and a key is for all";
    }

    for (i = pattern->host.len;
         i != 0 && pattern->host.data[i - 1] != '.';
         i--)
    {
        /* void */
    }

    last = pattern->host;
    list_skip(&last, i);
    open = pattern->path.len == 0 && !pattern->whole;

    if (last.len == 0 || (open && is_beginning(&last)
                          && !list_is_address(&pattern->host))
        || is_part_of_address(&pattern->host, &last))
    {
        return BEGINNING;
    }

    why = list_domain(&pattern->host);

    return why != NULL && open ? BEGINNING : why;
}


/* Returns why a path without its query is not what keys have, or NULL. */
static const char *
check_slashes(bloom_key_t path)
{
    bloom_key_t  part;

    if (path.len > 1 && list_ends(&path, '/')
        && path.data[path.len - 2] == '/')
    {
        return "ends with //, which keys have as /";
    }

    while (list_until(&path, &part, '/') || part.len != 0) {
        if (list_equals(&part, ".") || list_equals(&part, "..")) {
            return "has . or .. in its path, so it matches nothing";
        }
    }

    return NULL;
}


/* Returns 1 for a directory so deep that the URLs in it are not looked up as
 * being in it. */
static int
is_deep(const bloom_key_t *path)
{
    size_t    i;
    unsigned  directories;

    for (i = 0, directories = 0; i < path->len; i++) {
        directories += path->data[i] == '/'
                       && (i == 0 || path->data[i - 1] != '/');
    }

    return directories > DIRECTORIES;
}


/* Checks the end of a pattern.  Returns NULL, or the reason to skip it. */
static const char *
check_end(const adblock_pattern_t *pattern)
{
    int                 query;
    const bloom_key_t  *path;

    path = &pattern->path;
    query = list_has(path, '?');

    if (pattern->ended && !query) {
        return "is for a URL without a query, and a key is for any query";
    }

    if (path->len == 0) {
        return NULL;
    }

    if (list_ends(path, '?')) {
        return "is for any query, and a key without a query is for the page "
               "too";
    }

    if (list_ends(path, '/') && !query) {
        if (pattern->whole) {
            return "is for the own page of a directory, and a key is for all "
                   "in it";
        }

        return path->len > 1 && is_deep(path)
               ? "is a directory so deep that no lookup finds what is in it"
               : NULL;
    }

    if (pattern->whole || pattern->ended) {
        return NULL;
    }

    if (query && !list_has(path, '=')) {
        return "is only the beginning of a query";
    }

    return memchr("-._=&%~,;:", path->data[path->len - 1], 10) != NULL
           ? "is only the beginning of a name" : NULL;
}


/* Checks the path of a pattern.  Returns NULL, or the reason to skip it. */
static const char *
check_path(const adblock_pattern_t *pattern, list_keys_e keys)
{
    const char         *why;
    bloom_key_t         rest, directories;
    const bloom_key_t  *path;

    path = &pattern->path;

    if (list_begins(path, "?")) {
        return "has a query without a path, so it matches nothing";
    }

    if (path->len > 1 && keys != LIST_URLS) {
        return "has a path; use --form url";
    }

    rest = *path;
    (void) list_until(&rest, &directories, '?');
    why = check_slashes(directories);

    return why != NULL ? why : check_end(pattern);
}


const char *
adblock_pattern_read(adblock_pattern_t *to, bloom_key_t pattern,
    list_keys_e keys)
{
    const char  *why;

    memset(to, 0, sizeof(*to));

    if (is_expression(&pattern)) {
        return "is a regular expression";
    }

    if (pattern.len > ADBLOCK_PATTERN_MAX) {
        return "has more than 1,024 bytes, which uBlock Origin ignores";
    }

    why = cut_anchor(to, &pattern);

    if (why != NULL) {
        return why;
    }

    cut_end(to, &pattern);

    if (list_begins(&pattern, "*.")) {
        return "is for subdomains, but not for their host";
    }

    if (list_has(&pattern, '^') || list_has(&pattern, '|')
        || list_has(&pattern, '*'))
    {
        return "has a wildcard";
    }

    if (list_has(&pattern, ' ') || list_has(&pattern, '\t')) {
        return "has a blank in it";
    }

    if (list_has(&pattern, '#') || list_has(&pattern, '\\')) {
        return "has # or \\, which no request for a page has";
    }

    divide(to, &pattern);

    why = check_host(to);

    return why != NULL ? why : check_path(to, keys);
}


/* Writes the host of a pattern that is only a host.  Returns its length; 0 if
 * the pattern has more. */
static size_t
write_host(uint8_t *buf, bloom_key_t pattern)
{
    size_t        i;
    bloom_host_t  host;

    if (list_begins(&pattern, "||")) {
        list_skip(&pattern, 2);
    }

    if (list_ends(&pattern, '^')) {
        pattern.len--;
    }

    if (!list_is_name(&pattern)) {
        return 0;
    }

    if (bloom_host_parse(&host, pattern.data, pattern.len) == NULL) {
        memcpy(buf, host.text, host.len);
        return host.len;
    }

    for (i = 0; i < pattern.len; i++) {
        buf[i] = bloom_lower(pattern.data[i]);
    }

    return pattern.len;
}


bloom_key_t
adblock_pattern_twin(uint8_t *buf, bloom_key_t pattern,
    const adblock_options_t *options, int exempts, unsigned part)
{
    size_t       i;
    bloom_key_t  twin;

    twin.data = buf;
    twin.len = 0;

    if (pattern.len > ADBLOCK_PATTERN_MAX) {
        return twin;
    }

    while (list_ends(&pattern, '*')) {
        pattern.len--;
    }

    buf[0] = (uint8_t) ('0' + part);
    buf[1] = exempts ? '@' : options->important ? '!' : '|';
    buf[2] = (uint8_t) options->party;
    memcpy(buf + 3, &options->not_types, sizeof(options->not_types));
    buf += 3 + sizeof(options->not_types);

    i = write_host(buf, pattern);

    if (i == 0) {
        for ( /* void */ ; i < pattern.len; i++) {
            buf[i] = bloom_lower(pattern.data[i]);
        }
    }

    twin.len = (size_t) (buf - twin.data) + i;

    return twin;
}
