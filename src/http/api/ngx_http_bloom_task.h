/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares operations that wait for a task of the helper.
 */

#ifndef _NGX_HTTP_BLOOM_TASK_H_INCLUDED_
#define _NGX_HTTP_BLOOM_TASK_H_INCLUDED_

#include "ngx_http_bloom_operation.h"
#include "ngx_bloom_task.h"

#pragma GCC visibility push(hidden)


typedef struct {
    ngx_http_bloom_operation_t  op;
    ngx_bloom_task_e            kind;
    ngx_uint_t                  force;   /* "?force=true" */
    u_char                     *path;    /* the image file of an upload, or
                                            NULL */
    ngx_bloom_result_t          result;
    ngx_uint_t                  asked;   /* the helper has the task */
    ngx_uint_t                  done;    /* `result` is set */

    /* ---- private ---- */

    uint64_t                    ticket;
    ngx_msec_t                  exiting; /* when the worker was found to be
                                            shutting down; 0: it is not */
} ngx_http_bloom_task_t;

/*
 * The functions of such an operation, whose kind's `which` is the task: begin()
 * reads "force=" and checks that the zone can do it; run() asks the helper,
 * unless task->asked, and waits for the result; put() appends it.
 */
ngx_int_t ngx_http_bloom_task_begin(ngx_http_bloom_operation_t *op);
ngx_int_t ngx_http_bloom_task_run(ngx_http_bloom_operation_t *op);
void ngx_http_bloom_task_put(ngx_http_bloom_operation_t *op,
    ngx_http_bloom_text_t *text);

/* Ends a task whose `result` is set.  Returns NGX_OK; NGX_ERROR with op->error
 * if the task has failed. */
ngx_int_t ngx_http_bloom_task_done(ngx_http_bloom_task_t *task);

extern const ngx_http_bloom_kind_t  ngx_http_bloom_post_reload;
extern const ngx_http_bloom_kind_t  ngx_http_bloom_post_checkpoint;
extern const ngx_http_bloom_kind_t  ngx_http_bloom_post_clear;


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_TASK_H_INCLUDED_ */
