/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read a Redis stream: its next entries, and what the server
 * knows about it.
 */

#ifndef REDIS_STREAM_H
#define REDIS_STREAM_H

#include "redis_connection.h"
#include "stream_judge.h"

#define REDIS_STREAM_COUNT_MAX  20000
#define REDIS_STREAM_BYTES_MAX  (64 * 1024 * 1024)


/* What was read of a stream.  All zeros: nothing. */
typedef struct {
    stream_facts_t      facts;
    size_t              n;               /* entries after the position */
    redisReply        **entries;
    size_t              bytes;           /* of memory for the entries */
    redisReply         *reply;           /* that has the entries */
} redis_moment_t;


/* Sets what an answer to redis_stream_read() may have. */
void redis_stream_limits(redis_connection_t *conn);

/*
 * Reads at least `count` entries after a position, if the stream has so many.
 * If it has no entry there yet, waits up to `wait` milliseconds for one.  Frees
 * what `moment` had before.  Returns 0, or -1 with conn->error.
 */
int redis_stream_read(redis_connection_t *conn, const char *key,
    bloom_position_t position, unsigned count, unsigned wait,
    redis_moment_t *moment);

/* Frees the entries of a moment. */
void redis_stream_free(redis_moment_t *moment);

/* Asks for the server's clock, in milliseconds since the epoch.  Returns 0, or
 * -1 with conn->error. */
int redis_stream_clock(redis_connection_t *conn, uint64_t *ms);

/* Returns how many of the entries are before a position; all if it is 0-0. */
size_t redis_stream_before(const redis_moment_t *moment,
    bloom_position_t position);

/* Returns the ID of an entry. */
bloom_position_t redis_stream_id(const redisReply *entry);


#endif /* REDIS_STREAM_H */
