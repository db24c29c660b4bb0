
/*
 * This file draws tickets for tasks, and keeps the results of their last runs.
 */

#include "ngx_bloom_task.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_wake.h"


/* A helper that lives shows it every second, ms. */
#define NGX_BLOOM_TASK_PATIENCE  60000


static ngx_int_t ngx_bloom_task_find(ngx_bloom_task_t *task, uint64_t ticket,
    ngx_bloom_result_t *result);


/* The last ticket that was served; 0, as in fresh memory, if none was. */
static uint64_t
ngx_bloom_task_served(ngx_bloom_task_t *task)
{
    uint64_t  runs;

    runs = __atomic_load_n(&task->runs, __ATOMIC_ACQUIRE);

    return task->run[runs % NGX_BLOOM_TASK_RUNS].upto;
}


static ngx_uint_t
ngx_bloom_task_unserved(ngx_bloom_shctx_t *sh, ngx_bloom_task_e kind)
{
    return sh->task[kind].asked != ngx_bloom_task_served(&sh->task[kind]);
}


ngx_int_t
ngx_bloom_task_request(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    u_char *path, uint64_t *ticket, const char **error)
{
    ngx_int_t           rc;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (kind == NGX_BLOOM_TASK_LOAD && zone->file.name.len == 0) {
        *error = "the zone has no file= to load again";
        return NGX_DECLINED;
    }

    if (kind != NGX_BLOOM_TASK_LOAD && zone->state == NULL) {
        *error = zone->state_error ? zone->state_error
                                   : "the zone has no directory for it: set "
                                     "bloom_state_path, and no \"journal=off\"";
        return NGX_DECLINED;
    }

    if (ngx_bloom_lock(&sh->tasks, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        return NGX_BUSY;
    }

    rc = NGX_OK;

    switch (kind) {

    case NGX_BLOOM_TASK_LOAD:
        if (ngx_bloom_task_unserved(sh, NGX_BLOOM_TASK_UPLOAD)) {
            rc = NGX_BUSY;
        }
        break;

    case NGX_BLOOM_TASK_UPLOAD:
        if (ngx_bloom_task_unserved(sh, NGX_BLOOM_TASK_UPLOAD)
            || ngx_bloom_task_unserved(sh, NGX_BLOOM_TASK_LOAD))
        {
            rc = NGX_BUSY;
            break;
        }

        ngx_cpystrn(sh->task[kind].path, path, NGX_MAX_PATH);
        break;

    default:
        break;
    }

    if (rc == NGX_OK) {
        *ticket = ++sh->task[kind].asked;
    }

    ngx_bloom_unlock(&sh->tasks);

    if (rc == NGX_OK) {
        ngx_bloom_wake();
    }

    return rc;
}


ngx_int_t
ngx_bloom_task_result(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    uint64_t ticket, ngx_bloom_result_t *result)
{
    ngx_int_t    rc;
    const char  *why;

    rc = ngx_bloom_task_find(&zone->sh->task[kind], ticket, result);

    if (rc == NGX_OK) {
        return NGX_OK;
    }

    if (rc == NGX_DECLINED) {
        why = "it is not known any more what came of it: several others have "
              "been served since; look at the zone's state, or ask again";

    } else if (ngx_bloom_time()
               > __atomic_load_n(&zone->sh->heartbeat, __ATOMIC_RELAXED)
                 + NGX_BLOOM_TASK_PATIENCE)
    {
        why = "the helper process has given no sign of life for a minute; look "
              "whether \"nginx: cache manager process\" runs";

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
 * What the run that served the ticket ended with.  NGX_AGAIN: none has yet;
 * NGX_DECLINED: it is not known any more.
 */
static ngx_int_t
ngx_bloom_task_find(ngx_bloom_task_t *task, uint64_t ticket,
    ngx_bloom_result_t *result)
{
    uint64_t          runs, n;
    ngx_int_t         rc;
    ngx_bloom_run_t  *run;

    do {
        runs = __atomic_load_n(&task->runs, __ATOMIC_ACQUIRE);

        rc = NGX_DECLINED;

        /* from the last one back, but for that which may be written */

        for (n = runs; n + NGX_BLOOM_TASK_RUNS > runs + 1; n--) {

            run = &task->run[n % NGX_BLOOM_TASK_RUNS];

            if (ticket > run->upto) {
                rc = NGX_AGAIN;
                break;
            }

            if (ticket > run->after) {
                ngx_bloom_fault("result");

                *result = run->result;
                rc = NGX_OK;
                break;
            }
        }

        /* if another run has ended meanwhile, what was read may be torn */

        __atomic_thread_fence(__ATOMIC_ACQUIRE);

    } while (__atomic_load_n(&task->runs, __ATOMIC_RELAXED) != runs);

    return rc;
}


ngx_int_t
ngx_bloom_task_begin(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    u_char *path)
{
    ngx_int_t          rc;
    ngx_bloom_task_t  *task;

    task = &zone->sh->task[kind];

    if (!ngx_bloom_task_unserved(zone->sh, kind)
        || ngx_bloom_lock(&zone->sh->tasks, NGX_BLOOM_TASK_WAIT) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    rc = NGX_DECLINED;

    if (ngx_bloom_task_unserved(zone->sh, kind)) {
        task->begun = task->asked;

        if (path != NULL) {
            ngx_cpystrn(path, task->path, NGX_MAX_PATH);
        }

        rc = NGX_OK;
    }

    ngx_bloom_unlock(&zone->sh->tasks);

    return rc;
}


ngx_uint_t
ngx_bloom_task_waits(ngx_bloom_zone_t *zone)
{
    ngx_uint_t  kind;

    for (kind = 0; kind < NGX_BLOOM_TASKS; kind++) {
        if (ngx_bloom_task_unserved(zone->sh, kind)) {
            return 1;
        }
    }

    return 0;
}


void
ngx_bloom_task_end(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    ngx_bloom_result_t *result, ngx_uint_t all)
{
    uint64_t            served;
    ngx_bloom_run_t    *run;
    ngx_bloom_task_t   *task;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    task = &sh->task[kind];

    /* the copies below are all that anybody does with this lock */

    while (ngx_bloom_lock(&sh->tasks, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        /* void */
    }

    served = ngx_bloom_task_served(task);
    run = &task->run[(task->runs + 1) % NGX_BLOOM_TASK_RUNS];

    /* who sees a byte of what is written now sees that `runs` is that high */

    __atomic_thread_fence(__ATOMIC_RELEASE);

    run->after = served;
    run->upto = all ? task->asked : ngx_max(served, task->begun);
    run->result = *result;

    /* one step: who dies before it has ended no run */

    __atomic_store_n(&task->runs, task->runs + 1, __ATOMIC_RELEASE);

    if (kind == NGX_BLOOM_TASK_LOAD || kind == NGX_BLOOM_TASK_UPLOAD) {
        sh->loaded = *result;
    }

    ngx_bloom_unlock(&sh->tasks);
}
