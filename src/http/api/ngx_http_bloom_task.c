/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file waits for the helper: a request looks every few milliseconds
 * whether its task is done, and holds no lock in between.
 */

#include "ngx_http_bloom_task.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_json.h"
#include "ngx_http_bloom_query.h"
#include "ngx_http_bloom_response.h"


/* The time between two looks, ms. */
#define NGX_HTTP_BLOOM_TASK_POLL       10

/* A worker that is shutting down waits no longer than this, ms: its zone may
 * belong to a configuration that has no helper any more. */
#define NGX_HTTP_BLOOM_TASK_PATIENCE  60000


static void ngx_http_bloom_task_poll(ngx_http_request_t *r);
static void ngx_http_bloom_task_error(ngx_http_bloom_task_t *task,
    ngx_http_bloom_error_t *error);


ngx_int_t
ngx_http_bloom_task_post_reload(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    return ngx_http_bloom_task_run(r, zone, NGX_BLOOM_TASK_LOAD,
                                   ngx_http_bloom_task_respond);
}


ngx_int_t
ngx_http_bloom_task_post_checkpoint(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone)
{
    return ngx_http_bloom_task_run(r, zone, NGX_BLOOM_TASK_CHECKPOINT,
                                   ngx_http_bloom_task_respond);
}


ngx_int_t
ngx_http_bloom_task_post_clear(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    ngx_int_t               rc;
    ngx_str_t               only;
    ngx_bloom_task_e        kind;
    ngx_http_bloom_error_t  error;

    static const char  *const args[] = { "only", "serving", NULL };

    /* what is meant to limit the clear may be in the body */

    if (r->headers_in.content_length_n > 0 || r->headers_in.chunked) {
        return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_BAD_BODY,
                                              "a clear must have no body, and "
                                              "nothing was cleared; write "
                                              "\"clear?only=removed\" to "
                                              "restore removed keys only, or "
                                              "\"clear?only=excepted\" to "
                                              "forget excepted keys only");
    }

    rc = ngx_http_discard_request_body(r);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_http_bloom_query_only(r, args, &error) != NGX_OK) {
        return ngx_http_bloom_response_error(r, &error);
    }

    kind = NGX_BLOOM_TASK_CLEAR;

    if (ngx_http_arg(r, (u_char *) "only", sizeof("only") - 1, &only)
        == NGX_OK)
    {
        if (zone->source.len != 0) {
            return ngx_http_bloom_response_refuse(r,
                                              NGX_HTTP_BLOOM_E_NOT_POSSIBLE,
                                              "zone \"%V\" takes its changes "
                                              "from its source alone, "
                                              "which restores a key by adding "
                                              "it; nothing was changed",
                                              &zone->name);
        }

        if (only.len == 7 && ngx_strncmp(only.data, "removed", 7) == 0) {
            kind = NGX_BLOOM_TASK_RESTORE;

        } else if (only.len == 8
                   && ngx_strncmp(only.data, "excepted", 8) == 0)
        {
            kind = NGX_BLOOM_TASK_FORGET;

        } else {
            return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                                  "invalid \"only\" in the "
                                                  "query; it must be "
                                                  "\"removed\" or "
                                                  "\"excepted\"");
        }
    }

    return ngx_http_bloom_task_run(r, zone, kind, ngx_http_bloom_task_respond);
}


ngx_int_t
ngx_http_bloom_task_run(ngx_http_request_t *r, ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind, ngx_int_t (*done)(ngx_http_request_t *r,
    ngx_http_bloom_task_t *task))
{
    ngx_http_bloom_error_t  error;

    switch (ngx_http_bloom_task_start(r, zone, kind, NULL, done, &error)) {

    case NGX_OK:
        break;

    case NGX_DECLINED:
        return ngx_http_bloom_response_error(r, &error);

    default: /* NGX_ERROR */
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* the request ends if the client closes the connection */

    if (!r->discard_body) {
        r->read_event_handler = ngx_http_test_reading;

        if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    r->main->count++;

    return NGX_DONE;
}


ngx_int_t
ngx_http_bloom_task_start(ngx_http_request_t *r, ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind, u_char *path, ngx_int_t (*done)(
    ngx_http_request_t *r, ngx_http_bloom_task_t *task),
    ngx_http_bloom_error_t *error)
{
    ngx_int_t               rc;
    ngx_uint_t              force;
    const char             *why;
    ngx_http_bloom_task_t  *task;

    if (ngx_http_bloom_query_flag(r, "force", &force, error) != NGX_OK) {
        return NGX_DECLINED;
    }

    task = ngx_pcalloc(r->pool, sizeof(ngx_http_bloom_task_t));

    if (task == NULL
        || ngx_http_bloom_ctx_set_operation(r, task) != NGX_OK
        || ngx_http_bloom_resume_init(&task->resume, r,
                                      ngx_http_bloom_task_poll)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    task->zone = zone;
    task->kind = kind;
    task->done = done;

    rc = ngx_bloom_task_request(zone, kind, path, force, &task->ticket, &why);

    if (rc == NGX_BUSY) {
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_LOADING,
                             "another image is being loaded into zone \"%V\", "
                             "or the zone is being cleared; try again when "
                             "\"load.in_progress\" of the zone's state is "
                             "false",
                             &zone->name);
        return NGX_DECLINED;
    }

    if (rc != NGX_OK) {
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_NOT_POSSIBLE,
                             "zone \"%V\": %s", &zone->name, why);
        return NGX_DECLINED;
    }

    ngx_http_bloom_resume_after(&task->resume, NGX_HTTP_BLOOM_TASK_POLL);

    return NGX_OK;
}


static void
ngx_http_bloom_task_poll(ngx_http_request_t *r)
{
    ngx_http_bloom_task_t   *task;
    ngx_http_bloom_error_t   error;

    task = ngx_http_bloom_ctx_operation(r);

    if (ngx_bloom_task_result(task->zone, task->kind, task->ticket,
                              &task->result)
        == NGX_OK)
    {
        r->read_event_handler = ngx_http_block_reading;
        ngx_http_finalize_request(r, task->done(r, task));
        return;
    }

    if (ngx_exiting || ngx_terminate) {

        if (task->exiting == 0) {
            task->exiting = ngx_current_msec ? ngx_current_msec : 1;
        }

        if (ngx_current_msec - task->exiting >= NGX_HTTP_BLOOM_TASK_PATIENCE) {
            ngx_http_bloom_error(&error, NGX_HTTP_BLOOM_E_FAILED,
                                 "nginx was reloaded while this request waited "
                                 "for zone \"%V\"; see the zone's state for "
                                 "the result",
                                 &task->zone->name);
            ngx_http_finalize_request(r,
                                      ngx_http_bloom_response_error(r, &error));
            return;
        }
    }

    ngx_http_bloom_resume_after(&task->resume, NGX_HTTP_BLOOM_TASK_POLL);
}


ngx_int_t
ngx_http_bloom_task_respond(ngx_http_request_t *r, ngx_http_bloom_task_t *task)
{
    ngx_bloom_info_t        info;
    ngx_http_bloom_text_t   text;
    ngx_http_bloom_error_t  error;

    ngx_bloom_info_get(task->zone, &info);

    ngx_http_bloom_text_init(&text, r->pool);
    ngx_http_bloom_text_printf(&text, "{");

    ngx_http_bloom_task_error(task, &error);

    if (error.code != NGX_HTTP_BLOOM_E_NONE) {
        ngx_http_bloom_error_put(&text, &error);
        ngx_http_bloom_text_printf(&text, ",");
    }

    ngx_http_bloom_text_printf(&text, "\"generation\":%uL,\"duration_ms\":%uL,"
                               "\"zone\":", task->result.generation,
                               task->result.duration);
    ngx_http_bloom_json_zone(&text, task->zone, &info);
    ngx_http_bloom_text_printf(&text, "}");

    return ngx_http_bloom_response_json(r, ngx_http_bloom_error_status(&error),
                                        &text);
}


static void
ngx_http_bloom_task_error(ngx_http_bloom_task_t *task,
    ngx_http_bloom_error_t *error)
{
    /* by ngx_bloom_outcome_e */
    static ngx_http_bloom_error_code_e  errors[] = {
        NGX_HTTP_BLOOM_E_NONE,
        NGX_HTTP_BLOOM_E_REFUSED,
        NGX_HTTP_BLOOM_E_NO_ROOM,
        NGX_HTTP_BLOOM_E_FAILED
    };

    ngx_http_bloom_error(error, errors[task->result.outcome], "%s",
                         task->result.message);
}
