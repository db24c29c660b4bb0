/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A Redis URL names a key of a server:
 *
 *     redis://[[user:]password@]host[:port]/db/key        rediss:// with TLS
 *     unix://[[user:]password@]/path?db=N&key=key         a Unix socket
 *
 * The case of the scheme does not matter.  An @ in the password, the path or
 * the key is written as %40, a / in the password as %2F, a ? in the path as %3F
 * and a & in the key of a unix:// URL as %26.
 */

#ifndef REDIS_URL_H
#define REDIS_URL_H

#include <stddef.h>


typedef struct {
    char      *shown;                    /* the URL without the password */
    char      *path;                     /* of a Unix socket; NULL: a host */
    char      *host;
    char      *user;                     /* NULL: the URL has no user */
    char      *password;                 /* NULL: the URL has no password */
    char      *key;
    size_t     key_len;
    unsigned   port;
    unsigned   db;
    int        tls;
} redis_url_t;


/* Returns 1 if the text begins with a scheme of Redis, even if the rest is
 * invalid; else 0. */
int redis_url_is(const char *text);

/* Parses a text for which redis_url_is() returns 1.  Returns 0; or -1 if it is
 * invalid, with only url->shown set.  redis_url_free() frees it in both
 * cases. */
int redis_url_parse(redis_url_t *url, const char *text);

/* Parses a URL that names no key, and the database only if it is not 0, as
 * redis_url_parse() does. */
int redis_url_parse_server(redis_url_t *url, const char *text);

void redis_url_free(redis_url_t *url);


#endif /* REDIS_URL_H */
