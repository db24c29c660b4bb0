/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions print the states of nodes and what was found about them, to
 * standard output.
 */

#ifndef STATUS_PRINT_H
#define STATUS_PRINT_H

#include "findings.h"


/* Prints a table with a row for each zone of each node, and below it the
 * findings.  A mark stands behind a value that is wrong or disagrees; a
 * terminal also shows it in colour.  `n` is the number of nodes. */
void status_print(const findings_t *found, size_t n);

/* Prints an object with the nodes, the rows and the findings. */
void status_print_json(const findings_t *found, const node_t *nodes,
    size_t n);


#endif /* STATUS_PRINT_H */
