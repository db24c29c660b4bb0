
/*
 * Work: what takes long for a zone, one thing at a time and in steps of some
 * milliseconds.  An image is loaded and comes to serve; one that was uploaded
 * is copied to its place before; the bank that served is given back; a
 * checkpoint or a snapshot is saved; the journal is compacted.
 *
 * The lock sh->helper is held from the choice of a thing to its end.
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
#define NGX_BLOOM_WORK_IDLE       1000       /* between looks */
#define NGX_BLOOM_WORK_BUSY       5          /* while others append */

/* How often files that nobody needs are removed, ms. */
#define NGX_BLOOM_WORK_CLEAN      10000


/* What a helper does for a zone at the moment. */
typedef enum {
    NGX_BLOOM_WORK_NOTHING = 0,
    NGX_BLOOM_WORK_LOADS,
    NGX_BLOOM_WORK_COPIES,             /* an upload to its place */
    NGX_BLOOM_WORK_RELEASES,           /* the old bank */
    NGX_BLOOM_WORK_SAVES,
    NGX_BLOOM_WORK_COMPACTS            /* a step, between other work */
} ngx_bloom_work_e;

typedef struct {
    ngx_bloom_zone_t     *zone;
    ngx_bloom_work_e      does;
    ngx_bloom_task_e      task;          /* and for whom */
    ngx_uint_t            asked;         /* somebody waits for it */
    ngx_uint_t            old;           /* bank to be emptied */

    ngx_bloom_load_t      load;
    ngx_bloom_file_id_t   file_id;       /* of the image that is loaded */
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

    ngx_bloom_file_id_t   refused;       /* the file that was, last */
    ngx_msec_t            looked;        /* at the file */
    ngx_msec_t            synced;
    ngx_msec_t            cleaned;       /* files that nobody needs */
    ngx_msec_t            count_huge;    /* when to, next */
    uint64_t              failed;        /* that was logged last */
    uint64_t              ones;          /* bits set when it was last asked
                                            whether the filter is over-full */
} ngx_bloom_work_t;


/* Asks for a load if the zone watches its file and that was replaced. */
void ngx_bloom_work_look(ngx_bloom_work_t *work);

/* Begins what is asked for or due; leaves work->does as it is if nothing is. */
void ngx_bloom_work_choose(ngx_bloom_work_t *work);

/* A step of it; work->does is NGX_BLOOM_WORK_NOTHING when all is done. */
void ngx_bloom_work_step(ngx_bloom_work_t *work);

/* Whatever it is at: another helper begins it anew.  Gives up the lock. */
void ngx_bloom_work_abandon(ngx_bloom_work_t *work);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_JOBS_H_INCLUDED_ */
