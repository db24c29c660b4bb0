/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A node is a zone of an nginx, reached by HTTP: where it is in its source, and
 * the requests that move it (docs/api.md).
 */

#ifndef FOLLOW_NODE_H
#define FOLLOW_NODE_H

#include "bloom_source.h"
#include "change_batch.h"
#include "follow_counts.h"
#include "http_client.h"


typedef enum {
    FOLLOW_NODE_OK,
    FOLLOW_NODE_ELSEWHERE,               /* the zone is at another position: ask
                                            for its state */
    FOLLOW_NODE_LARGE,                   /* the body is too large */
    FOLLOW_NODE_UNFIT,                   /* the changes cannot be applied */
    FOLLOW_NODE_FAILED,                  /* try again */
    FOLLOW_NODE_REFUSED                  /* an operator has to do something */
} follow_answer_t;

typedef struct {
    bloom_position_t  position;
    int               gap;               /* changes are missing */
    size_t            max_body;
    uint64_t          as_of;             /* of the image, in ms; 0: none */
    int               empty;             /* 1: no image was ever loaded */
} follow_state_t;

typedef struct {
    bloom_position_t  position;
    uint64_t          offset;            /* changes after it that the zone
                                            has */
    follow_counts_t   counts;
    uint64_t          number;            /* of the first invalid change in the
                                            batch, from 1 */
    char              reason[128];       /* why its key is invalid */
} follow_result_t;

typedef struct {
    http_client_t    *http;
    char             *url;
    const char       *source;
    const char       *event;             /* of the last answer that is not OK */
    char              error[1024];       /* what it says, and what to do */
} follow_node_t;


void follow_node_open(follow_node_t *node, const char *url, const char *source,
    const http_settings_t *settings);
void follow_node_close(follow_node_t *node);

/* Asks for the state of the zone. */
follow_answer_t follow_node_state(follow_node_t *node, follow_state_t *state);

/* Sends a batch of changes to a zone at the position `after`.  An empty batch
 * moves the zone or, if it has the same position, is a sign of life. */
follow_answer_t follow_node_changes(follow_node_t *node,
    bloom_position_t after, const change_batch_t *batch,
    follow_result_t *result);

/* Says that changes are missing up to a position. */
follow_answer_t follow_node_gap(follow_node_t *node,
    bloom_position_t position);


#endif /* FOLLOW_NODE_H */
