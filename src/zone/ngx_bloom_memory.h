/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function finds how much memory is left: on the machine, and in the
 * control groups of this process, such as its container or systemd unit.
 *
 * The system promises a zone its memory before the memory exists.  If a load
 * writes to more memory than there is, the system kills a process, usually the
 * one that loads, and the shared memory that was written stays in use.  So a
 * load calls this function first.
 */

#ifndef _NGX_BLOOM_MEMORY_H_INCLUDED_
#define _NGX_BLOOM_MEMORY_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


/* The memory that is left, and what limits it. */
typedef struct {
    uint64_t    bytes;                   /* UINT64_MAX: the system does not
                                            tell */
    u_char      group[NGX_MAX_PATH];     /* directory of the control group with
                                            the least memory left; "": the
                                            machine has less; null-terminated */
} ngx_bloom_memory_t;


/*
 * Finds the memory that is left.  This includes all that the system could
 * reclaim at once or move to swap, so it is an upper bound: a load that needs
 * more certainly needs too much.
 */
void ngx_bloom_memory_left(ngx_bloom_memory_t *left);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_MEMORY_H_INCLUDED_ */
