/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The idle bank of a zone holds no memory: what a load has taken is given back
 * when another bank serves, or when the load has failed.
 */

#ifndef _NGX_BLOOM_BANK_H_INCLUDED_
#define _NGX_BLOOM_BANK_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Gives the memory of the idle bank back to the system, if it is filled. */
void ngx_bloom_bank_release(ngx_bloom_zone_t *zone, ngx_uint_t bank);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_BANK_H_INCLUDED_ */
