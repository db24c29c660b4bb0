/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file connects to a Redis server, by TLS if wanted, and reads a bitmap or
 * the chunks of a RedisBloom filter from it.
 */

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#ifdef NGX_BLOOM_REDIS_TLS
#include <hiredis/hiredis_ssl.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#endif

#include "cli.h"
#include "deadline.h"
#include "redis.h"
#include "redis_url.h"

#define PIECE       (8 * 1024 * 1024)

/* BF.SCANDUMP gives pieces of 16 MiB. */
#define ANSWER_MAX  (64 * 1024 * 1024)
#define MEMBERS_MAX 4

/* Only the header and the ends of links come in smaller pieces. */
#define DUMP_PIECE  (1024 * 1024)
#define DUMP_SMALL  64

#define SHOWN_MAX   256                  /* bytes of what the server says */
#define PREFIX      8                    /* bytes of a password that an answer
                                            is searched for */

#define IS_REDIS  "check that it is the address of a Redis server"


struct redis_s {
    redis_url_t    url;
    unsigned       timeout;              /* seconds for an answer */

    int            dump;
    uint64_t       size;                 /* bitmap */
    uint64_t       offset;
    long long      iter;                 /* dump: of the next chunk */
    uint64_t       small;                /* dump: pieces below DUMP_PIECE */
    int            ended;

    redisReply    *reply;
    redisReply    *piece;                /* the string in it that is read */
    size_t         pos;                  /* of the next byte in the piece */

    redisContext  *context;
    redisReplyObjectFunctions  functions;

    struct sigaction           on_pipe;  /* what SIGPIPE did before */
};


/* hiredis would allocate whatever number of members a server announces, and
 * arrays in arrays as deep as they come. */

#if HIREDIS_MAJOR >= 1
typedef size_t  members_t;
#else
typedef int     members_t;
#endif

static void *(*hiredis_array)(const redisReadTask *task, members_t n);


static void *
small_array(const redisReadTask *task, members_t n)
{
    return n <= MEMBERS_MAX && task->parent == NULL ? hiredis_array(task, n)
                                                     : NULL;
}


/* Says why the connection cannot be used any more.  Returns -1. */
static int
failed(const redis_t *redis, const char *doing)
{
    const redisContext  *c;

    c = redis->context;

    if (c->err == REDIS_ERR_EOF || (c->err == REDIS_ERR_IO && errno == 0)) {
        cli_error("%s: the server closed the connection during %s; look at its "
                  "log", redis->url.shown, doing);

    } else if (c->err == REDIS_ERR_IO) {
        cli_error("%s: the connection failed during %s: %s; try again",
                  redis->url.shown, doing, strerror(errno));

    } else {
        cli_error("%s: the answer to %s is not valid (%s); check that it is "
                  "the address of a Redis server", redis->url.shown, doing,
                  c->errstr);
    }

    return -1;
}


static int
timed_out(const redis_t *redis, const char *doing)
{
    cli_error("%s: the server did not answer %s within %u s; try again, or use "
              "a larger --timeout", redis->url.shown, doing, redis->timeout);
    return -1;
}


/* Sends what was appended and receives an answer.  Returns 0; -1 if the
 * connection cannot be used any more; -2 if the answer is too long. */
static int
exchange(redis_t *redis)
{
    int            done;
    void          *reply;
    redisContext  *c;

    c = redis->context;
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
            redis->reply = reply;
            return 0;
        }

        if (c->reader->len > ANSWER_MAX) {
            return -2;
        }

        errno = 0;

        if (redisBufferRead(c) != REDIS_OK) {
            return -1;
        }
    }
}


/* Shows an answer that is an error, unless it repeats the password: a server
 * repeats the arguments of a command that it does not know. */
static int
server_says(const redis_t *redis, const char *doing)
{
    size_t             len;
    const char        *password;
    const redisReply  *reply;

    reply = redis->reply;
    password = redis->url.password;
    len = password != NULL ? strlen(password) : 0;
    len = len < PREFIX ? len : PREFIX;

    if (len != 0 && memmem(reply->str, reply->len, password, len) != NULL) {
        cli_error("%s: the server answered %s with an error that repeats the "
                  "password, so it is not shown; check that the server "
                  "supports AUTH, and the name of the user",
                  redis->url.shown, doing);
        return -1;
    }

    cli_error("%s: the server answered %s with an error: %.*s",
              redis->url.shown, doing,
              reply->len < SHOWN_MAX ? (int) reply->len : SHOWN_MAX,
              reply->str);
    return -1;
}


/*
 * Sends a command, formatted as hiredis does, and puts its answer into
 * redis->reply.  `doing` is the command's name for messages.  Returns 0; or -1
 * after a message, also if the answer is an error.
 */
static int
command(redis_t *redis, const char *doing, const char *fmt, ...)
{
    int      rc;
    va_list  args;

    if (redis->reply != NULL) {
        freeReplyObject(redis->reply);
        redis->reply = NULL;
        redis->piece = NULL;
    }

    va_start(args, fmt);
    rc = redisvAppendCommand(redis->context, fmt, args);
    va_end(args);

    if (rc != REDIS_OK) {
        cli_no_memory(0);
    }

    deadline_begin(redis->context->fd, redis->timeout);
    rc = exchange(redis);

    if (deadline_end()) {
        return timed_out(redis, doing);
    }

    if (rc == -2) {
        cli_error("%s: the answer to %s is longer than %d MiB; check that it "
                  "is the address of a Redis server", redis->url.shown, doing,
                  ANSWER_MAX / 1024 / 1024);
        return -1;
    }

    if (rc == -1) {
        return failed(redis, doing);
    }

    return redis->reply->type == REDIS_REPLY_ERROR ? server_says(redis, doing)
                                                   : 0;
}


static int
unexpected(const redis_t *redis, const char *doing, const char *advice)
{
    cli_error("%s: the server gave an unexpected answer to %s; %s",
              redis->url.shown, doing, advice);
    return -1;
}


static int
log_in(redis_t *redis)
{
    if (redis->url.password == NULL) {
        return 0;
    }

    return redis->url.user == NULL
           ? command(redis, "AUTH", "AUTH %s", redis->url.password)
           : command(redis, "AUTH", "AUTH %s %s", redis->url.user,
                     redis->url.password);
}


static int
choose_db(redis_t *redis)
{
    return redis->url.db == 0 ? 0
           : command(redis, "SELECT", "SELECT %u", redis->url.db);
}


#ifdef NGX_BLOOM_REDIS_TLS

/*
 * Requires a certificate that is for this host and that a trusted authority
 * issued.  The contexts of hiredis check the authority only, so anyone with a
 * certificate could pose as the server.  Returns NULL after a message.
 */
static SSL *
require_host(const redis_t *redis)
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
        cli_error("%s: no certificate can be read from %s; correct the "
                  "environment variable %s", redis->url.shown,
                  file ? file : directory,
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

    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), redis->url.host)
        == 1)
    {
        return ssl;
    }

    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);

    if (SSL_set1_host(ssl, redis->url.host) != 1
        || SSL_set_tlsext_host_name(ssl, redis->url.host) != 1)
    {
        cli_error("%s: \"%s\" is not a valid host name for TLS; use another "
                  "name of the server", redis->url.shown, redis->url.host);
        SSL_free(ssl);
        return NULL;
    }

    return ssl;
}


static void
refused(const redis_t *redis, const SSL *ssl)
{
    long         why;
    const char  *text;

    why = SSL_get_verify_result(ssl);
    text = X509_verify_cert_error_string(why);

    if (why == X509_V_ERR_HOSTNAME_MISMATCH
        || why == X509_V_ERR_IP_ADDRESS_MISMATCH)
    {
        cli_error("%s: the server's certificate is not for %s: %s; use a name "
                  "or an address that it is for", redis->url.shown,
                  redis->url.host, text);

    } else if (why != X509_V_OK) {
        cli_error("%s: the server's certificate is not trusted: %s; if it "
                  "should be, set SSL_CERT_FILE to the certificate of its "
                  "authority", redis->url.shown, text);

    } else {
        cli_error("%s: the TLS handshake failed: %s; check that the port is "
                  "for TLS", redis->url.shown, redis->context->errstr);
    }
}

#endif


static int
start_tls(redis_t *redis)
{
#ifdef NGX_BLOOM_REDIS_TLS

    int   rc;
    SSL  *ssl;

    ssl = require_host(redis);

    if (ssl == NULL) {
        return -1;
    }

    errno = 0;

    deadline_begin(redis->context->fd, redis->timeout);
    rc = redisInitiateSSL(redis->context, ssl);

    if (deadline_end()) {

        if (rc != REDIS_OK) {
            SSL_free(ssl);
        }

        return timed_out(redis, "the TLS handshake");
    }

    if (rc != REDIS_OK) {
        refused(redis, ssl);
        SSL_free(ssl);
        return -1;
    }

    /* the context owns it now */

    return 0;

#else

    cli_error("%s: this ngx-bloom has no TLS for Redis, as it was built with a "
              "hiredis without TLS; use a tunnel, or redis:// on a network "
              "that you trust", redis->url.shown);
    return -1;

#endif
}


static int
bitmap_begin(redis_t *redis)
{
    if (command(redis, "STRLEN", "STRLEN %b", redis->url.key,
                redis->url.key_len)
        != 0)
    {
        return -1;
    }

    if (redis->reply->type != REDIS_REPLY_INTEGER
        || redis->reply->integer < 0)
    {
        return unexpected(redis, "STRLEN", IS_REDIS);
    }

    if (redis->reply->integer == 0) {
        cli_error("%s: there is no such key; check its name and the number of "
                  "the database", redis->url.shown);
        return -1;
    }

    redis->size = (uint64_t) redis->reply->integer;

    return 0;
}


redis_t *
redis_open(const char *url, int dump, unsigned timeout)
{
    redis_t           *redis;
    struct timeval     tv = { timeout, 0 };
    struct sigaction   ignore;

    redis = cli_alloc(sizeof(*redis));
    memset(redis, 0, sizeof(*redis));
    redis->dump = dump;
    redis->timeout = timeout;

    /* a closed connection is to be an error with a message, not a signal */

    memset(&ignore, 0, sizeof(ignore));
    ignore.sa_handler = SIG_IGN;
    (void) sigaction(SIGPIPE, &ignore, &redis->on_pipe);

    if (redis_url_parse(&redis->url, url) != 0) {
        cli_error("%s: is not the address of a Redis key; write "
                  "redis://host:port/database/key, and in a password or a key "
                  "%%40 for an @, in a password %%2F for a /",
                  redis->url.shown);
        redis_close(redis);
        return NULL;
    }

    if (redis->url.password == NULL && getenv("REDISCLI_AUTH") != NULL) {
        redis->url.password = strdup(getenv("REDISCLI_AUTH"));
    }

    redis->context = redisConnectWithTimeout(redis->url.host,
                                             (int) redis->url.port, tv);

    if (redis->context == NULL) {
        cli_no_memory(sizeof(redisContext));
    }

    if (redis->context->err != 0) {
        cli_error("%s: cannot connect: %s; check the address, and that the "
                  "server is running", redis->url.shown,
                  redis->context->errstr);
        redis_close(redis);
        return NULL;
    }

    hiredis_array = redis->context->reader->fn->createArray;
    redis->functions = *redis->context->reader->fn;
    redis->functions.createArray = small_array;
    redis->context->reader->fn = &redis->functions;

    if ((redis->url.tls && start_tls(redis) != 0)
        || log_in(redis) != 0
        || choose_db(redis) != 0
        || (!dump && bitmap_begin(redis) != 0))
    {
        redis_close(redis);
        return NULL;
    }

    return redis;
}


void
redis_close(redis_t *redis)
{
    if (redis == NULL) {
        return;
    }

    if (redis->reply != NULL) {
        freeReplyObject(redis->reply);
    }

    if (redis->context != NULL) {
        redisFree(redis->context);
    }

    (void) sigaction(SIGPIPE, &redis->on_pipe, NULL);

    redis_url_free(&redis->url);
    free(redis);
}


const char *
redis_name(const redis_t *redis)
{
    return redis->url.shown;
}


uint64_t
redis_size(const redis_t *redis)
{
    return redis->size;
}


/* The next piece of a bitmap; 1, 0 at its end. */
static int
bitmap_next(redis_t *redis)
{
    uint64_t  n;

    if (redis->offset == redis->size) {
        return 0;
    }

    n = redis->size - redis->offset;
    n = n < PIECE ? n : PIECE;

    if (command(redis, "GETRANGE", "GETRANGE %b %llu %llu", redis->url.key,
                redis->url.key_len, (unsigned long long) redis->offset,
                (unsigned long long) (redis->offset + n - 1))
        != 0)
    {
        return -1;
    }

    if (redis->reply->type != REDIS_REPLY_STRING || redis->reply->len != n) {
        return unexpected(redis, "GETRANGE", "the key may have changed: try "
                          "again");
    }

    redis->offset += n;
    redis->piece = redis->reply;
    redis->pos = 0;

    return 1;
}


/* The next chunk of a dump; the first is its header. */
static int
dump_next(redis_t *redis)
{
    long long    next;
    redisReply  *reply;

    if (redis->ended) {
        return 0;
    }

    if (command(redis, "BF.SCANDUMP", "BF.SCANDUMP %b %lld", redis->url.key,
                redis->url.key_len, redis->iter)
        != 0)
    {
        return -1;
    }

    reply = redis->reply;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2
        || reply->element[0]->type != REDIS_REPLY_INTEGER
        || (reply->element[1]->type != REDIS_REPLY_STRING
            && reply->element[1]->type != REDIS_REPLY_NIL))
    {
        return unexpected(redis, "BF.SCANDUMP", IS_REDIS);
    }

    next = reply->element[0]->integer;

    if (next == 0) {
        redis->ended = 1;
        return 0;
    }

    if (next <= redis->iter || reply->element[1]->len == 0) {
        return unexpected(redis, "BF.SCANDUMP", "its iterator does not "
                          "advance: check the version of RedisBloom");
    }

    if (reply->element[1]->len < DUMP_PIECE
        && redis->small++ > DUMP_SMALL + redis->offset / DUMP_PIECE)
    {
        cli_error("%s: the server sends the filter in too many small chunks; "
                  "check that it runs RedisBloom", redis->url.shown);
        return -1;
    }

    redis->iter = next;
    redis->offset += reply->element[1]->len;
    redis->piece = reply->element[1];
    redis->pos = 0;

    return 1;
}


ssize_t
redis_read(redis_t *redis, void *buf, size_t size)
{
    int     rc;
    size_t  n;

    if (redis->piece == NULL || redis->pos == redis->piece->len) {

        rc = redis->dump ? dump_next(redis) : bitmap_next(redis);

        if (rc != 1) {
            return rc;
        }
    }

    n = redis->piece->len - redis->pos;
    n = n < size ? n : size;

    memcpy(buf, redis->piece->str + redis->pos, n);
    redis->pos += n;

    return (ssize_t) n;
}


int
redis_redisson(redis_t *redis, uint64_t *bits, uint64_t *k,
    uint64_t *capacity, double *fpr)
{
    int          i;
    char        *end, text[4][40];
    redisReply  *reply;

    /* braces keep both keys on one node of a cluster */

    if (command(redis, "HMGET of Redisson's configuration",
                memchr(redis->url.key, '{', redis->url.key_len) == NULL
                ? "HMGET {%b}:config size hashIterations expectedInsertions "
                  "falseProbability"
                : "HMGET %b:config size hashIterations expectedInsertions "
                  "falseProbability", redis->url.key, redis->url.key_len)
        != 0)
    {
        return -1;
    }

    reply = redis->reply;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4) {
        return unexpected(redis, "HMGET", IS_REDIS);
    }

    for (i = 0; i < 4; i++) {

        if (reply->element[i]->type != REDIS_REPLY_STRING
            || reply->element[i]->len == 0
            || reply->element[i]->len >= sizeof(text[i]))
        {
            cli_error("%s: the server has no configuration of Redisson for "
                      "this key; use --bits and --hashes", redis->url.shown);
            return -1;
        }

        memcpy(text[i], reply->element[i]->str, reply->element[i]->len);
        text[i][reply->element[i]->len] = '\0';
    }

    errno = 0;
    *bits = strtoull(text[0], &end, 10);
    i = *end != '\0';
    *k = strtoull(text[1], &end, 10);
    i |= *end != '\0';
    *capacity = strtoull(text[2], &end, 10);
    i |= *end != '\0';
    *fpr = strtod(text[3], &end);
    i |= *end != '\0';

    if (i || errno != 0) {
        cli_error("%s: Redisson's configuration has an invalid number: size "
                  "\"%s\", hashIterations \"%s\", expectedInsertions \"%s\", "
                  "falseProbability \"%s\"; use --bits and --hashes",
                  redis->url.shown, text[0], text[1], text[2], text[3]);
        return -1;
    }

    return 0;
}
