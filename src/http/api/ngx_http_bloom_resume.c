
/*
 * Requests that go on later: after a while, or after the others' turn.
 */

#include "ngx_http_bloom_api.h"


/* More than others' turns take, ms. */
#define NGX_HTTP_BLOOM_YIELD  1000


static void ngx_http_bloom_resume(ngx_event_t *ev);
static void ngx_http_bloom_pause_cleanup(void *data);


ngx_int_t
ngx_http_bloom_pause_init(ngx_http_bloom_pause_t *pause,
    ngx_http_request_t *r, void (*resume)(ngx_http_request_t *r))
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_bloom_pause_cleanup;
    cln->data = pause;

    ngx_memzero(pause, sizeof(ngx_http_bloom_pause_t));

    pause->event.handler = ngx_http_bloom_resume;
    pause->event.data = r->connection;
    pause->event.log = r->connection->log;
    pause->request = r;
    pause->resume = resume;

    return NGX_OK;
}


void
ngx_http_bloom_sleep(ngx_http_bloom_pause_t *pause, ngx_msec_t ms)
{
    if (!pause->event.timer_set) {
        ngx_add_timer(&pause->event, ms);
    }
}


/*
 * A worker that is told to go waits for timers, but not for what is posted: so
 * there is one, although it never comes to its end.
 */
void
ngx_http_bloom_yield(ngx_http_bloom_pause_t *pause)
{
    ngx_http_bloom_sleep(pause, NGX_HTTP_BLOOM_YIELD);

    ngx_post_event(&pause->event, &ngx_posted_next_events);
}


static void
ngx_http_bloom_resume(ngx_event_t *ev)
{
    ngx_connection_t        *c;
    ngx_http_request_t      *r;
    ngx_http_bloom_pause_t  *pause;

    pause = (ngx_http_bloom_pause_t *) ev;

    ngx_http_bloom_stop(pause);

    r = pause->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    pause->resume(r);

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_bloom_pause_cleanup(void *data)
{
    ngx_http_bloom_pause_t *pause = data;

    ngx_http_bloom_stop(pause);
}


void
ngx_http_bloom_stop(ngx_http_bloom_pause_t *pause)
{
    if (pause->event.timer_set) {
        ngx_del_timer(&pause->event);
    }

    if (pause->event.posted) {
        ngx_delete_posted_event(&pause->event);
    }
}
