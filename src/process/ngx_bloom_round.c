/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_round.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_job.h"
#include "ngx_bloom_wake.h"

#include <sys/wait.h>


/* How long a job may take, ms, and how much longer for each KiB of a bank: a
 * disk reads more than a MiB in a second. */
#define NGX_BLOOM_ROUND_LIMIT  600000
#define NGX_BLOOM_ROUND_KIB    1

/* How long after fork() has failed it is tried again, ms. */
#define NGX_BLOOM_ROUND_RETRY  1000


static void ngx_bloom_round_reap(ngx_bloom_round_t *round);
static void ngx_bloom_round_ended(ngx_bloom_round_t *round, int status);
static ngx_msec_t ngx_bloom_round_limit(ngx_bloom_round_t *round);
static void ngx_bloom_round_job(ngx_bloom_round_t *round);
static void ngx_bloom_round_child(void *data);


ngx_int_t
ngx_bloom_round_init(ngx_bloom_round_t *round, ngx_pool_t *pool,
    ngx_array_t *zones, ngx_uint_t helper)
{
    ngx_uint_t          i;
    ngx_bloom_zone_t  **zone;

    round->work = ngx_pcalloc(pool, zones->nelts
                                    * sizeof(ngx_bloom_maintenance_t));
    round->due = ngx_pcalloc(pool, zones->nelts * sizeof(ngx_uint_t));

    if (round->work == NULL || round->due == NULL) {
        return NGX_ERROR;
    }

    round->zones = zones;
    zone = zones->elts;

    for (i = 0; i < zones->nelts; i++) {
        if (zone[i]->helper == helper) {
            round->work[round->n++].zone = zone[i];
        }
    }

    return NGX_OK;
}


ngx_msec_t
ngx_bloom_round(ngx_bloom_round_t *round)
{
    ngx_msec_t  next, wait;
    ngx_uint_t  i;

    next = NGX_BLOOM_MAINTENANCE_IDLE;

    ngx_bloom_round_reap(round);

    for (i = 0; i < round->n; i++) {

        if (ngx_quit || ngx_terminate) {
            return next;
        }

        wait = ngx_bloom_maintenance(&round->work[i], &round->due[i]);
        next = ngx_min(next, wait);
    }

    if (round->child.pid == 0) {
        ngx_bloom_round_job(round);
    }

    return round->child.pid == 0 ? next
                                 : ngx_min(next, NGX_BLOOM_MAINTENANCE_BUSY);
}


void
ngx_bloom_round_abandon(ngx_bloom_round_t *round)
{
    if (round->child.pid == 0) {
        return;
    }

    /* the next helper would not repeat a job that died by itself */

    ngx_bloom_job_hand_on(round->work[round->last].zone, ngx_pid);
    ngx_bloom_child_kill(&round->child);
}


/* Looks if the child has ended, and kills it if its time is over. */
static void
ngx_bloom_round_reap(ngx_bloom_round_t *round)
{
    int         status;
    ngx_msec_t  passed;

    if (round->child.pid == 0) {
        return;
    }

    if (ngx_bloom_child_ended(&round->child, &status) == NGX_OK) {
        ngx_bloom_round_ended(round, status);
        round->late = 0;
        return;
    }

    /* a clock that jumps, or a stop of this process, is not the job's time */

    passed = ngx_current_msec - round->looked;
    round->looked = ngx_current_msec;
    round->spent += ngx_min(passed, NGX_BLOOM_MAINTENANCE_IDLE);

    if (!round->late && round->spent >= ngx_bloom_round_limit(round)) {
        round->late = 1;
        (void) kill(round->child.pid, SIGKILL);
    }
}


/* Notes how the child has ended. */
static void
ngx_bloom_round_ended(ngx_bloom_round_t *round, int status)
{
    int                       number;
    const char               *how;
    ngx_bloom_maintenance_t  *work;

    work = &round->work[round->last];
    work->job = 0;

    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        round->deaths = 0;
        return;
    }

    /* a job that has not even begun would be tried again without an end */

    if (++round->deaths > 1) {
        round->refused = ngx_current_msec ? ngx_current_msec : 1;
    }

    how = WIFSIGNALED(status) ? "on signal" : "with code";
    number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);

    if (round->late) {
        ngx_bloom_print(work->death, sizeof(work->death),
                        "died after %M s, which is too long: check the disk",
                        ngx_bloom_round_limit(round) / 1000);

    } else {
        ngx_bloom_print(work->death, sizeof(work->death),
                        "died %s %d, perhaps because memory was short: see the "
                        "system's log", how, number);
    }

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "the process that did a job for bloom zone \"%V\" exited %s "
                  "%d%s", &work->zone->name, how, number,
                  round->late ? ", because it took too long: check the disk"
                              : "; see the system's log");
}


static ngx_msec_t
ngx_bloom_round_limit(ngx_bloom_round_t *round)
{
    size_t  size;

#if (NGX_BLOOM_FAULTS)
    if (getenv("NGX_BLOOM_FAULT_LIMIT") != NULL) {
        return (ngx_msec_t) atoi(getenv("NGX_BLOOM_FAULT_LIMIT"));
    }
#endif

    size = round->work[round->last].zone->bank_size;

    return NGX_BLOOM_ROUND_LIMIT + size / 1024 * NGX_BLOOM_ROUND_KIB;
}


/* Begins a job that is due, of the next zone that has one. */
static void
ngx_bloom_round_job(ngx_bloom_round_t *round)
{
    ngx_uint_t  i, n;

    n = 0;

    for (i = 0; i < round->n; i++) {
        n = (round->last + 1 + i) % round->n;

        if (round->due[n]) {
            break;
        }
    }

    if (i == round->n
        || (round->refused != 0
            && ngx_current_msec - round->refused < NGX_BLOOM_ROUND_RETRY))
    {
        return;
    }

    round->refused = 0;
    round->last = n;
    round->work[n].job = 1;
    round->looked = ngx_current_msec;
    round->spent = 0;

    if (ngx_bloom_child_start(&round->child, "bloom job",
                              ngx_bloom_round_child, round)
        != NGX_OK)
    {
        round->work[n].job = 0;
        ngx_bloom_job_refuse(round->work[n].zone, ngx_errno);
        round->refused = ngx_current_msec ? ngx_current_msec : 1;
    }
}


/* Does the job in the child. */
static void
ngx_bloom_round_child(void *data)
{
    ngx_bloom_round_t *round = data;

    ngx_bloom_zone_t  *zone;

    ngx_bloom_round_leave(round);
    ngx_bloom_child_expendable();
    ngx_bloom_counters_job();

    zone = round->work[round->last].zone;

    ngx_bloom_job(zone);

    ngx_bloom_wake(zone);
}


void
ngx_bloom_round_leave(ngx_bloom_round_t *round)
{
    ngx_uint_t          i;
    ngx_bloom_zone_t  **zone;

    zone = round->zones->elts;

    for (i = 0; i < round->zones->nelts; i++) {
        if (zone[i]->state != NULL) {
            ngx_bloom_io_close(&zone[i]->state->lock);
        }
    }
}
