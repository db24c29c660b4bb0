/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The image files and the temporary files in a state directory are named, found
 * and removed here.
 *
 *     checkpoint.BUILD.POSITION.bloom
 *     upload.BUILD.bloom
 *     snapshot.I.R.bloom, body.I.R.tmp
 *     save.I.R.tmp, upload.I.R.tmp, compact.I.R.tmp
 *
 * BUILD is a build id in hexadecimal: of the image that a checkpoint was made
 * from, and of the image of file= in whose place an upload stands.  I is the
 * number of the instance, and R is random: processes in different containers,
 * which may have the same process id, never choose the same name.
 *
 * A snapshot is read by workers, and a body is written by one: whoever uses
 * such a file has a lock on it, which ends with its process.
 */

#ifndef _NGX_BLOOM_STATE_FILES_H_INCLUDED_
#define _NGX_BLOOM_STATE_FILES_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


/*
 * Each of these writes the name of such a file into `path` of NGX_MAX_PATH
 * bytes, and returns it.  A zone that starts empty has NULL for the build id of
 * its image, which is written as zeros.
 */
u_char *ngx_bloom_state_files_checkpoint(u_char *build, uint64_t position,
    u_char *path);
u_char *ngx_bloom_state_files_upload(u_char *build, u_char *path);

/*
 * Writes the path of a file that nobody else uses, "KIND.I.R.EXT", into `path`
 * of NGX_MAX_PATH bytes.  Returns NGX_OK, or NGX_ERROR with errno if the system
 * has no random bytes.
 */
ngx_int_t ngx_bloom_state_files_temporary(ngx_bloom_state_t *state,
    const char *kind, const char *ext, u_char *path);

/* The path of a file in the directory, by its name, for messages: into `path`
 * of NGX_MAX_PATH bytes, which it returns; and its name from that. */
u_char *ngx_bloom_state_files_path(ngx_bloom_state_t *state, u_char *name,
    u_char *path);
u_char *ngx_bloom_state_files_name(u_char *path);

/*
 * Finds the newest checkpoint made from the image with this build id.  Returns
 * NGX_OK with its name in `path` of NGX_MAX_PATH bytes and its position, or
 * NGX_DECLINED if there is none.
 */
ngx_int_t ngx_bloom_state_files_find(ngx_bloom_state_t *state, u_char *build,
    u_char *path, uint64_t *position);

/*
 * Makes checkpoints of positions behind `position` ones of this: the journal
 * has lost its end and goes on here, and whoever began to read where it was
 * would miss what is appended.  Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_state_files_lower(ngx_bloom_state_t *state,
    uint64_t position);

/*
 * Removes the images whose names begin with `prefix`, except `keep`, if that is
 * not NULL.
 */
void ngx_bloom_state_files_remove(ngx_bloom_state_t *state, const char *prefix,
    u_char *keep);


/* Whose temporary files are removed. */
typedef enum {
    NGX_BLOOM_STATE_FILES_DEAD = 0,      /* of instances that have ended */
    NGX_BLOOM_STATE_FILES_OWN,           /* besides, all of this instance */
    NGX_BLOOM_STATE_FILES_ALL            /* and those of the version before */
} ngx_bloom_state_files_e;

/*
 * Says that this process uses a snapshot or a body that it has opened, until it
 * closes it.  Returns NGX_OK, or NGX_DECLINED if the file has been removed.
 */
ngx_int_t ngx_bloom_state_files_use(ngx_fd_t fd);

/*
 * Removes this instance's files whose names begin with `prefix` and that no
 * process uses, except `keep`, if that is not NULL.  Returns the number of
 * those in use.
 */
ngx_uint_t ngx_bloom_state_files_unused(ngx_bloom_state_t *state,
    const char *prefix, const u_char *keep);

/*
 * Removes temporary files that a process has left behind, but for snapshots of
 * this instance.  ngx_bloom_state_prune() tells which instances have ended.
 *
 * A helper removes what its instance has left when it begins, since it holds
 * the lock sh->helper, under which these files are written; a process that
 * starts alone removes all.
 */
void ngx_bloom_state_files_clean(ngx_bloom_state_t *state,
    ngx_bloom_state_files_e which);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_STATE_FILES_H_INCLUDED_ */
