/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Maintenance is the helper's brief and frequent work on a zone: it creates
 * segments of the journal before they are needed, synchronises them, applies
 * records of other instances, lets keys expire, looks if file= has changed, and
 * removes files that nobody needs.
 */

#ifndef _NGX_BLOOM_MAINTENANCE_H_INCLUDED_
#define _NGX_BLOOM_MAINTENANCE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_ring.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* After how many milliseconds a helper looks after a zone again. */
#define NGX_BLOOM_MAINTENANCE_IDLE   1000    /* usually */
#define NGX_BLOOM_MAINTENANCE_BUSY   5       /* while others append */


/* What a helper knows of a zone that it looks after; all zeros at first, but
 * for the zone. */
typedef struct {
    ngx_bloom_zone_t       *zone;
    ngx_uint_t              begun;       /* 1: the zone is looked after */
    ngx_uint_t              tidy;        /* 1: nothing is left of a process that
                                            has died */
    uint64_t                generation;  /* that served at the last call */
    ngx_bloom_ring_work_t   ring;
    ngx_msec_t              looked;      /* when file= was last looked at */
    ngx_msec_t              synced;      /* when the journal was last
                                            synchronised */
    ngx_uint_t              wiped;       /* 1: nor in the journal, of a clear */
    ngx_msec_t              cleaned;     /* when files were last removed */
    ngx_msec_t              measure_hugepages;    /* when to measure next */
    uint64_t                failed;      /* failure that was last logged */
    ngx_uint_t              ahead;       /* 1: logged that the journal's times
                                            are ahead of the clock */
    ngx_uint_t              job;         /* 1: its job runs, or how it ended is
                                            not known yet */
    u_char                  death[120];  /* how its last job died; empty: it did
                                            not, or its task is ended */
    uint64_t                bits_set;    /* number of bits set when the filter
                                            was last checked for over-full */
} ngx_bloom_maintenance_t;


/*
 * Does what is due.  *due becomes 1 if a job is, which only the caller can
 * begin, else 0.  Returns after how many ms to call it again.
 */
ngx_msec_t ngx_bloom_maintenance(ngx_bloom_maintenance_t *work,
    ngx_uint_t *due);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_MAINTENANCE_H_INCLUDED_ */
