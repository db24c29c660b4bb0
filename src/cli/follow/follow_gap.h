/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function logs that changes of a stream are missing, and what to do.
 */

#ifndef FOLLOW_GAP_H
#define FOLLOW_GAP_H

#include "bloom_source.h"
#include "stream_judge.h"


/* Logs a gap of a zone that was at the position `from` and goes on from
 * judgment->missing.  `closed`: 1 if the zone does not wait for an image. */
void follow_gap_say(const char *zone, const char *source,
    const stream_judgment_t *judgment, bloom_position_t from, int closed);


#endif /* FOLLOW_GAP_H */
