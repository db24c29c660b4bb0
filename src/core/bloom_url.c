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


/* Returns where the query begins, or the end. */
static uint8_t *
query_or_end(uint8_t *p, uint8_t *end)
{
    uint8_t  *query;

    query = memchr(p, '?', (size_t) (end - p));

    return query == NULL ? end : query;
}


/* Replaces backslashes by slashes. */
static void
turn_backslashes(uint8_t *p, uint8_t *end)
{
    for ( /* void */ ;
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


/* Returns the length of the dot at p, which may be an escape: 1 or 3; 0 if
 * another byte is there. */
static size_t
dot_len(const uint8_t *p, const uint8_t *end)
{
    if (p < end && *p == '.') {
        return 1;
    }

    return end - p >= 3 && p[0] == '%' && p[1] == '2' && (p[2] | 0x20) == 'e'
           ? 3 : 0;
}


/* Returns 1 for the segment ".", 2 for "..", else 0. */
static unsigned
dots(const uint8_t *p, const uint8_t *end)
{
    size_t    len;
    unsigned  n;

    for (n = 0; n < 2 && (len = dot_len(p, end)) != 0; n++) {
        p += len;
    }

    return p == end ? n : 0;
}


/*
 * Resolves "." and ".." in the path p .. end in place, and returns its new end.
 * The path begins with a slash.  A dot may be an escape: browsers take it for a
 * dot before unescaping, and no escape is left after it.  An empty segment
 * counts as a segment: browsers keep it, and Safe Browsing's document resolves
 * dots before it merges slashes.
 */
static uint8_t *
resolve_dots(uint8_t *p, uint8_t *end)
{
    unsigned  n;
    uint8_t  *start, *out, *next;

    start = p;
    out = p;

    for ( /* void */ ; p < end; p = next) {

        for (next = p + 1; next < end && *next != '/'; next++) {
            /* void */
        }

        n = dots(p + 1, next);

        if (n == 0) {
            memmove(out, p, (size_t) (next - p));
            out += next - p;
            continue;
        }

        if (n == 2) {
            while (out > start && *--out != '/') {
                /* void */
            }
        }

        if (next == end) {
            *out++ = '/';
        }
    }

    return out;
}


/* Leaves out what repeats a slash in the path p .. end, in place.  Returns the
 * new end. */
static uint8_t *
merge_slashes(uint8_t *p, const uint8_t *end)
{
    uint8_t  *out;

    for (out = p; p < end; p++) {
        *out = *p;
        out += *p != '/' || p + 1 == end || p[1] != '/';
    }

    return out;
}


/*
 * Writes a path, with one slash for each run of slashes.  Segments of dots and
 * question marks in it, which only unescaping has brought to light, are written
 * such that they are read in the same way again.
 */
static uint8_t *
put_path(uint8_t *out, const uint8_t *p, const uint8_t *end)
{
    unsigned        n;
    const uint8_t  *next;

    if (p == end) {
        *out++ = '/';
    }

    for ( /* void */ ; p < end; p = next) {

        for (next = p + 1; next < end && *next != '/'; next++) {
            /* void */
        }

        if (next == p + 1 && next < end) {
            continue;                    /* another slash follows */
        }

        *out++ = '/';
        n = dots(++p, next);

        for ( /* void */ ; n != 0; n--) {
            out = (uint8_t *) memcpy(out, "%252E", 5) + 5;
            p = next;
        }

        for ( /* void */ ; p < next; p++) {
            out = *p == '?' ? bloom_put_escape(out, '?')
                            : bloom_put_escaped(out, *p);
        }
    }

    return out;
}


static uint8_t *
put_query(uint8_t *out, const uint8_t *p, const uint8_t *end)
{
    for ( /* void */ ; p < end; p++) {
        out = bloom_put_escaped(out, *p);
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


/* Ends a path.  A directory that is the whole path is left out of the
 * directories. */
static inline void
end_path(bloom_url_reading_t *reading, const uint8_t *path, const uint8_t *end)
{
    unsigned  n;

    n = reading->directories;
    reading->path_len = (size_t) (end - path);

    if (n != 0 && reading->directory[n - 1] == reading->path_len) {
        reading->directories--;
    }
}


/*
 * Reads a URL with a plain host and a canonical path and query, the common
 * case.  Returns 1, or 0 if this is not such a URL.
 */
static int
parse_clean(bloom_url_t *url, const uint8_t *p, size_t len, uint8_t *buf)
{
    uint8_t              *out, *path;
    bloom_host_t          host;
    const uint8_t        *end;
    bloom_url_reading_t  *reading;

    end = p + len;
    reading = &url->reading[0];
    reading->directories = 0;
    out = (uint8_t *) memcpy(buf, "http://", 7) + 7;

    if (len > 7 && memcmp(p, "http://", 7) == 0) {
        p += 7;

    } else if (len > 8 && memcmp(p, "https://", 8) == 0) {
        out = (uint8_t *) memcpy(buf, "https://", 8) + 8;
        p += 8;
    }

    url->canonical.data = buf;
    reading->key.data = out;
    url->readings = 1;

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
        reading->directory[reading->directories++] = 1;
    }

    for ( /* void */ ; p < end; p++) {

        if (clean[*p]) {
            *out++ = *p;

        } else if (*p == '/') {

            if (p + 1 < end && (p[1] == '/' || p[1] == '.')) {
                return 0;
            }

            *out++ = '/';

            if (reading->directories < BLOOM_URL_DIRECTORIES) {
                reading->directory[reading->directories++] =
                                                       (size_t) (out - path);
            }

        } else {
            break;
        }
    }

    end_path(reading, path, out);

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
    reading->key.len = (size_t) (out - reading->key.data);

    return 1;
}


/* Unescapes the rest of a URL in place.  Its authority ends at `path`; returns
 * where it ends now. */
static uint8_t *
unescape(parts_t *u, uint8_t *path)
{
    size_t    len;
    uint8_t  *end, *authority_end;

    authority_end = bloom_unescape(u->pos, path);
    end = bloom_unescape(path, u->end);
    len = (size_t) (end - path);

    memmove(authority_end, path, len);
    u->end = authority_end + len;

    return authority_end;
}


/* Resolves the path of p .. end, which may have a query, in place.  Returns the
 * new end. */
static uint8_t *
resolve_path(uint8_t *p, uint8_t *end)
{
    size_t    len;
    uint8_t  *query, *path_end;

    query = query_or_end(p, end);
    len = (size_t) (end - query);

    path_end = resolve_dots(p, query);
    memmove(path_end, query, len);

    return path_end + len;
}


/* Adds a reading with the canonical path p .. end. */
static bloom_url_reading_t *
add_reading(bloom_url_t *url, const uint8_t *p, const uint8_t *end)
{
    const uint8_t        *path;
    bloom_url_reading_t  *reading;

    reading = &url->reading[url->readings++];
    reading->directories = 0;

    for (path = p;
         reading->directories < BLOOM_URL_DIRECTORIES
         && (p = memchr(p, '/', (size_t) (end - p))) != NULL;
         p++)
    {
        reading->directory[reading->directories++] = (size_t) (p + 1 - path);
    }

    end_path(reading, path, end);

    return reading;
}


/* Writes a reading behind the host of `url` at `out`: the path, whose dots are
 * resolved, and the query. */
static void
put_reading(bloom_url_t *url, uint8_t *out, const uint8_t *p,
    const uint8_t *path_end, const uint8_t *query, const uint8_t *end)
{
    uint8_t              *path;
    bloom_url_reading_t  *reading;

    path = out;
    out = put_path(out, p, path_end);

    reading = add_reading(url, path, out);
    out = put_query(out, query, end);

    reading->key.data = path - url->host_len;
    reading->key.len = (size_t) (out - reading->key.data);
}


/* Writes a reading, of which p .. end has been unescaped. */
static void
put_resolved(bloom_url_t *url, uint8_t *out, uint8_t *p, uint8_t *end)
{
    uint8_t  *query;

    query = query_or_end(p, end);

    put_reading(url, out, p, resolve_dots(p, query), query, end);
}


/*
 * Writes the reading of a server, which unescapes what the browser resolved,
 * p .. end, and resolves again.  A server, unlike a browser, drops an empty
 * segment, because paths of files have no such segments.  A "?" that only
 * unescaping gives is a byte of a name, at least until dots are resolved.
 */
static void
put_server_reading(bloom_url_t *url, uint8_t *out, uint8_t *p, uint8_t *end)
{
    size_t    len;
    uint8_t  *query, *path_end;

    query = query_or_end(p, end);
    path_end = bloom_unescape(p, query);
    len = (size_t) (bloom_unescape(query, end) - query);

    turn_backslashes(p, path_end);
    path_end = resolve_dots(p, merge_slashes(p, path_end));
    memmove(path_end, query, len);

    put_resolved(url, out, p, path_end + len);
}


/* Writes the reading of a browser, which has resolved p .. end. */
static void
put_browser_reading(bloom_url_t *url, uint8_t *out, uint8_t *p, uint8_t *end)
{
    uint8_t  *query, *path_end;

    query = query_or_end(p, end);
    path_end = bloom_unescape(p, query);
    turn_backslashes(p, path_end);

    put_reading(url, out, p, path_end, query, bloom_unescape(query, end));
}


/*
 * Unescapes the rest of a URL whose scheme has been read.  Copies the path as
 * the client sent it to `raw` and sets *raw_end, or sets it to NULL if the path
 * has no escapes or moves.  Returns where the authority ends; NULL: no host.
 */
static uint8_t *
unescape_authority(parts_t *u, uint8_t *raw, uint8_t **raw_end)
{
    size_t    len;
    uint8_t  *path, *start;

    /* userinfo is skipped before escapes are decoded: browsers take all up to
     * the "@" of "http://good.example%2f@bad.example/" as userinfo */

    pass_userinfo(u);

    path = authority_end(u);
    len = (size_t) (u->end - path);
    *raw_end = NULL;

    if (memchr(path, '%', len) != NULL) {
        memcpy(raw, path, len);
        *raw_end = raw + len;
    }

    start = u->pos;
    path = unescape(u, path);
    turn_backslashes(u->pos, query_or_end(u->pos, u->end));

    /* after slashes comes a host, even if a colon follows it */

    if (!u->begun && pass_scheme(u) != 0) {
        return NULL;
    }

    pass_userinfo(u);

    if (u->pos != start || authority_end(u) != path) {

        /* unescaping has moved the host or its end, which browsers refuse */

        path = authority_end(u);
        *raw_end = NULL;
    }

    return path;
}


/* Writes the readings of a path with escapes behind the host at `host`: of
 * raw .. raw_end to a browser, and at `path` to a server. */
static void
put_both_readings(bloom_url_t *url, uint8_t *host, uint8_t *path, uint8_t *raw,
    uint8_t *raw_end)
{
    size_t    len;
    uint8_t  *out;

    raw_end = resolve_path(raw, raw_end);
    len = (size_t) (raw_end - raw);

    /* the server gets what the browser has resolved */

    memcpy(path, raw, len);

    put_browser_reading(url, host + url->host_len, raw, raw_end);

    out = host + url->reading[0].key.len;
    memcpy(out, host, url->host_len);

    put_server_reading(url, out + url->host_len, path, path + len);
}


static int
same_readings(const bloom_url_reading_t *a, const bloom_url_reading_t *b)
{
    return a->key.len == b->key.len && a->path_len == b->path_len
           && memcmp(a->key.data, b->key.data, a->key.len) == 0;
}


const char *
bloom_url_parse(bloom_url_t *url, const uint8_t *data, size_t len,
    uint8_t *buf)
{
    size_t         i;
    parts_t        u;
    uint8_t       *out, *host, *path, *raw, *raw_end;
    const char    *why;
    bloom_host_t   h;

    if (len > BLOOM_KEY_MAX) {
        return BLOOM_KEY_TOO_LONG;
    }

    if (parse_clean(url, data, len, buf)) {
        return NULL;
    }

    /* the buffer: the output; the path as it is in the URL; the URL */

    u.pos = buf + BLOOM_URL_ROOM(len) - len;
    u.end = copy_url(u.pos, data, data + len);
    u.scheme_len = 0;
    u.begun = 0;

    turn_backslashes(u.pos, query_or_end(u.pos, u.end));

    if (pass_scheme(&u) != 0) {
        return "has no host";
    }

    raw = buf + BLOOM_URL_ROOM(len) - 2 * len;
    path = unescape_authority(&u, raw, &raw_end);

    if (path == NULL) {
        return "has no host";
    }

    why = bloom_host_parse(&h, u.pos, (size_t) (path - u.pos));

    if (why != NULL) {
        return why;
    }

    out = buf;

    if (u.scheme_len == 0) {
        out = (uint8_t *) memcpy(out, "http", 4) + 4;
    }

    for (i = 0; i < u.scheme_len; i++) {
        *out++ = bloom_lower(u.scheme[i]);
    }

    out = (uint8_t *) memcpy(out, "://", 3) + 3;

    host = out;
    url->hosts = bloom_host_parents(url->host, &h, BLOOM_URL_HOSTS);
    out = bloom_host_write(out, &h, url->host, url->hosts);
    url->host_len = (size_t) (out - host);
    url->readings = 0;

    if (raw_end == NULL) {
        put_resolved(url, out, path, u.end);

    } else {
        put_both_readings(url, host, path, raw, raw_end);

        if (same_readings(&url->reading[0], &url->reading[1])) {
            url->readings = 1;
        }
    }

    url->canonical.data = buf;
    url->canonical.len = (size_t) (host - buf) + url->reading[0].key.len;

    return NULL;
}


/* Stores the lengths of the paths of a reading. */
static inline unsigned
path_lengths(size_t length[BLOOM_URL_PATHS], const bloom_url_t *url,
    const bloom_url_reading_t *reading)
{
    unsigned  i, n;

    n = 0;

    if (reading->key.len != url->host_len + reading->path_len) {
        length[n++] = reading->key.len - url->host_len;
    }

    length[n++] = reading->path_len;

    for (i = 0; i < reading->directories; i++) {
        length[n++] = reading->directory[i];
    }

    return n;
}


/* Adds the expressions of the second reading that are not among the n of the
 * first one, which has `paths` paths for each host. */
static unsigned
expand_second(bloom_key_t *expression, unsigned n, unsigned paths,
    unsigned *second, const bloom_url_t *url)
{
    size_t              path[BLOOM_URL_PATHS];
    unsigned            h, i, p, seconds, same[BLOOM_URL_PATHS];
    const bloom_key_t  *key;

    key = &url->reading[1].key;
    seconds = path_lengths(path, url, &url->reading[1]);

    for (p = 0; p < seconds; p++) {

        for (i = 0; i < paths; i++) {
            if (expression[i].len == url->host_len + path[p]
                && memcmp(expression[i].data, key->data, expression[i].len)
                   == 0)
            {
                break;
            }
        }

        same[p] = i;
    }

    *second = same[0] < paths ? same[0] : n;

    for (h = 0; h < url->hosts; h++) {
        for (p = 0; p < seconds; p++) {

            if (same[p] == paths) {
                expression[n].data = key->data + url->host[h];
                expression[n].len = url->host_len - url->host[h] + path[p];
                n++;
            }
        }
    }

    return n;
}


unsigned
bloom_url_expand(bloom_key_t expression[BLOOM_URL_EXPRESSIONS],
    unsigned *second, const bloom_url_t *url)
{
    size_t                      path[BLOOM_URL_PATHS];
    unsigned                    n, h, p, paths;
    const bloom_url_reading_t  *reading;

    reading = &url->reading[0];
    paths = path_lengths(path, url, reading);

    for (n = 0, h = 0; h < url->hosts; h++) {
        for (p = 0; p < paths; p++, n++) {
            expression[n].data = reading->key.data + url->host[h];
            expression[n].len = url->host_len - url->host[h] + path[p];
        }
    }

    *second = 0;

    return url->readings == 1 ? n : expand_second(expression, n, paths, second,
                                                  url);
}
