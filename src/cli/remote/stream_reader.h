/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A stream reader reads a Redis stream, over a connection that it opens when it
 * needs one.
 *
 * It asks for as many entries at a time as one answer may have, for this program
 * and for the server.  A connection that the server closed while it was idle is
 * no failure: the reader opens another one.
 */

#ifndef STREAM_READER_H
#define STREAM_READER_H

#include "redis_stream.h"


typedef struct {
    redis_connection_t  redis;           /* `error` is the last failure */
    redis_moment_t      moment;          /* what was read last */
    unsigned            count;           /* of entries to ask for */
    unsigned            count_max;       /* less after an answer that was too
                                            long */
    int                 answered;        /* 1: this connection had an answer */
} stream_reader_t;

typedef enum {
    STREAM_READ,
    STREAM_READ_AGAIN,                   /* no failure yet: try again */
    STREAM_READ_FAILED                   /* see redis.error */
} stream_read_t;


/* Prepares a reader of a server, whose URL is valid.  Answers may take `timeout`
 * seconds. */
void stream_reader_open(stream_reader_t *reader, const char *url,
    unsigned timeout, const tls_settings_t *tls);
void stream_reader_close(stream_reader_t *reader);

/* Reads as redis_stream_read() does: reader->count entries into
 * reader->moment. */
stream_read_t stream_reader_read(stream_reader_t *reader, const char *key,
    bloom_position_t position, unsigned wait);

/* Asks for the server's clock as redis_stream_clock() does. */
int stream_reader_clock(stream_reader_t *reader, uint64_t *ms);


#endif /* STREAM_READER_H */
