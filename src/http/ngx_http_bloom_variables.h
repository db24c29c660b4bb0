
/*
 * Variables tell what was decided about a request, and what a zone answers.
 */

#ifndef _NGX_HTTP_BLOOM_VARIABLES_H_INCLUDED_
#define _NGX_HTTP_BLOOM_VARIABLES_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


/* Adds $bloom_status, $bloom_zone and $bloom_key. */
ngx_int_t ngx_http_bloom_variables_add(ngx_conf_t *cf);

/* Adds the variable `name` of a bloom_lookup; `key` is kept. */
ngx_int_t ngx_http_bloom_variables_add_lookup(ngx_conf_t *cf, ngx_str_t *name,
    ngx_http_bloom_key_t *key);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_VARIABLES_H_INCLUDED_ */
