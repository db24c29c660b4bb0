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
    ngx_uint_t                  only;    /* of a clear: 1 if it restores removed
                                            keys alone, 2 if it forgets excepted
                                            keys alone */
    ngx_uint_t                  force;   /* "?force=true" */
    u_char                     *path;    /* the image file of an upload, or
                                            NULL */
    ngx_bloom_result_t          result;
    ngx_uint_t                  asked;   /* the helper has the task */
    ngx_uint_t                  done;    /* `result` is set */
    uint64_t                    ticket;
} ngx_http_bloom_task_t;

/*
 * The arguments and functions of such an operation, whose kind's `which` is the
 * task: begin() checks that the zone can do it; run() asks the helper, unless
 * task->asked, and waits for the result; put() appends it.
 */
extern const ngx_http_bloom_arg_t  ngx_http_bloom_task_args[];

ngx_int_t ngx_http_bloom_task_begin(ngx_http_bloom_operation_t *op);
ngx_int_t ngx_http_bloom_task_run(ngx_http_bloom_operation_t *op);
void ngx_http_bloom_task_put(ngx_http_bloom_operation_t *op,
    ngx_http_bloom_text_t *text);

/* Ends a task whose `result` is set.  Returns NGX_OK; NGX_ERROR with op->error
 * if the task has failed. */
ngx_int_t ngx_http_bloom_task_done(ngx_http_bloom_task_t *task);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_TASK_H_INCLUDED_ */
