/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Locks are robust mutexes that processes share: the system gives a lock to the
 * next who asks for it when its holder has died.
 */

#ifndef _NGX_BLOOM_LOCK_H_INCLUDED_
#define _NGX_BLOOM_LOCK_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include <pthread.h>

#pragma GCC visibility push(hidden)


/* Returns NGX_OK, or NGX_ERROR with errno. */
ngx_int_t ngx_bloom_lock_init(pthread_mutex_t *mutex);

/*
 * Takes a lock, and waits for it `wait` ms at most, 0: not at all.  Returns
 * NGX_OK or NGX_BUSY.
 */
ngx_int_t ngx_bloom_lock(pthread_mutex_t *mutex, ngx_msec_t wait);
void ngx_bloom_unlock(pthread_mutex_t *mutex);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_LOCK_H_INCLUDED_ */
