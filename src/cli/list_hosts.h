/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the names in hosts files: an address and the names that it
 * belongs to; # begins a comment.
 */

#ifndef LIST_HOSTS_H
#define LIST_HOSTS_H

#include "list_line.h"


list_result_e list_hosts_next(list_line_t *at);


#endif /* LIST_HOSTS_H */
