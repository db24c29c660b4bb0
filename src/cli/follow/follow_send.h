/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A sender packs entries of a stream into requests to a zone, and learns from
 * refusals how large a request may be, and which entry is refused.
 */

#ifndef FOLLOW_SEND_H
#define FOLLOW_SEND_H

#include "change_batch.h"
#include "follow_counts.h"
#include "follow_node.h"
#include "invalid_keys.h"


typedef struct {
    size_t            max_body;          /* less than the zone's after 413 */
    bloom_position_t  alone;             /* up to here each request has one
                                            entry, since one was refused */
    change_batch_t    batch;             /* what was sent last */
    invalid_keys_t    invalid;
    follow_counts_t   counts;            /* of all requests */
    double            warned_at;         /* of other fields; 0: never */
} follow_send_t;


/*
 * Sends as many of `n` entries, without the first `offset` changes of the first
 * one, as fit into a request to a zone at the position `after`; or a part of
 * the first one.  If a request is too large, or has an entry that the zone
 * refuses, sends a smaller one.  Returns the answer: FOLLOW_NODE_LARGE and
 * FOLLOW_NODE_UNFIT mean that the entry at send->batch.position is refused.
 */
follow_answer_t follow_send(follow_send_t *send, follow_node_t *node,
    bloom_position_t after, redisReply **entries, size_t n, uint64_t offset,
    follow_result_t *result);

/* Notes that the zone has taken the request, and logs what was left out.  The
 * next requests may be a little larger, up to the zone's `max_body`. */
void follow_send_taken(follow_send_t *send, const char *zone, size_t max_body,
    redisReply **entries, const follow_result_t *result);

/* Logs what the zone has done with all changes, and frees the batch. */
void follow_send_end(follow_send_t *send, const char *zone);


#endif /* FOLLOW_SEND_H */
