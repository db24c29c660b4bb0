/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read a Redis stream: its next entries, and what the server
 * knows about it, all at one moment.
 */

#ifndef REDIS_STREAM_H
#define REDIS_STREAM_H

#include "redis_connection.h"
#include "stream_judge.h"

#define REDIS_STREAM_COUNT_MAX  20000
#define REDIS_STREAM_BYTES_MAX  (64 * 1024 * 1024)


/* A moment of a stream; valid until the next command of the connection. */
typedef struct {
    stream_facts_t      facts;
    size_t              n;               /* entries after the position */
    redisReply        **entries;
    size_t              bytes;           /* of memory for the answer */
} redis_moment_t;


/* Sets what an answer to redis_stream_read() may have. */
void redis_stream_limits(redis_connection_t *conn);

/*
 * Reads up to `count` entries after a position.  If the stream has no entry
 * there yet, waits up to `wait` milliseconds for one.  Returns 0, or -1 with
 * conn->error.
 */
int redis_stream_read(redis_connection_t *conn, const char *key,
    bloom_position_t position, unsigned count, unsigned wait,
    redis_moment_t *moment);

/* Returns how many of the entries are before a position; all if it is 0-0. */
size_t redis_stream_before(const redis_moment_t *moment,
    bloom_position_t position);

/* Returns the ID of an entry. */
bloom_position_t redis_stream_id(const redisReply *entry);


#endif /* REDIS_STREAM_H */
