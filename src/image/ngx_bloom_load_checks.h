/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What a load knows, what an image must be for its zone and its journal, and
 * the messages of loads that fail.
 */

#ifndef _NGX_BLOOM_LOAD_CHECKS_H_INCLUDED_
#define _NGX_BLOOM_LOAD_CHECKS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_guard.h"
#include "ngx_bloom_replay.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


typedef struct ngx_bloom_load_s {
    ngx_bloom_zone_t       *zone;
    ngx_uint_t              bank;        /* that is loaded */
    uint64_t                begun;       /* ms since 1970 */

    bloom_image_t           image;
    ngx_bloom_image_file_t  file;        /* name.len 0: an empty filter */
    ngx_uint_t              empty;       /* 1: no image is loaded, but an empty
                                            filter */
    const char             *about;       /* what messages call the image; NULL:
                                            its file's name */
    bloom_point_t           point;       /* of a checkpoint; all zeros: the
                                            image is not a checkpoint */
    bloom_point_t           copied;      /* of a copy */
    ngx_uint_t              copy;        /* 1: the image is a copy of this zone,
                                            whose journal goes on from there */
    uint64_t                cut;         /* the image covers additions older
                                            than this time, ms since 1970;
                                            UINT64_MAX: all records */
    uint64_t                truth;       /* of ngx_bloom_as_of_truth(); 0 for a
                                            filter that starts empty */
    uint64_t                complete;    /* becomes sh->complete */

    ngx_uint_t              clears;      /* 1: the load is part of a clear, and
                                            reads no journal */

    uint64_t                takes;       /* bytes of memory still to be taken */
    ngx_uint_t              guarded;     /* 1: guards check the image */
    ngx_uint_t              force;       /* 1: any change of the number of keys
                                            passes */
    ngx_bloom_guard_t       guard;
    ngx_bloom_replay_t      replay;

    /* of a load that failed */
    ngx_bloom_outcome_e     outcome;
    ngx_err_t               err;
    u_char                  error[512];  /* message that names the zone; null-
                                            terminated */
} ngx_bloom_load_t;


/* Phrases that follow the name of an image. */
#define NGX_BLOOM_LOAD_NO_AS_OF                                              \
    "has no as_of, which max_age needs; build it with --as-of"
#define NGX_BLOOM_LOAD_TOO_OLD                                               \
    "is too old: keys that it may lack were dropped from the journal, because" \
    " a newer image or a checkpoint has them; build it again, with an --as-of "\
    "more than an hour after the last of these keys was added"
#define NGX_BLOOM_LOAD_AHEAD                                                 \
    "states an as_of that is more than an hour ahead of this machine's clock;" \
    " set the clock, or build the image with the right --as-of"
#define NGX_BLOOM_LOAD_NO_LAYER                                              \
    "has layout fuse and is so large that no key could be added; build it "    \
    "with fewer keys"
#define NGX_BLOOM_LOAD_TOO_EARLY                                             \
    "is too old: changes that it may lack were dropped from the journal, "     \
    "because a newer image has them; build it again, with a later position "   \
    "of --source"


/* Refuses a file that cannot be opened.  If the workers' user has no access to
 * it, the message says which path is in the way, and its owner and mode. */
ngx_int_t ngx_bloom_load_unopened(ngx_bloom_load_t *load);

/* Checks whether the image may be loaded into this zone at all.  Returns
 * NGX_OK, or NGX_ERROR with load->error. */
ngx_int_t ngx_bloom_load_admit(ngx_bloom_load_t *load);

/*
 * Checks whether this process knows all changes of a zone for which it has no
 * state directory: workers of a new configuration may write a journal, of which
 * the loaded filter has nothing.  The caller holds the lock of the zone.
 * Returns NGX_OK, or NGX_ERROR with load->error.
 */
ngx_int_t ngx_bloom_load_knows(ngx_bloom_load_t *load);

/* Returns 1 if records that the image may lack were dropped from the
 * journal. */
ngx_uint_t ngx_bloom_load_too_old(ngx_bloom_load_t *load);

/* Returns why the image cannot be loaded with this journal: a phrase that
 * follows its name; NULL if it can. */
const char *ngx_bloom_load_lacks(ngx_bloom_load_t *load);

/*
 * Set load->error and load->outcome, and return NGX_ERROR: for a zone with too
 * many additions; for an image, whose name a phrase follows; or with a message
 * about `zone`.  `err` is an errno, or 0.
 */
ngx_int_t ngx_bloom_load_busy(ngx_bloom_load_t *load);
ngx_int_t ngx_bloom_load_refuse(ngx_bloom_load_t *load, ngx_err_t err,
    const char *error);
ngx_int_t ngx_cdecl ngx_bloom_load_fails(ngx_bloom_load_t *load,
    ngx_bloom_outcome_e outcome, ngx_err_t err, const char *fmt, ...);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_LOAD_CHECKS_H_INCLUDED_ */
