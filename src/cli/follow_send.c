/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file chooses how many entries a request has, and logs what a zone does
 * not get of them.
 */

#include "follow_log.h"
#include "follow_send.h"

#define RECOVERY  64                     /* bodies grow by a part of this */


/* Makes the next request smaller.  Returns 1; or 0 if it cannot be smaller. */
static int
send_less(follow_send_t *send, follow_answer_t answer)
{
    change_batch_t  *batch;

    batch = &send->batch;

    if (answer == FOLLOW_NODE_LARGE && batch->changes > 1) {
        send->max_body = batch->len / 2;
        return 1;
    }

    if (answer == FOLLOW_NODE_UNFIT && batch->entries > 1) {
        send->alone = batch->position;
        return 1;
    }

    return 0;
}


follow_answer_t
follow_send(follow_send_t *send, follow_node_t *node, bloom_position_t after,
    redisReply **entries, size_t n, uint64_t offset, follow_result_t *result)
{
    follow_answer_t  answer;

    do {
        if (bloom_position_cmp(after, send->alone) < 0) {
            n = 1;
        }

        change_batch_fill(&send->batch, entries, n, offset, send->max_body);

        answer = follow_node_changes(node, after, &send->batch, result);

    } while (send_less(send, answer));

    return answer;
}


void
follow_send_taken(follow_send_t *send, const char *zone, size_t max_body,
    redisReply **entries, const follow_result_t *result)
{
    send->max_body += send->max_body / RECOVERY + 1;

    if (send->max_body > max_body) {
        send->max_body = max_body;
    }

    invalid_keys_count(&send->invalid, zone, &send->batch, entries, result);

    if (send->batch.ignored != 0 && !send->warned) {
        send->warned = 1;
        follow_log(NULL, zone, FOLLOW_WARNING, "other_fields", "entries have "
                   "fields other than add and remove, which are ignored; this "
                   "is said once");
    }
}
