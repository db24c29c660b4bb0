/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the names that a hosts file blocks.
 *
 *     0.0.0.0 bad.example a.example   both names, and so with 127.0.0.1 and all
 *                                     others in 127.0.0.0/8, ::, ::1 and 0
 *     192.168.1.5 nas.example         skipped: gives a host its address
 *     ::1 ip6-localhost               skipped: names for the machine itself
 *
 * # begins a comment.
 */

#ifndef LIST_HOSTS_H
#define LIST_HOSTS_H

#include "list_reader.h"


extern const list_reader_t  list_hosts;

/* Finds the next name of a line, for other lists that have such lines. */
list_result_e list_hosts_next(list_line_t *at);


#endif /* LIST_HOSTS_H */
