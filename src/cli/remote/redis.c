/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads a bitmap or the chunks of a RedisBloom filter from a Redis
 * server.
 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "redis.h"
#include "redis_connection.h"

#define PIECE       (8 * 1024 * 1024)

/* BF.SCANDUMP gives pieces of 16 MiB. */
#define ANSWER_MAX  (64 * 1024 * 1024)
#define MEMBERS_MAX 4

/* Only the header and the ends of links come in smaller pieces. */
#define DUMP_PIECE  (1024 * 1024)
#define DUMP_SMALL  64


struct redis_s {
    redis_connection_t  conn;

    int                 dump;
    uint64_t            size;            /* bitmap */
    uint64_t            offset;
    long long           iter;            /* dump: of the next chunk */
    uint64_t            small;           /* dump: pieces below DUMP_PIECE */
    int                 ended;

    redisReply         *piece;           /* the string in the answer that is
                                            read */
    size_t              pos;             /* of the next byte in the piece */

    struct sigaction    on_pipe;         /* what SIGPIPE did before */
};


/* Prints the reason why a command failed.  Returns -1. */
static int
failed(const redis_t *redis)
{
    cli_error("%s: %s", redis->conn.url.shown, redis->conn.error);

    return -1;
}


static int
unexpected(redis_t *redis, const char *doing, const char *advice)
{
    (void) redis_unexpected(&redis->conn, doing, advice);

    return failed(redis);
}


static int
bitmap_begin(redis_t *redis)
{
    if (redis_command(&redis->conn, "STRLEN", "STRLEN %b",
                      redis->conn.url.key, redis->conn.url.key_len)
        != 0)
    {
        return failed(redis);
    }

    if (redis->conn.reply->type != REDIS_REPLY_INTEGER
        || redis->conn.reply->integer < 0)
    {
        return unexpected(redis, "STRLEN", REDIS_IS_REDIS);
    }

    if (redis->conn.reply->integer == 0) {
        cli_error("%s: there is no such key; check its name and the number of "
                  "the database", redis->conn.url.shown);
        return -1;
    }

    redis->size = (uint64_t) redis->conn.reply->integer;

    return 0;
}


redis_t *
redis_open(const char *url, int dump, const redis_settings_t *settings)
{
    redis_t           *redis;
    struct sigaction   ignore;

    redis = cli_alloc(sizeof(*redis));
    memset(redis, 0, sizeof(*redis));
    redis->dump = dump;

    redis->conn.timeout = settings->timeout;
    redis->conn.tls_settings = settings->tls;
    redis->conn.option = "--timeout";
    redis->conn.limits.members = MEMBERS_MAX;
    redis->conn.limits.depth = 1;
    redis->conn.limits.bytes = ANSWER_MAX;

    /* a closed connection is to be an error with a message, not a signal */

    memset(&ignore, 0, sizeof(ignore));
    ignore.sa_handler = SIG_IGN;
    (void) sigaction(SIGPIPE, &ignore, &redis->on_pipe);

    if (redis_url_parse(&redis->conn.url, url) != 0) {
        cli_error("%s: is not the address of a Redis key; write "
                  "redis://host:port/database/key or "
                  "unix:///path?db=database&key=key, and in a password or a "
                  "key %%40 for an @, in a password %%2F for a /",
                  redis->conn.url.shown);
        redis_close(redis);
        return NULL;
    }

    if (redis_connect(&redis->conn) != 0) {
        (void) failed(redis);
        redis_close(redis);
        return NULL;
    }

    if (!dump && bitmap_begin(redis) != 0) {
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

    redis_disconnect(&redis->conn);

    (void) sigaction(SIGPIPE, &redis->on_pipe, NULL);

    redis_url_free(&redis->conn.url);
    free(redis);
}


const char *
redis_name(const redis_t *redis)
{
    return redis->conn.url.shown;
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

    if (redis_command(&redis->conn, "GETRANGE", "GETRANGE %b %llu %llu",
                      redis->conn.url.key, redis->conn.url.key_len,
                      (unsigned long long) redis->offset,
                      (unsigned long long) (redis->offset + n - 1))
        != 0)
    {
        return failed(redis);
    }

    if (redis->conn.reply->type != REDIS_REPLY_STRING
        || redis->conn.reply->len != n)
    {
        return unexpected(redis, "GETRANGE", "the key may have changed: try "
                          "again");
    }

    redis->offset += n;
    redis->piece = redis->conn.reply;
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

    if (redis_command(&redis->conn, "BF.SCANDUMP", "BF.SCANDUMP %b %lld",
                      redis->conn.url.key, redis->conn.url.key_len,
                      redis->iter)
        != 0)
    {
        return failed(redis);
    }

    reply = redis->conn.reply;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2
        || reply->element[0]->type != REDIS_REPLY_INTEGER
        || (reply->element[1]->type != REDIS_REPLY_STRING
            && reply->element[1]->type != REDIS_REPLY_NIL))
    {
        return unexpected(redis, "BF.SCANDUMP", REDIS_IS_REDIS);
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
                  "check that it runs RedisBloom", redis->conn.url.shown);
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

        redis->piece = NULL;
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
    const char  *key;
    redisReply  *reply;

    key = redis->conn.url.key;

    /* braces keep both keys on one node of a cluster */

    if (redis_command(&redis->conn, "HMGET of Redisson's configuration",
                      memchr(key, '{', redis->conn.url.key_len) == NULL
                      ? "HMGET {%b}:config size hashIterations "
                        "expectedInsertions falseProbability"
                      : "HMGET %b:config size hashIterations "
                        "expectedInsertions falseProbability",
                      key, redis->conn.url.key_len)
        != 0)
    {
        return failed(redis);
    }

    reply = redis->conn.reply;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4) {
        return unexpected(redis, "HMGET", REDIS_IS_REDIS);
    }

    for (i = 0; i < 4; i++) {

        if (reply->element[i]->type != REDIS_REPLY_STRING
            || reply->element[i]->len == 0
            || reply->element[i]->len >= sizeof(text[i]))
        {
            cli_error("%s: the server has no configuration of Redisson for "
                      "this key; use --bits and --hashes",
                      redis->conn.url.shown);
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
                  redis->conn.url.shown, text[0], text[1], text[2], text[3]);
        return -1;
    }

    return 0;
}
