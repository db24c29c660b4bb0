/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function copies the status of a zone for the endpoint.
 */

#ifndef _NGX_BLOOM_INFO_H_INCLUDED_
#define _NGX_BLOOM_INFO_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* The status of one zone. */
typedef struct {
    uint64_t             generation;     /* 0: nothing serves */
    uint64_t             instance;       /* random number of this memory */
    ngx_uint_t           condition;      /* ngx_bloom_condition_e */
    bloom_image_t        image;          /* the image that serves */
    uint64_t             bits_set;       /* in the filter that serves */
    uint64_t             part_bits_set[BLOOM_PARTS_MAX];
    uint64_t             max_items;      /* that it has room for when all its
                                            layers are in use */
    double               promised_fpr;   /* up to that number */
    uint64_t             expire;         /* how long a key lives, ms; 0: until
                                            it is removed */
    uint64_t             slice;          /* how long a slice is open, ms; this
                                            and the next 5 are 0 unless keys
                                            expire */
    uint32_t             slices;         /* of a life */
    uint64_t             slice_capacity; /* keys of a slice */
    uint64_t             clock_behind;   /* by how many whole seconds the
                                            zone's clock is behind the
                                            system's */
    ngx_bloom_ring_t     ring;           /* its times are those that the
                                            system's clock has; `live` lacks
                                            slices that are ready */
    ngx_uint_t           live_slices;
    ngx_uint_t           ready_slices;
    bloom_image_t        planned;        /* `image` with all these layers */
    ngx_uint_t           file;           /* 1: the zone has file= */
    ngx_uint_t           uploaded;       /* 1: an uploaded image serves */
    size_t               size;           /* of the zone's memory */
    size_t               bank_size;      /* of the largest image that fits */
    size_t               huge_bytes;     /* on huge pages when last measured */

    ngx_uint_t           journal;        /* 0: memory only */
    uint64_t             journal_bytes;  /* records and segments on disk */
    uint64_t             unsynced_bytes; /* records that are not on disk yet */
    uint64_t             replay_bytes;   /* records behind the checkpoint */
    uint64_t             owing;          /* processes that owe keys */
    uint64_t             lost_keys;      /* keys that had no room to wait */
    uint64_t             lost_at;        /* keys that were added up to this
                                            time may be lost, ms since 1970; 0:
                                            no keys are lost */
    ngx_err_t            journal_err;    /* errno of the last failure, or 0 */
    const char          *journal_error;  /* what failed; NULL: nothing did */
    const char          *journal_warning;        /* of
                                            ngx_bloom_info_journal_grows() */

    ngx_bloom_source_e   source;         /* if the zone has a source */
    bloom_reached_t    place;          /* there */
    uint64_t             lag;            /* since its last sign of life, ms;
                                            UINT64_MAX: there was none */

    uint64_t             removed;        /* keys */
    uint64_t             removals;       /* keys that may be removed */
    uint64_t             excepted_keys;  /* excepted keys */
    uint64_t             excepts;        /* keys that feedback may except */

    ngx_bloom_result_t   loaded;         /* of the last load; started_at is 0
                                            if there was none */
    uint64_t             load_done;      /* bytes that the running load has
                                            read */
    uint64_t             load_total;     /* bytes it reads in all; 0: no load
                                            is running */
    uint64_t             heartbeat;      /* of the helper, ms since 1970 */

    uint64_t             counter[NGX_BLOOM_COUNTERS];
    uint64_t             wrong_at;       /* the last wrong absent, ms since
                                            1970; 0: there was none */
} ngx_bloom_info_t;


/* Copies the status of a zone.  What it says about the image is taken from one
 * whole generation. */
void ngx_bloom_info_get(ngx_bloom_zone_t *zone, ngx_bloom_info_t *info);

/* Returns the condition of a zone, and does nothing else: it suits a caller
 * that needs only this, as it takes no lock. */
ngx_bloom_condition_e ngx_bloom_info_condition(ngx_bloom_zone_t *zone);

/*
 * Returns why the journal of a zone with file= grows, and what to do, if it is
 * ten times as large as the image and has more than 64 MiB; or NULL.  Takes no
 * lock.
 */
const char *ngx_bloom_info_journal_grows(ngx_bloom_zone_t *zone);

/* Stores the numbers of the live slices, the oldest first and the open one
 * last.  Returns how many they are; 0 if keys do not expire. */
ngx_uint_t ngx_bloom_info_slices(const ngx_bloom_info_t *info,
    uint32_t slice[BLOOM_PARTS_MAX]);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_INFO_H_INCLUDED_ */
