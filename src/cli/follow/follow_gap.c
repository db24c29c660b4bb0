/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdio.h>

#include "follow_gap.h"
#include "follow_log.h"


/* Writes what a gap is.  Returns its event. */
static const char *
name_gap(const stream_judgment_t *gap, char *what, size_t size)
{
    switch (gap->verdict) {

    case STREAM_TRIMMED:

        if (gap->entries != 0) {
            snprintf(what, size, "the stream was trimmed before this zone had "
                     "all entries: %llu %s missing",
                     (unsigned long long) gap->entries,
                     gap->entries == 1 ? "is" : "are");
        } else {
            snprintf(what, size, "the stream was trimmed, and entries that "
                     "this zone lacks may have been among those that are gone");
        }

        return "gap_trimmed";

    case STREAM_LOST_END:
        snprintf(what, size, "the stream ends before the zone's position: a "
                 "failover to a replica lost its end, or it was recreated");
        return "gap_lost_end";

    case STREAM_XDEL:
        snprintf(what, size, "an entry was deleted before this zone had it");
        return "gap_entry_deleted";

    default:
        snprintf(what, size, "the stream has no entry at the zone's position, "
                 "so entries may be missing: it was recreated, a failover lost "
                 "its end, the entry was deleted, or the position of an image "
                 "is not the ID of an entry");
        return "gap_replaced";
    }
}


void
follow_gap_say(const char *zone, const char *source,
    const stream_judgment_t *judgment, bloom_position_t from, int closed)
{
    int          none;
    char         was[BLOOM_POSITION_TEXT_MAX], to[BLOOM_POSITION_TEXT_MAX];
    char         what[256];
    const char  *event;

    event = name_gap(judgment, what, sizeof(what));
    bloom_position_write(from, was);
    bloom_position_write(judgment->missing, to);

    if (closed) {
        follow_log(NULL, zone, FOLLOW_ERROR, event, "%s; the zone was at %s "
                   "and goes on from %s; the image that serves is from there, "
                   "so the zone does not wait for a newer one; load one all "
                   "the same, built with --source %s=P, where P is later than "
                   "%s", what, was, to, source, to);
        return;
    }

    /* no image is at 0 */

    none = bloom_position_is_zero(judgment->missing);

    follow_log(NULL, zone, FOLLOW_ERROR, event, "%s; the zone was at %s, goes "
               "on from %s, and answers unknown until you load an image built "
               "with --source %s=P, where P is %s%s", what, was, to, source,
               none ? "the ID of an entry that the stream gets from now on"
                    : to,
               none ? "" : " or later");
}
