/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_task_died.h"
#include "ngx_bloom_base_change.h"
#include "ngx_bloom_clear.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_watch.h"


/* by ngx_bloom_task_e */
static const char  *const ngx_bloom_task_died_in[] = {
    "was loading its file",
    "was loading an uploaded image",
    "was clearing the zone",
    "was restoring removed keys",
    "was forgetting excepted keys",
    "was writing a checkpoint",
    "was writing an image"
};

_Static_assert(sizeof(ngx_bloom_task_died_in)
               / sizeof(ngx_bloom_task_died_in[0]) == NGX_BLOOM_TASKS,
               "each task has a name");


ngx_int_t
ngx_bloom_task_died(ngx_bloom_zone_t *zone, const u_char *death)
{
    ngx_uint_t           switched, cleared;
    ngx_bloom_task_e     task;
    ngx_bloom_shctx_t   *sh;
    ngx_bloom_result_t   result;

    task = ngx_bloom_task_left(zone);

    if (task == NGX_BLOOM_TASKS) {
        return NGX_OK;
    }

    sh = zone->sh;
    switched = 0;
    cleared = 0;

    if (ngx_bloom_task_loads(task)) {
        __atomic_store_n(&sh->load_total, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&sh->load_done, 0, __ATOMIC_RELAXED);

        switched = (sh->task[task].generation != sh->generation);
    }

    if (task == NGX_BLOOM_TASK_CLEAR) {
        cleared = ngx_bloom_clear_due(zone) || switched;
    }

    if (switched) {

        /* record what the process would have recorded next */

        sh->uploaded = (task == NGX_BLOOM_TASK_UPLOAD);
        sh->checkpoint = 0;
        ngx_bloom_guard_accept(zone, &sh->bank[sh->generation & 1].image,
                               sh->task[task].running);

        if (task != NGX_BLOOM_TASK_UPLOAD) {
            ngx_bloom_base_note_loaded(zone,
                                     &sh->bank[sh->generation & 1].image);
        }

    } else if (task == NGX_BLOOM_TASK_LOAD) {
        sh->refused = sh->loads;
    }

    ngx_memzero(&result, sizeof(ngx_bloom_result_t));

    result.outcome = NGX_BLOOM_FAILED;

    ngx_bloom_print(result.message, sizeof(result.message),
                    "bloom zone \"%V\": the process that %s %s, and try "
                    "again%s", &zone->name, ngx_bloom_task_died_in[task],
                    sh->handed ? "ended, because nginx told its helper to exit"
                    : death[0] != '\0' ? (char *) death
                    : "died with its helper, perhaps because memory was "
                      "short: see the system's log",
                    cleared ? "; the zone is cleared all the same"
                    : switched ? "; the image serves, but a restart may bring "
                                 "the previous image back" : "");

    if (ngx_bloom_task_try_end(zone, task, &result,
                               task == NGX_BLOOM_TASK_LOAD
                               && ngx_bloom_watch_is_loaded(zone), 0)
        != NGX_OK)
    {
        return NGX_BUSY;
    }

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "%s; bloom zone \"%V\" continues with generation %uL",
                  result.message, &zone->name, sh->generation);

    return NGX_OK;
}
