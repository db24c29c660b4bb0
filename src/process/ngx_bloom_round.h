/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * In a round, a process of the helper looks after its zones, one after the
 * other, and begins a job if one is due.  One child at a time does a job;
 * further jobs wait for it.
 */

#ifndef _NGX_BLOOM_ROUND_H_INCLUDED_
#define _NGX_BLOOM_ROUND_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_child.h"
#include "ngx_bloom_maintenance.h"

#pragma GCC visibility push(hidden)


typedef struct {
    ngx_array_t              *zones;     /* all zones, of all processes */
    ngx_uint_t                n;         /* number of its own zones */
    ngx_bloom_maintenance_t  *work;      /* of each zone */
    ngx_uint_t               *due;       /* of each zone: 1: a job is due */

    ngx_bloom_child_t         child;
    ngx_uint_t                last;      /* number of the zone that the last
                                            child has worked for */
    ngx_msec_t                looked;    /* when it was last looked at */
    ngx_msec_t                spent;     /* how long it has worked */
    ngx_msec_t                refused;   /* since when none is begun for a
                                            while; 0: it may be */
    ngx_uint_t                deaths;    /* how many have died in a row */
    ngx_uint_t                late;      /* 1: it was killed, since its time was
                                            over */
} ngx_bloom_round_t;


/* Prepares the rounds of the process `helper`: it looks after those of the
 * zones that name it.  Returns NGX_OK or NGX_ERROR. */
ngx_int_t ngx_bloom_round_init(ngx_bloom_round_t *round, ngx_pool_t *pool,
    ngx_array_t *zones, ngx_uint_t helper);

/* Makes a round.  Returns after how many ms to make the next one. */
ngx_msec_t ngx_bloom_round(ngx_bloom_round_t *round);

/* Closes the files by which other processes tell that this instance lives: an
 * orphan that a disk holds must not pass for it.  Called in children. */
void ngx_bloom_round_leave(ngx_bloom_round_t *round);

/* Hands an unfinished job on to the next helper, because this process was told
 * to exit. */
void ngx_bloom_round_abandon(ngx_bloom_round_t *round);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_ROUND_H_INCLUDED_ */
