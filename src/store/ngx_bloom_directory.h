/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The directories of zones are created, checked and opened here, by a master
 * that may be root.
 *
 *     STATE_PATH          root's, 0711: nobody else makes or replaces what is
 *                         in it
 *     STATE_PATH/ZONE     the workers' user's, 0700: root opens it, and never
 *                         looks into it
 *
 * All that is done in a zone's directory is done by its descriptor.
 */

#ifndef _NGX_BLOOM_DIRECTORY_H_INCLUDED_
#define _NGX_BLOOM_DIRECTORY_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_unprivileged.h"

#pragma GCC visibility push(hidden)


/*
 * The path of a zone's directory below `root`, null-terminated, in memory of
 * `pool`; NULL if memory is short.  Bytes that may not stand in a file's name
 * are written as %HH.
 */
u_char *ngx_bloom_directory_path(ngx_pool_t *pool, ngx_str_t *root,
    ngx_str_t *zone);

/*
 * Opens a zone's directory, `path`, which lies in `root` and has to belong to
 * `user`; with NULL for `user` the owner is not checked.  With `make`, creates
 * the directories that do not exist.
 *
 * Returns NGX_OK, with the open directory in *dir; NGX_DECLINED if it does not
 * exist and `make` is 0; NGX_ERROR if it cannot be created or must not be used,
 * with a message that says what to do in `error`, which has room for
 * NGX_MAX_ERROR_STR bytes.
 *
 * With `make`, a directory `root` that belongs to the workers' user, as
 * versions before had it, becomes root's.
 */
ngx_int_t ngx_bloom_directory_open(ngx_str_t *root, u_char *path,
    ngx_bloom_user_t *user, ngx_uint_t make, ngx_fd_t *dir, u_char *error);

/* Finds whom an open directory belongs to; with it one becomes that user. */
ngx_int_t ngx_bloom_directory_owner(ngx_fd_t dir, ngx_bloom_user_t *user);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_DIRECTORY_H_INCLUDED_ */
