/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An instance of a zone applies the records that other instances have appended
 * to the journal.
 */

#ifndef _NGX_BLOOM_CATCH_UP_H_INCLUDED_
#define _NGX_BLOOM_CATCH_UP_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Begins with an instance whose filter has nothing of the journal yet: it
 * answers "unknown" instead of "absent" until all has been applied.
 */
void ngx_bloom_catch_up_begin(ngx_bloom_zone_t *zone);

/*
 * Applies what other instances have appended to the journal of a zone that has
 * one.  The lock sh->helper is held, so no other generation comes to serve
 * meanwhile.  Returns NGX_OK; NGX_AGAIN if somebody is publishing, or there is
 * more to apply; NGX_ERROR if the journal cannot be read, which is logged.
 */
ngx_int_t ngx_bloom_catch_up(ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_CATCH_UP_H_INCLUDED_ */
