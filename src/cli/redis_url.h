
/*
 * A Redis URL names a key of a server:
 *
 *     redis://[[user:]password@]host[:port]/db/key        rediss:// with TLS
 */

#ifndef REDIS_URL_H
#define REDIS_URL_H

#include <stddef.h>


typedef struct {
    char      *shown;                    /* the URL without the password */
    char      *host;
    char      *user;                     /* NULL: the URL has no user */
    char      *password;                 /* NULL: the URL has no password */
    char      *key;
    size_t     key_len;
    unsigned   port;
    unsigned   db;
    int        tls;
} redis_url_t;


/* Parses a URL that begins with redis:// or rediss://.  Returns 0, or -1 if it
 * is invalid; redis_url_free() frees it in both cases. */
int redis_url_parse(redis_url_t *url, const char *text);
void redis_url_free(redis_url_t *url);

/* Returns the URL without the password, for messages; to be freed. */
char *redis_url_shown(const char *text);


#endif /* REDIS_URL_H */
