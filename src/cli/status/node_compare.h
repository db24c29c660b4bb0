/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions find what is wrong with nodes, and in what their zones
 * disagree.
 *
 * Zones of the same name are compared.  What each node decides for itself, such
 * as its generation, its counters and its excepted keys, may differ.
 */

#ifndef NODE_COMPARE_H
#define NODE_COMPARE_H

#include "node_findings.h"


/* Compares the nodes and marks their zones.  node_findings_free() frees what it
 * found. */
void node_compare(node_findings_t *found, node_t *nodes, size_t n);

/* Tells nodes that are asked again what they answered `before`: a number that
 * has changed meanwhile may have had any value between. */
void node_compare_before(node_t *nodes, const node_t *before, size_t n);


#endif /* NODE_COMPARE_H */
