/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions lock robust mutexes that processes share: when the holder of
 * a lock dies, the next process that asks for the lock gets it.
 */

#ifndef _NGX_BLOOM_LOCK_H_INCLUDED_
#define _NGX_BLOOM_LOCK_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include <pthread.h>

#pragma GCC visibility push(hidden)


/* Initialises a lock.  Returns NGX_OK, or NGX_ERROR with errno. */
ngx_int_t ngx_bloom_lock_init(pthread_mutex_t *mutex);

/*
 * Takes a lock.  Waits for it at most `wait` ms; does not wait if that is 0.
 * Returns NGX_OK or NGX_BUSY.
 */
ngx_int_t ngx_bloom_lock(pthread_mutex_t *mutex, ngx_msec_t wait);
void ngx_bloom_unlock(pthread_mutex_t *mutex);

/* Does what ngx_bloom_lock() does.  *died becomes 1 if the last holder has died
 * while it held the lock, else 0. */
ngx_int_t ngx_bloom_lock_died(pthread_mutex_t *mutex, ngx_msec_t wait,
    ngx_uint_t *died);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_LOCK_H_INCLUDED_ */
