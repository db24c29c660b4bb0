/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A rate limits how many keys a zone takes on the word of a backend, because a
 * client may be able to choose what the backend answers.
 */

#ifndef _NGX_BLOOM_RATE_H_INCLUDED_
#define _NGX_BLOOM_RATE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


/* How many keys a zone may take at once.  If the rate per second is more than
 * this, a zone may take one second's keys at once. */
#define NGX_BLOOM_RATE_BURST  10

/* The highest rate, in keys per second. */
#define NGX_BLOOM_RATE_MAX    1000000


/*
 * Takes one key's share of a rate, of one key per `interval` microseconds with
 * bursts.  *used is in shared memory and 0 at first.  Returns 1, or 0 if no
 * share is left.
 */
ngx_uint_t ngx_bloom_rate_takes(uint64_t *used, uint64_t interval);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_RATE_H_INCLUDED_ */
