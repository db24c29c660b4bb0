/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Control pages of version 1 had no version: their size was in its place.  What
 * is of use in one goes into a new page.
 */

#ifndef _NGX_BLOOM_CONTROL_V1_H_INCLUDED_
#define _NGX_BLOOM_CONTROL_V1_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


/* What is of use in a page of version 1. */
typedef struct {
    uint64_t             synced;         /* 0: not known */
    uint64_t             rewrite;
    uint64_t             count;          /* pending keys, */
    size_t               len;            /* and the bytes that they take */
    uint64_t             lost_keys;
} ngx_bloom_control_v1_t;

/* Bytes of pending keys at most; they are as in later versions. */
#define NGX_BLOOM_CONTROL_V1_ROOM  (256 * 1024)


/* Returns the number that such a page has where others have their version. */
uint64_t ngx_bloom_control_v1_size(void);

/*
 * Reads a page, and its pending keys into `keys`, which has room for them.
 * Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_control_v1_read(ngx_fd_t fd, ngx_bloom_control_v1_t *v1,
    u_char *keys);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_CONTROL_V1_H_INCLUDED_ */
