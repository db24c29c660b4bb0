/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A batch is the body of a request that carries changes to a zone: whole
 * entries of a stream, in order.
 *
 * A body has a line for each change, +key or -key.  A key that has a line feed,
 * or a carriage return at its end, cannot be in a line.  Its entry is sent
 * alone, as a JSON array of texts, if its keys are UTF-8.
 */

#ifndef CHANGE_BATCH_H
#define CHANGE_BATCH_H

#include "redis_stream.h"


typedef struct {
    char              *body;
    size_t             len;
    size_t             size;             /* of the memory */
    int                json;
    size_t             entries;
    size_t             changes;
    size_t             ignored;          /* fields with other names */
    bloom_position_t   position;         /* of the last entry */
} change_batch_t;


/*
 * Fills a batch with up to `n` entries, whose body may have `max` bytes.
 * Returns 0; or -1, with *why, if the first entry cannot be sent.
 */
int change_batch_fill(change_batch_t *batch, redisReply **entries, size_t n,
    size_t max, const char **why);


#endif /* CHANGE_BATCH_H */
