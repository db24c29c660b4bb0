/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A save writes the filter that serves to an image file in the state directory.
 *
 * A checkpoint is saved at a position of the journal: it has all keys that were
 * appended before that position, and may have some that came later.  Only a
 * start from the same image uses it.  A snapshot is an independent image, which
 * is sent to a client.
 */

#ifndef _NGX_BLOOM_SAVE_H_INCLUDED_
#define _NGX_BLOOM_SAVE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* One save that is under way. */
/* Which exceptions a filter has: another value means that they have changed. */
typedef struct {
    uint64_t              puts;
    uint64_t              count;
} ngx_bloom_save_exceptions_t;


typedef struct {
    ngx_bloom_zone_t     *zone;
    ngx_bloom_task_e      kind;          /* ..._CHECKPOINT or ..._SNAPSHOT */
    uint64_t              generation;    /* that is saved */
    uint64_t              position;      /* of the journal at the beginning */
    bloom_point_t         point;         /* the same, of a checkpoint */
    uint32_t              checksum;      /* of the complete file */
    bloom_image_ring_t    ring;          /* the slices then, if keys expire */
    uint64_t              bits_set;      /* at the beginning */
    uint64_t              written[BLOOM_PARTS_MAX];
                                         /* bits set in the file, by part */
    ngx_bloom_save_exceptions_t  excepted;     /* at the beginning */
    bloom_image_t         image;

    ngx_fd_t              fd;
    uint64_t              chunk;         /* to be written next */
    size_t                unsynced;      /* bytes written since the last sync */
    u_char               *buf;           /* one chunk */
    u_char               *table;

    /* the exceptions */
    uint64_t              cursor;        /* of bloom_exceptions_next() */
    ngx_uint_t            listed;        /* 1: all are in `data` */
    u_char               *data;
    size_t                room;          /* of `data`, bytes */
    uint64_t              exceptions_chunk;      /* number of the next chunk */
    u_char               *exceptions_table;

    /* the last failure */
    ngx_uint_t            damaged;       /* 1: the zone is damaged */
    ngx_err_t             err;
    const char           *error;         /* phrase that follows the file's
                                            name */
    u_char                tmp[NGX_MAX_PATH];
    u_char                name[NGX_MAX_PATH];
} ngx_bloom_save_t;


/* Returns which exceptions the filter that serves has. */
ngx_bloom_save_exceptions_t ngx_bloom_save_excepted(ngx_bloom_zone_t *zone);

/* Returns 1 if a checkpoint is due: a start would have to replay a long journal
 * without it, and no attempt has failed within the last minute; else 0. */
ngx_uint_t ngx_bloom_save_due(ngx_bloom_zone_t *zone);

/*
 * Returns why a snapshot would lack keys: a phrase that follows the name of the
 * control page; or NULL if it would have all keys up to sh->applied.
 *
 * A snapshot may be loaded anywhere, so nothing tells its reader that keys are
 * missing.  A checkpoint is loaded only together with the control page of its
 * directory, which has the time of the loss.  The as_of of the image that it
 * was made from decides whether the loss matters.
 */
const char *ngx_bloom_save_lacks(ngx_bloom_zone_t *zone);

/*
 * Prepares a save: sees to it that all records before the save's position are
 * in the filter and on disk, and that a snapshot lacks no keys.  Returns
 * NGX_OK, or NGX_ERROR with save->error.
 */
ngx_int_t ngx_bloom_save_prepare(ngx_bloom_save_t *save,
    ngx_bloom_zone_t *zone, ngx_bloom_task_e kind);

/*
 * Begins to save the filter that serves.  The caller must have applied and
 * synchronised the journal up to sh->applied before.  Returns NGX_OK, or
 * NGX_ERROR with save->error.  The caller calls ngx_bloom_save_end() in either
 * case.
 */
ngx_int_t ngx_bloom_save_begin(ngx_bloom_save_t *save,
    ngx_bloom_zone_t *zone, ngx_bloom_task_e kind);

/*
 * Writes a piece of the file.  Returns
 *
 *     NGX_AGAIN      there is more to do
 *     NGX_OK         the file save->name is complete and on disk
 *     NGX_DECLINED   another generation serves now: begin again
 *     NGX_ERROR      with save->error
 */
ngx_int_t ngx_bloom_save_step(ngx_bloom_save_t *save);

/* Closes the file, removes it if it is not complete, and frees the memory. */
void ngx_bloom_save_end(ngx_bloom_save_t *save);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_SAVE_H_INCLUDED_ */
