/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A timer of the worker checks whether its journals are on disk.
 */

#include "ngx_bloom_shutdown.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_journal.h"
#include "ngx_bloom_unprivileged.h"

#include <ngx_event.h>


/*
 * Times in milliseconds: between two checks, where a record that is not on disk
 * at either is late; after which a waiting request has no helper; to wait for
 * another process's synchronisation.
 */
#define NGX_BLOOM_SHUTDOWN_LOOK   500
#define NGX_BLOOM_SHUTDOWN_ALONE  100
#define NGX_BLOOM_SHUTDOWN_LOCK   10000


static void ngx_bloom_shutdown_look(ngx_event_t *ev);
static void ngx_bloom_shutdown_child(void *data, ngx_bloom_reply_t *reply);
static void ngx_bloom_shutdown_end_zone(ngx_cycle_t *cycle,
    ngx_bloom_zone_t *zone);


/* The zones of this process, and its timer. */
static ngx_array_t  *ngx_bloom_shutdown_zones;
static ngx_event_t   ngx_bloom_shutdown_timer;


void
ngx_bloom_shutdown_init(ngx_cycle_t *cycle, ngx_array_t *zones)
{
    static void  *ident[4];

    /* the helper and the only process synchronise until they exit */

    if (ngx_process != NGX_PROCESS_WORKER) {
        return;
    }

    ident[3] = (void *) -1;

    ngx_bloom_shutdown_zones = zones;

    ngx_bloom_shutdown_timer.handler = ngx_bloom_shutdown_look;
    ngx_bloom_shutdown_timer.data = ident;
    ngx_bloom_shutdown_timer.log = cycle->log;
    ngx_bloom_shutdown_timer.cancelable = 1;
}


/*
 * The timer runs from an addition until the addition is on disk.  It runs even
 * if the worker is not exiting, because nothing tells a module when its worker
 * begins to exit.
 */
void
ngx_bloom_shutdown_appended(ngx_bloom_zone_t *zone, uint64_t position)
{
    zone->state->appended = position;

    if (ngx_bloom_shutdown_zones != NULL
        && !ngx_bloom_shutdown_timer.timer_set)
    {
        ngx_add_timer(&ngx_bloom_shutdown_timer, NGX_BLOOM_SHUTDOWN_LOOK);
    }
}


static void
ngx_bloom_shutdown_look(ngx_event_t *ev)
{
    uint64_t              synced;
    ngx_uint_t            i, waits;
    ngx_bloom_zone_t    **zone;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    zone = ngx_bloom_shutdown_zones->elts;
    waits = 0;

    for (i = 0; i < ngx_bloom_shutdown_zones->nelts; i++) {
        state = zone[i]->state;

        if (state == NULL) {
            continue;
        }

        control = state->control;
        synced = __atomic_load_n(&control->synced, __ATOMIC_ACQUIRE);

        if (ngx_exiting && synced < state->late
            && ngx_bloom_lock(&control->keeper, 0) == NGX_OK)
        {
            (void) ngx_bloom_journal_sync(state);
            ngx_bloom_unlock(&control->keeper);

            synced = control->synced;
            ngx_time_update();
        }

        state->late = state->appended;

        if (synced < state->appended) {
            waits = 1;
        }
    }

    if (waits) {
        ngx_add_timer(ev, NGX_BLOOM_SHUTDOWN_LOOK);
    }
}


void
ngx_bloom_shutdown_waits(ngx_bloom_zone_t *zone, ngx_msec_t since)
{
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = zone->state;

    if (!ngx_exiting || state == NULL
        || (ngx_msec_int_t) (ngx_current_msec - since)
           < NGX_BLOOM_SHUTDOWN_ALONE)
    {
        return;
    }

    control = state->control;

    if (ngx_bloom_lock(&control->keeper, 0) != NGX_OK) {
        return;                                /* another process does it */
    }

    (void) ngx_bloom_journal_prepare(state);

    if (control->synced < control->wanted) {
        (void) ngx_bloom_journal_sync(state);
    }

    ngx_bloom_unlock(&control->keeper);

    ngx_time_update();
}


void
ngx_bloom_shutdown_end(ngx_cycle_t *cycle, ngx_array_t *zones)
{
    ngx_uint_t          i;
    ngx_bloom_zone_t  **zone;

    zone = zones->elts;

    for (i = 0; i < zones->nelts; i++) {
        if (zone[i]->state != NULL) {
            ngx_bloom_shutdown_end_zone(cycle, zone[i]);
        }
    }
}


void
ngx_bloom_shutdown_end_master(ngx_cycle_t *cycle, ngx_array_t *zones)
{
    ngx_uint_t            i, any;
    ngx_core_conf_t      *ccf;
    ngx_bloom_user_t      user;
    ngx_bloom_zone_t    **zone;
    ngx_bloom_reply_t    reply;

    zone = zones->elts;

    any = 0;

    for (i = 0; i < zones->nelts; i++) {

        if (zone[i]->state != NULL) {
            any = 1;

        } else if (zone[i]->state_error != NULL
                   && zone[i]->sh->control.loss.lost_keys != 0)
        {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                          "bloom zone \"%V\" loses added keys, because its "
                          "directory could not be used: add them again",
                          &zone[i]->name);
        }
    }

    if (!any) {
        return;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);
    user = ngx_bloom_unprivileged_workers(ccf);

    (void) ngx_bloom_unprivileged(&user, cycle->log,
                                  "synchronises the journals of bloom zones",
                                  ngx_bloom_shutdown_child, zones, &reply);
}


static void
ngx_bloom_shutdown_child(void *data, ngx_bloom_reply_t *reply)
{
    ngx_array_t *zones = data;

    ngx_bloom_zone_attach_states(zones);
    ngx_bloom_shutdown_end((ngx_cycle_t *) ngx_cycle, zones);

    reply->rc = NGX_OK;
}


static void
ngx_bloom_shutdown_end_zone(ngx_cycle_t *cycle, ngx_bloom_zone_t *zone)
{
    uint64_t              tail;
    ngx_int_t             rc;
    ngx_uint_t            last;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = zone->state;
    control = state->control;
    last = (ngx_process != NGX_PROCESS_WORKER);

    tail = last ? ngx_bloom_state_tail(state) : state->appended;

    if (__atomic_load_n(&control->synced, __ATOMIC_ACQUIRE) >= tail) {
        rc = NGX_OK;

    } else if (ngx_bloom_lock(&control->keeper, NGX_BLOOM_SHUTDOWN_LOCK)
               == NGX_OK)
    {
        /* the process that held the lock may have synchronised it */

        rc = (control->synced < tail) ? ngx_bloom_journal_sync(state)
                                      : NGX_OK;

        ngx_bloom_unlock(&control->keeper);

    } else {
        ngx_set_errno(NGX_EBUSY);
        rc = NGX_ERROR;
    }

    /* the control page says what was lost */

    if (last && ngx_bloom_io_sync(state->fd) != NGX_OK) {
        rc = NGX_ERROR;
    }

    if (rc != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, cycle->log, ngx_errno,
                      "bloom zone \"%V\": the journal in \"%V\" could not be "
                      "synchronised at exit; a power failure may lose the last "
                      "added keys; check the disk", &zone->name, &state->path);
    }
}
