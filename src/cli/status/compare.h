/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function finds what is wrong with nodes, and in what their zones
 * disagree.
 *
 * Zones of the same name are compared.  What each node decides for itself, such
 * as its generation, its counters and its excepted keys, may differ.  Nodes may
 * build their images themselves, from the same keys: then build ids and bits
 * differ, and the images have to be of about the same time and about as many
 * keys.
 */

#ifndef COMPARE_H
#define COMPARE_H

#include "findings.h"


/* How far the times of images may be apart, ms, and their numbers of keys then,
 * as a share. */
#define COMPARE_TIME   3600000
#define COMPARE_SHARE  0.01


/* Compares the nodes and marks their zones.  `sample` is what they were asked,
 * or NULL.  findings_free() frees what was found. */
void compare_nodes(findings_t *found, node_t *nodes, size_t n,
    const node_sample_t *sample);


#endif /* COMPARE_H */
