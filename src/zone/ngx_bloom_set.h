/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An addition, a replay and a catch-up set the bits of the keys of a record.
 */

#ifndef _NGX_BLOOM_SET_H_INCLUDED_
#define _NGX_BLOOM_SET_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* What ngx_bloom_set_keys() has found out about the keys of a record. */
typedef struct {
    uint64_t                 keys;       /* valid keys */
    uint64_t                 added;      /* of these, absent keys: they changed
                                            a bit, or are exceptions */
    uint64_t                 excepted;   /* of these, exceptions */
    uint64_t                 begun;      /* when it began, as the zone's clock
                                            has it; 0: keys do not expire */
} ngx_bloom_set_tally_t;

/*
 * Sets the bits of a record's keys, from `keys` to `end`, in the image's key
 * form, and stores what it has found in *tally.  Leaves exceptions as they are.
 * Skips keys that are invalid in that form: no lookup can find them.
 */
void ngx_bloom_set_keys(ngx_bloom_zone_bits_t *bits, const uint8_t *keys,
    const uint8_t *end, ngx_bloom_set_tally_t *tally);

/*
 * Ensures that the keys that were set live long enough, counted from now, in
 * the generation that serves.  Returns NGX_OK, or NGX_AGAIN if they must be set
 * again.
 */
ngx_int_t ngx_bloom_set_keep(ngx_bloom_zone_t *zone,
    const ngx_bloom_set_tally_t *tally);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_SET_H_INCLUDED_ */
