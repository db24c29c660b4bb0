/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A job is work of the helper that takes long: a load or a save.
 *
 * A zone has one job at a time, done in steps of some milliseconds:
 *
 *     load      load an image, copy it to the state directory if it was
 *               uploaded, let it serve
 *     clear     load the image of file=, drop everything else, let it serve
 *     restore   make removed keys ordinary ones again
 *     save      write a checkpoint or a snapshot
 *
 * A load or a save ends by storing the result of its task, if a process asked
 * for it, and by giving back the idle bank.
 *
 * The helper holds sh->helper from the choice of a job to its end.  If it dies
 * meanwhile, the next helper finds the job's task unfinished: the task has
 * failed.
 */

#ifndef _NGX_BLOOM_JOBS_H_INCLUDED_
#define _NGX_BLOOM_JOBS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_copy.h"
#include "ngx_bloom_load.h"
#include "ngx_bloom_log.h"
#include "ngx_bloom_restore.h"
#include "ngx_bloom_ring.h"
#include "ngx_bloom_save.h"
#include "ngx_bloom_snapshot.h"
#include "ngx_bloom_stand.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* After how many milliseconds a helper looks after a zone again. */
#define NGX_BLOOM_JOBS_IDLE   1000           /* usually */
#define NGX_BLOOM_JOBS_BUSY   5              /* while others append */

/* How often files that nobody needs are removed, ms. */
#define NGX_BLOOM_JOBS_CLEAN  10000


/* The kinds of jobs, and their phases. */
typedef enum {
    NGX_BLOOM_JOBS_NONE = 0,
    NGX_BLOOM_JOBS_LOAD,
    NGX_BLOOM_JOBS_COPY,                 /* an upload to the state directory */
    NGX_BLOOM_JOBS_CLEAR,                /* after its load */
    NGX_BLOOM_JOBS_RESTORE,
    NGX_BLOOM_JOBS_STAND,                /* before a save, or after a load in
                                            place of an upload: the image of
                                            file= becomes the base */
    NGX_BLOOM_JOBS_SAVE,
    NGX_BLOOM_JOBS_END                   /* of any of the above */
} ngx_bloom_jobs_e;

/* What a helper knows of a zone that it looks after. */
typedef struct {
    ngx_bloom_zone_t     *zone;
    ngx_bloom_jobs_e      current;
    ngx_bloom_task_e      task;          /* that the current job is for */
    ngx_uint_t            asked;         /* 1: a process asked for the job */
    ngx_uint_t            begun;         /* 1: ngx_bloom_jobs_begin() is done */
    ngx_uint_t            tells;         /* 1: the job's end stores `result` */
    ngx_bloom_result_t    result;

    ngx_bloom_load_t      load;
    u_char                path[NGX_MAX_PATH];
    ngx_bloom_copy_t      copy;          /* of an upload */
    ngx_msec_t            clear_waits;   /* since when a clear waits for locks;
                                            0: it does not */

    ngx_uint_t            counts;        /* 1: `returned` is being counted */
    ngx_bloom_log_returned_t  returned;

    ngx_bloom_restore_t   restore;
    ngx_bloom_ring_work_t ring;

    ngx_bloom_save_t      save;
    ngx_bloom_snapshot_t  snapshot;      /* the last one */

    ngx_bloom_stand_t     stand;         /* file=, while it is synchronised */

    ngx_msec_t            looked;        /* when the file was last checked */
    ngx_msec_t            synced;        /* when the journal was last
                                            synchronised */
    ngx_uint_t            wiped;         /* 1: ngx_bloom_journal_wipe() is
                                            done */
    ngx_msec_t            cleaned;       /* when files were last removed */
    ngx_msec_t            measure_hugepages;    /* when to measure next */
    uint64_t              failed;        /* failure that was last logged */
    ngx_uint_t            ahead;         /* 1: logged that the journal's times
                                            are ahead of the clock */
    uint64_t              bits_set;      /* number of bits set when the filter
                                            was last checked for over-full */
} ngx_bloom_jobs_t;


/*
 * Begins to look after a zone.  The caller holds sh->helper.  Records the file
 * that this configuration names as the zone's file, and asks for a load if the
 * file is not as it was last seen.
 */
void ngx_bloom_jobs_begin(ngx_bloom_jobs_t *jobs);

/* Begins a job that was asked for or is due, and sets jobs->current.  If there
 * is none, leaves jobs->current as it is. */
void ngx_bloom_jobs_choose(ngx_bloom_jobs_t *jobs);

/* Returns after how many ms a task that was asked for can be begun. */
ngx_msec_t ngx_bloom_jobs_wait(ngx_bloom_jobs_t *jobs);

/* Does a step of the current job.  When the job is done, jobs->current is
 * NGX_BLOOM_JOBS_NONE. */
void ngx_bloom_jobs_step(ngx_bloom_jobs_t *jobs);

/* Drops the current job and releases sh->helper, because this process was told
 * to exit.  The next helper begins the job again. */
void ngx_bloom_jobs_abandon(ngx_bloom_jobs_t *jobs);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_JOBS_H_INCLUDED_ */
