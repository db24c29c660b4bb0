/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions name, find and remove the image files and the temporary files
 * of a state directory.
 *
 *     checkpoint.BUILD.POSITION.bloom
 *     upload.BUILD.bloom
 *     snapshot.N.R.bloom, body.N.R.tmp, save.N.R.tmp
 *
 * ngx_bloom_state.h explains BUILD and POSITION.  N is the number of the
 * instance.  R is random, so that two processes never choose the same name, not
 * even in different containers, where they may have the same process id.
 *
 * Workers read snapshots, and a worker writes a body.  A process that uses such
 * a file has a lock on it, which ends with the process.  The job of an upload
 * renames the body.
 */

#ifndef _NGX_BLOOM_STATE_FILES_H_INCLUDED_
#define _NGX_BLOOM_STATE_FILES_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


/*
 * Write the name of a checkpoint or an upload into `path`, which has
 * NGX_MAX_PATH bytes.  Return `path`.
 */
u_char *ngx_bloom_state_files_checkpoint(const u_char *build,
    uint64_t position, u_char *path);
u_char *ngx_bloom_state_files_upload(const u_char *build, u_char *path);

/*
 * Writes a new name, "KIND.I.R.EXT", into `path`, which has NGX_MAX_PATH bytes.
 * Returns NGX_OK, or NGX_ERROR with errno if the system has no random bytes.
 */
ngx_int_t ngx_bloom_state_files_temporary(ngx_bloom_state_t *state,
    const char *kind, const char *ext, u_char *path);

/* Writes the full path of a file, for messages, into `path`, which has
 * NGX_MAX_PATH bytes.  Returns `path`. */
u_char *ngx_bloom_state_files_path(ngx_bloom_state_t *state, u_char *name,
    u_char *path);

/* Returns the name of the file in a full path. */
u_char *ngx_bloom_state_files_name(u_char *path);

/* Returns 1 if the directory has an upload or a checkpoint, else 0. */
ngx_uint_t ngx_bloom_state_files_images(ngx_bloom_state_t *state);

/* Renames all uploads and checkpoints to "damaged.NAME", for an administrator.
 * Returns NGX_OK, or NGX_ERROR with errno. */
ngx_int_t ngx_bloom_state_files_aside(ngx_bloom_state_t *state);

/* Removes the uploads and checkpoints that an entry of the file "base" does not
 * name.  Those that cannot be removed are logged. */
void ngx_bloom_state_files_sweep(ngx_bloom_state_t *state,
    const bloom_base_t *base);


/* Which temporary files are removed. */
typedef enum {
    NGX_BLOOM_STATE_FILES_DEAD = 0,      /* those of ended instances */
    NGX_BLOOM_STATE_FILES_OWN,           /* and those of this instance */
    NGX_BLOOM_STATE_FILES_ALL            /* all */
} ngx_bloom_state_files_e;

/*
 * Locks a snapshot or a body that this process has opened, so that it is not
 * removed until the process closes it.  Returns NGX_OK, or NGX_DECLINED if the
 * file has been removed already.
 */
ngx_int_t ngx_bloom_state_files_use(ngx_fd_t fd);

/*
 * Removes this instance's files whose names begin with `prefix` and that no
 * process uses, except the file `keep` unless that is NULL.  Returns the number
 * of files in use.
 */
ngx_uint_t ngx_bloom_state_files_unused(ngx_bloom_state_t *state,
    const char *prefix, const u_char *keep);

/*
 * Removes temporary files that processes have left behind.  Snapshots and
 * bodies of this instance stay, unless `which` is NGX_BLOOM_STATE_FILES_ALL.
 * Call ngx_bloom_state_prune() before, to learn which instances have ended.
 *
 * A helper may remove its instance's own files when it starts, and when a job
 * has died, because it holds the lock sh->helper, under which these files are
 * written.  A process that
 * starts as the only instance removes all files.
 */
void ngx_bloom_state_files_clean(ngx_bloom_state_t *state,
    ngx_bloom_state_files_e which);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_STATE_FILES_H_INCLUDED_ */
