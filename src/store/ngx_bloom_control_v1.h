/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function reads a control page of version 1, so that its facts can be
 * copied to a new page.  Such a page has its size in place of a version.
 */

#ifndef _NGX_BLOOM_CONTROL_V1_H_INCLUDED_
#define _NGX_BLOOM_CONTROL_V1_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


/* The facts that are taken from a page of version 1. */
typedef struct {
    uint64_t             synced;         /* 0: not known */
    uint64_t             rewrite;
    uint64_t             count;          /* pending keys */
    size_t               len;            /* bytes of the pending keys */
    uint64_t             lost_keys;
} ngx_bloom_control_v1_t;

/* The most bytes of pending keys.  Their format is that of later versions. */
#define NGX_BLOOM_CONTROL_V1_ROOM  (256 * 1024)


/* Returns the number that a page of version 1 has in place of a version. */
uint64_t ngx_bloom_control_v1_size(void);

/*
 * Reads a page, and copies its pending keys to `keys`, which has room for
 * NGX_BLOOM_CONTROL_V1_ROOM bytes.  Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_control_v1_read(ngx_fd_t fd, ngx_bloom_control_v1_t *v1,
    u_char *keys);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_CONTROL_V1_H_INCLUDED_ */
