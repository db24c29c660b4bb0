/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An origin is where a zone begins in a stream if it has no changes yet.
 *
 * A zone with an image begins an hour before the image's as_of: IDs of entries
 * are times, and clocks may differ by half an hour.  A zone that started empty
 * begins with the stream.  Or an operator says where a zone begins.
 */

#ifndef FOLLOW_ORIGIN_H
#define FOLLOW_ORIGIN_H

#include "stream_reader.h"


typedef enum {
    FOLLOW_FROM_IMAGE,                   /* an hour before the image's as_of */
    FOLLOW_FROM_BEGINNING,
    FOLLOW_FROM_NOW,
    FOLLOW_FROM_ID
} follow_from_t;

typedef struct {
    follow_from_t     from;
    bloom_position_t  id;                /* of FOLLOW_FROM_ID */
} follow_origin_t;

typedef enum {
    FOLLOW_ORIGIN_OK,
    FOLLOW_ORIGIN_UNKNOWN,               /* see `why` */
    FOLLOW_ORIGIN_FAILED                 /* see reader->redis.error */
} follow_origin_answer_t;


/*
 * Puts a cursor where a zone begins whose image has all changes up to `as_of`
 * (ms, 0: unknown), in the stream that was read last.  If nobody can know that,
 * writes the reason to `why`, which has `size` bytes.
 */
follow_origin_answer_t follow_origin_find(const follow_origin_t *origin,
    uint64_t as_of, stream_reader_t *reader, stream_cursor_t *cursor,
    char *why, size_t size);


#endif /* FOLLOW_ORIGIN_H */
