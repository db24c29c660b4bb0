/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A timer gives each zone a slice of time in turn.  Each slice returns when the
 * zone wants the next one; the pipe can wake the helper earlier.
 */

#include "ngx_bloom_helper.h"
#include "ngx_bloom_shutdown.h"
#include "ngx_bloom_log.h"
#include "ngx_bloom_task.h"
#include "ngx_bloom_maintenance.h"
#include "ngx_bloom_jobs.h"
#include "ngx_bloom_owed.h"
#include "ngx_bloom_wake.h"
#include "ngx_bloom_watch.h"

#include <ngx_event.h>


/* Times in milliseconds. */
#define NGX_BLOOM_HELPER_SLICE    20         /* of work at a time */
#define NGX_BLOOM_HELPER_COUNT    10000      /* until huge pages are measured */


typedef struct {
    ngx_array_t          *zones;         /* of ngx_bloom_zone_t * */
    ngx_bloom_jobs_t     *jobs;          /* of each zone */
    ngx_connection_t     *c;             /* of the pipe's reading end */
    ngx_event_t           timer;
    ngx_path_t            path;
    ngx_cycle_t          *cycle;
    ngx_uint_t            runs;          /* in this process */
} ngx_bloom_helper_t;


static ngx_msec_t ngx_bloom_helper_manager(void *data);
static ngx_int_t ngx_bloom_helper_start(ngx_bloom_helper_t *helper);
static void ngx_bloom_helper_stop(void *data);
static void ngx_bloom_helper_exit(void);
static void ngx_bloom_helper_abandon(ngx_bloom_helper_t *helper);
static void ngx_bloom_helper_read(ngx_event_t *ev);
static void ngx_bloom_helper_cancel(ngx_bloom_helper_t *helper);
static void ngx_bloom_helper_timer(ngx_event_t *ev);
static ngx_msec_t ngx_bloom_helper_zone(ngx_bloom_jobs_t *jobs);
static void ngx_bloom_helper_measure_hugepages(ngx_bloom_jobs_t *jobs);


/* The helper of this process's cycle. */
static ngx_bloom_helper_t  *ngx_bloom_helper;


ngx_int_t
ngx_bloom_helper_init(ngx_cycle_t *cycle, ngx_array_t *zones)
{
    ngx_path_t          **path;
    ngx_uint_t            i, single;
    ngx_pool_cleanup_t   *cln;
    ngx_bloom_helper_t   *helper;

    single = 0;

    if (ngx_bloom_helper != NULL && ngx_bloom_helper->runs) {

        /* "master_process off", and this is a reload */

        single = 1;
        ngx_bloom_shutdown_end(cycle, ngx_bloom_helper->zones);
        ngx_bloom_helper_stop(ngx_bloom_helper);
    }

    if (zones->nelts == 0 || ngx_test_config) {
        return NGX_OK;
    }

    helper = ngx_pcalloc(cycle->pool, sizeof(ngx_bloom_helper_t));
    cln = ngx_pool_cleanup_add(cycle->pool, 0);

    if (helper == NULL || cln == NULL) {
        return NGX_ERROR;
    }

    helper->jobs = ngx_pcalloc(cycle->pool,
                               zones->nelts * sizeof(ngx_bloom_jobs_t));
    if (helper->jobs == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < zones->nelts; i++) {
        helper->jobs[i].zone = ((ngx_bloom_zone_t **) zones->elts)[i];
        ngx_bloom_copy_init(&helper->jobs[i].copy);
        ngx_bloom_stand_init(&helper->jobs[i].stand);
    }

    helper->zones = zones;
    helper->cycle = cycle;

    if (ngx_bloom_wake_init(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    cln->handler = ngx_bloom_helper_stop;
    cln->data = helper;

    /*
     * nginx starts the cache manager process if any path of the cycle has a
     * manager.  It has created the directories of all paths before this, so
     * this path, which has no directory, leaves nothing in the file system.
     */

    ngx_str_set(&helper->path.name, "bloom");
    helper->path.manager = ngx_bloom_helper_manager;
    helper->path.data = helper;

    path = ngx_array_push(&cycle->paths);
    if (path == NULL) {
        return NGX_ERROR;
    }

    *path = &helper->path;

    ngx_bloom_helper = helper;

    return single ? ngx_bloom_helper_start(helper) : NGX_OK;
}


ngx_int_t
ngx_bloom_helper_process(ngx_cycle_t *cycle)
{
    if (ngx_process != NGX_PROCESS_SINGLE || ngx_bloom_helper == NULL) {
        return NGX_OK;
    }

    return ngx_bloom_helper_start(ngx_bloom_helper);
}


static ngx_msec_t
ngx_bloom_helper_manager(void *data)
{
    ngx_bloom_helper_t *helper = data;

    if (!helper->runs) {

        if (ngx_bloom_helper_start(helper) != NGX_OK) {
            return NGX_BLOOM_JOBS_IDLE;
        }

        /* nginx calls no module handler when this process exits */

        (void) atexit(ngx_bloom_helper_exit);
    }

    return 60 * 60 * 1000;
}


static ngx_int_t
ngx_bloom_helper_start(ngx_bloom_helper_t *helper)
{
    ngx_connection_t  *c;

    helper->timer.handler = ngx_bloom_helper_timer;
    helper->timer.log = helper->cycle->log;
    helper->timer.cancelable = 1;
    helper->runs = 1;

    c = ngx_get_connection(ngx_bloom_wake_fd(), helper->cycle->log);

    if (c != NULL) {
        c->read->handler = ngx_bloom_helper_read;
        c->read->log = helper->cycle->log;
        c->data = helper;
        helper->timer.data = c;

        if (ngx_add_event(c->read, NGX_READ_EVENT, 0) != NGX_OK) {
            ngx_free_connection(c);
            c = NULL;
        }
    }

    helper->c = c;

    if (c == NULL) {
        helper->runs = 0;
        return NGX_ERROR;
    }

    ngx_add_timer(&helper->timer, 0);

    return NGX_OK;
}


static void
ngx_bloom_helper_stop(void *data)
{
    ngx_bloom_helper_t *helper = data;

    if (helper->runs) {
        helper->runs = 0;

        ngx_bloom_helper_cancel(helper);

        (void) ngx_del_event(helper->c->read, NGX_READ_EVENT, 0);
        ngx_free_connection(helper->c);

        ngx_bloom_helper_abandon(helper);
    }

    if (ngx_bloom_helper == helper) {
        ngx_bloom_helper = NULL;
    }
}


/* Hands unfinished jobs on to the next helper, because nginx told this process
 * to exit.  The next helper would not repeat a job whose process died. */
static void
ngx_bloom_helper_exit(void)
{
    if (ngx_bloom_helper != NULL && ngx_bloom_helper->runs) {
        ngx_bloom_helper_abandon(ngx_bloom_helper);
    }
}


static void
ngx_bloom_helper_abandon(ngx_bloom_helper_t *helper)
{
    ngx_uint_t  i;

    for (i = 0; i < helper->zones->nelts; i++) {
        ngx_bloom_jobs_abandon(&helper->jobs[i]);
    }
}


static void
ngx_bloom_helper_read(ngx_event_t *ev)
{
    ngx_connection_t    *c;
    ngx_bloom_helper_t  *helper;

    c = ev->data;
    helper = c->data;

    ev->ready = 0;
    (void) ngx_handle_read_event(ev, 0);

    ngx_bloom_helper_cancel(helper);     /* ngx_add_timer() may keep it */
    ngx_bloom_helper_timer(&helper->timer);
}


static void
ngx_bloom_helper_cancel(ngx_bloom_helper_t *helper)
{
    if (helper->timer.timer_set) {
        ngx_del_timer(&helper->timer);
    }

    if (helper->timer.posted) {
        ngx_delete_posted_event(&helper->timer);
    }
}


static void
ngx_bloom_helper_timer(ngx_event_t *ev)
{
    ngx_msec_t           next, delay;
    ngx_uint_t           i;
    ngx_connection_t    *c;
    ngx_bloom_helper_t  *helper;

    c = ev->data;
    helper = c->data;
    next = NGX_BLOOM_JOBS_IDLE;

    ngx_bloom_wake_clear();

    for (i = 0; i < helper->zones->nelts; i++) {

        if (ngx_quit || ngx_terminate) {
            return;
        }

        delay = ngx_bloom_helper_zone(&helper->jobs[i]);
        next = ngx_min(next, delay);
    }

    if (next != 0) {
        ngx_add_timer(ev, next);
        return;
    }

    /* a timer of 0 ms would expire before nginx reads any event, for example
     * that the process is to exit */

    ngx_post_event(ev, &ngx_posted_next_events);
}


/* Does a slice of a zone's work.  Returns after how many ms to do the next. */
static ngx_msec_t
ngx_bloom_helper_zone(ngx_bloom_jobs_t *jobs)
{
    ngx_msec_t          next, delay, wait, begun;
    ngx_bloom_shctx_t  *sh;

    sh = jobs->zone->sh;
    next = NGX_BLOOM_JOBS_IDLE;

    __atomic_store_n(&sh->heartbeat, ngx_current_msec, __ATOMIC_RELAXED);

    /* done even while a loader of the master holds sh->helper */

    ngx_bloom_owed_settle(jobs->zone);

    if (jobs->zone->state != NULL) {
        next = ngx_bloom_maintenance_journal(jobs);
    }

    if (jobs->current == NGX_BLOOM_JOBS_NONE
        && ngx_bloom_lock(&sh->helper, 0) != NGX_OK)
    {
        return NGX_BLOOM_JOBS_BUSY;     /* another helper looks after it */
    }

    ngx_bloom_jobs_begin(jobs);

    if (jobs->zone->adapts) {
        ngx_bloom_recent_turn(&sh->recent, sh->generation);
    }

    if (jobs->zone->expire != 0) {
        delay = ngx_bloom_ring_tick(jobs->zone, &jobs->ring);
        next = ngx_min(next, delay);
    }

    if (jobs->zone->state != NULL) {
        delay = ngx_bloom_maintenance_zone(jobs);
        next = ngx_min(next, delay);
    }

    if (jobs->current == NGX_BLOOM_JOBS_NONE) {
        ngx_bloom_watch(jobs->zone, &jobs->looked);
        ngx_bloom_jobs_choose(jobs);
    }

    begun = ngx_current_msec;

    while (jobs->current != NGX_BLOOM_JOBS_NONE) {

        ngx_bloom_jobs_step(jobs);
        ngx_time_update();

        if (ngx_quit || ngx_terminate
            || ngx_current_msec - begun >= NGX_BLOOM_HELPER_SLICE)
        {
            break;
        }
    }

    if (jobs->current != NGX_BLOOM_JOBS_NONE) {
        return 0;
    }

    ngx_bloom_log_warnings(jobs->zone, &jobs->bits_set);
    ngx_bloom_helper_measure_hugepages(jobs);

    ngx_bloom_unlock(&sh->helper);

    wait = ngx_bloom_jobs_wait(jobs);
    next = ngx_min(next, wait);

    if (jobs->zone->watch != 0) {
        next = ngx_min(next, jobs->zone->watch);
    }

    return next;
}


/* Measures the huge pages so rarely that this takes at most a thousandth of the
 * time. */
static void
ngx_bloom_helper_measure_hugepages(ngx_bloom_jobs_t *jobs)
{
    ngx_msec_t  begun;

    begun = ngx_current_msec;

    if ((ngx_msec_int_t) (begun - jobs->measure_hugepages) < 0) {
        return;
    }

    ngx_bloom_zone_measure_hugepages(jobs->zone);
    ngx_time_update();

    jobs->measure_hugepages = ngx_current_msec + NGX_BLOOM_HELPER_COUNT
                       + 1000 * (ngx_current_msec - begun);
}
