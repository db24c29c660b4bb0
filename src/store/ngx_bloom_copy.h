/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An uploaded image is copied to the state directory, under a temporary name
 * until it is whole and may be found by a start.
 */

#ifndef _NGX_BLOOM_COPY_H_INCLUDED_
#define _NGX_BLOOM_COPY_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


typedef struct {
    ngx_bloom_state_t  *state;
    ngx_fd_t            from;
    ngx_fd_t            to;
    uint64_t            done;            /* bytes */
    size_t              unsynced;
    ngx_uint_t          whole;           /* and on disk */
    u_char              tmp[NGX_MAX_PATH];       /* "": there is no such file */
} ngx_bloom_copy_t;


/* Makes it one that has not begun, as a new load needs it. */
void ngx_bloom_copy_init(ngx_bloom_copy_t *copy);

/* Begins to copy the file `path`.  What goes wrong shows in a step. */
void ngx_bloom_copy_begin(ngx_bloom_copy_t *copy, ngx_bloom_state_t *state,
    u_char *path);

/* Returns NGX_AGAIN: there is more to do; NGX_OK: the copy is whole and on
 * disk; NGX_ERROR with errno. */
ngx_int_t ngx_bloom_copy_step(ngx_bloom_copy_t *copy);

/* Gives the copy its name.  Returns NGX_OK, or NGX_ERROR with errno. */
ngx_int_t ngx_bloom_copy_place(ngx_bloom_copy_t *copy, u_char *name);

/* Removes the copy, unless it has got its name. */
void ngx_bloom_copy_end(ngx_bloom_copy_t *copy);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_COPY_H_INCLUDED_ */
