/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The master opens a zone's state directory, and a loader, a child of it that
 * runs as the workers' user, the files there.  It hands them to the master.
 */

#ifndef _NGX_BLOOM_BASE_STATE_H_INCLUDED_
#define _NGX_BLOOM_BASE_STATE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_directory.h"
#include "ngx_bloom_unprivileged.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* A message for the log and for clients. */
#define NGX_BLOOM_BASE_NO_DIRECTORY                                           \
    "the directory of bloom_state_path cannot be used; see the error log, "   \
    "correct the cause, and reload nginx"


/*
 * Opens the zone's state directory, in the master.  If it does not exist,
 * creates it if `make` is set and something adds keys to the zone; otherwise
 * leaves zone->state NULL.  Of an opened zone->state only the directory is
 * open.  Returns NGX_OK; or NGX_ERROR, logged, if the directory cannot or must
 * not be used.
 */
ngx_int_t ngx_bloom_base_state_directory(ngx_bloom_zone_t *zone,
    ngx_uint_t make);

/* Opens the control page in that directory, in a loader.  Returns NGX_OK, or
 * NGX_ERROR, logged. */
ngx_int_t ngx_bloom_base_state_open(ngx_bloom_zone_t *zone);

/* Logs why a file of zone->state cannot be used. */
void ngx_bloom_base_state_log(ngx_bloom_zone_t *zone,
    ngx_bloom_failure_t *failure);

/*
 * Hand an opened state from the loader to the master.  The loader calls the
 * first function, which also lets other processes start an instance.  The
 * master calls the second, which takes the open files from the reply, or
 * records that there is no state.
 */
void ngx_bloom_base_state_reply(ngx_bloom_zone_t *zone,
    ngx_bloom_reply_t *reply);
void ngx_bloom_base_state_take(ngx_bloom_zone_t *zone,
    ngx_bloom_reply_t *reply);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_BASE_STATE_H_INCLUDED_ */
