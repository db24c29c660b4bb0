
/*
 * The image files in a state directory: checkpoints, uploads and snapshots are
 * named, found and removed here.
 *
 *     checkpoint.BUILD.POSITION.bloom
 *     upload.BUILD.bloom
 *     snapshot.PID.TICKET.bloom
 *
 * BUILD is a build id in hexadecimal: of the image that a checkpoint was made
 * from, and of the image of file= in whose place an upload stands.
 */

#ifndef _NGX_BLOOM_STATE_FILES_H_INCLUDED_
#define _NGX_BLOOM_STATE_FILES_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


/*
 * Each of these writes the path of such a file into `path` of NGX_MAX_PATH
 * bytes, and returns it.  A zone that starts empty has NULL for the build id of
 * its image, which is written as zeros.
 */
u_char *ngx_bloom_state_files_checkpoint(ngx_bloom_state_t *state,
    u_char *build, uint64_t position, u_char *path);
u_char *ngx_bloom_state_files_upload(ngx_bloom_state_t *state, u_char *build,
    u_char *path);
u_char *ngx_bloom_state_files_snapshot(ngx_bloom_state_t *state,
    uint64_t ticket, u_char *path);

/* Returns the name of a file in the directory from its path. */
u_char *ngx_bloom_state_files_name(u_char *path);

/*
 * Finds the newest checkpoint made from the image with this build id.  Returns
 * NGX_OK with its path in `path` of NGX_MAX_PATH bytes and its position, or
 * NGX_DECLINED if there is none.
 */
ngx_int_t ngx_bloom_state_files_find(ngx_bloom_state_t *state, u_char *build,
    u_char *path, uint64_t *position);

/*
 * Removes the files whose names begin with `prefix`, except `keep`, a path, if
 * that is not NULL, and except those younger than `age` seconds.
 */
void ngx_bloom_state_files_remove(ngx_bloom_state_t *state, const char *prefix,
    u_char *keep, time_t age);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_STATE_FILES_H_INCLUDED_ */
