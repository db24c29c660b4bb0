/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file checks the state of one zone.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "node_check.h"
#include "units.h"


static const struct {
    const char  *state;
    const char  *advice;
} states[] = {
    { "not_loaded", "no image serves, so every answer is unknown: read its "
                    "error log, and load an image" },
    { "stale", "the image is older than max_age, so every answer is unknown: "
               "load a newer image" },
    { "behind", "it has not applied all added keys yet: if this lasts, look for "
                "a stopped process of nginx, and at the disk of "
                "bloom_state_path" },
    { "damaged", "added keys were lost: load an image with an --as-of of more "
                 "than an hour after the loss" },
    { "late", "it may lack changes of its source, so keys that it lacks are "
              "unknown: look at its follower" }
};

#define STATES  (sizeof(states) / sizeof(states[0]))


static void
check_state(node_findings_t *found, const node_row_t *row)
{
    size_t        i;
    node_zone_t  *zone;

    zone = row->zone;

    if (strcmp(zone->state, "serving") == 0) {
        return;
    }

    for (i = 0; i < STATES; i++) {
        if (strcmp(zone->state, states[i].state) == 0) {
            break;
        }
    }

    zone->marks |= NODE_MARK_STATE;

    node_findings_add(found, "state", zone->name,
        "%.*s is %s: %s", row->node->name_len,
        row->node->name, zone->state,
        i < STATES ? states[i].advice : "see \"State\" in docs/api.md");
}


static void
check_source(node_findings_t *found, const node_row_t *row)
{
    char          lag[UNITS_LEN];
    node_t       *node;
    node_zone_t  *zone;

    node = row->node;
    zone = row->zone;

    if (zone->source == NULL) {
        return;
    }

    if (zone->source_state != NULL
        && strcmp(zone->source_state, "current") != 0)
    {
        zone->marks |= NODE_MARK_SOURCE;

        node_findings_add(found, "source_state", zone->name,
            "%.*s: the source is \"%s\": %s",
            node->name_len, node->name, zone->source_state,
            strcmp(zone->source_state, "gap") == 0
            ? "changes are missing; load an image with a later position"
            : "check that its follower runs and reaches it");
        return;
    }

    if (zone->lag != NODE_UNKNOWN && zone->max_lag == NODE_UNKNOWN
        && zone->lag > NODE_LAG_MAX)
    {
        zone->marks |= NODE_MARK_SOURCE;

        node_findings_add(found, "lag", zone->name,
            "%.*s: the last sign of life of the "
            "source was %s ago; check that its follower runs and reaches it",
            node->name_len, node->name, format_span(lag, zone->lag));
    }
}


static void
check_journal(node_findings_t *found, const node_row_t *row)
{
    node_t       *node;
    node_zone_t  *zone;

    node = row->node;
    zone = row->zone;

    if (zone->journal_error != NULL) {
        zone->marks |= NODE_MARK_JOURNAL;

        node_findings_add(found, "journal_error", zone->name,
            "%.*s: the journal fails: %s; "
            "look at the disk of bloom_state_path", node->name_len, node->name,
            zone->journal_error);
    }

    if (zone->lost_keys != NODE_UNKNOWN && zone->lost_keys != 0) {
        zone->marks |= NODE_MARK_JOURNAL;

        node_findings_add(found, "lost_keys", zone->name,
            "%.*s: %" PRIu64 " added key%s "
            "could not be written to the journal; look at the disk of "
            "bloom_state_path, and add the keys again", node->name_len,
            node->name, zone->lost_keys, CLI_S(zone->lost_keys));
    }

    if (zone->load_result != NULL && strcmp(zone->load_result, "ok") != 0) {
        zone->marks |= NODE_MARK_IMAGE;

        node_findings_add(found, "load", zone->name,
            "%.*s: the last load of an image ended "
            "with \"%s\"%s%s", node->name_len, node->name, zone->load_result,
            zone->load_message ? ": " : "; read its error log",
            zone->load_message ? zone->load_message : "");
    }
}


static void
check_helper(node_findings_t *found, const node_row_t *row)
{
    char      text[UNITS_LEN];
    uint64_t  silence;

    silence = node_state_silence(row->node, row->zone);

    if (silence == NODE_UNKNOWN || silence <= NODE_SILENCE_MAX) {
        return;
    }

    row->zone->marks |= NODE_MARK_HELPER;

    node_findings_add(found, "helper", row->zone->name,
        "%.*s: the helper has given no sign "
        "of life for %s; look for \"nginx: cache manager process\" there",
        row->node->name_len, row->node->name, format_span(text, silence));
}


void
node_check(node_findings_t *found, const node_row_t *row)
{
    check_state(found, row);
    check_source(found, row);
    check_journal(found, row);
    check_helper(found, row);
}
