/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file counts and logs the invalid keys of a stream.
 */

#include <string.h>

#include "cli.h"
#include "follow_log.h"
#include "invalid_keys.h"

#define PAUSE  1.0                       /* seconds between two messages */


void
invalid_keys_count(invalid_keys_t *invalid, const char *zone,
    const change_batch_t *batch, redisReply **entries,
    const follow_result_t *result)
{
    int       order;
    uint64_t  end;

    order = bloom_position_cmp(batch->position, invalid->position);
    end = batch->offset + batch->changes;

    if (order < 0 || (order == 0 && end <= invalid->end)) {
        return;
    }

    invalid->position = batch->position;
    invalid->end = end;

    if (result->counts.invalid == 0) {
        return;
    }

    if (invalid->keys == 0) {
        invalid->number = result->number;
        invalid->entry = change_batch_find(batch, entries, &invalid->number);
        memcpy(invalid->reason, result->reason, sizeof(invalid->reason));
    }

    invalid->keys += result->counts.invalid;
    invalid_keys_say(invalid, zone, 0);
}


void
invalid_keys_say(invalid_keys_t *invalid, const char *zone, int now)
{
    char  text[BLOOM_POSITION_TEXT_MAX];

    if (invalid->keys == 0 || (!now && cli_now() - invalid->said_at < PAUSE))
    {
        return;
    }

    bloom_position_write(invalid->entry, text);

    follow_log(NULL, zone, FOLLOW_WARNING, "invalid_keys",
               "left out %llu invalid key%s: %s in change %llu of the entry "
               "%s, and %s; correct what adds to the stream",
               (unsigned long long) invalid->keys, CLI_S(invalid->keys),
               invalid->keys == 1 ? "it is" : "the first one is",
               (unsigned long long) invalid->number, text, invalid->reason);

    invalid->keys = 0;
    invalid->said_at = cli_now();
}
