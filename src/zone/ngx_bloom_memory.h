/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * How much memory there is left: of the machine, and of the control groups that
 * this process is in, as a container or a unit of systemd is one.
 *
 * A zone's memory is promised by the system before it is there.  A load that
 * takes more than there is kills a process, mostly the one that loads, and what
 * it has taken stays taken; so whoever loads asks here first.
 */

#ifndef _NGX_BLOOM_MEMORY_H_INCLUDED_
#define _NGX_BLOOM_MEMORY_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


typedef struct {
    uint64_t    bytes;                   /* UINT64_MAX: the system says nothing
                                            of it */
    u_char      group[NGX_MAX_PATH];     /* null-terminated: the directory of
                                            the control group that has least
                                            left; "": the machine has */
} ngx_bloom_memory_t;


/*
 * Finds what is left, with all that the system could give back at once or move
 * to swap: no less can be had, so who needs more than that needs too much.
 */
void ngx_bloom_memory_left(ngx_bloom_memory_t *left);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_MEMORY_H_INCLUDED_ */
