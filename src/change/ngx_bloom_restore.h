/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Restoring makes all removed keys of a zone, or all excepted keys, ordinary
 * keys again: the filter alone decides about them.
 */

#ifndef _NGX_BLOOM_RESTORE_H_INCLUDED_
#define _NGX_BLOOM_RESTORE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* The state of restoring. */
typedef struct {
    ngx_bloom_zone_t  *zone;
    unsigned           kinds;            /* of the exceptions that end */
    uint64_t           position;         /* after the record in the journal;
                                            0: it is not appended yet */
    uint64_t           cursor;           /* of ngx_bloom_zone_restore() */
    uint64_t           keys;             /* restored so far */
    ngx_msec_t         waits;            /* since when it waits for another
                                            process; 0: it does not */

    /* if it fails */
    ngx_err_t          err;
    const char        *error;
} ngx_bloom_restore_t;


/*
 * Restores the keys that are exceptions of these kinds: appends a record to the
 * journal, and drops the keys from the exceptions of the generation that
 * serves.  Waits for other processes.  The caller holds sh->helper.  Returns
 * NGX_OK, with restore->keys; or NGX_ERROR with restore->error, and
 * restore->err if that is not 0.
 */
ngx_int_t ngx_bloom_restore(ngx_bloom_restore_t *restore,
    ngx_bloom_zone_t *zone, unsigned kinds);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_RESTORE_H_INCLUDED_ */
