/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Requests of a worker wait for a zone in queues: for room in the journal, or
 * for the disk.
 *
 * A worker asks for the first of a queue alone whether it has to wait any
 * longer, so a thousand that wait cost what one costs.  What lets the first go
 * on lets most of the others go on, too: they do so one after another, some at
 * a time, with other connections' turns in between.
 */

#ifndef _NGX_BLOOM_QUEUE_H_INCLUDED_
#define _NGX_BLOOM_QUEUE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Somebody who waits; all zeros but for the handler at first. */
typedef struct {
    void                      (*handler)(void *data);
    void                       *data;

    /* ---- */

    ngx_queue_t                 link;
    ngx_bloom_queue_t          *queue;   /* NULL: he does not wait */
} ngx_bloom_waiter_t;

/*
 * Has the handler called within some milliseconds, once.  A handler that finds
 * it has to wait again calls this again, and then stays the first.  Who waits
 * already stays where he is.  Returns NGX_OK, or NGX_ERROR if memory is short.
 */
ngx_int_t ngx_bloom_queue_wait(ngx_bloom_zone_t *zone, ngx_bloom_queue_e which,
    ngx_bloom_waiter_t *waiter);

/* Ends the waiting, if there is any. */
void ngx_bloom_queue_leave(ngx_bloom_waiter_t *waiter);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_QUEUE_H_INCLUDED_ */
