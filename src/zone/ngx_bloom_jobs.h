
/*
 * Jobs take long and are done for a zone one at a time, in steps of some
 * milliseconds.  An image is loaded and comes to serve; one that was uploaded
 * is copied to its place before; the bank that served is given back; a
 * checkpoint or a snapshot is saved; the journal is compacted.
 *
 * The lock sh->helper is held from the choice of a job to its end.
 */

#ifndef _NGX_BLOOM_JOBS_H_INCLUDED_
#define _NGX_BLOOM_JOBS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_compact.h"
#include "ngx_bloom_load.h"
#include "ngx_bloom_save.h"
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
    NGX_BLOOM_JOBS_RELEASE,              /* the old bank */
    NGX_BLOOM_JOBS_SAVE,
    NGX_BLOOM_JOBS_COMPACT               /* a step, between other jobs */
} ngx_bloom_jobs_e;

typedef struct {
    ngx_bloom_zone_t     *zone;
    ngx_bloom_jobs_e      current;
    ngx_bloom_task_e      task;          /* and for whom */
    ngx_uint_t            asked;         /* somebody waits for it */
    ngx_uint_t            old;           /* bank to be emptied */

    ngx_bloom_load_t      load;
    ngx_bloom_image_id_t  file_id;       /* of the image that is loaded */
    u_char                path[NGX_MAX_PATH];
    u_char                tmp[NGX_MAX_PATH];
    ngx_fd_t              from;          /* of an upload that is copied */
    ngx_fd_t              to;
    uint64_t              copied;
    ngx_uint_t            saved;         /* it is in its place */

    ngx_bloom_save_t      save;
    uint64_t              save_begun;
    ngx_msec_t            save_failed;

    ngx_bloom_compact_t  *compact;       /* NULL: no run has begun */

    ngx_bloom_image_id_t  refused;       /* the file that was, last */
    ngx_msec_t            looked;        /* at the file */
    ngx_msec_t            synced;
    ngx_msec_t            cleaned;       /* files that nobody needs */
    ngx_msec_t            measure_hugepages;    /* when to, next */
    uint64_t              failed;        /* that was logged last */
    uint64_t              bits_set;      /* when it was last asked whether the
                                            filter is over-full */
} ngx_bloom_jobs_t;


/* Asks for a load if the zone watches its file and that was replaced. */
void ngx_bloom_jobs_look(ngx_bloom_jobs_t *jobs);

/* Begins a job that is asked for or due; leaves jobs->current if none is. */
void ngx_bloom_jobs_choose(ngx_bloom_jobs_t *jobs);

/* Does a step of it; jobs->current is NGX_BLOOM_JOBS_NONE when it is done. */
void ngx_bloom_jobs_step(ngx_bloom_jobs_t *jobs);

/* Drops the current job, which another helper starts again, and the lock. */
void ngx_bloom_jobs_abandon(ngx_bloom_jobs_t *jobs);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_JOBS_H_INCLUDED_ */
