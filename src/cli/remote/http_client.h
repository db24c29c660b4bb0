/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An HTTP client sends requests to a server and receives whole responses, in
 * bounded time and memory.
 *
 * The server is not trusted: a header or a body that is too long ends the
 * request, and the client follows no redirect.  It uses a proxy only if the
 * settings name one, never one from the environment.  A client serves one
 * thread and keeps its connection between requests.
 */

#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "tls.h"
#include "url.h"


#define HTTP_ERROR_LEN  512              /* of a message and a null byte */

typedef struct http_client_s  http_client_t;


/* What all requests of a client have in common. */
typedef struct {
    const char      *netrc;              /* a file with passwords; NULL: none */
    const char      *proxy;              /* its URL; NULL: none */
    tls_settings_t   tls;
    unsigned         timeout;            /* ms for a request and its response */
    size_t           body_max;           /* bytes of a response's body */
} http_settings_t;


/* A response, or why no response came. */
typedef struct {
    int      status;                     /* 200; 0: no response, see `error` */
    char    *body;                       /* with a null byte after its end */
    size_t   len;
    int64_t  date;                       /* the header `Date` in seconds since
                                            1970; -1: no such header */
    int      timed_out;                  /* 1: the reason is the time */
    char     error[HTTP_ERROR_LEN];      /* without the URL, safe for terminals;
                                            says what to do */
} http_response_t;


/* The options --netrc and --proxy, and those of TLS, whose values are a
 * http_settings_t. */
extern const option_t  http_options[];


/* The settings must stay as long as the client. */
http_client_t *http_client_create(const http_settings_t *settings);
void http_client_destroy(http_client_t *client);

/*
 * Sends a request.  Returns 0 if a whole response came, whatever its status, or
 * -1 with response->error.  In both cases http_response_free() frees the
 * response.
 */
int http_get(http_client_t *client, const char *url,
    http_response_t *response);
int http_post(http_client_t *client, const char *url, const char *type,
    const void *body, size_t len, http_response_t *response);

void http_response_free(http_response_t *response);


#endif /* HTTP_CLIENT_H */
