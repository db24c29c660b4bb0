/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An eventfd lets any process wake the helper.
 *
 * A master keeps its eventfds for its whole life, so workers of old cycles wake
 * the new helper.
 */

#ifndef _NGX_BLOOM_WAKE_H_INCLUDED_
#define _NGX_BLOOM_WAKE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* How many processes of helpers there can be. */
#define NGX_BLOOM_HELPERS  8


/* Creates the eventfds of the first `n` processes, unless they exist.  Returns
 * NGX_OK or NGX_ERROR. */
ngx_int_t ngx_bloom_wake_init(ngx_cycle_t *cycle, ngx_uint_t n);

/* Returns the descriptor that becomes readable when a process wakes this
 * process of the helper. */
ngx_fd_t ngx_bloom_wake_fd(ngx_uint_t helper);

/* Forgets that the process was woken.  The helper calls this before it looks
 * after its zones. */
void ngx_bloom_wake_clear(ngx_uint_t helper);

/* Tells the process of the helper that looks after the zone that there is
 * something to do.  Never waits. */
void ngx_bloom_wake(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_WAKE_H_INCLUDED_ */
