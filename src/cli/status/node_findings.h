/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A finding says what is wrong with a node, or in what nodes disagree, and what
 * to do about it.
 */

#ifndef NODE_FINDINGS_H
#define NODE_FINDINGS_H

#include <stddef.h>

#include "node_state.h"


/* The columns of a zone that can be marked, as bits of zone->marks. */
#define NODE_MARK_STATE     0x01
#define NODE_MARK_IMAGE     0x02
#define NODE_MARK_ITEMS     0x04
#define NODE_MARK_BITS      0x08
#define NODE_MARK_REMOVED   0x10
#define NODE_MARK_SOURCE    0x20
#define NODE_MARK_JOURNAL   0x40
#define NODE_MARK_HELPER    0x80
#define NODE_MARK_VERSION   0x100
#define NODE_MARK_DIGEST    0x200

/* A zone of a node; rows are ordered by the zone's name, then by the node. */
typedef struct {
    node_t       *node;
    node_zone_t  *zone;
} node_row_t;

typedef struct {
    const char  *what;                   /* a word for programs */
    const char  *zone;                   /* NULL: all zones */
    char        *message;
} node_finding_t;

typedef struct {
    node_row_t      *rows;
    size_t           rows_n;
    node_finding_t  *findings;
    size_t           n;
    size_t           zones;              /* distinct names */
    int              moving;             /* a finding may come from changes that
                                            were on their way */
} node_findings_t;


/* Adds a finding. */
void node_findings_add(node_findings_t *found, const char *what,
    const char *zone, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Frees the rows and the findings, but not the nodes. */
void node_findings_free(node_findings_t *found);


#endif /* NODE_FINDINGS_H */
