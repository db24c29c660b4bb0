/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file waits for the helper: a request looks every few milliseconds
 * whether its task is done, and holds no lock in between.
 */

#include "ngx_http_bloom_task.h"
#include "ngx_http_bloom_endpoint.h"
#include "ngx_http_bloom_json.h"


/* The time between two looks, ms. */
#define NGX_HTTP_BLOOM_TASK_POLL       10


static ngx_int_t ngx_http_bloom_task_begin_clear(
    ngx_http_bloom_operation_t *op);


static const ngx_http_bloom_arg_t  ngx_http_bloom_task_args_clear[] = {
    { "only", NGX_HTTP_BLOOM_ARG_WORD, offsetof(ngx_http_bloom_task_t, only),
      "\"removed\" or \"excepted\"", { NULL, "removed", "excepted" }, 0, 0, 0 },
    ngx_http_bloom_arg_serving,
    ngx_http_bloom_arg_end
};

const ngx_http_bloom_arg_t  ngx_http_bloom_task_args[] = {
    ngx_http_bloom_arg_flag("force", ngx_http_bloom_task_t, force),
    ngx_http_bloom_arg_serving,
    ngx_http_bloom_arg_end
};

const ngx_http_bloom_kind_t  ngx_http_bloom_post_reload = {
    .size = sizeof(ngx_http_bloom_task_t),
    .which = NGX_BLOOM_TASK_LOAD,
    .args = ngx_http_bloom_task_args,
    .begin = ngx_http_bloom_task_begin,
    .run = ngx_http_bloom_task_run,
    .put = ngx_http_bloom_task_put
};

const ngx_http_bloom_kind_t  ngx_http_bloom_post_checkpoint = {
    .size = sizeof(ngx_http_bloom_task_t),
    .which = NGX_BLOOM_TASK_CHECKPOINT,
    .args = ngx_http_bloom_task_args,
    .begin = ngx_http_bloom_task_begin,
    .run = ngx_http_bloom_task_run,
    .put = ngx_http_bloom_task_put
};

const ngx_http_bloom_kind_t  ngx_http_bloom_post_clear = {
    .size = sizeof(ngx_http_bloom_task_t),
    .which = NGX_BLOOM_TASK_CLEAR,
    .args = ngx_http_bloom_task_args_clear,
    .begin = ngx_http_bloom_task_begin_clear,
    .run = ngx_http_bloom_task_run,
    .put = ngx_http_bloom_task_put
};


static ngx_int_t
ngx_http_bloom_task_begin_clear(ngx_http_bloom_operation_t *op)
{
    ngx_int_t               rc;
    ngx_http_request_t     *r;
    ngx_http_bloom_task_t  *task;

    static const ngx_bloom_task_e  kinds[] = {
        NGX_BLOOM_TASK_CLEAR, NGX_BLOOM_TASK_RESTORE, NGX_BLOOM_TASK_FORGET
    };

    r = op->request;
    task = (ngx_http_bloom_task_t *) op;

    /* what is meant to limit the clear may be in the body */

    if (r->headers_in.content_length_n > 0 || r->headers_in.chunked) {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_BAD_BODY,
                                    "a clear must have no body, and nothing "
                                    "was cleared; write \"clear?only=removed\" "
                                    "to restore removed keys only, or "
                                    "\"clear?only=excepted\" to forget "
                                    "excepted keys only");
    }

    if (task->only != 0 && op->zone->source.len != 0) {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_NOT_POSSIBLE,
                                    "zone \"%V\" takes its changes from its "
                                    "source alone, and nothing was changed; to "
                                    "restore a key, add it at the source",
                                    &op->zone->name);
    }

    rc = ngx_http_bloom_task_begin(op);

    task->kind = kinds[task->only];

    return rc;
}


ngx_int_t
ngx_http_bloom_task_begin(ngx_http_bloom_operation_t *op)
{
    const char             *why;
    ngx_http_bloom_task_t  *task;

    task = (ngx_http_bloom_task_t *) op;
    task->kind = (ngx_bloom_task_e) op->kind->which;

    why = ngx_bloom_task_impossible(op->zone, task->kind);

    if (why != NULL) {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_NOT_POSSIBLE,
                                    "zone \"%V\": %s", &op->zone->name, why);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_bloom_task_run(ngx_http_bloom_operation_t *op)
{
    const char             *why;
    ngx_http_bloom_task_t  *task;

    task = (ngx_http_bloom_task_t *) op;

    if (task->asked) {
        return ngx_bloom_task_result(op->zone, task->kind, task->ticket,
                                     &task->result)
               == NGX_OK
               ? ngx_http_bloom_task_done(task)
               : ngx_http_bloom_operation_after(op, NGX_HTTP_BLOOM_TASK_POLL);
    }

    switch (ngx_bloom_task_request(op->zone, task->kind, task->path,
                                   task->force, &task->ticket, &why))
    {

    case NGX_OK:
        task->asked = 1;
        return ngx_http_bloom_operation_after(op, NGX_HTTP_BLOOM_TASK_POLL);

    case NGX_BUSY:
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_LOADING,
                                    "another image is being loaded into zone "
                                    "\"%V\", or the zone is being cleared; try "
                                    "again when \"load.in_progress\" of the "
                                    "zone's state is false", &op->zone->name);

    default: /* NGX_DECLINED */
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_NOT_POSSIBLE,
                                    "zone \"%V\": %s", &op->zone->name, why);
    }
}


ngx_int_t
ngx_http_bloom_task_done(ngx_http_bloom_task_t *task)
{
    /* by ngx_bloom_outcome_e */
    static ngx_http_bloom_error_code_e  errors[] = {
        NGX_HTTP_BLOOM_E_NONE,
        NGX_HTTP_BLOOM_E_REFUSED,
        NGX_HTTP_BLOOM_E_NO_ROOM,
        NGX_HTTP_BLOOM_E_FAILED,
        NGX_HTTP_BLOOM_E_DAMAGED
    };

    task->done = 1;

    ngx_http_bloom_error(&task->op.error, errors[task->result.outcome], "%s",
                         task->result.message);

    return task->op.error.code == NGX_HTTP_BLOOM_E_NONE ? NGX_OK : NGX_ERROR;
}


void
ngx_http_bloom_task_put(ngx_http_bloom_operation_t *op,
    ngx_http_bloom_text_t *text)
{
    ngx_bloom_info_t        info;
    ngx_http_bloom_task_t  *task;

    task = (ngx_http_bloom_task_t *) op;

    if (!task->done) {
        return;
    }

    ngx_http_bloom_endpoint_info(ngx_http_bloom_endpoint_get(op->request),
                                 op->zone, &info);

    bloom_json_put_count(&text->json, "generation", task->result.generation);
    bloom_json_put_count(&text->json, "duration_ms", task->result.duration);

    ngx_http_bloom_json_put_zone(text, "zone", op->zone, &info);
}
