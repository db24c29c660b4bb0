/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A queue holds the requests of one worker that wait for room in a zone's
 * journal, or for the disk.
 *
 * Only the first request of a queue checks whether it can continue, so a
 * thousand waiting requests cost no more than one.  Once the first can
 * continue, most others can: they are called one after another, some at a time,
 * and the worker serves other connections in between.
 */

#ifndef _NGX_BLOOM_QUEUE_H_INCLUDED_
#define _NGX_BLOOM_QUEUE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* One waiting request.  The caller sets `handler` and `data`, and everything
 * else to zero. */
typedef struct {
    void                      (*handler)(void *data);
    void                       *data;

    /* ---- */

    ngx_queue_t                 link;
    ngx_bloom_queue_t          *queue;   /* NULL: it does not wait */
} ngx_bloom_waiter_t;

/*
 * Puts a waiter at the end of a queue; its handler is called once, when it
 * should try again.  If the handler has to wait again, it calls this function
 * and stays at the head of the queue.  For a waiter that is in the queue
 * already, this function changes nothing.  Returns NGX_OK, or NGX_ERROR if
 * memory is short.
 */
ngx_int_t ngx_bloom_queue_wait(ngx_bloom_zone_t *zone, ngx_bloom_queue_e which,
    ngx_bloom_waiter_t *waiter);

/* Removes a waiter from its queue, if it is in one. */
void ngx_bloom_queue_leave(ngx_bloom_waiter_t *waiter);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_QUEUE_H_INCLUDED_ */
