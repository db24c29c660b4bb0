/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A queue has one timer and belongs to one worker: only requests of this
 * process wait in it.
 */

#include "ngx_bloom_queue.h"

#include <ngx_event.h>


/* How often the first request of a queue tries again, ms. */
#define NGX_BLOOM_QUEUE_ASK   1

/* How many requests are called in one turn; an answer takes about 20 us. */
#define NGX_BLOOM_QUEUE_TURN  16


struct ngx_bloom_queue_s {
    ngx_event_t                 event;   /* must be the first member */
    ngx_connection_t            c;       /* for nginx's debug log */
    ngx_queue_t                 waiters;
    ngx_bloom_waiter_t         *runs;    /* whose handler is being called */
    ngx_uint_t                  again;   /* 1: it has to wait again */
};


static void ngx_bloom_queue_event(ngx_event_t *ev);
static ngx_bloom_queue_t *ngx_bloom_queue_get(ngx_bloom_zone_t *zone,
    ngx_bloom_queue_e which);


ngx_int_t
ngx_bloom_queue_wait(ngx_bloom_zone_t *zone, ngx_bloom_queue_e which,
    ngx_bloom_waiter_t *waiter)
{
    ngx_bloom_queue_t  *queue;

    queue = ngx_bloom_queue_get(zone, which);

    if (queue == NULL) {
        return NGX_ERROR;
    }

    if (waiter->queue == queue) {
        return NGX_OK;
    }

    ngx_bloom_queue_leave(waiter);

    if (queue->runs == waiter) {
        ngx_queue_insert_head(&queue->waiters, &waiter->link);
        queue->again = 1;

    } else {
        ngx_queue_insert_tail(&queue->waiters, &waiter->link);
    }

    waiter->queue = queue;

    if (!queue->event.timer_set) {
        ngx_add_timer(&queue->event, NGX_BLOOM_QUEUE_ASK);
    }

    return NGX_OK;
}


void
ngx_bloom_queue_leave(ngx_bloom_waiter_t *waiter)
{
    ngx_bloom_queue_t  *queue;

    queue = waiter->queue;

    if (queue == NULL) {
        return;
    }

    ngx_queue_remove(&waiter->link);
    waiter->queue = NULL;

    /* an exiting worker waits for its timers */

    if (ngx_queue_empty(&queue->waiters)) {

        if (queue->event.timer_set) {
            ngx_del_timer(&queue->event);
        }

        if (queue->event.posted) {
            ngx_delete_posted_event(&queue->event);
        }
    }
}


static void
ngx_bloom_queue_event(ngx_event_t *ev)
{
    ngx_uint_t           n;
    ngx_bloom_queue_t   *queue;
    ngx_bloom_waiter_t  *waiter;

    queue = (ngx_bloom_queue_t *) ev;

    queue->again = 0;

    for (n = 0; n < NGX_BLOOM_QUEUE_TURN && !queue->again; n++) {

        if (ngx_queue_empty(&queue->waiters)) {
            return;
        }

        waiter = ngx_queue_data(ngx_queue_head(&queue->waiters),
                                ngx_bloom_waiter_t, link);

        ngx_bloom_queue_leave(waiter);

        queue->runs = waiter;
        waiter->handler(waiter->data);
        queue->runs = NULL;
    }

    if (ngx_queue_empty(&queue->waiters)) {
        return;
    }

    /* the timer keeps an exiting process alive; the posted event is earlier */

    if (!ev->timer_set) {
        ngx_add_timer(ev, NGX_BLOOM_QUEUE_ASK);
    }

    if (!queue->again) {
        ngx_post_event(ev, &ngx_posted_next_events);
    }
}


static ngx_bloom_queue_t *
ngx_bloom_queue_get(ngx_bloom_zone_t *zone, ngx_bloom_queue_e which)
{
    ngx_bloom_queue_t  *queue;

    queue = zone->queue[which];

    if (queue != NULL) {
        return queue;
    }

    queue = ngx_pcalloc(zone->pool, sizeof(ngx_bloom_queue_t));

    if (queue == NULL) {
        return NULL;
    }

    ngx_queue_init(&queue->waiters);

    queue->c.fd = (ngx_socket_t) -1;
    queue->event.handler = ngx_bloom_queue_event;
    queue->event.data = &queue->c;
    queue->event.log = ngx_cycle->log;

    zone->queue[which] = queue;

    return queue;
}
