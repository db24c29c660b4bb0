/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions copy an uploaded image to the state directory.  The copy has
 * a temporary name until it is complete; no start uses it until then.
 */

#ifndef _NGX_BLOOM_COPY_H_INCLUDED_
#define _NGX_BLOOM_COPY_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


/* The state of copying one image. */
typedef struct {
    ngx_bloom_state_t  *state;
    ngx_fd_t            from;
    ngx_fd_t            to;
    u_char              tmp[NGX_MAX_PATH];       /* temporary name; "": none */
} ngx_bloom_copy_t;


/* Initialises a copy that has not begun. */
void ngx_bloom_copy_init(ngx_bloom_copy_t *copy);

/* Copies the file `path`.  Returns NGX_OK if the copy is complete and on disk,
 * or NGX_ERROR with errno.  The caller calls ngx_bloom_copy_end() in either
 * case. */
ngx_int_t ngx_bloom_copy(ngx_bloom_copy_t *copy, ngx_bloom_state_t *state,
    u_char *path);

/*
 * Renames the copy to `name`, unless the zone was cleared after `position` in
 * its journal.  Returns what ngx_bloom_cleared_place() returns.
 */
ngx_int_t ngx_bloom_copy_place(ngx_bloom_copy_t *copy, u_char *name,
    uint64_t position);

/* Ends a copy.  Removes the file unless it has been renamed. */
void ngx_bloom_copy_end(ngx_bloom_copy_t *copy);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_COPY_H_INCLUDED_ */
