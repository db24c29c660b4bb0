/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how the query of a request is read: by a table of its
 * arguments.
 */

#ifndef _NGX_HTTP_BLOOM_QUERY_H_INCLUDED_
#define _NGX_HTTP_BLOOM_QUERY_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_http_bloom_error.h"
#include "bloom_source.h"

#pragma GCC visibility push(hidden)


/* What an argument is, and what it becomes. */
typedef enum {
    NGX_HTTP_BLOOM_ARG_OTHER = 0,        /* nothing: others read it */
    NGX_HTTP_BLOOM_ARG_WORD,             /* ngx_uint_t: the number of the word */
    NGX_HTTP_BLOOM_ARG_NUMBER,           /* uint64_t */
    NGX_HTTP_BLOOM_ARG_POSITION,         /* bloom_position_t, of a source */
    NGX_HTTP_BLOOM_ARG_TEXT              /* ngx_str_t, decoded */
} ngx_http_bloom_arg_e;

#define NGX_HTTP_BLOOM_ARG_WORDS  3

/* An argument of a query. */
typedef struct {
    const char                 *name;
    ngx_http_bloom_arg_e        type;
    size_t                      offset;  /* of what it becomes */
    const char                 *must;    /* be, to be valid */
    const char                 *words[NGX_HTTP_BLOOM_ARG_WORDS];
    ngx_int_t                   min;     /* of numbers */
    ngx_int_t                   max;
    ngx_uint_t                  required;
} ngx_http_bloom_arg_t;

/* A flag such as "?force=true", which becomes 0 or 1. */
#define ngx_http_bloom_arg_flag(name, type, member)                           \
    { name, NGX_HTTP_BLOOM_ARG_WORD, offsetof(type, member),                  \
      "\"true\" or \"false\"", { "false", "true" }, 0, 0, 0 }

/* An argument that others read. */
#define ngx_http_bloom_arg_other(name)                                        \
    { name, NGX_HTTP_BLOOM_ARG_OTHER, 0, NULL, { NULL }, 0, 0, 0 }

#define ngx_http_bloom_arg_end  ngx_http_bloom_arg_other(NULL)

/*
 * Reads the query into `to`; what the query does not have stays as it is.  An
 * argument that is not in the table, or that comes twice, is an error: it may
 * be a misspelled one that limits what the request does.  Returns NGX_OK;
 * NGX_DECLINED with an error; NGX_ERROR if memory is short.
 */
ngx_int_t ngx_http_bloom_query_read(ngx_http_request_t *r,
    const ngx_http_bloom_arg_t *args, void *to, ngx_http_bloom_error_t *error);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_QUERY_H_INCLUDED_ */
