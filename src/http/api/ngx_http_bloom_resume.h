/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A request goes on later: after other connections' turn, after a while, or
 * when what it waits for in a zone may have come.
 */

#ifndef _NGX_HTTP_BLOOM_RESUME_H_INCLUDED_
#define _NGX_HTTP_BLOOM_RESUME_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_bloom_queue.h"

#pragma GCC visibility push(hidden)


typedef struct {
    ngx_event_t                 event;   /* the first */
    ngx_bloom_waiter_t          waiter;
    ngx_http_request_t         *request;
    void                      (*handler)(ngx_http_request_t *r);
} ngx_http_bloom_resume_t;

/* Prepares to resume a request; one that has ended is never resumed. */
ngx_int_t ngx_http_bloom_resume_init(ngx_http_bloom_resume_t *resume,
    ngx_http_request_t *r, void (*handler)(ngx_http_request_t *r));

/* Resume it in so many ms, or when other connections have had their turn. */
void ngx_http_bloom_resume_after(ngx_http_bloom_resume_t *resume,
    ngx_msec_t ms);
void ngx_http_bloom_resume_soon(ngx_http_bloom_resume_t *resume);

/*
 * Resumes it in its turn in a queue of the zone.  Where memory is short, it is
 * resumed in a while instead.
 */
void ngx_http_bloom_resume_in_queue(ngx_http_bloom_resume_t *resume,
    ngx_bloom_zone_t *zone, ngx_bloom_queue_e which);

/*
 * Resumes it no more.  Called before the response, as a request that has been
 * responded to may be there for a while.
 */
void ngx_http_bloom_resume_stop(ngx_http_bloom_resume_t *resume);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_RESUME_H_INCLUDED_ */
