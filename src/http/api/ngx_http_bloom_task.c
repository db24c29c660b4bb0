
/*
 * POST reload and POST checkpoint, and waiting for the helper: the request asks
 * every few milliseconds what came of its task, and holds nothing meanwhile.
 */

#include "ngx_http_bloom_api.h"


/* Between two questions, ms. */
#define NGX_HTTP_BLOOM_ASK       10

/* A worker that is to end waits no longer than that, ms: its zone may be of a
 * configuration that no helper works for any more. */
#define NGX_HTTP_BLOOM_PATIENCE  60000


static void ngx_http_bloom_job_ask(ngx_http_request_t *r);
static void ngx_http_bloom_job_fault(ngx_http_bloom_job_t *job,
    ngx_http_bloom_fault_t *fault);


ngx_int_t
ngx_http_bloom_post_reload(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    return ngx_http_bloom_job_run(r, zone, NGX_BLOOM_TASK_LOAD,
                                  ngx_http_bloom_job_answer);
}


ngx_int_t
ngx_http_bloom_post_checkpoint(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    return ngx_http_bloom_job_run(r, zone, NGX_BLOOM_TASK_CHECKPOINT,
                                  ngx_http_bloom_job_answer);
}


ngx_int_t
ngx_http_bloom_job_run(ngx_http_request_t *r, ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind, ngx_int_t (*done)(ngx_http_request_t *r,
    ngx_http_bloom_job_t *job))
{
    ngx_int_t               rc;
    ngx_http_bloom_fault_t  fault;

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    switch (ngx_http_bloom_job_start(r, zone, kind, NULL, done, &fault)) {

    case NGX_OK:
        break;

    case NGX_DECLINED:
        return ngx_http_bloom_answer_fault(r, &fault);

    default: /* NGX_ERROR */
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* what the client does not wait for, it is not told */

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
ngx_http_bloom_job_start(ngx_http_request_t *r, ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind, u_char *path, ngx_int_t (*done)(
    ngx_http_request_t *r, ngx_http_bloom_job_t *job),
    ngx_http_bloom_fault_t *fault)
{
    ngx_int_t              rc;
    const char            *error;
    ngx_http_bloom_job_t  *job;

    job = ngx_pcalloc(r->pool, sizeof(ngx_http_bloom_job_t));

    if (job == NULL
        || ngx_http_bloom_ctx_set_operation(r, job) != NGX_OK
        || ngx_http_bloom_pause_init(&job->pause, r, ngx_http_bloom_job_ask)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    job->zone = zone;
    job->kind = kind;
    job->done = done;

    rc = ngx_bloom_task_request(zone, kind, path, &job->ticket, &error);

    if (rc == NGX_BUSY) {
        ngx_http_bloom_fault(fault, NGX_HTTP_BLOOM_E_LOADING,
                             "another image is being loaded into zone \"%V\"; "
                             "wait until the zone's state says \"under_way\": "
                             "false, and ask again", &zone->name);
        return NGX_DECLINED;
    }

    if (rc != NGX_OK) {
        ngx_http_bloom_fault(fault, NGX_HTTP_BLOOM_E_NOT_POSSIBLE,
                             "zone \"%V\": %s", &zone->name, error);
        return NGX_DECLINED;
    }

    ngx_http_bloom_sleep(&job->pause, NGX_HTTP_BLOOM_ASK);

    return NGX_OK;
}


static void
ngx_http_bloom_job_ask(ngx_http_request_t *r)
{
    ngx_http_bloom_job_t    *job;
    ngx_http_bloom_fault_t   fault;

    job = ngx_http_bloom_ctx_operation(r);

    if (ngx_bloom_task_result(job->zone, job->kind, job->ticket, &job->result)
        == NGX_OK)
    {
        r->read_event_handler = ngx_http_block_reading;
        ngx_http_finalize_request(r, job->done(r, job));
        return;
    }

    if (ngx_exiting || ngx_terminate) {

        if (job->exiting == 0) {
            job->exiting = ngx_current_msec ? ngx_current_msec : 1;
        }

        if (ngx_current_msec - job->exiting >= NGX_HTTP_BLOOM_PATIENCE) {
            ngx_http_bloom_fault(&fault, NGX_HTTP_BLOOM_E_FAILED,
                                 "nginx was reloaded while zone \"%V\" worked "
                                 "on it; look at the zone's state",
                                 &job->zone->name);
            ngx_http_finalize_request(r,
                                      ngx_http_bloom_answer_fault(r, &fault));
            return;
        }
    }

    ngx_http_bloom_sleep(&job->pause, NGX_HTTP_BLOOM_ASK);
}


ngx_int_t
ngx_http_bloom_job_answer(ngx_http_request_t *r, ngx_http_bloom_job_t *job)
{
    ngx_bloom_info_t        info;
    ngx_http_bloom_text_t   text;
    ngx_http_bloom_fault_t  fault;

    ngx_bloom_zone_info(job->zone, &info);

    if (ngx_http_bloom_etag(r, &info) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_bloom_text_init(&text, r->pool);
    ngx_http_bloom_printf(&text, "{");

    ngx_http_bloom_job_fault(job, &fault);

    if (fault.error != NGX_HTTP_BLOOM_E_NONE) {
        ngx_http_bloom_put_fault(&text, &fault);
        ngx_http_bloom_printf(&text, ",");
    }

    ngx_http_bloom_printf(&text, "\"generation\":%uL,\"took_ms\":%uL,"
                          "\"zone\":", job->result.generation,
                          job->result.took);
    ngx_http_bloom_render_zone(&text, job->zone, &info);
    ngx_http_bloom_printf(&text, "}");

    return ngx_http_bloom_answer(r, ngx_http_bloom_fault_status(&fault),
                                 &text);
}


static void
ngx_http_bloom_job_fault(ngx_http_bloom_job_t *job,
    ngx_http_bloom_fault_t *fault)
{
    /* by ngx_bloom_outcome_e */
    static ngx_http_bloom_error_e  errors[] = {
        NGX_HTTP_BLOOM_E_NONE,
        NGX_HTTP_BLOOM_E_REFUSED,
        NGX_HTTP_BLOOM_E_NO_ROOM,
        NGX_HTTP_BLOOM_E_FAILED
    };

    ngx_http_bloom_fault(fault, errors[job->result.outcome], "%s",
                         job->result.message);
}
