/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The log says of a zone, without being asked and once, what serves from now on
 * and what is wrong with it.
 */

#ifndef _NGX_BLOOM_LOG_H_INCLUDED_
#define _NGX_BLOOM_LOG_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_load.h"

#pragma GCC visibility push(hidden)


/*
 * Logs that a loaded image is now serving, with its statistics.  `does` is
 * "starts with" or "serves", `name` what the image is called.
 */
void ngx_bloom_log_serves(ngx_bloom_load_t *load, ngx_log_t *log,
    const char *does, const char *name);

/*
 * Logs that the image is older than max_age, once for each generation; and that
 * the filter has more keys than it was made for, each time its false-positive
 * rate passes 1.5, 10 and 100 times the rate it was made for, once for each
 * generation.  *bits_set is the caller's, 0 at first: how many bits were set at
 * the last call.
 */
void ngx_bloom_log_warnings(ngx_bloom_zone_t *zone, uint64_t *bits_set);

/*
 * Logs that the watched file cannot be found, for the reason `err`; once, the
 * second time in a row, so that replacing it in two steps is not disturbed.
 */
void ngx_bloom_log_missing_file(ngx_bloom_zone_t *zone, ngx_err_t err);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_LOG_H_INCLUDED_ */
