/* SPDX-License-Identifier: BSD-2-Clause */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "cli.h"
#include "fields.h"
#include "units.h"


static const struct {
    const char  *state;
    const char  *advice;
} states[] = {
    { "not_loaded", "no image serves, so every answer is unknown: read its "
                    "error log, and load an image" },
    { "stale", "the image is older than max_age, so every answer is unknown: "
               "load a newer image" },
    { "behind", "it has not applied all added keys yet: if this lasts, look "
                "for a stopped process of nginx, and at the disk of "
                "bloom_state_path" },
    { "damaged", "added keys were lost: load an image with an --as-of of more "
                 "than an hour after the loss" },
    { "late", "it may lack changes of its source, so keys that it lacks are "
              "unknown: look at its follower" },
    { NULL, "see \"State\" in docs/api.md" }
};


static void
check_state(findings_t *found, const node_row_t *row)
{
    size_t       i;
    const char  *state;

    state = field_text(row->zone->values, "state");

    if (strcmp(state, "serving") == 0) {
        return;
    }

    for (i = 0; states[i].state != NULL; i++) {
        if (strcmp(state, states[i].state) == 0) {
            break;
        }
    }

    row->zone->marks |= field_mark("state");

    findings_add(found, "state", row->zone->name, "%.*s is %s: %s",
                 row->node->name_len, row->node->name, state, states[i].advice);
}


static void
check_source(findings_t *found, const node_row_t *row)
{
    char          span[UNITS_LEN];
    uint64_t      lag;
    const char   *state;
    const json_t *values;

    values = row->zone->values;
    state = field_text(values, "source_state");
    lag = field_count(values, "lag_ms");

    if (field_text(values, "source") == NULL) {
        return;
    }

    if (state != NULL && strcmp(state, "current") != 0) {
        row->zone->marks |= field_mark("source_state");

        findings_add(found, "source_state", row->zone->name,
            "%.*s: the source is \"%s\": %s",
            row->node->name_len, row->node->name, state,
            strcmp(state, "gap") == 0
            ? "changes are missing; load an image with a later position"
            : "check that its follower runs and reaches it");

    } else if (lag != FIELD_UNKNOWN && lag > FIELD_LAG_MAX
               && field_count(values, "max_lag_ms") == FIELD_UNKNOWN)
    {
        row->zone->marks |= field_mark("lag_ms");

        findings_add(found, "lag", row->zone->name,
            "%.*s: the last sign of life of the source was %s ago; check that "
            "its follower runs and reaches it",
            row->node->name_len, row->node->name, format_span(span, lag));
    }
}


static void
check_journal(findings_t *found, const node_row_t *row)
{
    uint64_t     lost;
    const char  *error;

    error = field_text(row->zone->values, "journal_error");
    lost = field_count(row->zone->values, "lost_keys");

    if (error != NULL) {
        row->zone->marks |= field_mark("journal_error");

        findings_add(found, "journal_error", row->zone->name,
            "%.*s: the journal fails: %s; look at the disk of bloom_state_path",
            row->node->name_len, row->node->name, error);
    }

    if (lost != FIELD_UNKNOWN && lost != 0) {
        row->zone->marks |= field_mark("lost_keys");

        findings_add(found, "lost_keys", row->zone->name,
            "%.*s: %" PRIu64 " added key%s could not be written to the "
            "journal; look at the disk of bloom_state_path, and add the keys "
            "again",
            row->node->name_len, row->node->name, lost, CLI_S(lost));
    }
}


static void
check_load(findings_t *found, const node_row_t *row)
{
    const char  *result, *message;

    result = field_text(row->zone->values, "load_result");
    message = field_text(row->zone->values, "load_message");

    if (result != NULL && strcmp(result, "ok") != 0) {
        row->zone->marks |= field_mark("load_result");

        findings_add(found, "load", row->zone->name,
            "%.*s: the last load of an image ended with \"%s\"%s%s",
            row->node->name_len, row->node->name, result,
            message ? ": " : "; read its error log", message ? message : "");
    }
}


static void
check_helper(findings_t *found, const node_row_t *row)
{
    char      text[UNITS_LEN];
    uint64_t  silence;

    silence = field_count(row->zone->values, "helper_silence_ms");

    if (silence == FIELD_UNKNOWN || silence <= FIELD_SILENCE_MAX) {
        return;
    }

    row->zone->marks |= field_mark("helper");

    findings_add(found, "helper", row->zone->name,
        "%.*s: the helper has given no sign of life for %s; look there for "
        "\"nginx: cache manager process\" or \"nginx: bloom helper\"",
        row->node->name_len, row->node->name, format_span(text, silence));
}


void
check_zone(findings_t *found, const node_row_t *row)
{
    check_state(found, row);
    check_source(found, row);
    check_journal(found, row);
    check_load(found, row);
    check_helper(found, row);
}
