/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A tally of the invalid keys of a stream that a zone has left out, for the
 * log: how many there are, and which one was the first.
 */

#ifndef INVALID_KEYS_H
#define INVALID_KEYS_H

#include "change_batch.h"
#include "follow_node.h"


typedef struct {
    bloom_position_t  position;          /* all up to here are counted, */
    uint64_t          end;               /* and so many changes of that entry */

    uint64_t          keys;              /* how many are not logged yet, */
    bloom_position_t  entry;             /* which entry has the first one, */
    uint64_t          number;            /* which change of it that is, */
    char              reason[128];       /* and why it is invalid */
    double            said_at;
} invalid_keys_t;


/* Counts the invalid keys of a batch that a zone has taken, and logs them.
 * Keys of entries that were sent before, as after a restart of nginx, are not
 * counted again. */
void invalid_keys_count(invalid_keys_t *invalid, const char *zone,
    const change_batch_t *batch, redisReply **entries,
    const follow_result_t *result);

/* Logs the keys that are not logged yet: once a second, or `now`. */
void invalid_keys_say(invalid_keys_t *invalid, const char *zone, int now);


#endif /* INVALID_KEYS_H */
