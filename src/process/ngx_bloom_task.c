/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file draws tickets for tasks, and keeps the result of the last run of
 * each kind.
 */

#include "ngx_bloom_task.h"
#include "ngx_bloom_cleared.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_wake.h"


/* After how many ms without a sign of life the helper counts as dead; a living
 * helper gives one every second.  When nginx exits, there may be no next
 * helper. */
#define NGX_BLOOM_TASK_PATIENCE       60000
#define NGX_BLOOM_TASK_PATIENCE_EXIT  5000


static const char *ngx_bloom_task_expires(ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind);
static ngx_uint_t ngx_bloom_task_changed(ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind);
static ngx_int_t ngx_bloom_task_find(ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind, uint64_t ticket, ngx_bloom_result_t *result);


/* Says why a zone whose keys expire has no such task, and what to do. */
static const char *
ngx_bloom_task_expires(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind)
{
    switch (kind) {

    case NGX_BLOOM_TASK_UPLOAD:
        return "its keys expire, and those of an image do not; send the keys "
               "by POST keys, or upload the image to a zone without "
               "\"expire=\"";

    default: /* a snapshot */
        return zone->state != NULL
               ? "its keys expire, and an image does not say when; to keep "
                 "the keys, keep its state directory"
               : "its keys expire, and an image does not say when; to keep "
                 "the keys, set bloom_state_path, and remove \"journal=off\"";
    }
}


const char *
ngx_bloom_task_impossible(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind)
{
    if (zone->state_error != NULL) {
        return zone->state_error;
    }

    switch (kind) {

    case NGX_BLOOM_TASK_LOAD:
        return zone->file.name.len != 0
               ? NULL : "the zone has no file= to load again; to drop its "
                        "keys, send \"POST clear\"";

    case NGX_BLOOM_TASK_CLEAR:
    case NGX_BLOOM_TASK_RESTORE:
    case NGX_BLOOM_TASK_FORGET:
        return NULL;

    default: /* an upload, a checkpoint, a snapshot */

        if (zone->expire != 0 && kind != NGX_BLOOM_TASK_CHECKPOINT) {
            return ngx_bloom_task_expires(zone, kind);
        }

        return zone->state != NULL
               ? NULL : "the zone has no state directory: set "
                        "bloom_state_path, and remove \"journal=off\"";
    }
}


ngx_int_t
ngx_bloom_task_request(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    u_char *path, ngx_uint_t force, uint64_t *ticket, const char **error)
{
    ngx_int_t           rc;
    ngx_uint_t          other;
    ngx_bloom_shctx_t  *sh;

    /* by kind: one bit for each kind of which no task may wait */
    static const uint32_t  excludes[NGX_BLOOM_TASKS] = {
        [NGX_BLOOM_TASK_LOAD] = 1U << NGX_BLOOM_TASK_UPLOAD
                                | 1U << NGX_BLOOM_TASK_CLEAR,
        [NGX_BLOOM_TASK_CLEAR] = 1U << NGX_BLOOM_TASK_UPLOAD
                                 | 1U << NGX_BLOOM_TASK_LOAD,
        [NGX_BLOOM_TASK_UPLOAD] = 1U << NGX_BLOOM_TASK_UPLOAD
                                  | 1U << NGX_BLOOM_TASK_LOAD
                                  | 1U << NGX_BLOOM_TASK_CLEAR
    };

    sh = zone->sh;

    *error = ngx_bloom_task_impossible(zone, kind);

    if (*error != NULL) {
        return NGX_DECLINED;
    }

    if (ngx_bloom_lock(&sh->tasks, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        return NGX_BUSY;
    }

    rc = NGX_OK;

    for (other = 0; other < NGX_BLOOM_TASKS; other++) {

        if ((excludes[kind] & 1U << other) && ngx_bloom_task_asked(zone, other))
        {
            rc = NGX_BUSY;
        }
    }

    if (rc == NGX_OK) {
        *ticket = ++sh->task[kind].asked;

        if (kind == NGX_BLOOM_TASK_UPLOAD) {
            ngx_cpystrn(sh->task[kind].path, path, NGX_MAX_PATH);
        }

        if (force) {
            sh->task[kind].forced = *ticket;
        }
    }

    ngx_bloom_unlock(&sh->tasks);

    if (rc == NGX_OK) {
        ngx_bloom_wake(zone);
    }

    return rc;
}


ngx_int_t
ngx_bloom_task_result(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    uint64_t ticket, ngx_bloom_result_t *result)
{
    ngx_int_t       rc;
    ngx_msec_int_t  silent;
    const char     *why;

    rc = ngx_bloom_task_find(zone, kind, ticket, result);

    if (rc == NGX_OK) {
        return NGX_OK;
    }

    silent = ngx_current_msec
             - __atomic_load_n(&zone->sh->heartbeat, __ATOMIC_RELAXED);

    if (rc == NGX_DECLINED) {
        why = "the result of this upload is no longer known, because "
              "another image has been uploaded since; look at the zone's "
              "state, or upload it again";

    } else if (ngx_exiting && silent > NGX_BLOOM_TASK_PATIENCE_EXIT) {
        why = "nginx exits, and the zone's helper process has given no sign of "
              "life for five seconds; once nginx runs again, look at the "
              "zone's state, and send the request again";

    } else if (silent > NGX_BLOOM_TASK_PATIENCE) {
        why = "the zone's helper process has given no sign of life for a "
              "minute; check whether it runs (\"nginx: cache manager "
              "process\", or \"nginx: bloom helper\") or waits for its disk "
              "(state D)";

    } else {
        return NGX_AGAIN;
    }

    ngx_memzero(result, sizeof(ngx_bloom_result_t));

    result->outcome = NGX_BLOOM_FAILED;
    result->generation = __atomic_load_n(&zone->sh->generation,
                                         __ATOMIC_ACQUIRE);

    ngx_bloom_print(result->message, sizeof(result->message), "%s", why);

    return NGX_OK;
}


/*
 * Finds the result of a ticket.  Returns NGX_OK; NGX_AGAIN if the run has not
 * ended yet or another process holds the lock; NGX_DECLINED if the result is
 * no longer known.
 */
static ngx_int_t
ngx_bloom_task_find(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    uint64_t ticket, ngx_bloom_result_t *result)
{
    ngx_int_t          rc;
    ngx_bloom_task_t  *task;

    task = &zone->sh->task[kind];

    if (ngx_bloom_lock(&zone->sh->tasks, 0) != NGX_OK) {
        return NGX_AGAIN;
    }

    if (ticket > task->served) {
        rc = NGX_AGAIN;

    } else if (kind == NGX_BLOOM_TASK_UPLOAD && ticket != task->served) {
        rc = NGX_DECLINED;

    } else {
        ngx_bloom_fault("result");

        *result = task->result;
        rc = NGX_OK;
    }

    ngx_bloom_unlock(&zone->sh->tasks);

    return rc;
}


void
ngx_bloom_task_refused(ngx_bloom_zone_t *zone, ngx_bloom_result_t *result)
{
    result->started_at = ngx_bloom_time();
    result->generation = __atomic_load_n(&zone->sh->generation,
                                         __ATOMIC_ACQUIRE);

    ngx_bloom_count(zone, NGX_BLOOM_COUNTER_LOAD_OK + result->outcome, 1);

    if (ngx_bloom_lock(&zone->sh->tasks, NGX_BLOOM_TASK_WAIT) == NGX_OK) {
        zone->sh->loaded = *result;
        ngx_bloom_unlock(&zone->sh->tasks);
    }
}


ngx_int_t
ngx_bloom_task_begin(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    u_char *path)
{
    ngx_bloom_task_t  *task;

    task = &zone->sh->task[kind];

    if (!ngx_bloom_task_asked(zone, kind)
        || ngx_bloom_lock(&zone->sh->tasks, NGX_BLOOM_TASK_WAIT) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    task->begun = task->asked;
    task->generation = zone->sh->generation;

    zone->sh->restored = 0;
    zone->sh->runner = (uint64_t) getppid();
    __atomic_store_n(&zone->sh->handed, 0, __ATOMIC_SEQ_CST);

    ngx_cpystrn(path, task->path, NGX_MAX_PATH);

    /* if this process dies from here on, the run has failed */

    __atomic_store_n(&task->running, ngx_bloom_time(), __ATOMIC_SEQ_CST);

    ngx_bloom_unlock(&zone->sh->tasks);

    return NGX_OK;
}


ngx_uint_t
ngx_bloom_task_forced(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind)
{
    return zone->sh->task[kind].forced > zone->sh->task[kind].served;
}


ngx_bloom_task_e
ngx_bloom_task_left(ngx_bloom_zone_t *zone)
{
    ngx_uint_t          kind;
    ngx_bloom_task_t   *task;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    for (kind = 0; kind < NGX_BLOOM_TASKS; kind++) {
        task = &sh->task[kind];

        if (task->running == 0) {
            continue;
        }

        if (task->served < task->begun
            && (!__atomic_load_n(&sh->handed, __ATOMIC_SEQ_CST)
                || ngx_bloom_task_changed(zone, kind)))
        {
            break;
        }

        task->running = 0;       /* the process died just before this, or the
                                    run begins again */
    }

    return kind;
}


/* Returns 1 if a run that has not ended has changed what the zone has: done
 * again, it would drop keys that were added since, or restore keys that were
 * removed since. */
static ngx_uint_t
ngx_bloom_task_changed(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    switch (kind) {

    case NGX_BLOOM_TASK_LOAD:
    case NGX_BLOOM_TASK_UPLOAD:
    case NGX_BLOOM_TASK_CLEAR:
        return sh->task[kind].generation != sh->generation
               || (kind == NGX_BLOOM_TASK_CLEAR && zone->state != NULL
                   && ngx_bloom_cleared_since(zone->state, sh->applied));

    case NGX_BLOOM_TASK_RESTORE:
    case NGX_BLOOM_TASK_FORGET:
        return zone->state == NULL || sh->restored != 0;

    default: /* NGX_BLOOM_TASK_CHECKPOINT, NGX_BLOOM_TASK_SNAPSHOT */
        return 0;
    }
}


ngx_uint_t
ngx_bloom_task_asked(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind)
{
    ngx_bloom_task_t  *task;

    task = &zone->sh->task[kind];

    return __atomic_load_n(&task->asked, __ATOMIC_RELAXED)
           != __atomic_load_n(&task->served, __ATOMIC_RELAXED);
}


void
ngx_bloom_task_end(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    ngx_bloom_result_t *result, ngx_uint_t all)
{
    while (ngx_bloom_task_try_end(zone, kind, result, all, NGX_BLOOM_TASK_WAIT)
           != NGX_OK)
    {
        /* void */
    }
}


ngx_int_t
ngx_bloom_task_try_end(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    ngx_bloom_result_t *result, ngx_uint_t all, ngx_msec_t wait)
{
    uint64_t            now;
    ngx_bloom_task_t   *task;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    task = &sh->task[kind];

    if (ngx_bloom_lock(&sh->tasks, wait) != NGX_OK) {
        return NGX_BUSY;
    }

    now = ngx_bloom_time();

    result->generation = sh->generation;
    result->started_at = task->running;
    result->duration = now - ngx_min(now, result->started_at);

    if (ngx_bloom_task_loads(kind)) {
        ngx_bloom_count(zone, NGX_BLOOM_COUNTER_LOAD_OK + result->outcome, 1);
        ngx_bloom_count(zone, NGX_BLOOM_COUNTER_LOAD_MS, result->duration);
    }

    task->result = *result;

    if (ngx_bloom_task_loads(kind)) {
        sh->loaded = *result;
    }

    /* if this process dies before this store, the run has failed; if it dies
     * after it, the run has ended */

    __atomic_store_n(&task->served, all ? task->asked : task->begun,
                     __ATOMIC_SEQ_CST);
    __atomic_store_n(&task->running, 0, __ATOMIC_SEQ_CST);

    ngx_bloom_unlock(&sh->tasks);

    return NGX_OK;
}


ngx_uint_t
ngx_bloom_task_loads(ngx_bloom_task_e kind)
{
    return kind == NGX_BLOOM_TASK_LOAD || kind == NGX_BLOOM_TASK_UPLOAD
           || kind == NGX_BLOOM_TASK_CLEAR;
}


void
ngx_bloom_task_hand_on(ngx_bloom_zone_t *zone, ngx_pid_t runner)
{
    if (ngx_bloom_lock(&zone->sh->tasks, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        return;
    }

    if (zone->sh->runner == (uint64_t) runner) {
        __atomic_store_n(&zone->sh->handed, 1, __ATOMIC_SEQ_CST);
    }

    ngx_bloom_unlock(&zone->sh->tasks);
}
