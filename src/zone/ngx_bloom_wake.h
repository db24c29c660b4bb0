/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A pipe lets any process wake the helper.
 *
 * A master has one pipe for its whole life, so workers of old cycles wake the
 * new helper.
 */

#ifndef _NGX_BLOOM_WAKE_H_INCLUDED_
#define _NGX_BLOOM_WAKE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


/* Creates the pipe unless it exists.  Returns NGX_OK or NGX_ERROR. */
ngx_int_t ngx_bloom_wake_init(ngx_cycle_t *cycle);

/* Returns the end of the pipe that becomes readable when a process wakes the
 * helper. */
ngx_fd_t ngx_bloom_wake_fd(void);

/*
 * Empties the pipe.  The helper calls this whenever it looks after its zones,
 * even if it was not woken: a process may die after it has announced that it
 * writes to the pipe, but before it writes.
 */
void ngx_bloom_wake_clear(void);

/* Tells the helper that there is something to do.  Never waits. */
void ngx_bloom_wake(void);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_WAKE_H_INCLUDED_ */
