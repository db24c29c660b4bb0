/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions ask the endpoints of several nodes for the states of their
 * zones, all at the same time, in bounded time and memory.
 */

#ifndef NODE_ASK_H
#define NODE_ASK_H

#include <stddef.h>

#include "http_client.h"
#include "node_state.h"


#define NODE_ASK_MAX  256                /* nodes */


/*
 * Fills nodes whose `url` is set, which is the URL of an endpoint, of its list
 * of zones, or of one zone.  A node that does not answer gets an error.
 * node_ask_free() frees what the nodes have.
 */
void node_ask(node_t *nodes, size_t n, http_settings_t *settings);
void node_ask_free(node_t *nodes, size_t n);


#endif /* NODE_ASK_H */
