/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file parses the URL of a Redis server's key.
 */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#include "cli.h"
#include "redis_url.h"
#include "url.h"

#define DB_MAX  1000000
#define PORT    6379


/* Returns a copy of `len` bytes with %41 replaced by A and so on. */
static char *
unescape(const char *text, size_t len, size_t *out_len)
{
    int    n;
    char  *part, *copy;

    /* libcurl takes a length of 0 for that of the whole text */

    n = 0;
    part = len != 0 ? curl_easy_unescape(NULL, text, (int) len, &n)
                    : curl_easy_unescape(NULL, "", 0, &n);

    if (part == NULL) {
        cli_no_memory(len);
    }

    copy = cli_alloc((size_t) n + 1);
    memcpy(copy, part, (size_t) n + 1);
    curl_free(part);

    if (out_len != NULL) {
        *out_len = (size_t) n;
    }

    return copy;
}


/* Parses a decimal number up to `max` that ends at `end`.  Returns 0 or -1. */
static int
parse_small(const char *p, const char *end, unsigned max, unsigned *value)
{
    if (p == end) {
        return -1;
    }

    for (*value = 0; p != end; p++) {

        if (*p < '0' || *p > '9') {
            return -1;
        }

        *value = *value * 10 + (unsigned) (*p - '0');

        if (*value > max) {
            return -1;
        }
    }

    return 0;
}


/* Parses the user and the password.  Returns where the host or the path begins,
 * or NULL. */
static const char *
parse_user(redis_url_t *url, const char *text)
{
    const char  *at, *end, *colon;

    end = text + strcspn(text, "/");
    at = memrchr(text, '@', (size_t) (end - text));

    /* if the password had a /, the host would be a part of the password, and a
     * lookup of its address would show it to name servers */

    if (strchr(end, '@') != NULL) {
        return NULL;
    }

    if (at == NULL) {
        return text;
    }

    colon = memchr(text, ':', (size_t) (at - text));

    if (colon != NULL && colon != text) {
        url->user = unescape(text, (size_t) (colon - text), NULL);
    }

    text = colon != NULL ? colon + 1 : text;
    url->password = unescape(text, (size_t) (at - text), NULL);

    return at + 1;
}


/* Parses the host and the port.  Returns where they end, or NULL. */
static const char *
parse_host(redis_url_t *url, const char *host)
{
    const char  *end, *colon;

    end = host + strcspn(host, "/");

    if (*host == '[') {
        colon = memchr(host, ']', (size_t) (end - host));

        if (colon == NULL) {
            return NULL;
        }

        url->host = strndup(host + 1, (size_t) (colon - host - 1));
        colon++;

    } else {
        colon = memchr(host, ':', (size_t) (end - host));
        colon = colon ? colon : end;
        url->host = strndup(host, (size_t) (colon - host));
    }

    url->port = PORT;

    if (url->host == NULL || url->host[0] == '\0'
        || (colon != end
            && (*colon != ':'
                || parse_small(colon + 1, end, 65535, &url->port) != 0)))
    {
        return NULL;
    }

    return end;
}


/* Parses the path of a socket, and the database and the key after it.  Returns
 * 0 or -1. */
static int
parse_path(redis_url_t *url, const char *text)
{
    int          has_db;
    size_t       len;
    const char  *end;

    if (*text != '/') {
        return -1;
    }

    end = text + strcspn(text, "?");
    url->path = unescape(text, (size_t) (end - text), &len);

    if (strlen(url->path) != len) {
        return -1;
    }

    for (has_db = 0; *end != '\0'; /* void */ ) {

        text = end + 1;
        end = text + strcspn(text, "&");

        if (strncmp(text, "db=", 3) == 0 && !has_db) {
            has_db = 1;

            if (parse_small(text + 3, end, DB_MAX, &url->db) != 0) {
                return -1;
            }

        } else if (strncmp(text, "key=", 4) == 0 && text + 4 != end
                   && url->key == NULL)
        {
            url->key = unescape(text + 4, (size_t) (end - text - 4),
                                &url->key_len);

        } else {
            return -1;
        }
    }

    return 0;
}


/* Parses a URL up to the port, or a whole URL of a Unix socket.  Returns where
 * it ends, or NULL. */
static const char *
parse_server(redis_url_t *url, const char *text)
{
    const char  *rest;

    memset(url, 0, sizeof(*url));

    url->shown = url_shown(text);
    url->tls = strncasecmp(text, "rediss:", 7) == 0;

    rest = text + strcspn(text, ":") + 1;
    rest = strncmp(rest, "//", 2) == 0 ? parse_user(url, rest + 2) : NULL;

    if (rest == NULL) {
        return NULL;
    }

    if (strncasecmp(text, "unix:", 5) != 0) {
        return parse_host(url, rest);
    }

    return parse_path(url, rest) == 0 ? rest + strlen(rest) : NULL;
}


int
redis_url_parse(redis_url_t *url, const char *text)
{
    const char  *end, *slash;

    end = parse_server(url, text);

    if (end == NULL) {
        return -1;
    }

    if (url->path != NULL) {
        return url->key != NULL ? 0 : -1;
    }

    slash = *end == '/' ? strchr(end + 1, '/') : NULL;

    if (slash == NULL
        || parse_small(end + 1, slash, DB_MAX, &url->db) != 0
        || slash[1] == '\0')
    {
        return -1;
    }

    url->key = unescape(slash + 1, strlen(slash + 1), &url->key_len);

    return 0;
}


int
redis_url_parse_server(redis_url_t *url, const char *text)
{
    const char  *end;

    end = parse_server(url, text);

    if (end == NULL || url->key != NULL) {
        return -1;
    }

    return *end == '\0' || end[1] == '\0' ? 0
           : parse_small(end + 1, end + strlen(end), DB_MAX, &url->db);
}


void
redis_url_free(redis_url_t *url)
{
    free(url->shown);
    free(url->path);
    free(url->host);
    free(url->user);
    free(url->password);
    free(url->key);
}


int
redis_url_is(const char *text)
{
    return strncasecmp(text, "redis:", 6) == 0
           || strncasecmp(text, "rediss:", 7) == 0
           || strncasecmp(text, "unix:", 5) == 0;
}
