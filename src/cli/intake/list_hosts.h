/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the names in hosts files: an address and the names that it
 * belongs to; # begins a comment.
 */

#ifndef LIST_HOSTS_H
#define LIST_HOSTS_H

#include "list_reader.h"


extern const list_reader_t  list_hosts;

/* Finds the next name of a line, for other lists that have such lines. */
list_result_e list_hosts_next(list_line_t *at);


#endif /* LIST_HOSTS_H */
