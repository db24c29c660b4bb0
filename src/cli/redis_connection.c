/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file connects to a Redis server, by TLS if wanted, and receives its
 * answers.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef NGX_BLOOM_REDIS_TLS
#include <hiredis/hiredis.h>             /* hiredis_ssl.h needs it */
#include <hiredis/hiredis_ssl.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#endif

#include "cli.h"
#include "deadline.h"
#include "redis_connection.h"

#define SHOWN_MAX   256                  /* bytes of what the server says */
#define PREFIX      8                    /* bytes of a password that an answer
                                            is searched for */
#define OBJECT      64                   /* bytes of memory for a value */


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
    const redisContext  *c;

    c = conn->context;

    if (c->err == REDIS_ERR_EOF || (c->err == REDIS_ERR_IO && errno == 0)) {
        say(conn, "the server closed the connection during %s; look at its log",
            doing);

    } else if (c->err == REDIS_ERR_IO) {
        say(conn, "the connection failed during %s: %s; try again", doing,
            strerror(errno));

    } else {
        say(conn, "the answer to %s is not valid (%s); check that it is the "
            "address of a Redis server", doing, c->errstr);
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


/* Sends what was appended and receives an answer.  Returns 0; -1 if the
 * connection cannot be used any more; -2 if the answer is too long. */
static int
exchange(redis_connection_t *conn)
{
    int            done;
    void          *reply;
    redisContext  *c;

    c = conn->context;
    reply = NULL;

    for (done = 0; !done; /* void */ ) {
        errno = 0;

        if (redisBufferWrite(c, &done) != REDIS_OK) {
            return -1;
        }
    }

    for ( ;; ) {

        errno = 0;

        if (redisGetReplyFromReader(c, &reply) != REDIS_OK) {
            return -1;
        }

        if (reply != NULL) {
            conn->reply = reply;
            return 0;
        }

        if (c->reader->len > conn->limits.bytes) {
            return -2;
        }

        errno = 0;

        if (redisBufferRead(c) != REDIS_OK) {
            return -1;
        }
    }
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

    say(conn, "the server answered %s with an error: %.*s", doing,
        (int) (reply->len < SHOWN_MAX ? reply->len : SHOWN_MAX), reply->str);

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

    deadline_begin(conn->context->fd, conn->timeout + more);
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
    if (redisvAppendCommand(conn->context, fmt, args) != REDIS_OK) {
        cli_no_memory(0);
    }
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


#ifdef NGX_BLOOM_REDIS_TLS

/*
 * Requires a certificate that is for this host and that a trusted authority
 * issued.  The contexts of hiredis check the authority only, so anyone with a
 * certificate could pose as the server.  Returns NULL after a message.
 */
static SSL *
require_host(redis_connection_t *conn)
{
    SSL         *ssl;
    SSL_CTX     *ctx;
    const char  *file, *directory;

    file = getenv("SSL_CERT_FILE");
    directory = getenv("SSL_CERT_DIR");
    directory = directory ? directory : "/etc/ssl/certs";

    ctx = SSL_CTX_new(TLS_client_method());

    if (ctx == NULL) {
        cli_no_memory(0);
    }

    if (SSL_CTX_load_verify_locations(ctx, file, directory) != 1) {
        say(conn, "no certificate can be read from %s; correct the "
            "environment variable %s", file ? file : directory,
            file ? "SSL_CERT_FILE" : "SSL_CERT_DIR");
        SSL_CTX_free(ctx);
        return NULL;
    }

    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);

    ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);

    if (ssl == NULL) {
        cli_no_memory(0);
    }

    /* a certificate has addresses and names apart; SNI is for names only */

    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), conn->url.host)
        == 1)
    {
        return ssl;
    }

    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);

    if (SSL_set1_host(ssl, conn->url.host) != 1
        || SSL_set_tlsext_host_name(ssl, conn->url.host) != 1)
    {
        say(conn, "\"%s\" is not a valid host name for TLS; use another name "
            "of the server", conn->url.host);
        SSL_free(ssl);
        return NULL;
    }

    return ssl;
}


static void
refused(redis_connection_t *conn, const SSL *ssl)
{
    long         why;
    const char  *text;

    why = SSL_get_verify_result(ssl);
    text = X509_verify_cert_error_string(why);

    if (why == X509_V_ERR_HOSTNAME_MISMATCH
        || why == X509_V_ERR_IP_ADDRESS_MISMATCH)
    {
        say(conn, "the server's certificate is not for %s: %s; use a name or "
            "an address that it is for", conn->url.host, text);

    } else if (why != X509_V_OK) {
        say(conn, "the server's certificate is not trusted: %s; if it should "
            "be, set SSL_CERT_FILE to the certificate of its authority", text);

    } else {
        say(conn, "the TLS handshake failed: %s; check that the port is for "
            "TLS", conn->context->errstr);
    }
}

#endif


static int
start_tls(redis_connection_t *conn)
{
#ifdef NGX_BLOOM_REDIS_TLS

    int   rc;
    SSL  *ssl;

    ssl = require_host(conn);

    if (ssl == NULL) {
        return -1;
    }

    errno = 0;

    deadline_begin(conn->context->fd, conn->timeout);
    rc = redisInitiateSSL(conn->context, ssl);

    if (deadline_end()) {

        if (rc != REDIS_OK) {
            SSL_free(ssl);
        }

        return timed_out(conn, "the TLS handshake");
    }

    if (rc != REDIS_OK) {
        refused(conn, ssl);
        SSL_free(ssl);
        return -1;
    }

    /* the context owns it now */

    return 0;

#else

    say(conn, "this ngx-bloom has no TLS for Redis, as it was built with a "
        "hiredis without TLS; use a tunnel, or redis:// on a network that you "
        "trust");
    return -1;

#endif
}


int
redis_connect(redis_connection_t *conn)
{
    const char      *password;
    struct timeval   tv = { conn->timeout, 0 };

    redis_disconnect(conn);

    password = getenv("REDISCLI_AUTH");

    if (password != NULL
        && (conn->url.password == NULL || conn->url.password[0] == '\0'))
    {
        free(conn->url.password);
        conn->url.password = strdup(password);
    }

    conn->context = redisConnectWithTimeout(conn->url.host,
                                            (int) conn->url.port, tv);

    if (conn->context == NULL) {
        cli_no_memory(sizeof(redisContext));
    }

    if (conn->context->err != 0) {
        say(conn, "cannot connect: %s; check the address, and that the server "
            "is running", conn->context->errstr);
        return -1;
    }

    conn->defaults = conn->context->reader->fn;
    conn->functions = *conn->defaults;
    conn->functions.createString = bounded_string;
    conn->functions.createArray = bounded_array;
    conn->functions.createInteger = bounded_integer;
    conn->functions.createNil = bounded_nil;
#if HIREDIS_MAJOR >= 1
    conn->functions.createDouble = bounded_double;
    conn->functions.createBool = bounded_bool;
#endif
    conn->context->reader->fn = &conn->functions;
    conn->context->reader->privdata = conn;

    return (conn->url.tls && start_tls(conn) != 0)
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

    if (conn->context != NULL) {
        redisFree(conn->context);
        conn->context = NULL;
    }
}
