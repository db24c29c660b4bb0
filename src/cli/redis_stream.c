/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads a Redis stream in a transaction, so that its entries and the
 * facts about it are of one moment.
 */

#include <stdlib.h>
#include <string.h>

#include "redis_stream.h"

#define READING  "the commands that read the stream"
#define LAST_IO  "master_last_io_seconds_ago:"

/* A primary pings its replicas every 10 seconds, unless repl-ping-replica-period
 * says otherwise. */
#define SILENCE_MAX  15                  /* seconds */

/* the members of the answer to EXEC */
enum { HERE, ABOUT, SERVER, NEXT, MEMBERS };


void
redis_stream_limits(redis_connection_t *conn)
{
    conn->limits.members = 1000000;
    conn->limits.depth = 5;
    conn->limits.bytes = REDIS_STREAM_BYTES_MAX;
}


/* Reads an ID.  Returns 0 or -1. */
static int
read_id(const redisReply *reply, bloom_position_t *id)
{
    return reply->type == REDIS_REPLY_STRING
           ? bloom_position_parse(id, reply->str, reply->len) : -1;
}


bloom_position_t
redis_stream_id(const redisReply *entry)
{
    bloom_position_t  id;

    (void) read_id(entry->element[0], &id);

    return id;
}


/* Checks that a value is an entry: an ID, and names and values in turns.
 * Returns 0 or -1. */
static int
check_entry(const redisReply *entry, bloom_position_t *id)
{
    size_t             i;
    const redisReply  *fields;

    if (entry->type != REDIS_REPLY_ARRAY || entry->elements != 2
        || read_id(entry->element[0], id) != 0)
    {
        return -1;
    }

    fields = entry->element[1];

    if (fields->type != REDIS_REPLY_ARRAY || fields->elements % 2 != 0) {
        return -1;
    }

    for (i = 0; i < fields->elements; i++) {
        if (fields->element[i]->type != REDIS_REPLY_STRING) {
            return -1;
        }
    }

    return 0;
}


/* Reads the answer to XINFO STREAM.  Returns 0 or -1. */
static int
read_about(const redisReply *reply, stream_facts_t *facts)
{
    int                got;
    size_t             i;
    const redisReply  *name, *value;

    if (reply->type != REDIS_REPLY_ARRAY) {
        return -1;
    }

    for (got = 0, i = 0; i + 1 < reply->elements; i += 2) {

        name = reply->element[i];
        value = reply->element[i + 1];

        if (name->type != REDIS_REPLY_STRING) {
            return -1;
        }

        if (strcmp(name->str, "length") == 0
            && value->type == REDIS_REPLY_INTEGER)
        {
            facts->length = (uint64_t) value->integer;
            got |= 1;

        } else if (strcmp(name->str, "last-generated-id") == 0) {
            got |= read_id(value, &facts->last) == 0 ? 2 : 0;

        } else if (strcmp(name->str, "first-entry") == 0) {
            got |= value->type == REDIS_REPLY_NIL
                   || check_entry(value, &facts->first) == 0 ? 4 : 0;

        } else if (strcmp(name->str, "entries-added") == 0
                   && value->type == REDIS_REPLY_INTEGER)
        {
            facts->added = (uint64_t) value->integer;
            got |= 8;

        } else if (strcmp(name->str, "max-deleted-entry-id") == 0) {
            got |= read_id(value, &facts->deleted) == 0 ? 16 : 0;
        }
    }

    facts->exists = 1;
    facts->counts = (got & 24) == 24;

    return (got & 7) == 7 ? 0 : -1;
}


static int
has_line(const redisReply *reply, const char *line)
{
    return strstr(reply->str, line) != NULL;
}


/* Returns 1 if a replica's link to its primary is up and has carried something
 * lately, else 0.  A link that is cut off stays up for repl-timeout. */
static int
link_is_live(const redisReply *reply)
{
    char         *end;
    long          seconds;
    const char   *text;

    text = strstr(reply->str, LAST_IO);

    if (text == NULL || !has_line(reply, "master_link_status:up")) {
        return 0;
    }

    text += sizeof(LAST_IO) - 1;
    seconds = strtol(text, &end, 10);

    return end != text && seconds >= 0 && seconds <= SILENCE_MAX;
}


/* Reads the answer to EXEC.  Returns 0, or -1 with conn->error. */
static int
read_moment(redis_connection_t *conn, bloom_position_t position,
    redis_moment_t *moment)
{
    size_t             i;
    stream_facts_t    *facts;
    bloom_position_t   id, before;
    const redisReply  *about;
    redisReply       **replies, *next;

    if (conn->reply->type != REDIS_REPLY_ARRAY
        || conn->reply->elements != MEMBERS)
    {
        return redis_unexpected(conn, "EXEC", REDIS_IS_REDIS);
    }

    replies = conn->reply->element;
    facts = &moment->facts;
    about = replies[ABOUT];

    for (i = 0; i < MEMBERS; i++) {

        if (replies[i]->type == REDIS_REPLY_ERROR
            && (i != ABOUT || strstr(replies[i]->str, "no such key") == NULL))
        {
            return redis_says(conn, replies[i], READING);
        }
    }

    if (about->type != REDIS_REPLY_ERROR && read_about(about, facts) != 0) {
        return redis_unexpected(conn, "XINFO STREAM", REDIS_IS_REDIS);
    }

    if (replies[SERVER]->type != REDIS_REPLY_STRING) {
        return redis_unexpected(conn, "INFO", REDIS_IS_REDIS);
    }

    facts->primary = has_line(replies[SERVER], "role:master");
    facts->current = facts->primary
                     || link_is_live(replies[SERVER]);

    if (replies[HERE]->type != REDIS_REPLY_ARRAY) {
        return redis_unexpected(conn, "XRANGE", REDIS_IS_REDIS);
    }

    facts->has_position = replies[HERE]->elements != 0;
    next = replies[NEXT];

    if (next->type != REDIS_REPLY_ARRAY) {
        return redis_unexpected(conn, "XRANGE", REDIS_IS_REDIS);
    }

    for (before = position, i = 0; i < next->elements; i++, before = id) {
        if (check_entry(next->element[i], &id) != 0
            || bloom_position_cmp(id, before) <= 0)
        {
            return redis_unexpected(conn, "XRANGE", REDIS_IS_REDIS);
        }
    }

    moment->n = next->elements;
    moment->entries = next->element;
    moment->bytes = conn->bytes;

    return 0;
}


int
redis_stream_read(redis_connection_t *conn, const char *key,
    bloom_position_t position, unsigned count, unsigned wait,
    redis_moment_t *moment)
{
    int               i;
    char              here[BLOOM_POSITION_TEXT_MAX];
    char              after[BLOOM_POSITION_TEXT_MAX];
    bloom_position_t  next;

    next = position;
    next.high += ++next.low == 0;

    (void) bloom_position_write(position, here);
    (void) bloom_position_write(next, after);

    memset(moment, 0, sizeof(*moment));

    if (wait != 0) {
        redis_append(conn, "XREAD COUNT 1 BLOCK %u STREAMS %s %s", wait, key,
                     here);
    }

    /* an ID without its second part would be that of a whole millisecond */

    redis_append(conn, "MULTI");
    redis_append(conn, "XRANGE %s %s%s %s%s COUNT 1", key, here,
                 position.low == 0 ? "-0" : "", here,
                 position.low == 0 ? "-0" : "");
    redis_append(conn, "XINFO STREAM %s", key);
    redis_append(conn, "INFO replication");
    redis_append(conn, "XRANGE %s %s + COUNT %u", key, after, count);
    redis_append(conn, "EXEC");

    if (wait != 0 && redis_answer(conn, "XREAD", wait / 1000 + 1) != 0) {
        return -1;
    }

    for (i = 0; i < 1 + MEMBERS; i++) {
        if (redis_answer(conn, READING, 0) != 0) {
            return -1;
        }
    }

    return redis_answer(conn, "EXEC", 0) != 0 ? -1
           : read_moment(conn, position, moment);
}
