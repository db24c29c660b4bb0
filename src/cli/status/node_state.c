/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads the states of zones, as an endpoint sends them, into structs.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "node_state.h"
#include "units.h"

#define NUMBER_LEN  32


typedef enum {
    TEXT,
    COUNT,
    FLAG,
    RATE
} kind_t;

typedef struct {
    const char  *path;
    kind_t       kind;
    size_t       offset;
} field_t;

#define FIELD(path, kind, member)  { path, kind, offsetof(node_zone_t, member) }


static const field_t  fields[] = {
    FIELD("name", TEXT, name),
    FIELD("state", TEXT, state),
    FIELD("generation", COUNT, generation),
    FIELD("file", TEXT, file),
    FIELD("image.build_id", TEXT, build_id),
    FIELD("image.uploaded", FLAG, uploaded),
    FIELD("image.layout", TEXT, layout),
    FIELD("image.lines", COUNT, lines),
    FIELD("image.hash", TEXT, hash),
    FIELD("image.form", TEXT, key_form),
    FIELD("image.k", COUNT, k),
    FIELD("image.bits", COUNT, bits),
    FIELD("image.capacity", COUNT, capacity),
    FIELD("image.items", COUNT, items),
    FIELD("filter.bits_set", COUNT, bits_set),
    FIELD("filter.bits_set", COUNT, bits_set_before),
    FIELD("filter.estimated_items", COUNT, estimated_items),
    FIELD("filter.estimated_items", COUNT, estimated_before),
    FIELD("filter.max_items", COUNT, max_items),
    FIELD("filter.layers", COUNT, layers),
    FIELD("filter.fill_ratio", RATE, fill_ratio),
    FIELD("expire.seconds", COUNT, expire),
    FIELD("expire.slices", COUNT, slices),
    FIELD("removals.limit", COUNT, removals_limit),
    FIELD("removals.count", COUNT, removed),
    FIELD("removals.count", COUNT, removed_before),
    FIELD("removals.excepted", COUNT, excepted),
    FIELD("journal.enabled", FLAG, journal),
    FIELD("journal.owing_workers", COUNT, owing_workers),
    FIELD("journal.lost_keys", COUNT, lost_keys),
    FIELD("journal.lost_at", TEXT, lost_at),
    FIELD("journal.error", TEXT, journal_error),
    FIELD("load.result", TEXT, load_result),
    FIELD("load.message", TEXT, load_message),
    FIELD("helper.heartbeat", TEXT, heartbeat),
    FIELD("source.name", TEXT, source),
    FIELD("source.state", TEXT, source_state),
    FIELD("source.position", TEXT, position),
    FIELD("source.digest", TEXT, digest),
    FIELD("source.digest_since", TEXT, digest_since),
    FIELD("source.lag_ms", COUNT, lag),
    FIELD("source.max_lag_ms", COUNT, max_lag)
};

#define FIELDS  (sizeof(fields) / sizeof(fields[0]))


/* Returns a copy of a text; NULL if the token is not a text. */
static char *
take_text(const json_doc_t *doc, const json_token_t *token)
{
    char    *text;
    size_t   size;

    if (token == NULL || token->kind != JSON_READ_TEXT) {
        return NULL;
    }

    size = token->len + 8;               /* what json_read_text() asks for */
    text = cli_alloc(size);

    if (json_read_text(doc, token, text, size) != 0) {
        free(text);
        return NULL;
    }

    return text;
}


static double
take_rate(const json_doc_t *doc, const json_token_t *token)
{
    char    text[NUMBER_LEN], *end;
    double  value;

    if (token == NULL || token->kind != JSON_READ_NUMBER
        || token->len >= sizeof(text))
    {
        return NAN;
    }

    memcpy(text, doc->text + token->begin, token->len);
    text[token->len] = '\0';
    value = strtod(text, &end);

    return *end == '\0' && value >= 0 && value <= 1 ? value : NAN;
}


static void
take_field(const json_doc_t *doc, const json_token_t *token,
    const field_t *field, node_zone_t *zone)
{
    int    flag;
    void  *to;

    to = (char *) zone + field->offset;

    switch (field->kind) {

    case TEXT:
        *(char **) to = take_text(doc, token);
        break;

    case COUNT:
        if (json_read_count(doc, token, to) != 0) {
            *(uint64_t *) to = NODE_UNKNOWN;
        }

        break;

    case FLAG:
        *(uint64_t *) to = json_read_bool(doc, token, &flag) != 0
                           ? NODE_UNKNOWN : (uint64_t) flag;
        break;

    case RATE:
        *(double *) to = take_rate(doc, token);
        break;
    }
}


/* Takes a zone.  Returns 0, or -1 if the value is not the state of a zone. */
static int
take_zone(node_t *node, const json_doc_t *doc, const json_token_t *state)
{
    size_t        i;
    node_zone_t  *zone;

    zone = &node->zones[node->n++];
    memset(zone, 0, sizeof(*zone));

    for (i = 0; i < FIELDS; i++) {
        take_field(doc, json_read_member(doc, state, fields[i].path),
                   &fields[i], zone);
    }

    return zone->name != NULL && zone->state != NULL ? 0 : -1;
}


const char *
node_state_take(node_t *node, const json_doc_t *doc, size_t zones_max)
{
    size_t               n;
    const json_token_t  *list, *state;

    list = json_read_member(doc, doc->tokens, "zones");

    if (list == NULL || list->kind != JSON_READ_ARRAY) {
        node->zones = cli_alloc(sizeof(node_zone_t));

        return take_zone(node, doc, doc->tokens) != 0
               ? "has no state of a zone" : NULL;
    }

    node->whole = 1;
    n = 0;

    for (state = json_read_first(doc, list); state != NULL;
         state = json_read_next(doc, list, state))
    {
        n++;
    }

    if (n > zones_max) {
        return "has too many zones; give the URLs of zones";
    }

    node->zones = cli_alloc((n + 1) * sizeof(node_zone_t));

    for (state = json_read_first(doc, list); state != NULL;
         state = json_read_next(doc, list, state))
    {
        if (take_zone(node, doc, state) != 0) {
            return "has no state of a zone";
        }
    }

    return NULL;
}


void
node_state_free(node_t *node)
{
    size_t  i, j;

    for (i = 0; i < node->n; i++) {
        for (j = 0; j < FIELDS; j++) {
            if (fields[j].kind == TEXT) {
                free(*(char **) ((char *) &node->zones[i] + fields[j].offset));
            }
        }
    }

    free(node->zones);
    node->zones = NULL;
    node->n = 0;
}


uint64_t
node_state_silence(const node_t *node, const node_zone_t *zone)
{
    uint64_t  now, heartbeat;

    if (node->date < 0 || zone->heartbeat == NULL
        || parse_time(zone->heartbeat, &heartbeat) != 0)
    {
        return NODE_UNKNOWN;
    }

    now = (uint64_t) node->date * 1000;

    return now > heartbeat ? now - heartbeat : 0;
}
