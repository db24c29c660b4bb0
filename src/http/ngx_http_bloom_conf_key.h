/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the parameters of directives with a key, and the
 * function that reads them.
 */

#ifndef _NGX_HTTP_BLOOM_CONF_KEY_H_INCLUDED_
#define _NGX_HTTP_BLOOM_CONF_KEY_H_INCLUDED_

#include "ngx_http_bloom_conf.h"

#pragma GCC visibility push(hidden)


/* The parameters of a directive with a key. */
typedef struct {
    ngx_bloom_zone_t          *zone;
    ngx_uint_t                 decode;   /* BLOOM_DECODE_... */
    ngx_http_complex_value_t  *filter;   /* "if="; NULL: not given */
    u_char                     split;    /* 0: not given */
    ngx_uint_t                 all;      /* "match=all" */
    ngx_uint_t                 invalid;  /* 1: fire */
    ngx_uint_t                 empty;    /* 1: fire */
    ngx_uint_t                 exact;
    ngx_uint_t                 dry_run;
    ngx_str_t                  name;     /* len 0: not given */
    uint64_t                   status;
    ngx_str_t                  to;
} ngx_http_bloom_conf_params_t;

/*
 * Reads the key `text` and the parameters, which begin with argument `first`.
 * The caller has set the defaults of params.  The directive takes the
 * parameters of any key, and those of the groups in `where`.  Returns
 * NGX_CONF_OK or NGX_CONF_ERROR.
 */
char *ngx_http_bloom_conf_key(ngx_conf_t *cf, ngx_str_t *text, ngx_uint_t first,
    ngx_uint_t where, ngx_http_bloom_conf_params_t *params,
    ngx_http_bloom_key_t *key);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_CONF_KEY_H_INCLUDED_ */
