/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how a request waits for a task of the helper, and the
 * handlers of POST reload, POST checkpoint and POST clear.
 */

#ifndef _NGX_HTTP_BLOOM_TASK_H_INCLUDED_
#define _NGX_HTTP_BLOOM_TASK_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_bloom_error.h"
#include "ngx_http_bloom_resume.h"
#include "ngx_bloom_task.h"

#pragma GCC visibility push(hidden)


typedef struct ngx_http_bloom_task_s  ngx_http_bloom_task_t;

struct ngx_http_bloom_task_s {
    ngx_http_bloom_resume_t     resume;
    ngx_bloom_zone_t           *zone;
    ngx_bloom_task_e            kind;
    uint64_t                    ticket;
    ngx_msec_t                  exiting; /* when the worker was found to be
                                            shutting down; 0: it is not */
    ngx_bloom_result_t          result;
    ngx_uint_t                  tries;   /* how often the request has asked for
                                            this task before */

    /* responds when the task is done; returns what
     * ngx_http_finalize_request() takes */
    ngx_int_t                 (*done)(ngx_http_request_t *r,
                                      ngx_http_bloom_task_t *task);
};

/*
 * Asks the helper for a task.  Returns NGX_OK if the request waits for the task
 * and done() will respond; NGX_DECLINED with *error if the task is refused;
 * NGX_ERROR if memory is short.  `path` is the image file of an upload, or
 * NULL.
 */
ngx_int_t ngx_http_bloom_task_start(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, ngx_bloom_task_e kind, u_char *path,
    ngx_int_t (*done)(ngx_http_request_t *r, ngx_http_bloom_task_t *task),
    ngx_http_bloom_error_t *error);

/* Runs a task for a request without a body.  Returns what a content handler
 * returns. */
ngx_int_t ngx_http_bloom_task_run(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    ngx_int_t (*done)(ngx_http_request_t *r, ngx_http_bloom_task_t *task));

/* Responds with the result of a task, or with the reason why it failed. */
ngx_int_t ngx_http_bloom_task_respond(ngx_http_request_t *r,
    ngx_http_bloom_task_t *task);


/* ---- content handlers ---- */

ngx_int_t ngx_http_bloom_task_post_reload(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_task_post_checkpoint(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_task_post_clear(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_TASK_H_INCLUDED_ */
