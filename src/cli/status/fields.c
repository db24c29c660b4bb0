/* SPDX-License-Identifier: BSD-2-Clause */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "document.h"
#include "fields.h"
#include "units.h"

#define CONFIGURE  "configure the zone alike on all nodes"
#define LOAD       "load the same image on all nodes"


/* In the order of the columns. */
const field_t  fields[] = {
    { "name", "name", FIELD_TEXT, .title = "zone" },
    { "state", "state", FIELD_TEXT, .title = "state" },
    { "generation", "generation", FIELD_COUNT, .title = "gen", .right = 1 },

    { "build_id", "image.build_id", FIELD_ID, .title = "image" },
    { "form", "image.form", FIELD_TEXT, .mark = "build_id",
      .compared = FIELD_FORM, .words = "the key form",
      .advice = "the nodes answer differently for the same key: " LOAD },
    { "as_of", "image.as_of", FIELD_TEXT, .mark = "build_id" },
    { "created", "image.created", FIELD_TEXT, .mark = "build_id" },
    { "items", "image.items", FIELD_COUNT, .mark = "estimated_items" },
    { "geometry", NULL, FIELD_TEXT, .hidden = 1, .mark = "build_id",
      .compared = FIELD_IF_ALIKE, .words = "the geometry of the filter",
      .advice = CONFIGURE },
    { "file", "file", FIELD_TEXT, .hidden = 1 },
    { "uploaded", "image.uploaded", FIELD_FLAG, .hidden = 1 },
    { "items_estimated", "image.items_estimated", FIELD_FLAG, .hidden = 1 },
    { "layout", "image.layout", FIELD_TEXT, .hidden = 1 },
    { "lines", "image.lines", FIELD_COUNT, .hidden = 1 },
    { "hash", "image.hash", FIELD_TEXT, .hidden = 1 },
    { "k", "image.k", FIELD_COUNT, .hidden = 1 },
    { "bits", "image.bits", FIELD_COUNT, .hidden = 1 },

    { "estimated_items", "filter.estimated_items", FIELD_COUNT,
      .title = "keys", .right = 1 },
    { "max_items", "filter.max_items", FIELD_COUNT,
      .mark = "estimated_items", .compared = FIELD_IF_ALIKE,
      .words = "the number of keys that the filter has room for",
      .advice = CONFIGURE },
    { "layers", "filter.layers", FIELD_COUNT, .hidden = 1 },
    { "fill_ratio", "filter.fill_ratio", FIELD_RATE, .title = "fill",
      .right = 1 },
    { "bits_set", "filter.bits_set", FIELD_COUNT, .title = "bits set",
      .right = 1 },

    { "expire_seconds", "expire.seconds", FIELD_COUNT, .hidden = 1 },
    { "expire_slices", "expire.slices", FIELD_COUNT, .hidden = 1 },
    { "expire", NULL, FIELD_TEXT, .hidden = 1, .mark = "estimated_items",
      .compared = FIELD_ALWAYS, .words = "the life of keys",
      .advice = CONFIGURE },

    { "removed", "removals.count", FIELD_COUNT, .title = "removed",
      .right = 1 },
    { "excepted", "removals.excepted", FIELD_COUNT },
    { "removals_limit", "removals.limit", FIELD_COUNT, .hidden = 1,
      .mark = "removed", .compared = FIELD_ALWAYS,
      .words = "the room for removed keys", .advice = CONFIGURE },

    { "source", "source.name", FIELD_TEXT, .mark = "source_state",
      .compared = FIELD_ALWAYS, .missing = "none", .words = "the source",
      .advice = CONFIGURE },
    { "source_state", "source.state", FIELD_TEXT, .title = "source",
      .source = 1 },
    { "position", "source.position", FIELD_TEXT, .title = "position",
      .right = 1, .source = 1, .mark = "source_state" },
    { "digest", "source.digest", FIELD_ID, .title = "digest", .source = 1,
      .compared = FIELD_IF_CHANGES,
      .words = "the digest of the source's changes",
      .advice = "the nodes got different changes: see whether their followers "
                "read the same stream, and load a newer image on all nodes" },
    { "digest_since", "source.digest_since", FIELD_TEXT },
    { "lag_ms", "source.lag_ms", FIELD_SPAN, .title = "lag", .right = 1,
      .source = 1, .mark = "source_state" },
    { "max_lag_ms", "source.max_lag_ms", FIELD_COUNT, .hidden = 1 },

    { "journal_enabled", "journal.enabled", FIELD_FLAG, .hidden = 1 },
    { "journal_error", "journal.error", FIELD_TEXT, .mark = "journal" },
    { "lost_keys", "journal.lost_keys", FIELD_COUNT, .mark = "journal" },
    { "journal", NULL, FIELD_TEXT, .hidden = 1, .title = "journal" },
    { "journal_use", NULL, FIELD_TEXT, .hidden = 1, .mark = "journal",
      .compared = FIELD_ALWAYS, .words = "the journal", .advice = CONFIGURE },

    { "load_result", "load.result", FIELD_TEXT, .hidden = 1,
      .mark = "build_id" },
    { "load_message", "load.message", FIELD_TEXT, .hidden = 1 },
    { "heartbeat", "helper.heartbeat", FIELD_TEXT, .hidden = 1 },
    { "helper_silence_ms", NULL, FIELD_COUNT },
    { "helper", NULL, FIELD_TEXT, .hidden = 1, .title = "helper" },
    { "version", NULL, FIELD_TEXT, .hidden = 1, .title = "version",
      .words = "the version of the module",
      .advice = "install the same version on all nodes" }
};

const size_t  fields_n = sizeof(fields) / sizeof(fields[0]);

_Static_assert(sizeof(fields) / sizeof(fields[0]) <= 64,
               "each field has a bit of marks");


const char *
field_text(const json_t *values, const char *name)
{
    return json_string_value(json_object_get(values, name));
}


uint64_t
field_count(const json_t *values, const char *name)
{
    uint64_t  count;

    return document_count(values, name, &count) == 0 ? count : FIELD_UNKNOWN;
}


uint64_t
field_mark(const char *name)
{
    size_t  i;

    for (i = 0; strcmp(fields[i].name, name) != 0; i++) {
        /* void */
    }

    return fields[i].mark != NULL ? field_mark(fields[i].mark)
                                  : (uint64_t) 1 << i;
}


/* Returns 1 if a value is of a kind, else 0: then it is unknown. */
static int
is_of_kind(const json_t *value, field_kind_t kind)
{
    switch (kind) {

    case FIELD_COUNT:
    case FIELD_SPAN:
        return json_is_integer(value) && json_integer_value(value) >= 0;

    case FIELD_RATE:
        return json_is_number(value) && json_number_value(value) >= 0
               && json_number_value(value) <= 1;

    case FIELD_FLAG:
        return json_is_boolean(value);

    default:
        return json_is_string(value);
    }
}


json_t *
fields_take(const json_t *state)
{
    size_t   i;
    json_t  *values, *value;

    values = json_object();

    for (i = 0; i < fields_n; i++) {

        value = fields[i].path != NULL ? document_member(state, fields[i].path)
                                       : NULL;

        if (is_of_kind(value, fields[i].kind)) {
            (void) json_object_set(values, fields[i].name, value);
        }
    }

    return values;
}


static void set_text(json_t *values, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void
set_text(json_t *values, const char *name, const char *fmt, ...)
{
    char     text[128];
    va_list  args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    (void) json_object_set_new(values, name, json_string(text));
}


static void
derive_journal(json_t *values)
{
    uint64_t       lost;
    const json_t  *enabled;

    enabled = json_object_get(values, "journal_enabled");
    lost = field_count(values, "lost_keys");

    if (enabled == NULL) {
        return;
    }

    set_text(values, "journal_use", json_is_true(enabled) ? "on" : "off");
    set_text(values, "journal",
             field_text(values, "journal_error") != NULL ? "fails"
             : lost != FIELD_UNKNOWN && lost != 0 ? "lost keys"
             : field_text(values, "journal_use"));
}


/* Derives the time since the helper's last sign of life, by the clock of the
 * node. */
static void
derive_helper(json_t *values, int64_t date)
{
    uint64_t     now, heartbeat, silence;
    const char  *text;

    text = field_text(values, "heartbeat");

    if (date < 0 || text == NULL || parse_time(text, &heartbeat) != 0) {
        return;
    }

    now = (uint64_t) date * 1000;
    silence = now > heartbeat ? now - heartbeat : 0;

    (void) json_object_set_new(values, "helper_silence_ms",
                               json_integer((json_int_t) silence));
    set_text(values, "helper", silence > FIELD_SILENCE_MAX ? "silent" : "ok");
}


void
fields_derive(json_t *values, const char *version, int64_t date)
{
    const char  *layout, *hash;

    layout = field_text(values, "layout");
    hash = field_text(values, "hash");

    if (layout != NULL && hash != NULL
        && field_count(values, "bits") != FIELD_UNKNOWN)
    {
        set_text(values, "geometry", "%.16s, %" PRIu64 " bits, k %" PRIu64
                 ", lines %" PRIu64 ", %.16s", layout,
                 field_count(values, "bits"), field_count(values, "k"),
                 field_count(values, "lines"), hash);
    }

    if (field_count(values, "expire_seconds") != FIELD_UNKNOWN) {
        set_text(values, "expire", "%" PRIu64 " s in %" PRIu64 " slices",
                 field_count(values, "expire_seconds"),
                 field_count(values, "expire_slices"));

    } else if (field_text(values, "build_id") != NULL) {
        set_text(values, "expire", "no expire");
    }

    derive_journal(values);
    derive_helper(values, date);

    if (version != NULL) {
        set_text(values, "version", "%s", version);
    }
}
