/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A batch is the body of a request that carries changes to a zone: whole
 * entries of a stream, in order; or a part of an entry that is too large.
 *
 * A body has a line for each change, +key or -key, in which "%" and line ends
 * are percent-encoded.  So it can have any key.
 */

#ifndef CHANGE_BATCH_H
#define CHANGE_BATCH_H

#include "redis_stream.h"


typedef struct {
    char              *body;
    size_t             len;
    size_t             size;             /* of the memory */
    size_t             entries;          /* 1 if it is a part of one */
    size_t             changes;
    const redisReply  *other;            /* the first field with another name;
                                            NULL: all are changes */
    bloom_position_t   other_entry;      /* which has it */
    uint64_t           offset;           /* changes of the first entry that come
                                            before those in the body */
    int                more;             /* 1: and others come after them */
    bloom_position_t   position;         /* of the last entry */
} change_batch_t;


/*
 * Fills a batch with up to `n` entries, without the first `offset` changes of
 * the first one.  The body has at most `max` bytes, but at least one change if
 * any is left.
 */
void change_batch_fill(change_batch_t *batch, redisReply **entries, size_t n,
    uint64_t offset, size_t max);

/* Finds a change of the batch, by its number from 1.  Returns the position of
 * its entry, and stores in *number which change of the entry it is. */
bloom_position_t change_batch_find(const change_batch_t *batch,
    redisReply **entries, uint64_t *number);


#endif /* CHANGE_BATCH_H */
