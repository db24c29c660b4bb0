/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions create, check and open the state directories of zones, in the
 * master process, which may be root.
 *
 *     STATE_PATH          belongs to root, mode 0711: no other user can create
 *                         or replace anything in it
 *     STATE_PATH/ZONE     belongs to the workers' user, mode 0700: root opens
 *                         it, but never reads what is in it
 *
 * Everything in a zone's directory is accessed through the directory's
 * descriptor, which is opened with O_PATH: calls such as openat() and fstat()
 * take it, and read() and fsync() do not.
 */

#ifndef _NGX_BLOOM_DIRECTORY_H_INCLUDED_
#define _NGX_BLOOM_DIRECTORY_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_unprivileged.h"

#pragma GCC visibility push(hidden)


/*
 * Returns the path of a zone's directory below `root`, null-terminated, in
 * memory of `pool`; NULL if there is no memory.  Letters, digits, "_", "-", and
 * dots after the first byte stay; other bytes of the zone's name become %HH.
 */
u_char *ngx_bloom_directory_path(ngx_pool_t *pool, ngx_str_t *root,
    ngx_str_t *zone);

/*
 * Opens a zone's directory `path` in the directory `root`.  It must belong to
 * `user`; if `user` is NULL, the owner is not checked.  If `make` is set,
 * missing directories are created.
 *
 * Returns NGX_OK and the open directory in *dir; NGX_DECLINED if the directory
 * does not exist and `make` is 0; NGX_ERROR if it cannot be created or must not
 * be used.  In the last case `error`, which has NGX_MAX_ERROR_STR bytes, gets a
 * message that says what to do.
 *
 * In earlier versions `root` belonged to the workers' user.  If `make` is set
 * and it still does, root becomes its owner.
 */
ngx_int_t ngx_bloom_directory_open(ngx_str_t *root, u_char *path,
    ngx_bloom_user_t *user, ngx_uint_t make, ngx_fd_t *dir, u_char *error);

/* Finds the owner of an open directory, for ngx_bloom_unprivileged().  Returns
 * NGX_OK, or NGX_ERROR with errno. */
ngx_int_t ngx_bloom_directory_owner(ngx_fd_t dir, ngx_bloom_user_t *user);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_DIRECTORY_H_INCLUDED_ */
