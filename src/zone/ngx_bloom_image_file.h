/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions open, check and read image files.
 */

#ifndef _NGX_BLOOM_IMAGE_FILE_H_INCLUDED_
#define _NGX_BLOOM_IMAGE_FILE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_exceptions.h"
#include "bloom_image_reader.h"
#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


/* Identifies a file and a version of its contents: each write to the file
 * changes the time. */
typedef struct {
    dev_t                  device;
    ino_t                  inode;
    time_t                 sec;          /* of the last change */
    long                   nsec;
} ngx_bloom_image_id_t;


/* One image file, which may be open. */
typedef struct {
    ngx_str_t              name;         /* path; null-terminated */
    ngx_bloom_state_t     *state;        /* the state directory that the file
                                            is in; NULL: it is elsewhere */
    ngx_fd_t               fd;           /* NGX_INVALID_FILE: not open */
    ngx_bloom_image_id_t   id;
    bloom_image_reader_t   reader;

    /* the last failure: a phrase that follows the file's name, and errno if a
     * system call failed, or 0 */
    ngx_err_t              err;
    const char            *error;
} ngx_bloom_image_file_t;


/*
 * Opens the file file->name, checks its header and table, and leaves it open,
 * so that later reads are from this file even if the name has been reused.
 * Returns NGX_OK, or NGX_ERROR with file->err and file->error.  Sets file->id
 * even on NGX_ERROR, unless the file does not exist or the system is short of
 * memory or the like.
 */
ngx_int_t ngx_bloom_image_file_open(ngx_bloom_image_file_t *file);

/*
 * Reads and checks all chunks of an open file without keeping them.  Call it at
 * most once after each ngx_bloom_image_file_open(), and do not call
 * ngx_bloom_image_file_next() as well.  Returns
 * NGX_OK, or NGX_ERROR with file->err and file->error.
 */
ngx_int_t ngx_bloom_image_file_check(ngx_bloom_image_file_t *file);

/* Reads the next chunk of the filter into `dst`.  Returns NGX_OK, or NGX_ERROR
 * with file->err and file->error. */
ngx_int_t ngx_bloom_image_file_next(ngx_bloom_image_file_t *file, u_char *dst);

/*
 * After the last chunk, reads and checks the image's exceptions, and puts them
 * into a set, unless `set` is NULL.  Returns NGX_OK; NGX_DECLINED if the set
 * has no room for them; or NGX_ERROR with file->err and file->error.
 */
ngx_int_t ngx_bloom_image_file_except(ngx_bloom_image_file_t *file,
    bloom_exceptions_t *set);

void ngx_bloom_image_file_close(ngx_bloom_image_file_t *file);

/* Returns 1 if both are the same file, not written to in between. */
ngx_uint_t ngx_bloom_image_file_same(const ngx_bloom_image_id_t *a,
    const ngx_bloom_image_id_t *b);

/*
 * Finds out whether the user of this process may open the file.  Returns NULL,
 * or the path that is in the way, a directory or the file itself, in `buf`,
 * which has NGX_MAX_PATH bytes.
 */
u_char *ngx_bloom_image_file_barrier(const ngx_str_t *name, u_char *buf);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_IMAGE_FILE_H_INCLUDED_ */
