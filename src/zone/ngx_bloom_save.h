/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The filter that serves is saved as an image file in the state directory.
 *
 * A checkpoint is the filter as of a position of the journal: all that was
 * appended before it is in it, and some of what came later may be.  It is used
 * only for the image that it was made from.  A snapshot is an image of its own.
 */

#ifndef _NGX_BLOOM_SAVE_H_INCLUDED_
#define _NGX_BLOOM_SAVE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


typedef struct {
    ngx_bloom_zone_t     *zone;
    ngx_bloom_task_e      kind;          /* ..._CHECKPOINT or ..._SNAPSHOT */
    uint64_t              generation;
    uint64_t              position;      /* of the journal */
    uint64_t              bits_set;      /* when it was begun */
    bloom_image_t         image;

    ngx_fd_t              fd;
    uint64_t              chunk;         /* the next */
    size_t                unsynced;      /* bytes written */
    u_char               *buf;           /* one chunk */
    u_char               *table;

    ngx_err_t             err;           /* of a failure */
    const char           *error;         /* a phrase behind the file's name */
    u_char                tmp[NGX_MAX_PATH];
    u_char                name[NGX_MAX_PATH];
} ngx_bloom_save_t;


/* Returns 1 if a start would take long without a checkpoint, and none has been
 * tried in vain just now. */
ngx_uint_t ngx_bloom_save_due(ngx_bloom_zone_t *zone);

/*
 * Begins to save what serves.  The caller has applied and synchronised the
 * journal as far as sh->applied says.  NGX_OK, or NGX_ERROR with save->error;
 * ngx_bloom_save_end() follows either way.
 */
ngx_int_t ngx_bloom_save_begin(ngx_bloom_save_t *save,
    ngx_bloom_zone_t *zone, ngx_bloom_task_e kind);

/*
 * NGX_AGAIN: there is more to do; NGX_OK: save->name is whole and on disk;
 * NGX_DECLINED: another generation serves by now, begin again; NGX_ERROR.
 */
ngx_int_t ngx_bloom_save_step(ngx_bloom_save_t *save);

void ngx_bloom_save_end(ngx_bloom_save_t *save);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_SAVE_H_INCLUDED_ */
