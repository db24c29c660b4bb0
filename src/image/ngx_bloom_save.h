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


/* Which exceptions a filter has: another value means that they have changed. */
typedef struct {
    uint64_t              puts;
    uint64_t              count;
} ngx_bloom_save_exceptions_t;

/* One save. */
typedef struct {
    ngx_bloom_zone_t     *zone;
    ngx_bloom_task_e      kind;          /* ..._CHECKPOINT or ..._SNAPSHOT */
    uint64_t              generation;    /* that is saved */
    bloom_point_t         point;         /* the journal's end when it begins */
    uint32_t              checksum;      /* of the complete file */
    bloom_image_ring_t    ring;          /* the slices then, if keys expire */
    uint64_t              bits_set;      /* at the beginning */
    uint64_t              written[BLOOM_PARTS_MAX];
                                         /* bits set in the file, by part */
    ngx_bloom_save_exceptions_t  excepted;     /* at the beginning */
    bloom_image_t         image;

    ngx_fd_t              fd;
    size_t                unsynced;      /* bytes written since the last sync */
    u_char               *buf;           /* one chunk */
    u_char               *table;

    u_char               *data;          /* the exceptions */
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
 * Saves the filter that serves: applies and synchronises the journal, and
 * writes the file.  The caller holds sh->helper.  Returns NGX_OK if the file
 * save->name is complete and on disk; or NGX_ERROR with save->error.  The
 * caller calls ngx_bloom_save_end() in either case.
 */
ngx_int_t ngx_bloom_save(ngx_bloom_save_t *save, ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind);

/* Fills in *result, and logs why a save failed. */
void ngx_bloom_save_report(ngx_bloom_save_t *save,
    ngx_bloom_result_t *result);

/* Closes the file, removes it if it is not complete, and frees the memory. */
void ngx_bloom_save_end(ngx_bloom_save_t *save);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_SAVE_H_INCLUDED_ */
