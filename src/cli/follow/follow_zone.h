/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A follower of a zone carries a Redis stream's changes to one zone, in a
 * thread with connections of its own.  So a dead nginx holds up no other.
 */

#ifndef FOLLOW_ZONE_H
#define FOLLOW_ZONE_H

#include <pthread.h>

#include "follow_log.h"
#include "follow_node.h"
#include "follow_origin.h"


/* What all followers of a command have in common. */
typedef struct {
    const char       *redis;             /* a valid URL */
    const char       *stream;
    const char       *source;
    follow_origin_t   origin;
    int               empty;             /* 1: the stream may not exist yet */
    int               once;
    unsigned          answer_timeout;    /* seconds */
    http_settings_t   http;

    pthread_mutex_t   lock;
    pthread_cond_t    wake;              /* `stop` is set */
    int               stop;
} follow_settings_t;

typedef enum {
    FOLLOW_STARTING,
    FOLLOW_BEHIND,
    FOLLOW_CURRENT,
    FOLLOW_FAILING,
    FOLLOW_DONE,                         /* with --once */
    FOLLOW_GAVE_UP                       /* with --once */
} follow_phase_t;

/* What others may see of a follower. */
typedef struct {
    follow_phase_t    phase;
    bloom_position_t  position;
    uint64_t          changes;           /* sent */
    uint64_t          invalid;           /* of these */
    int               gaps;
} follow_view_t;

typedef struct follow_zone_s  follow_zone_t;


/* Starts a follower.  The settings must stay. */
follow_zone_t *follow_zone_start(follow_settings_t *settings, const char *url);

void follow_zone_view(follow_zone_t *zone, follow_view_t *view);

/* Returns the URL of the zone without its password. */
const char *follow_zone_name(const follow_zone_t *zone);

/* Waits until the follower has ended, or until a time of CLOCK_REALTIME.
 * Returns 0 if it has ended, else -1. */
int follow_zone_join(follow_zone_t *zone, const struct timespec *until);


#endif /* FOLLOW_ZONE_H */
