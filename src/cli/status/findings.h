/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A finding says what is wrong with a node, or in what nodes disagree, and what
 * to do about it.
 */

#ifndef FINDINGS_H
#define FINDINGS_H

#include <stddef.h>

#include "node.h"


/* A zone of a node; rows are ordered by the zone's name, then by the node. */
typedef struct {
    node_t       *node;
    node_zone_t  *zone;
} node_row_t;

typedef struct {
    const char  *what;                   /* a word for programs */
    const char  *zone;                   /* NULL: all zones */
    char        *message;
} finding_t;

/* What zones of the same name have answered to a sample. */
typedef struct {
    const char  *zone;
    size_t       keys;                   /* that all of them answered */
    size_t       differ;
} sampled_t;

typedef struct {
    const node_sample_t  *sample;        /* NULL: none */
    node_row_t           *rows;
    size_t                rows_n;
    finding_t            *list;
    size_t                n;
    sampled_t            *sampled;       /* of each name of a zone */
    size_t                zones;         /* distinct names */
    int                   moving;        /* a finding may come from changes that
                                            were on their way */
} findings_t;


/* Adds a finding about a zone; NULL: about all zones. */
void findings_add(findings_t *found, const char *what, const char *zone,
    const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Frees what was found, but not the nodes. */
void findings_free(findings_t *found);


#endif /* FINDINGS_H */
