/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how a request is resumed later: after other connections
 * have had their turn, after a while, or when a queue of its zone says that it
 * may go on.
 */

#ifndef _NGX_HTTP_BLOOM_RESUME_H_INCLUDED_
#define _NGX_HTTP_BLOOM_RESUME_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_bloom_queue.h"

#pragma GCC visibility push(hidden)


typedef struct {
    ngx_event_t                 event;   /* must be first */
    ngx_bloom_waiter_t          waiter;
    ngx_http_request_t         *request;
    void                      (*handler)(ngx_http_request_t *r);
} ngx_http_bloom_resume_t;

/* Prepares to resume a request with `handler`.  A request that has ended is
 * never resumed.  Returns NGX_OK, or NGX_ERROR if memory is short. */
ngx_int_t ngx_http_bloom_resume_init(ngx_http_bloom_resume_t *resume,
    ngx_http_request_t *r, void (*handler)(ngx_http_request_t *r));

/* Resume the request after `ms` milliseconds, or as soon as other connections
 * have been served. */
void ngx_http_bloom_resume_after(ngx_http_bloom_resume_t *resume,
    ngx_msec_t ms);
void ngx_http_bloom_resume_soon(ngx_http_bloom_resume_t *resume);

/*
 * Resumes the request when it is first in a queue of the zone and the queue is
 * served.  If memory is short, resumes it after a while instead.
 */
void ngx_http_bloom_resume_in_queue(ngx_http_bloom_resume_t *resume,
    ngx_bloom_zone_t *zone, ngx_bloom_queue_e which);

/*
 * Cancels the resumption.  Call this before the response is sent, since a
 * request may live on while its client reads the response.
 */
void ngx_http_bloom_resume_stop(ngx_http_bloom_resume_t *resume);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_RESUME_H_INCLUDED_ */
