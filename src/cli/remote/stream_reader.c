/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads a stream in answers of a suitable size, over connections that
 * may be closed.
 */

#include <stdio.h>
#include <string.h>

#include "stream_reader.h"

#define COUNT_FIRST   500
#define ANSWER_BYTES  (8 * 1024 * 1024)  /* that an answer should have */
#define GROWTH        4                  /* times as many entries, or fewer */
#define RECOVERY      64                 /* count_max grows by a part of this */


void
stream_reader_open(stream_reader_t *reader, const char *url, unsigned timeout,
    const tls_settings_t *tls)
{
    memset(reader, 0, sizeof(*reader));

    reader->count = COUNT_FIRST;
    reader->count_max = REDIS_STREAM_COUNT_MAX;

    reader->redis.timeout = timeout;
    reader->redis.option = "--answer-timeout";
    reader->redis.tls_settings = *tls;
    redis_stream_limits(&reader->redis);
    (void) redis_url_parse_server(&reader->redis.url, url);
}


void
stream_reader_close(stream_reader_t *reader)
{
    redis_stream_free(&reader->moment);
    redis_disconnect(&reader->redis);
    redis_url_free(&reader->redis.url);
}


static stream_read_t
failed(stream_reader_t *reader)
{
    redis_disconnect(&reader->redis);

    return STREAM_READ_FAILED;
}


/*
 * Decides what to do after an answer that did not come.  A server may have
 * closed a connection that was idle, so a new one is tried first.  An answer
 * that is too long, also one for which the server closes a new connection, is
 * read again in smaller parts.
 */
static stream_read_t
not_read(stream_reader_t *reader, bloom_position_t position)
{
    char                 text[BLOOM_POSITION_TEXT_MAX];
    redis_connection_t  *redis;

    redis = &reader->redis;

    if (redis->closed && reader->answered) {
        redis_disconnect(redis);
        return STREAM_READ_AGAIN;
    }

    if ((redis->too_long || redis->closed) && reader->count > 1) {
        reader->count = (reader->count + GROWTH - 1) / GROWTH;
        reader->count_max = reader->count;
        redis_disconnect(redis);
        return STREAM_READ_AGAIN;
    }

    if (redis->too_long) {
        bloom_position_write(position, text);
        snprintf(redis->error, sizeof(redis->error), "the entry at %s or after "
                 "it, or the first or last one of the stream, is larger than "
                 "%d MiB; delete it with XDEL", text,
                 REDIS_STREAM_BYTES_MAX / 1024 / 1024);
    }

    return failed(reader);
}


/* Chooses how many entries to ask for next. */
static void
choose_count(stream_reader_t *reader)
{
    uint64_t               count;
    const redis_moment_t  *moment;

    moment = &reader->moment;

    if (moment->n == 0) {
        return;
    }

    reader->count_max += reader->count_max / RECOVERY + 1;

    if (reader->count_max > REDIS_STREAM_COUNT_MAX) {
        reader->count_max = REDIS_STREAM_COUNT_MAX;
    }

    count = ANSWER_BYTES / (moment->bytes / moment->n + 1);
    count = count < GROWTH * reader->count ? count : GROWTH * reader->count;
    count = count < reader->count_max ? count : reader->count_max;
    reader->count = count > 1 ? (unsigned) count : 1;
}


stream_read_t
stream_reader_read(stream_reader_t *reader, const char *key,
    bloom_position_t position, unsigned wait)
{
    if (reader->redis.reader == NULL) {

        reader->answered = 0;

        if (redis_connect(&reader->redis) != 0) {
            return failed(reader);
        }
    }

    if (redis_stream_read(&reader->redis, key, position, reader->count, wait,
                          &reader->moment)
        != 0)
    {
        return not_read(reader, position);
    }

    reader->answered = 1;
    choose_count(reader);

    return STREAM_READ;
}


int
stream_reader_clock(stream_reader_t *reader, uint64_t *ms)
{
    if (redis_stream_clock(&reader->redis, ms) != 0) {
        (void) failed(reader);
        return -1;
    }

    return 0;
}
