/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions log, once each, what a zone serves from now on and what is
 * wrong with it.
 */

#ifndef _NGX_BLOOM_LOG_H_INCLUDED_
#define _NGX_BLOOM_LOG_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_load.h"

#pragma GCC visibility push(hidden)


/*
 * Logs that a loaded image is now serving, with its statistics.  `does` is
 * "starts with" or "serves", and `name` is what the log calls the image.  Warns
 * if the image before it had another key form, or many more or fewer keys.
 */
void ngx_bloom_log_serves(ngx_bloom_load_t *load, ngx_log_t *log,
    const char *does, const char *name);

/* Counts the removed keys that a load has brought back, and warns of them.  The
 * caller holds sh->helper, and the idle bank still has what served before. */
void ngx_bloom_log_returned(ngx_bloom_zone_t *zone);

/*
 * Warns, once for each generation, of an image that is older than max_age, and
 * of a journal that grows because images have no later as_of.  Warns, too, of
 * a filter with more keys than its capacity when its false-positive rate
 * passes 1.5, 10 and 100 times its target: once for each of these and each
 * generation; if keys expire, again after the filter was not over-full.  If
 * keys expire, also warns if another slice must be opened and none is ready,
 * and logs when that is over.
 *
 * *bits_set belongs to the caller, is 0 at first, and becomes the number of
 * bits set at this call.
 */
void ngx_bloom_log_warnings(ngx_bloom_zone_t *zone, uint64_t *bits_set);

/*
 * Logs that the watched file cannot be found, with the reason `err`.  Logs at
 * the second call in a row only, so that a file may be removed and created
 * again without a message.
 */
void ngx_bloom_log_missing_file(ngx_bloom_zone_t *zone, ngx_err_t err);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_LOG_H_INCLUDED_ */
