/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares bloom_arg, which makes a variable of an argument of the
 * query, decoded as a form decodes it.
 *
 * The query is split at "&" only, as the URL Standard says.  The variable has
 * the value of the argument whose decoded name equals the directive's, byte for
 * byte.  If there is no such argument, the variable is empty.  If several
 * arguments have the name and their decoded values differ, the variable is
 * empty and *ambiguous*: nobody knows which value the backend takes, so a key
 * that contains the variable is invalid.
 */

#ifndef _NGX_HTTP_BLOOM_ARG_H_INCLUDED_
#define _NGX_HTTP_BLOOM_ARG_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


char *ngx_http_bloom_arg_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* Evaluates the variable, without side effects. */
ngx_int_t ngx_http_bloom_arg_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/* Returns 1 if a variable's value is that of an ambiguous argument. */
static ngx_inline ngx_uint_t ngx_http_bloom_arg_is_ambiguous(
    const ngx_http_variable_value_t *v);


/* ---- inline, because every composed key needs them ---- */

/* The address that marks an ambiguous value: no other value has it. */
extern u_char  ngx_http_bloom_arg_ambiguous[];


static ngx_inline ngx_uint_t
ngx_http_bloom_arg_is_ambiguous(const ngx_http_variable_value_t *v)
{
    return v->valid && v->len == 0 && v->data == ngx_http_bloom_arg_ambiguous;
}


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_ARG_H_INCLUDED_ */
