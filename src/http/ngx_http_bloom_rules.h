/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the handler that decides about a request by its rules.
 */

#ifndef _NGX_HTTP_BLOOM_RULES_H_INCLUDED_
#define _NGX_HTTP_BLOOM_RULES_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


/* Handles the PREACCESS phase: checks the rules of the request's location. */
ngx_int_t ngx_http_bloom_rules_handler(ngx_http_request_t *r);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_RULES_H_INCLUDED_ */
