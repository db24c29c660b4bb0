/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Variables of bloom_arg are arguments of a request, decoded as a form decodes
 * them.
 *
 * A query is cut at "&" alone, as the URL Standard says.  The variable has the
 * value of the argument whose decoded name equals the directive's, byte for
 * byte.  Without such an argument the variable is empty.  If several arguments
 * have the name and their decoded values differ, the variable is empty and
 * *ambiguous*: nobody knows which value the backend takes, so a key that
 * contains the variable is invalid.
 */

#ifndef _NGX_HTTP_BLOOM_ARG_H_INCLUDED_
#define _NGX_HTTP_BLOOM_ARG_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


char *ngx_http_bloom_arg_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* Evaluates the variable; it only reads the request. */
ngx_int_t ngx_http_bloom_arg_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/* Returns 1 if a variable has been evaluated to an ambiguous argument. */
static ngx_inline ngx_uint_t ngx_http_bloom_arg_is_ambiguous(
    const ngx_http_variable_value_t *v);


/* ---- inline, as every composed key goes through it ---- */

/* What an ambiguous value refers to, and no other. */
extern u_char  ngx_http_bloom_arg_ambiguous[];


static ngx_inline ngx_uint_t
ngx_http_bloom_arg_is_ambiguous(const ngx_http_variable_value_t *v)
{
    return v->valid && v->len == 0 && v->data == ngx_http_bloom_arg_ambiguous;
}


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_ARG_H_INCLUDED_ */
