/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The status of a zone is copied for an administrator.
 */

#ifndef _NGX_BLOOM_INFO_H_INCLUDED_
#define _NGX_BLOOM_INFO_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* What an administrator wants to know of a zone. */
typedef struct {
    uint64_t             generation;     /* 0: nothing serves */
    uint64_t             instance;       /* random: of this memory */
    ngx_uint_t           condition;      /* ngx_bloom_condition_e */
    bloom_image_t        image;          /* that serves */
    uint64_t             bits_set;       /* in it */
    ngx_uint_t           file;           /* the zone has file= */
    ngx_uint_t           uploaded;       /* an uploaded image serves */
    size_t               size;           /* of the zone's memory */
    size_t               bank_size;      /* the largest image that fits */
    ngx_uint_t           hugepages;      /* ngx_bloom_hugepages_e: wanted */
    ngx_uint_t           hugepages_got;  /* the kind of those there are */
    size_t               huge_bytes;     /* on huge pages, lately */

    ngx_uint_t           journal;        /* 0: memory only */
    uint64_t             journal_bytes;  /* of records and segments on disk */
    uint64_t             unsynced_bytes;
    uint64_t             replay_bytes;   /* behind the last checkpoint */
    uint64_t             pending;        /* keys that wait for the journal */
    uint64_t             lost_keys;      /* keys that found no room to wait */
    uint64_t             lost_at;        /* keys that were added up to then may
                                            be lost, ms since 1970; 0: none
                                            are */
    ngx_err_t            journal_err;    /* errno of the last failure, or 0 */
    const char          *journal_error;  /* what could not be done, or NULL */

    ngx_bloom_result_t   loaded;         /* the last load; none if
                                            started_at is 0 */
    uint64_t             load_done;      /* bytes of the load that runs */
    uint64_t             load_total;     /* 0: none is */
    uint64_t             heartbeat;      /* of the helper, ms since 1970 */

    uint64_t             counter[NGX_BLOOM_COUNTERS];
    uint64_t             wrong_at;       /* the last wrong absent, ms since
                                            1970; 0: there was none */
} ngx_bloom_info_t;


/* Copies what is known of a zone; the image is of one whole generation. */
void ngx_bloom_info_get(ngx_bloom_zone_t *zone, ngx_bloom_info_t *info);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_INFO_H_INCLUDED_ */
