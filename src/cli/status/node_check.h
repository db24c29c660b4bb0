/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function finds what is wrong with a zone of a node, without other nodes.
 */

#ifndef NODE_CHECK_H
#define NODE_CHECK_H

#include "node_findings.h"


/* The longest silence of a helper, which gives a sign of life every second, and
 * the longest lag of a zone without max_lag=, in ms. */
#define NODE_SILENCE_MAX  10000
#define NODE_LAG_MAX      30000


/* Adds what is wrong with a zone to the findings, and marks it. */
void node_check(node_findings_t *found, const node_row_t *row);


#endif /* NODE_CHECK_H */
