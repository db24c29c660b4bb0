/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads a Redis stream: first the server's role, then the entry at
 * the position together with those after it, and then facts about the stream.
 *
 * One command reads the position and the entries, so they are of one moment.
 * The facts are later: if they show that nothing after the position is missing,
 * nothing was missing before.  A transaction would not be better, and a Redis
 * that has used up its memory runs none.
 */

#include <stdlib.h>
#include <string.h>

#include "redis_stream.h"

#define LAST_IO  "master_last_io_seconds_ago:"
#define HISTORY  "master_replid:"

/* A primary pings its replicas every 10 seconds, unless repl-ping-replica-period
 * says otherwise. */
#define SILENCE_MAX  15                  /* seconds */


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


/* Reads an entry's ID, or that there is no entry.  Returns 0 or -1. */
static int
read_end(const redisReply *entry, bloom_position_t *id)
{
    return entry->type == REDIS_REPLY_NIL ? 0 : check_entry(entry, id);
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
            got |= read_end(value, &facts->first) == 0 ? 4 : 0;

        } else if (strcmp(name->str, "last-entry") == 0) {
            got |= read_end(value, &facts->end) == 0 ? 8 : 0;

        } else if (strcmp(name->str, "entries-added") == 0
                   && value->type == REDIS_REPLY_INTEGER)
        {
            facts->added = (uint64_t) value->integer;
            got |= 16;

        } else if (strcmp(name->str, "max-deleted-entry-id") == 0) {
            got |= read_id(value, &facts->deleted) == 0 ? 32 : 0;
        }
    }

    facts->exists = 1;
    facts->counts = (got & 48) == 48;

    return (got & 15) == 15 ? 0 : -1;
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


/* Reads the answer to INFO replication.  Returns 0, or -1 with conn->error. */
static int
read_server(redis_connection_t *conn, stream_facts_t *facts)
{
    size_t       len;
    const char  *history;

    if (conn->reply->type != REDIS_REPLY_STRING) {
        return redis_unexpected(conn, "INFO", REDIS_IS_REDIS);
    }

    facts->primary = has_line(conn->reply, "role:master");
    facts->current = facts->primary || link_is_live(conn->reply);

    history = strstr(conn->reply->str, HISTORY);

    if (history != NULL) {
        history += sizeof(HISTORY) - 1;
        len = strspn(history, "0123456789abcdef");

        if (len == STREAM_HISTORY_LEN) {
            memcpy(facts->history, history, len);
        }
    }

    return 0;
}


/* Reads the answer to XRANGE, which begins with the entry at the position if
 * the stream has it.  Returns 0, or -1 with conn->error. */
static int
read_entries(redis_connection_t *conn, bloom_position_t position,
    redis_moment_t *moment)
{
    size_t             i;
    redisReply        *reply;
    bloom_position_t   id, before;

    reply = conn->reply;

    if (reply->type != REDIS_REPLY_ARRAY) {
        return redis_unexpected(conn, "XRANGE", REDIS_IS_REDIS);
    }

    for (i = 0; i < reply->elements; i++, before = id) {
        if (check_entry(reply->element[i], &id) != 0
            || bloom_position_cmp(id, i == 0 ? position : before)
               < (i == 0 ? 0 : 1))
        {
            return redis_unexpected(conn, "XRANGE", REDIS_IS_REDIS);
        }

        if (i == 0 && bloom_position_cmp(id, position) == 0) {
            moment->facts.has_position = 1;
        }
    }

    moment->n = reply->elements - (size_t) moment->facts.has_position;
    moment->entries = reply->element + moment->facts.has_position;
    moment->bytes = conn->bytes;

    /* the next answer would free it */

    moment->reply = reply;
    conn->reply = NULL;

    return 0;
}


/* Receives the answer to XINFO STREAM.  Returns 0, or -1 with conn->error. */
static int
read_facts(redis_connection_t *conn, stream_facts_t *facts)
{
    if (redis_answer(conn, "XINFO STREAM", 0) != 0) {
        return conn->reply != NULL && conn->reply->type == REDIS_REPLY_ERROR
               && strstr(conn->reply->str, "no such key") != NULL ? 0 : -1;
    }

    return read_about(conn->reply, facts) == 0 ? 0
           : redis_unexpected(conn, "XINFO STREAM", REDIS_IS_REDIS);
}


int
redis_stream_read(redis_connection_t *conn, const char *key,
    bloom_position_t position, unsigned count, unsigned wait,
    redis_moment_t *moment)
{
    char  here[BLOOM_POSITION_TEXT_MAX + 2];

    redis_stream_free(moment);

    (void) bloom_position_write(position, here);

    /* an ID without its second part would be that of a whole millisecond */

    if (position.low == 0) {
        strcat(here, "-0");
    }

    if (wait != 0) {
        redis_append(conn, "XREAD COUNT 1 BLOCK %u STREAMS %s %s", wait, key,
                     here);
    }

    redis_append(conn, "INFO replication");
    redis_append(conn, "XRANGE %s %s + COUNT %u", key, here, count + 1);
    redis_append(conn, "XINFO STREAM %s", key);

    if ((wait != 0 && redis_answer(conn, "XREAD", wait / 1000 + 1) != 0)
        || redis_answer(conn, "INFO", 0) != 0
        || read_server(conn, &moment->facts) != 0
        || redis_answer(conn, "XRANGE", 0) != 0
        || read_entries(conn, position, moment) != 0
        || read_facts(conn, &moment->facts) != 0)
    {
        redis_stream_free(moment);
        return -1;
    }

    return 0;
}


void
redis_stream_free(redis_moment_t *moment)
{
    if (moment->reply != NULL) {
        freeReplyObject(moment->reply);
    }

    memset(moment, 0, sizeof(*moment));
}


int
redis_stream_clock(redis_connection_t *conn, uint64_t *ms)
{
    bloom_position_t   seconds;
    const redisReply  *reply;

    if (redis_command(conn, "TIME", "TIME") != 0) {
        return -1;
    }

    reply = conn->reply;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2
        || read_id(reply->element[0], &seconds) != 0
        || seconds.high > UINT64_MAX / 1000)
    {
        return redis_unexpected(conn, "TIME", REDIS_IS_REDIS);
    }

    *ms = seconds.high * 1000;

    return 0;
}


size_t
redis_stream_before(const redis_moment_t *moment, bloom_position_t position)
{
    size_t  n;

    n = moment->n;

    while (!bloom_position_is_zero(position) && n != 0
           && bloom_position_cmp(redis_stream_id(moment->entries[n - 1]),
                                 position)
              >= 0)
    {
        n--;
    }

    return n;
}
