/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A timer makes the rounds of the first process, and a loop those of the
 * others.  A round says when the next one is due; an eventfd can wake each
 * process earlier.
 */

#include "ngx_bloom_helper.h"
#include "ngx_bloom_child.h"
#include "ngx_bloom_job.h"
#include "ngx_bloom_round.h"
#include "ngx_bloom_shutdown.h"
#include "ngx_bloom_wake.h"

#include <ngx_event.h>

#include <poll.h>
#include <sys/wait.h>


/* How often the log says that a process cannot be started, s. */
#define NGX_BLOOM_HELPER_LOG  60


/* One process of the helper. */
typedef struct {
    ngx_uint_t           number;
    ngx_bloom_round_t    round;
    ngx_bloom_child_t    child;          /* that makes the rounds; not of the
                                            first process */
} ngx_bloom_helper_process_t;


typedef struct {
    ngx_array_t                 *zones;  /* of ngx_bloom_zone_t * */
    ngx_uint_t                   n;      /* number of processes */
    ngx_bloom_helper_process_t   process[NGX_BLOOM_HELPERS];
    dev_t                        device[NGX_BLOOM_HELPERS];  /* of each one */
    ngx_connection_t            *c;      /* of the first eventfd */
    ngx_event_t                  timer;
    ngx_path_t                   path;
    ngx_cycle_t                 *cycle;
    ngx_fd_t                     log;    /* descriptor of the log; nginx opens
                                            it again under another one */
    ngx_uint_t                   runs;   /* in this process */
} ngx_bloom_helper_t;


static ngx_msec_t ngx_bloom_helper_manager(void *data);
static ngx_int_t ngx_bloom_helper_start(ngx_bloom_helper_t *helper);
static void ngx_bloom_helper_stop(void *data);
static void ngx_bloom_helper_exit(void);
static void ngx_bloom_helper_abandon(ngx_bloom_helper_t *helper);
static void ngx_bloom_helper_read(ngx_event_t *ev);
static void ngx_bloom_helper_cancel(ngx_bloom_helper_t *helper);
static void ngx_bloom_helper_timer(ngx_event_t *ev);
static void ngx_bloom_helper_share(ngx_bloom_helper_t *helper);
static void ngx_bloom_helper_others(ngx_bloom_helper_t *helper);
static void ngx_bloom_helper_other(ngx_bloom_helper_process_t *process);
static ngx_str_t *ngx_bloom_helper_path(ngx_bloom_helper_process_t *process);
static void ngx_bloom_helper_loop(void *data);
static void ngx_bloom_helper_reopen(int signo);


/* 1: the process has to open its logs again. */
static volatile sig_atomic_t  ngx_bloom_helper_reopens;

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

    helper->zones = zones;
    helper->cycle = cycle;

    ngx_bloom_helper_share(helper);

    for (i = 0; i < helper->n; i++) {
        helper->process[i].number = i;

        if (ngx_bloom_round_init(&helper->process[i].round, cycle->pool, zones,
                                 i)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (ngx_bloom_wake_init(cycle, helper->n) != NGX_OK) {
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


/* Gives each file system with state directories a process of its own, so that a
 * disk that does not answer stops no zone on another one. */
static void
ngx_bloom_helper_share(ngx_bloom_helper_t *helper)
{
    ngx_uint_t          i, n;
    struct stat         st;
    ngx_bloom_zone_t  **zone;

    zone = helper->zones->elts;

    for (i = 0; i < helper->zones->nelts; i++) {

        if (zone[i]->state == NULL || fstat(zone[i]->state->dir, &st) == -1) {
            continue;
        }

        for (n = 0; n < helper->n; n++) {
            if (helper->device[n] == st.st_dev) {
                break;
            }
        }

        n = ngx_min(n, NGX_BLOOM_HELPERS - 1);

        helper->device[n] = st.st_dev;
        helper->n = ngx_max(helper->n, n + 1);

        zone[i]->helper = n;
    }

    helper->n = ngx_max(helper->n, 1);
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
            return NGX_BLOOM_MAINTENANCE_IDLE;
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

    c = ngx_get_connection(ngx_bloom_wake_fd(0), helper->cycle->log);

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


/* nginx told this process to exit. */
static void
ngx_bloom_helper_exit(void)
{
    if (ngx_bloom_helper != NULL && ngx_bloom_helper->runs) {
        ngx_bloom_helper_abandon(ngx_bloom_helper);
    }
}


/* Ends the processes, and hands their jobs on to the next helper. */
static void
ngx_bloom_helper_abandon(ngx_bloom_helper_t *helper)
{
    ngx_uint_t                   i, j;
    ngx_bloom_helper_process_t  *process;

    ngx_bloom_round_abandon(&helper->process[0].round);

    for (i = 1; i < helper->n; i++) {
        process = &helper->process[i];

        if (process->child.pid == 0) {
            continue;
        }

        /* only that process knows if it has a child, which dies with it */

        for (j = 0; j < process->round.n; j++) {
            ngx_bloom_job_hand_on(process->round.work[j].zone,
                                  process->child.pid);
        }

        ngx_bloom_child_kill(&process->child);
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
    ngx_msec_t           next;
    ngx_connection_t    *c;
    ngx_bloom_helper_t  *helper;

    c = ev->data;
    helper = c->data;

    ngx_bloom_wake_clear(0);
    ngx_bloom_helper_others(helper);

    next = ngx_bloom_round(&helper->process[0].round);

    if (ngx_quit || ngx_terminate) {
        return;
    }

    if (next != 0) {
        ngx_add_timer(ev, next);
        return;
    }

    /* a timer of 0 ms would expire before nginx reads any event, for example
     * that the process is to exit */

    ngx_post_event(ev, &ngx_posted_next_events);
}


/* Sees to it that the other processes run, and that they open their logs again
 * when this one has done so: nginx does not know them. */
static void
ngx_bloom_helper_others(ngx_bloom_helper_t *helper)
{
    int                  status;
    ngx_fd_t             log;
    ngx_uint_t           i, reopens;
    ngx_bloom_child_t   *child;

    log = (helper->cycle->log->file != NULL) ? helper->cycle->log->file->fd
                                             : NGX_INVALID_FILE;
    reopens = (log != helper->log);
    helper->log = log;

    for (i = 1; i < helper->n; i++) {
        child = &helper->process[i].child;

        if (child->pid != 0
            && ngx_bloom_child_ended(child, &status) == NGX_OK)
        {
            ngx_log_error(NGX_LOG_ALERT, helper->cycle->log, 0,
                          "the process that looks after bloom zones on the "
                          "file system of \"%V\" died %s %d, and is started "
                          "again; look in the system's log for the reason",
                          ngx_bloom_helper_path(&helper->process[i]),
                          WIFSIGNALED(status) ? "on signal" : "with code",
                          WIFSIGNALED(status) ? WTERMSIG(status)
                                              : WEXITSTATUS(status));
        }

        if (child->pid == 0) {
            ngx_bloom_helper_other(&helper->process[i]);

        } else if (reopens) {
            (void) kill(child->pid, SIGUSR1);
        }
    }
}


/* Starts another process than the first; if the system refuses it, once in a
 * second at most. */
static void
ngx_bloom_helper_other(ngx_bloom_helper_process_t *process)
{
    static time_t  refused, logged;

    if (refused == ngx_time()
        || ngx_bloom_child_start(&process->child, "bloom helper",
                                 ngx_bloom_helper_loop, process)
           == NGX_OK)
    {
        return;
    }

    refused = ngx_time();

    if (refused - logged < NGX_BLOOM_HELPER_LOG) {
        return;
    }

    logged = refused;

    ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                  "fork() failed for the process that looks after bloom zones "
                  "on the file system of \"%V\", whose journals wait; free "
                  "memory, or raise the limit of processes",
                  ngx_bloom_helper_path(process));
}


/* Returns a directory on the file system of another process than the first. */
static ngx_str_t *
ngx_bloom_helper_path(ngx_bloom_helper_process_t *process)
{
    return &process->round.work[0].zone->state->path;
}


/* Makes the rounds of another process than the first. */
static void
ngx_bloom_helper_loop(void *data)
{
    ngx_bloom_helper_process_t *process = data;

    ngx_msec_t      next;
    struct pollfd   pfd;

    (void) signal(SIGUSR1, ngx_bloom_helper_reopen);

    ngx_bloom_round_leave(&process->round);

    pfd.fd = ngx_bloom_wake_fd(process->number);
    pfd.events = POLLIN;

    for ( ;; ) {
        ngx_bloom_wake_clear(process->number);

        next = ngx_bloom_round(&process->round);

        (void) poll(&pfd, 1, (int) next);

        ngx_time_update();

        if (ngx_bloom_helper_reopens) {
            ngx_bloom_helper_reopens = 0;
            ngx_reopen_files((ngx_cycle_t *) ngx_cycle, (ngx_uid_t) -1);
        }
    }
}


static void
ngx_bloom_helper_reopen(int signo)
{
    ngx_bloom_helper_reopens = 1;
}
