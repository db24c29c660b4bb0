/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A node is an nginx whose endpoint has told the state of its zones.
 *
 * docs/api.md describes the state.  The endpoint is not trusted: texts are as
 * it sent them, and whoever prints them escapes them.  A value that a state
 * lacks, because the module is older or newer, is unknown.
 */

#ifndef NODE_STATE_H
#define NODE_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "json_read.h"


#define NODE_UNKNOWN  UINT64_MAX         /* a number that the state lacks */


/* A zone of a node.  A text is NULL if it is unknown or null; a flag is 0, 1 or
 * NODE_UNKNOWN. */
typedef struct {
    char      *name;
    char      *state;
    uint64_t   generation;
    char      *file;

    char      *build_id;
    uint64_t   uploaded;
    char      *layout;
    uint64_t   lines;
    char      *hash;
    char      *key_form;
    uint64_t   k;
    uint64_t   bits;
    uint64_t   capacity;
    uint64_t   items;

    uint64_t   bits_set;
    uint64_t   bits_set_before;          /* when the node was asked first */
    uint64_t   estimated_items;
    uint64_t   estimated_before;
    uint64_t   max_items;
    uint64_t   layers;
    double     fill_ratio;               /* NaN: unknown */

    uint64_t   expire;                   /* seconds */
    uint64_t   slices;

    uint64_t   removals_limit;
    uint64_t   removed;                  /* removed and excepted keys */
    uint64_t   removed_before;
    uint64_t   excepted;

    uint64_t   journal;                  /* a flag */
    uint64_t   owing_workers;
    uint64_t   lost_keys;
    char      *lost_at;
    char      *journal_error;

    char      *load_result;
    char      *load_message;
    char      *heartbeat;

    char      *source;                   /* NULL: the zone has no source */
    char      *source_state;
    char      *position;
    char      *digest;
    char      *digest_since;             /* a position */
    uint64_t   lag;                      /* ms */
    uint64_t   max_lag;                  /* ms */

    unsigned   marks;                    /* of node_compare.h */
} node_zone_t;


typedef struct {
    const char   *url;                   /* as the user wrote it */
    char         *shown;                 /* the URL without its password */
    const char   *name;                  /* a part of `shown` that tells the
                                            nodes apart */
    int           name_len;
    char         *error;                 /* why there is no state, or NULL */
    int           whole;                 /* all zones of the endpoint are
                                            known, not only one */
    char         *version;               /* of the module; NULL: unknown */
    int64_t       date;                  /* of the response, in seconds since
                                            1970; -1: unknown */
    node_zone_t  *zones;
    size_t        n;
} node_t;


/* Takes the zones of a document: the state of one zone, or a list of states.
 * Returns NULL, or the reason why it is neither. */
const char *node_state_take(node_t *node, const json_doc_t *doc,
    size_t zones_max);

/* Frees the zones. */
void node_state_free(node_t *node);

/* Returns the time since the helper's last sign of life in ms, by the clock of
 * the node; NODE_UNKNOWN if it is unknown. */
uint64_t node_state_silence(const node_t *node, const node_zone_t *zone);


#endif /* NODE_STATE_H */
