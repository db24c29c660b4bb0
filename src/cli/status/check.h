/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function finds what is wrong with a zone of a node, without other nodes.
 */

#ifndef CHECK_H
#define CHECK_H

#include "findings.h"


/* Adds what is wrong with a zone to the findings, and marks it. */
void check_zone(findings_t *found, const node_row_t *row);


#endif /* CHECK_H */
