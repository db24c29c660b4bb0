/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The zone layer opens, checks and reads image files.
 */

#ifndef _NGX_BLOOM_IMAGE_FILE_H_INCLUDED_
#define _NGX_BLOOM_IMAGE_FILE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_image.h"
#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


/* Which file, in which state: any write to it changes the last two. */
typedef struct {
    dev_t                  device;
    ino_t                  inode;
    time_t                 sec;          /* of the last change */
    long                   nsec;
} ngx_bloom_image_id_t;


typedef struct {
    ngx_str_t              name;         /* null-terminated; a path */
    ngx_bloom_state_t     *state;        /* it is a file of this state
                                            directory; NULL: of any other */
    ngx_fd_t               fd;           /* NGX_INVALID_FILE: not open */
    ngx_bloom_image_id_t   id;
    bloom_image_reader_t   reader;

    /*
     * What the last failure was: a phrase to follow the file's name, and
     * errno if the system had a part in it, or 0.
     */
    ngx_err_t              err;
    const char            *error;
} ngx_bloom_image_file_t;


/*
 * Opens the file file->name, checks its header and table, and leaves it open:
 * what is read later is the same file, whatever the name means by then.
 * NGX_OK, or NGX_ERROR with file->err and file->error; file->id tells then,
 * too, which file it was, if it is there, and why is not that the system is
 * short of something.
 */
ngx_int_t ngx_bloom_image_file_open(ngx_bloom_image_file_t *file);

/*
 * Reads all chunks, checks them and keeps nothing.  Once for each opening, and
 * not together with ngx_bloom_image_file_next().  Errors as above.
 */
ngx_int_t ngx_bloom_image_file_check(ngx_bloom_image_file_t *file);

/*
 * Reads one chunk into `dst`, as bloom_image_next() does.  NGX_OK, NGX_DONE
 * behind the last, or NGX_ERROR as above.
 */
ngx_int_t ngx_bloom_image_file_next(ngx_bloom_image_file_t *file, u_char *dst);

void ngx_bloom_image_file_close(ngx_bloom_image_file_t *file);

/* 1 if both are the same file, unwritten in between. */
ngx_uint_t ngx_bloom_image_file_same(const ngx_bloom_image_id_t *a,
    const ngx_bloom_image_id_t *b);

/*
 * Whether the workers' user could open the file, as far as owners and modes of
 * it and of the directories above tell: 1 or 0.  If not, *what is the path
 * that stands in the way, in the caller's `buf` of NGX_MAX_PATH bytes.
 */
ngx_uint_t ngx_bloom_image_file_readable(ngx_str_t *name, ngx_core_conf_t *ccf,
    u_char *buf, u_char **what);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_IMAGE_FILE_H_INCLUDED_ */
