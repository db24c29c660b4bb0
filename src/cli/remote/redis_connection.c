/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file sends commands to a Redis server and receives its answers.  hiredis
 * formats the commands and parses the answers, and leaves the connection alone.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "deadline.h"
#include "dial.h"
#include "redis_connection.h"

#define SHOWN_MAX   256                  /* bytes of what the server says */
#define PREFIX      8                    /* bytes of a password that an answer
                                            is searched for */
#define OBJECT      64                   /* bytes of memory for a value */
#define PIECE       (64 * 1024)          /* bytes to receive at once */


/* hiredis would allocate whatever number of members a server announces, arrays
 * in arrays as deep as they come, and any number of values. */

#if HIREDIS_MAJOR >= 1
typedef size_t  members_t;
#else
typedef int     members_t;
#endif


static void say(redis_connection_t *conn, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void
say(redis_connection_t *conn, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    vsnprintf(conn->error, sizeof(conn->error), fmt, args);
    va_end(args);
}


/* Counts the memory of a value.  Returns 1 if the answer may have it, else
 * 0. */
static int
may_have(redis_connection_t *conn, size_t bytes)
{
    if (bytes > conn->limits.bytes - conn->bytes) {
        conn->too_long = 1;
        return 0;
    }

    conn->bytes += bytes;

    return 1;
}


static void *
bounded_string(const redisReadTask *task, char *text, size_t len)
{
    redis_connection_t  *conn = task->privdata;

    return may_have(conn, OBJECT + len)
           ? conn->defaults->createString(task, text, len) : NULL;
}


static void *
bounded_array(const redisReadTask *task, members_t n)
{
    int                   depth;
    redis_connection_t   *conn = task->privdata;
    const redisReadTask  *above;

    for (depth = 1, above = task->parent; above != NULL; above = above->parent)
    {
        depth++;
    }

    if (depth > conn->limits.depth || (uint64_t) n > conn->limits.members) {
        conn->too_long = 1;
        return NULL;
    }

    return may_have(conn, OBJECT + (size_t) n * sizeof(void *))
           ? conn->defaults->createArray(task, n) : NULL;
}


static void *
bounded_integer(const redisReadTask *task, long long value)
{
    redis_connection_t  *conn = task->privdata;

    return may_have(conn, OBJECT)
           ? conn->defaults->createInteger(task, value) : NULL;
}


static void *
bounded_nil(const redisReadTask *task)
{
    redis_connection_t  *conn = task->privdata;

    return may_have(conn, OBJECT) ? conn->defaults->createNil(task) : NULL;
}


#if HIREDIS_MAJOR >= 1

/* Maps, sets and pushes are arrays, and other texts are strings. */

static void *
bounded_double(const redisReadTask *task, double value, char *text, size_t len)
{
    redis_connection_t  *conn = task->privdata;

    return may_have(conn, OBJECT + len)
           ? conn->defaults->createDouble(task, value, text, len) : NULL;
}


static void *
bounded_bool(const redisReadTask *task, int value)
{
    redis_connection_t  *conn = task->privdata;

    return may_have(conn, OBJECT)
           ? conn->defaults->createBool(task, value) : NULL;
}

#endif


/* Says why the connection cannot be used any more.  Returns -1. */
static int
failed(redis_connection_t *conn, const char *doing)
{
    const char  *refusal;

    if (conn->reader->err != 0) {
        say(conn, "the answer to %s is not valid (%s); check that it is the "
            "address of a Redis server", doing, conn->reader->errstr);
        return -1;
    }

    refusal = conn->tls != NULL ? tls_refusal(conn->tls) : NULL;

    if (refusal != NULL) {
        say(conn, "%s", refusal);

    } else if (errno == 0 || errno == ECONNRESET || errno == EPIPE) {
        conn->closed = 1;
        say(conn, "the server closed the connection during %s; look at its "
            "log, and if that speaks of output buffer limits, raise "
            "client-output-buffer-limit for normal clients%s", doing,
            conn->tls == NULL && conn->url.path == NULL
            ? "; if the port is for TLS, write rediss://" : "");

    } else {
        say(conn, "the connection failed during %s: %s; try again", doing,
            strerror(errno));
    }

    return -1;
}


static int
timed_out(redis_connection_t *conn, const char *doing)
{
    say(conn, "the server did not answer %s within %u s; try again, or use a "
        "larger %s", doing, conn->timeout, conn->option);
    return -1;
}


/* Sends what was appended.  Returns 0, or -1 with errno.  A connection that the
 * server has closed is no failure yet: its last words may still be there. */
static int
send_out(redis_connection_t *conn)
{
    size_t   sent;
    ssize_t  n;

    for (sent = 0; sent < conn->out_len; sent += (size_t) n) {

        n = conn->tls != NULL
            ? tls_write(conn->tls, conn->out + sent, conn->out_len - sent)
            : write(conn->fd, conn->out + sent, conn->out_len - sent);

        if (n == -1 && (errno == EPIPE || errno == ECONNRESET)) {
            break;
        }

        if (n == -1 && errno != EINTR) {
            return -1;
        }

        n = n == -1 ? 0 : n;
    }

    conn->out_len = 0;

    return 0;
}


/* Receives a part of an answer.  Returns 0, or -1 with errno, which is 0 if the
 * server has closed the connection. */
static int
receive(redis_connection_t *conn)
{
    char     piece[PIECE];
    ssize_t  n;

    do {
        n = conn->tls != NULL ? tls_read(conn->tls, piece, PIECE)
                              : read(conn->fd, piece, PIECE);
    } while (n == -1 && errno == EINTR);

    if (n == 0) {
        errno = 0;
    }

    if (n <= 0) {
        return -1;
    }

    if (redisReaderFeed(conn->reader, piece, (size_t) n) != REDIS_OK) {
        cli_no_memory((uint64_t) n);
    }

    return 0;
}


/* Sends what was appended and receives an answer.  Returns 0; -1 if the
 * connection cannot be used any more; -2 if the answer is too long. */
static int
exchange(redis_connection_t *conn)
{
    void  *reply;

    reply = NULL;

    if (send_out(conn) != 0) {
        return -1;
    }

    for ( ;; ) {

        if (redisReaderGetReply(conn->reader, &reply) != REDIS_OK) {
            return -1;
        }

        if (reply != NULL) {
            conn->reply = reply;
            return 0;
        }

        if (conn->reader->len > conn->limits.bytes) {
            return -2;
        }

        if (receive(conn) != 0) {
            return -1;
        }
    }
}


/* Returns what to do about an error, or an empty text. */
static const char *
advice(const char *text)
{
    size_t  i;

    static const struct {
        const char  *begin;
        const char  *advice;
    } known[] = {
        { "MOVED ", "; the key is on the node of a Redis Cluster that is named "
                    "here: use its address, and change it when the key moves, "
                    "as ngx-bloom does not search a Cluster for a key" },
        { "ASK ", "; a Redis Cluster is moving the key to the node that is "
                  "named here: use its address when the move is complete" },
        { "CLUSTERDOWN ", "; the server is a node of a Redis Cluster: repair "
                          "the Cluster" },
        { "ERR SELECT is not allowed in cluster mode",
          "; a Redis Cluster has database 0 only" }
    };

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strncmp(text, known[i].begin, strlen(known[i].begin)) == 0) {
            return known[i].advice;
        }
    }

    return "";
}


int
redis_says(redis_connection_t *conn, const redisReply *reply,
    const char *doing)
{
    size_t       len;
    const char  *password;

    /* a server repeats the arguments of a command that it does not know */

    password = conn->url.password;
    len = password != NULL ? strlen(password) : 0;
    len = len < PREFIX ? len : PREFIX;

    if (len != 0 && memmem(reply->str, reply->len, password, len) != NULL) {
        say(conn, "the server answered %s with an error that repeats the "
            "password, so it is not shown; check that the server supports "
            "AUTH, and the name of the user", doing);
        return -1;
    }

    say(conn, "the server answered %s with an error: %.*s%s", doing,
        (int) (reply->len < SHOWN_MAX ? reply->len : SHOWN_MAX), reply->str,
        advice(reply->str));

    return -1;
}


int
redis_answer(redis_connection_t *conn, const char *doing, unsigned more)
{
    int  rc;

    if (conn->reply != NULL) {
        freeReplyObject(conn->reply);
        conn->reply = NULL;
    }

    conn->bytes = 0;
    conn->too_long = 0;
    conn->closed = 0;

    deadline_begin(conn->fd, conn->timeout + more);
    rc = exchange(conn);

    if (deadline_end()) {
        return timed_out(conn, doing);
    }

    if (rc == -2) {
        conn->too_long = 1;
        say(conn, "the answer to %s is longer than %zu MiB; check that it is "
            "the address of a Redis server", doing,
            conn->limits.bytes / 1024 / 1024);
        return -1;
    }

    if (rc == -1) {
        return failed(conn, doing);
    }

    return conn->reply->type == REDIS_REPLY_ERROR
           ? redis_says(conn, conn->reply, doing) : 0;
}


static void
append(redis_connection_t *conn, const char *fmt, va_list args)
{
    int     n;
    char   *command;
    size_t  len;

    n = redisvFormatCommand(&command, fmt, args);

    if (n < 0) {
        cli_no_memory(0);
    }

    len = (size_t) n;

    if (len > conn->out_size - conn->out_len) {
        conn->out_size = conn->out_len + len;
        conn->out = cli_realloc(conn->out, conn->out_size);
    }

    memcpy(conn->out + conn->out_len, command, len);
    conn->out_len += len;
    redisFreeCommand(command);
}


void
redis_append(redis_connection_t *conn, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    append(conn, fmt, args);
    va_end(args);
}


int
redis_command(redis_connection_t *conn, const char *doing, const char *fmt,
    ...)
{
    va_list  args;

    va_start(args, fmt);
    append(conn, fmt, args);
    va_end(args);

    return redis_answer(conn, doing, 0);
}


int
redis_unexpected(redis_connection_t *conn, const char *doing,
    const char *advice)
{
    say(conn, "the server gave an unexpected answer to %s; %s", doing, advice);

    return -1;
}


static int
log_in(redis_connection_t *conn)
{
    if (conn->url.password == NULL) {
        return 0;
    }

    return conn->url.user == NULL
           ? redis_command(conn, "AUTH", "AUTH %s", conn->url.password)
           : redis_command(conn, "AUTH", "AUTH %s %s", conn->url.user,
                     conn->url.password);
}


static int
choose_db(redis_connection_t *conn)
{
    return conn->url.db == 0 ? 0
           : redis_command(conn, "SELECT", "SELECT %u", conn->url.db);
}


static int
start_tls(redis_connection_t *conn)
{
    deadline_begin(conn->fd, conn->timeout);
    conn->tls = tls_open(&conn->tls_settings, conn->fd, conn->url.host,
                         conn->error, sizeof(conn->error));

    if (deadline_end()) {
        say(conn, "the server did not answer the TLS handshake within %u s; "
            "check that the port is for TLS, or write redis://; try again with "
            "a larger %s", conn->timeout, conn->option);
        return -1;
    }

    return conn->tls != NULL ? 0 : -1;
}


/* Creates the parser of the answers. */
static void
create_reader(redis_connection_t *conn)
{
    conn->reader = redisReaderCreate();

    if (conn->reader == NULL) {
        cli_no_memory(sizeof(redisReader));
    }

    conn->defaults = conn->reader->fn;
    conn->functions = *conn->defaults;
    conn->functions.createString = bounded_string;
    conn->functions.createArray = bounded_array;
    conn->functions.createInteger = bounded_integer;
    conn->functions.createNil = bounded_nil;
#if HIREDIS_MAJOR >= 1
    conn->functions.createDouble = bounded_double;
    conn->functions.createBool = bounded_bool;
#endif
    conn->reader->fn = &conn->functions;
    conn->reader->privdata = conn;
}


int
redis_connect(redis_connection_t *conn)
{
    const char         *password;
    const redis_url_t  *url;

    redis_disconnect(conn);

    password = getenv("REDISCLI_AUTH");

    if (password != NULL
        && (conn->url.password == NULL || conn->url.password[0] == '\0'))
    {
        free(conn->url.password);
        conn->url.password = strdup(password);
    }

    url = &conn->url;
    conn->fd = url->path != NULL
               ? dial_unix(url->path, conn->timeout, conn->error,
                           sizeof(conn->error))
               : dial_host(url->host, url->port, conn->timeout, conn->error,
                           sizeof(conn->error));

    if (conn->fd == -1) {
        return -1;
    }

    create_reader(conn);

    return (url->tls && start_tls(conn) != 0)
           || log_in(conn) != 0
           || choose_db(conn) != 0 ? -1 : 0;
}


void
redis_disconnect(redis_connection_t *conn)
{
    if (conn->reply != NULL) {
        freeReplyObject(conn->reply);
        conn->reply = NULL;
    }

    if (conn->reader != NULL) {
        tls_close(conn->tls);
        conn->tls = NULL;
        close(conn->fd);
        redisReaderFree(conn->reader);
        conn->reader = NULL;
    }

    free(conn->out);
    conn->out = NULL;
    conn->out_len = 0;
    conn->out_size = 0;
}
