/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares bloom_arg, bloom_cookie and bloom_header, which make a
 * variable of a value that a client sends under a name.
 *
 * The variable is empty if the request has no such value.  If backends may
 * read different values, the variable is empty and *ambiguous*: nobody knows
 * which value counts, so a key that contains the variable is invalid.  A name
 * with several different values is ambiguous in each source.
 *
 *   source   name                      value
 *
 *   arg      byte for byte, decoded    decoded as a form decodes it; the query
 *                                      is split at "&", as the URL Standard
 *                                      says
 *   cookie   byte for byte             as sent, without quotes around it;
 *                                      ambiguous unless RFC 6265 allows each
 *                                      of its bytes
 *   header   letters in either case,   as sent, without spaces and tabs around
 *            "_" as "-"                it; ambiguous with a control character
 */

#ifndef _NGX_HTTP_BLOOM_VALUE_H_INCLUDED_
#define _NGX_HTTP_BLOOM_VALUE_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


/* where a value comes from: the offset of a directive's command */

#define NGX_HTTP_BLOOM_VALUE_ARG     0
#define NGX_HTTP_BLOOM_VALUE_COOKIE  1
#define NGX_HTTP_BLOOM_VALUE_HEADER  2


char *ngx_http_bloom_value_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* Evaluates the variable, without side effects. */
ngx_int_t ngx_http_bloom_value_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/*
 * Finds the next header with the name in a list of headers; *part is the
 * list's first part at first, and *i is 0.  "_" counts as "-": a backend that
 * reads headers from its environment, as CGI does, cannot tell them apart, and
 * nginx's variables do not either.  Returns NULL after the last one.
 */
ngx_table_elt_t *ngx_http_bloom_value_next_header(ngx_list_part_t **part,
    ngx_uint_t *i, ngx_str_t *name);

/* Returns 1 if a variable's value is ambiguous. */
static ngx_inline ngx_uint_t ngx_http_bloom_value_is_ambiguous(
    const ngx_http_variable_value_t *v);


/* ---- inline, because every composed key needs them ---- */

/* The address that marks an ambiguous value: no other value has it. */
extern u_char  ngx_http_bloom_value_ambiguous[];


static ngx_inline ngx_uint_t
ngx_http_bloom_value_is_ambiguous(const ngx_http_variable_value_t *v)
{
    return v->valid && v->len == 0 && v->data == ngx_http_bloom_value_ambiguous;
}


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_VALUE_H_INCLUDED_ */
