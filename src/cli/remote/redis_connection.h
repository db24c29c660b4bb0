/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A connection to a Redis server sends commands and receives answers, by TCP,
 * TLS or a Unix socket, in bounded time and memory.
 *
 * A password that the URL lacks, as in redis://user:@host, may be in the
 * environment variable REDISCLI_AUTH, which the list of processes does not
 * show.  The server is not trusted: an answer is an error if it is too long,
 * too deep or comes too late.  Each thread may have a connection.
 */

#ifndef REDIS_CONNECTION_H
#define REDIS_CONNECTION_H

#include <hiredis/hiredis.h>

#include "redis_url.h"
#include "tls.h"


#define REDIS_ERROR_LEN  1024

/* What an answer may have. */
typedef struct {
    size_t  members;                     /* of an array */
    int     depth;                       /* of arrays in arrays */
    size_t  bytes;                       /* in all */
} redis_limits_t;

typedef struct {
    redis_url_t      url;
    unsigned         timeout;            /* seconds for an answer */
    const char      *option;             /* that sets it, for messages */
    tls_settings_t   tls_settings;
    redis_limits_t   limits;

    redisReply      *reply;              /* the last answer */
    int              too_long;           /* 1: it exceeds a limit */
    int              closed;             /* 1: the server closed the connection
                                            before the answer */
    char             error[REDIS_ERROR_LEN];   /* without the URL */

    redisReader     *reader;             /* NULL: not connected */
    int              fd;
    tls_t           *tls;                /* NULL: no TLS */
    char            *out;                /* commands to send */
    size_t           out_len;
    size_t           out_size;
    size_t           bytes;              /* of the answer so far */
    redisReplyObjectFunctions  *defaults;
    redisReplyObjectFunctions   functions;
} redis_connection_t;


/* Opens a connection to the server of conn->url, and logs in; the caller has
 * set the members above `reply`, and the others are zero at first.  Returns 0,
 * or -1 with conn->error. */
int redis_connect(redis_connection_t *conn);

/* Closes the connection; redis_connect() may open it again. */
void redis_disconnect(redis_connection_t *conn);

/*
 * Sends a command, formatted as hiredis does, and puts its answer into
 * conn->reply.  `doing` is the command's name for messages.  Returns 0; or -1
 * with conn->error, also if the answer is an error.
 */
int redis_command(redis_connection_t *conn, const char *doing, const char *fmt,
    ...);

/* Appends a command, which the next redis_answer() sends. */
void redis_append(redis_connection_t *conn, const char *fmt, ...);

/* Receives the answer of the next command as redis_command() does; it may take
 * `more` seconds more than others. */
int redis_answer(redis_connection_t *conn, const char *doing, unsigned more);

/* Writes conn->error: the answer to a command is an error.  Returns -1. */
int redis_says(redis_connection_t *conn, const redisReply *reply,
    const char *doing);

/* Writes conn->error: the answer has another type than requested.  Returns
 * -1. */
int redis_unexpected(redis_connection_t *conn, const char *doing,
    const char *advice);

#define REDIS_IS_REDIS  "check that it is the address of a Redis server"


#endif /* REDIS_CONNECTION_H */
