/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file resumes requests later: by a timer, by a posted event, or from a
 * queue of a zone.
 */

#include "ngx_http_bloom_resume.h"


/* Longer than other connections' turns take, ms. */
#define NGX_HTTP_BLOOM_RESUME_TURN  1000


/* How long a request waits if there is no memory for a queue, ms. */
#define NGX_HTTP_BLOOM_RESUME_RETRY  100


static void ngx_http_bloom_resume_event(ngx_event_t *ev);
static void ngx_http_bloom_resume_run(void *data);
static void ngx_http_bloom_resume_cleanup(void *data);


ngx_int_t
ngx_http_bloom_resume_init(ngx_http_bloom_resume_t *resume,
    ngx_http_request_t *r, void (*handler)(ngx_http_request_t *r))
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_bloom_resume_cleanup;
    cln->data = resume;

    ngx_memzero(resume, sizeof(ngx_http_bloom_resume_t));

    resume->event.handler = ngx_http_bloom_resume_event;
    resume->event.data = r->connection;
    resume->event.log = r->connection->log;
    resume->waiter.handler = ngx_http_bloom_resume_run;
    resume->waiter.data = resume;
    resume->request = r;
    resume->handler = handler;

    return NGX_OK;
}


void
ngx_http_bloom_resume_after(ngx_http_bloom_resume_t *resume, ngx_msec_t ms)
{
    if (!resume->event.timer_set) {
        ngx_add_timer(&resume->event, ms);
    }
}


/*
 * Sets a timer besides the posted event, although it never expires: a worker
 * that is shutting down waits for timers, but not for posted events.
 */
void
ngx_http_bloom_resume_soon(ngx_http_bloom_resume_t *resume)
{
    ngx_http_bloom_resume_after(resume, NGX_HTTP_BLOOM_RESUME_TURN);

    ngx_post_event(&resume->event, &ngx_posted_next_events);
}


void
ngx_http_bloom_resume_in_queue(ngx_http_bloom_resume_t *resume,
    ngx_bloom_zone_t *zone, ngx_bloom_queue_e which)
{
    if (ngx_bloom_queue_wait(zone, which, &resume->waiter) != NGX_OK) {
        ngx_http_bloom_resume_after(resume, NGX_HTTP_BLOOM_RESUME_RETRY);
    }
}


static void
ngx_http_bloom_resume_event(ngx_event_t *ev)
{
    ngx_http_bloom_resume_run(ev);
}


static void
ngx_http_bloom_resume_run(void *data)
{
    ngx_http_bloom_resume_t *resume = data;

    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    ngx_http_bloom_resume_stop(resume);

    r = resume->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    resume->handler(r);

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_bloom_resume_cleanup(void *data)
{
    ngx_http_bloom_resume_t *resume = data;

    ngx_http_bloom_resume_stop(resume);
}


void
ngx_http_bloom_resume_stop(ngx_http_bloom_resume_t *resume)
{
    if (resume->event.timer_set) {
        ngx_del_timer(&resume->event);
    }

    if (resume->event.posted) {
        ngx_delete_posted_event(&resume->event);
    }

    ngx_bloom_queue_leave(&resume->waiter);
}
