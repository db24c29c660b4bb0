
#include "ngx_bloom_task.h"
#include "ngx_bloom_helper.h"
#include "ngx_bloom_io.h"


/* A helper that lives shows it every second, ms. */
#define NGX_BLOOM_TASK_PATIENCE  60000


static ngx_uint_t
ngx_bloom_task_pending(ngx_bloom_shctx_t *sh, ngx_bloom_task_e kind)
{
    return sh->task[kind].asked != sh->task[kind].done;
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
        if (ngx_bloom_task_pending(sh, NGX_BLOOM_TASK_UPLOAD)) {
            rc = NGX_BUSY;
        }
        break;

    case NGX_BLOOM_TASK_UPLOAD:
        if (ngx_bloom_task_pending(sh, NGX_BLOOM_TASK_UPLOAD)
            || ngx_bloom_task_pending(sh, NGX_BLOOM_TASK_LOAD))
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
        ngx_bloom_helper_wake();
    }

    return rc;
}


ngx_int_t
ngx_bloom_task_result(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    uint64_t ticket, ngx_bloom_result_t *result)
{
    ngx_int_t          rc;
    ngx_bloom_task_t  *task;

    task = &zone->sh->task[kind];

    if (ngx_bloom_lock(&zone->sh->tasks, 0) != NGX_OK) {
        return NGX_AGAIN;
    }

    rc = NGX_AGAIN;

    if (task->done >= ticket) {
        *result = task->result;
        rc = NGX_OK;

    } else if (ngx_bloom_time()
               > __atomic_load_n(&zone->sh->heartbeat, __ATOMIC_RELAXED)
                 + NGX_BLOOM_TASK_PATIENCE)
    {
        ngx_memzero(result, sizeof(ngx_bloom_result_t));

        result->outcome = NGX_BLOOM_FAILED;
        result->generation = zone->sh->generation;

        ngx_bloom_print(result->message, sizeof(result->message),
                            "the helper process has given no sign of life for "
                            "a minute; look whether \"nginx: cache manager "
                            "process\" runs%Z");
        rc = NGX_OK;
    }

    ngx_bloom_unlock(&zone->sh->tasks);

    return rc;
}


ngx_int_t
ngx_bloom_task_begin(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    u_char *path)
{
    ngx_int_t          rc;
    ngx_bloom_task_t  *task;

    task = &zone->sh->task[kind];

    if (task->asked == task->done
        || ngx_bloom_lock(&zone->sh->tasks, NGX_BLOOM_TASK_WAIT) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    rc = NGX_DECLINED;

    if (task->asked != task->done) {
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
        if (ngx_bloom_task_pending(zone->sh, kind)) {
            return 1;
        }
    }

    return 0;
}


void
ngx_bloom_task_end(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    ngx_bloom_result_t *result, ngx_uint_t all)
{
    ngx_bloom_task_t   *task;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    task = &sh->task[kind];

    /* the copies below are all that anybody does with this lock */

    while (ngx_bloom_lock(&sh->tasks, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        /* void */
    }

    task->result = *result;
    task->done = all ? task->asked : ngx_max(task->done, task->begun);

    if (kind == NGX_BLOOM_TASK_LOAD || kind == NGX_BLOOM_TASK_UPLOAD) {
        sh->loaded = *result;
    }

    ngx_bloom_unlock(&sh->tasks);
}
