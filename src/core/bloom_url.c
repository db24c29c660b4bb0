/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A URL whose path and query are canonical already, the common case, is copied
 * in one pass; any other is rewritten step by step.
 */

#include <string.h>

#include "bloom_ascii.h"
#include "bloom_escape.h"
#include "bloom_host.h"
#include "bloom_url.h"


/* The state of parsing a URL, in memory that may be written to. */
typedef struct {
    uint8_t  *pos;                       /* start of the rest */
    uint8_t  *end;
    uint8_t  *scheme;
    size_t    scheme_len;                /* 0: no scheme, read as http */
    int       begun;                     /* a scheme or slashes were read */
} parts_t;


/* Copies a URL without its fragment, tabs, line ends and surrounding spaces. */
static uint8_t *
copy_url(uint8_t *dst, const uint8_t *p, const uint8_t *end)
{
    while (p < end && *p <= ' ') {
        p++;
    }

    while (p < end && end[-1] <= ' ') {
        end--;
    }

    for ( /* void */ ; p < end && *p != '#'; p++) {
        if (*p != '\t' && *p != '\r' && *p != '\n') {
            *dst++ = *p;
        }
    }

    return dst;
}


/* Replaces backslashes before the query by slashes. */
static void
turn_backslashes(parts_t *u)
{
    uint8_t  *p, *end;

    end = memchr(u->pos, '?', (size_t) (u->end - u->pos));
    end = end == NULL ? u->end : end;

    for (p = u->pos;
         (p = memchr(p, '\\', (size_t) (end - p))) != NULL;
         p++)
    {
        *p = '/';
    }
}


/* Returns 1 for a scheme after which browsers accept any number of slashes. */
static int
is_special(const uint8_t *p, size_t len)
{
    size_t       i, n;
    const char  *name;

    static const char  names[] = "http\0https\0ftp\0ws\0wss\0";

    for (name = names; *name != '\0'; name += n + 1) {
        n = strlen(name);

        for (i = 0; i < n && n == len; i++) {
            if (bloom_lower(p[i]) != (uint8_t) name[i]) {
                break;
            }
        }

        if (i == n) {
            return 1;
        }
    }

    return 0;
}


/* Returns 1 if p .. end begins with a port, which may be empty, and the path,
 * the query or the end of the URL follows. */
static int
is_port(const uint8_t *p, const uint8_t *end)
{
    while (p < end && bloom_is_digit(*p)) {
        p++;
    }

    return p == end || *p == '/' || *p == '?';
}


/*
 * Skips the scheme, if there is one, and the slashes before the host.  Returns
 * -1 if no host can follow.
 */
static int
pass_scheme(parts_t *u)
{
    uint8_t  *p;

    for (p = u->pos; p < u->end; p++) {
        if (!bloom_is_alpha(*p)
            && (p == u->pos || (!bloom_is_digit(*p) && *p != '+' && *p != '-'
                                && *p != '.')))
        {
            break;
        }
    }

    if (p > u->pos && p < u->end && *p == ':') {
        u->scheme = u->pos;
        u->scheme_len = (size_t) (p - u->pos);
        p++;

        if (is_special(u->scheme, u->scheme_len)) {
            u->begun = 1;

            while (p < u->end && *p == '/') {
                p++;
            }

            u->pos = p;
            return 0;
        }

        if (u->end - p >= 2 && p[0] == '/' && p[1] == '/') {
            u->begun = 1;
            u->pos = p + 2;
            return 0;
        }

        u->scheme_len = 0;

        /* "example.com:80/" */

        return is_port(p, u->end) ? 0 : -1;
    }

    if (u->pos < u->end && *u->pos == '/') {

        if (u->end - u->pos < 2 || u->pos[1] != '/') {
            return -1;                   /* "/path" */
        }

        u->begun = 1;

        while (u->pos < u->end && *u->pos == '/') {
            u->pos++;
        }
    }

    return 0;
}


static uint8_t *
authority_end(const parts_t *u)
{
    uint8_t  *p;

    for (p = u->pos; p < u->end && *p != '/' && *p != '?'; p++) {
        /* void */
    }

    return p;
}


static void
pass_userinfo(parts_t *u)
{
    uint8_t  *p, *end;

    end = authority_end(u);

    for (p = end; p > u->pos; p--) {
        if (p[-1] == '@') {
            u->pos = p;
            return;
        }
    }
}


/*
 * Resolves "." and ".." in the path p .. end in place, and returns its new end.
 * The path begins with a slash.  An empty component counts as a component,
 * because Safe Browsing's document resolves dots before it merges slashes.
 */
static uint8_t *
resolve_dots(uint8_t *p, uint8_t *end)
{
    size_t    len;
    uint8_t  *start, *out, *next;

    start = p;
    out = p;

    for ( /* void */ ; p < end; p = next) {

        for (next = p + 1; next < end && *next != '/'; next++) {
            /* void */
        }

        len = (size_t) (next - p - 1);

        if (len == 1 && p[1] == '.') {
            /* void */

        } else if (len == 2 && p[1] == '.' && p[2] == '.') {

            while (out > start && *--out != '/') {
                /* void */
            }

        } else {
            memmove(out, p, len + 1);
            out += len + 1;
            continue;
        }

        if (next == end) {
            *out++ = '/';
        }
    }

    return out;
}


/*
 * Writes the path, with one slash for each run of slashes.  The output never
 * overtakes the input, which is at the end of the same buffer: see
 * BLOOM_URL_ROOM.
 */
static uint8_t *
put_path(uint8_t *out, const uint8_t *p, const uint8_t *end)
{
    uint8_t  c, last;

    if (p == end) {
        *out++ = '/';
    }

    for (last = 0; p < end; p++, last = c) {
        c = *p;

        if (c != '/' || last != '/') {
            out = bloom_put_escaped(out, c);
        }
    }

    return out;
}


/* Bytes that stay as they are anywhere in a path or a query: printable ASCII
 * without the bytes that have a meaning.  "/" and "?" are treated apart. */
static const uint8_t  clean[256] = {
    ['!'] = 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0,
    ['0'] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0,
    ['@'] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    ['P'] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1,
    ['`'] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    ['p'] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0
};


/*
 * Reads a URL with a plain host and a canonical path and query, the common
 * case.  Returns 1, or 0 if this is not such a URL.
 */
static int
parse_clean(bloom_url_t *url, const uint8_t *p, size_t len, uint8_t *buf)
{
    uint8_t        *out, *path;
    bloom_host_t    host;
    const uint8_t  *end;

    end = p + len;
    out = (uint8_t *) memcpy(buf, "http://", 7) + 7;

    if (len > 7 && memcmp(p, "http://", 7) == 0) {
        p += 7;

    } else if (len > 8 && memcmp(p, "https://", 8) == 0) {
        out = (uint8_t *) memcpy(buf, "https://", 8) + 8;
        p += 8;
    }

    url->canonical.data = buf;
    url->key.data = out;

    /* what looks like a host before a colon may be a scheme */

    p = bloom_host_scan(&host, p, end);

    if (p == NULL || (p < end && *p != '/' && *p != '?')) {
        return 0;
    }

    memcpy(out, host.text, host.len);
    url->host_len = host.len;
    url->hosts = bloom_host_parents(url->host, &host, BLOOM_URL_HOSTS);

    out += host.len;
    path = out;

    if (p == end || *p == '?') {
        *out++ = '/';
    }

    for ( /* void */ ; p < end; p++) {

        if (clean[*p]) {
            *out++ = *p;

        } else if (*p == '/') {

            if (p + 1 < end && (p[1] == '/' || p[1] == '.')) {
                return 0;
            }

            *out++ = '/';

        } else {
            break;
        }
    }

    url->path_len = (size_t) (out - path);

    if (p < end && *p != '?') {
        return 0;
    }

    for ( /* void */ ; p < end; p++) {

        if (!clean[*p] && *p != '/' && *p != '?') {
            return 0;
        }

        *out++ = *p;
    }

    url->canonical.len = (size_t) (out - buf);
    url->key.len = (size_t) (out - url->key.data);

    return 1;
}


const char *
bloom_url_parse(bloom_url_t *url, const uint8_t *data, size_t len,
    uint8_t *buf)
{
    size_t         i;
    parts_t        u;
    uint8_t       *out, *query, *path_end, *path, *host;
    const char    *why;
    bloom_host_t   h;

    if (len > BLOOM_URL_MAX) {
        return "is longer than 65535 bytes";
    }

    if (parse_clean(url, data, len, buf)) {
        return NULL;
    }

    /* the input is copied to the end of the buffer, the output begins at its
     * start */

    u.pos = buf + BLOOM_URL_ROOM(len) - len;
    u.end = copy_url(u.pos, data, data + len);
    u.scheme_len = 0;
    u.begun = 0;

    turn_backslashes(&u);

    /* userinfo is skipped before escapes are decoded: browsers take all up to
     * the "@" of "http://good.example%2f@bad.example/" as userinfo */

    if (pass_scheme(&u) != 0) {
        return "has no host";
    }

    pass_userinfo(&u);
    u.end = bloom_unescape(u.pos, u.end);
    turn_backslashes(&u);

    /* after slashes comes a host, even if a colon follows it */

    if (!u.begun && pass_scheme(&u) != 0) {
        return "has no host";
    }

    pass_userinfo(&u);

    path = authority_end(&u);
    why = bloom_host_parse(&h, u.pos, (size_t) (path - u.pos));

    if (why != NULL) {
        return why;
    }

    query = memchr(path, '?', (size_t) (u.end - path));
    path_end = resolve_dots(path, query == NULL ? u.end : query);

    out = buf;

    if (u.scheme_len == 0) {
        out = (uint8_t *) memcpy(out, "http", 4) + 4;
    }

    for (i = 0; i < u.scheme_len; i++) {
        *out++ = bloom_lower(u.scheme[i]);
    }

    out = (uint8_t *) memcpy(out, "://", 3) + 3;

    url->canonical.data = buf;
    url->key.data = out;

    host = out;
    url->hosts = bloom_host_parents(url->host, &h, BLOOM_URL_HOSTS);
    out = bloom_host_write(out, &h, url->host, url->hosts);
    url->host_len = (size_t) (out - host);

    out = put_path(out, path, path_end);
    url->path_len = (size_t) (out - host) - url->host_len;

    for ( /* void */ ; query != NULL && query < u.end; query++) {
        out = bloom_put_escaped(out, *query);
    }

    url->canonical.len = (size_t) (out - buf);
    url->key.len = (size_t) (out - host);

    return NULL;
}


unsigned
bloom_url_expand(bloom_key_t expression[BLOOM_URL_EXPRESSIONS],
    const bloom_url_t *url)
{
    size_t          whole, path[BLOOM_URL_PATHS];
    unsigned        n, h, p, paths, directories;
    const uint8_t  *start, *slash, *end;

    /* the lengths of the paths */

    paths = 0;
    whole = url->path_len;

    if (url->key.len != url->host_len + whole) {
        path[paths++] = url->key.len - url->host_len;
    }

    path[paths++] = whole;

    /* skip a directory that is the whole path, which is listed already */

    start = url->key.data + url->host_len;
    end = start + whole - 1;
    slash = start;

    for (directories = 0; directories < 4; directories++) {
        slash = memchr(slash, '/', (size_t) (end - slash));

        if (slash == NULL) {
            break;
        }

        path[paths++] = (size_t) (++slash - start);
    }

    for (n = 0, h = 0; h < url->hosts; h++) {
        for (p = 0; p < paths; p++, n++) {
            expression[n].data = url->key.data + url->host[h];
            expression[n].len = url->host_len - url->host[h] + path[p];
        }
    }

    return n;
}
