/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A node is an nginx whose endpoint has told the state of its zones, and a zone
 * is one of them.
 *
 * docs/api.md describes the state.  The endpoint is not trusted: texts may
 * contain anything, and whoever prints them escapes them.  A value that a state
 * lacks, because the module is older or newer, is unknown.
 */

#ifndef NODE_H
#define NODE_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "http_client.h"


#define NODE_MAX      256                /* nodes */

/* Keys to ask each zone about. */
typedef struct {
    const char  *body;                   /* one on each line */
    size_t       len;
    char       **keys;
    size_t       n;
} node_sample_t;

typedef struct {
    json_t        *values;               /* see fields.h */
    const json_t  *before;               /* those when the node was asked first;
                                            NULL: it was asked once */
    const char    *name;
    char          *answers;              /* to the sample: the first letter of
                                            each; NULL: none */
    char          *error;                /* why it has no answers, or NULL */
    uint64_t       marks;                /* bits of the fields whose columns are
                                            marked */
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


/*
 * Returns nodes with these URLs, each of an endpoint, of its list of zones, or
 * of one zone, and asks all of them at the same time, in bounded time and
 * memory.  A node that does not answer has an error.  `sample` may be NULL.
 */
node_t *node_ask(char **urls, size_t n, http_settings_t *settings,
    const node_sample_t *sample);
void node_free(node_t *nodes, size_t n);

/* Tells nodes that are asked again what they answered `before`, which has to
 * live as long: a number that has changed meanwhile may have had any value
 * between. */
void node_asked_before(node_t *nodes, const node_t *before, size_t n);


#endif /* NODE_H */
