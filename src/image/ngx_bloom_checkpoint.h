/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A checkpoint is saved at a position of the journal: it has all keys that were
 * appended before that position, and may have some that came later.  Only a
 * start from the same image uses it.  ngx_bloom_save.h writes its file.
 */

#ifndef _NGX_BLOOM_CHECKPOINT_H_INCLUDED_
#define _NGX_BLOOM_CHECKPOINT_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Returns 1 if a checkpoint is due: a start would have to replay a long journal
 * without it, and no attempt has failed within the last minute; else 0. */
ngx_uint_t ngx_bloom_checkpoint_due(ngx_bloom_zone_t *zone);

/*
 * Names a checkpoint at `position` after the image that it is made from; `name`
 * has NGX_MAX_PATH bytes.  Returns NGX_OK; or NGX_ERROR if the zone does not
 * stand on the image that serves, so that no start would use it.
 */
ngx_int_t ngx_bloom_checkpoint_name(ngx_bloom_zone_t *zone, uint64_t position,
    u_char *name);

/*
 * Makes a complete file, which is on disk as `tmp`, the newer checkpoint of the
 * zone, at `point`, with the checksum of its header.  `name` is its name, and
 * becomes that of the checkpoint that has the same keys, if there is one.
 * Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_checkpoint_place(ngx_bloom_zone_t *zone,
    const bloom_point_t *point, uint32_t checksum, const u_char *tmp,
    u_char *name);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_CHECKPOINT_H_INCLUDED_ */
