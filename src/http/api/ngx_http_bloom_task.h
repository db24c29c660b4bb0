/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A request waits here for a task of the helper: POST reload, POST checkpoint,
 * and what other files ask for.
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
    ngx_msec_t                  exiting;               /* since when, or 0 */
    ngx_bloom_result_t          result;
    ngx_uint_t                  tries;   /* of the request before this one */

    /* called when it is done; what it returns ends the request */
    ngx_int_t                 (*done)(ngx_http_request_t *r,
                                      ngx_http_bloom_task_t *task);
};

/*
 * Asks the helper for a task.  Returns NGX_OK if the request waits for it, and
 * task->done responds; NGX_DECLINED with *error; NGX_ERROR if memory is short.
 */
ngx_int_t ngx_http_bloom_task_start(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, ngx_bloom_task_e kind, u_char *path,
    ngx_int_t (*done)(ngx_http_request_t *r, ngx_http_bloom_task_t *task),
    ngx_http_bloom_error_t *error);

/* Does all that a content handler has to do for a task without a body. */
ngx_int_t ngx_http_bloom_task_run(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    ngx_int_t (*done)(ngx_http_request_t *r, ngx_http_bloom_task_t *task));

/* Responds with what a task did, or why it failed. */
ngx_int_t ngx_http_bloom_task_respond(ngx_http_request_t *r,
    ngx_http_bloom_task_t *task);


/* ---- content handlers ---- */

ngx_int_t ngx_http_bloom_task_post_reload(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
ngx_int_t ngx_http_bloom_task_post_checkpoint(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_TASK_H_INCLUDED_ */
