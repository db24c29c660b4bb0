/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Jobs take long and are done for a zone one at a time, in steps of some
 * milliseconds.  An image is loaded and comes to serve; one that was uploaded
 * is copied to its place before; a checkpoint or a snapshot is saved; then
 * whoever asked is told, and the bank that does not serve is given back.  The
 * journal is compacted between other jobs.
 *
 * The lock sh->helper is held from the choice of a job to its end.  If its
 * process dies meanwhile, the next one finds the task of that job unfinished:
 * the task has failed.
 */

#ifndef _NGX_BLOOM_JOBS_H_INCLUDED_
#define _NGX_BLOOM_JOBS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_compact.h"
#include "ngx_bloom_copy.h"
#include "ngx_bloom_load.h"
#include "ngx_bloom_save.h"
#include "ngx_bloom_snapshot.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Times in milliseconds: when a helper comes to a zone again. */
#define NGX_BLOOM_JOBS_IDLE   1000           /* between looks */
#define NGX_BLOOM_JOBS_BUSY   5              /* while others append */

/* How often files that nobody needs are removed, ms. */
#define NGX_BLOOM_JOBS_CLEAN  10000


/* The job that a helper does for a zone at the moment. */
typedef enum {
    NGX_BLOOM_JOBS_NONE = 0,
    NGX_BLOOM_JOBS_LOAD,
    NGX_BLOOM_JOBS_COPY,                 /* an upload to its place */
    NGX_BLOOM_JOBS_SAVE,
    NGX_BLOOM_JOBS_END,                  /* of any of the above */
    NGX_BLOOM_JOBS_COMPACT               /* a step, between other jobs */
} ngx_bloom_jobs_e;

typedef struct {
    ngx_bloom_zone_t     *zone;
    ngx_bloom_jobs_e      current;
    ngx_bloom_task_e      task;          /* and for whom */
    ngx_uint_t            asked;         /* somebody waits for it */
    ngx_uint_t            begun;         /* this helper has come to the zone */
    ngx_uint_t            tells;         /* the result, at its end */
    ngx_bloom_result_t    result;

    ngx_bloom_load_t      load;
    u_char                path[NGX_MAX_PATH];
    ngx_bloom_copy_t      copy;          /* of an upload */

    ngx_bloom_save_t      save;
    ngx_bloom_snapshot_t  snapshot;      /* the last */

    ngx_bloom_compact_t  *compact;       /* NULL: no run has begun */

    ngx_bloom_image_file_t  base;        /* file=, while it is synchronised */
    uint64_t              base_synced;   /* bytes of it */
    ngx_msec_t            base_tried;
    uint64_t              base_logged;   /* the generation */

    ngx_msec_t            looked;        /* at the file */
    ngx_msec_t            synced;
    ngx_msec_t            cleaned;       /* files that nobody needs */
    ngx_msec_t            measure_hugepages;    /* when to, next */
    uint64_t              failed;        /* that was logged last */
    uint64_t              bits_set;      /* when it was last asked whether the
                                            filter is over-full */
} ngx_bloom_jobs_t;


/*
 * Begins to look after a zone, under the lock sh->helper: the zone's file is
 * the one that this configuration names, and it is loaded if it is not what was
 * seen last.
 */
void ngx_bloom_jobs_begin(ngx_bloom_jobs_t *jobs);

/* Asks for a load if the zone watches its file and that was replaced. */
void ngx_bloom_jobs_look(ngx_bloom_jobs_t *jobs);

/* Begins a job that is asked for or due; leaves jobs->current if none is. */
void ngx_bloom_jobs_choose(ngx_bloom_jobs_t *jobs);

/* Returns when somebody's task can be begun, in ms. */
ngx_msec_t ngx_bloom_jobs_wait(ngx_bloom_jobs_t *jobs);

/* Does a step of it; jobs->current is NGX_BLOOM_JOBS_NONE when it is done. */
void ngx_bloom_jobs_step(ngx_bloom_jobs_t *jobs);

/* Drops the current job, which the next helper begins again, and the lock: this
 * process exits in good order. */
void ngx_bloom_jobs_abandon(ngx_bloom_jobs_t *jobs);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_JOBS_H_INCLUDED_ */
