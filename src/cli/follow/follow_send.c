/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file chooses how many entries a request has, and logs what a zone does
 * not get of them.
 */

#include "cli.h"
#include "follow_log.h"
#include "follow_send.h"

#define RECOVERY  64                     /* bodies grow by a part of this */
#define PAUSE     60.0                   /* seconds between two warnings */
#define SHOWN     64                     /* bytes of a field's name */


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


/* Names a field that is no change, at most once in a while. */
static void
name_other_field(follow_send_t *send, const char *zone)
{
    char                   text[BLOOM_POSITION_TEXT_MAX];
    const change_batch_t  *batch;

    batch = &send->batch;

    if (batch->other == NULL
        || (send->warned_at != 0 && cli_now() - send->warned_at < PAUSE))
    {
        return;
    }

    send->warned_at = cli_now();
    bloom_position_write(batch->other_entry, text);

    follow_log(NULL, zone, FOLLOW_WARNING, "other_fields", "the entry %s of "
               "the stream has the field \"%.*s\", which is no change and is "
               "left out: keys are in fields add and remove", text,
               (int) (batch->other->len < SHOWN ? batch->other->len : SHOWN),
               batch->other->str);
}


void
follow_send_taken(follow_send_t *send, const char *zone, size_t max_body,
    redisReply **entries, const follow_result_t *result)
{
    send->max_body += send->max_body / RECOVERY + 1;

    if (send->max_body > max_body) {
        send->max_body = max_body;
    }

    follow_counts_add(&send->counts, &result->counts);
    invalid_keys_count(&send->invalid, zone, &send->batch, entries, result);

    name_other_field(send, zone);
}


void
follow_send_end(follow_send_t *send, const char *zone)
{
    invalid_keys_say(&send->invalid, zone, 1);
    follow_counts_say(&send->counts, zone);

    free(send->batch.body);
}
