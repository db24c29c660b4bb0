/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how the C interface (ngx_http_bloom_ffi.h) knows whether
 * it may be called, and which zones there are.
 */

#ifndef _NGX_HTTP_BLOOM_FFI_ZONE_H_INCLUDED_
#define _NGX_HTTP_BLOOM_FFI_ZONE_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


/* Lets the interface be called in this process and thread, for the zones of
 * `cycle`, whose state directories are attached.  Does nothing in a helper. */
void ngx_http_bloom_ffi_zone_open(ngx_cycle_t *cycle);

/* Lets the interface no longer be called in this process. */
void ngx_http_bloom_ffi_zone_close(void);

/* Returns 1 if the interface may be called now, in this thread, else 0. */
ngx_uint_t ngx_http_bloom_ffi_zone_may(void);

/* Returns the zone of this name, or NULL.  Call it only if the interface may be
 * called. */
ngx_bloom_zone_t *ngx_http_bloom_ffi_zone_find(const ngx_str_t *name);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_FFI_ZONE_H_INCLUDED_ */
