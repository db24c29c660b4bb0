/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the warnings about rules that do not do what they seem
 * to do.
 */

#ifndef _NGX_HTTP_BLOOM_CONF_WARN_H_INCLUDED_
#define _NGX_HTTP_BLOOM_CONF_WARN_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


/*
 * Warns, when the configuration has been read,
 *
 *     of each "bloom_pass present" that lets requests pass a block list after
 *         it: once for each list of rules, at the first rule that it opens
 *     of each rule whose key has a variable without a value when rules run
 *
 * The zones are declared, with their images' headers read.
 */
void ngx_http_bloom_conf_warn(ngx_conf_t *cf,
    ngx_http_bloom_main_conf_t *bmcf);

/* Warns that a server or location has rules of its own, and therefore does not
 * inherit others. */
void ngx_http_bloom_conf_warn_dropped(ngx_conf_t *cf, ngx_array_t *rules,
    ngx_array_t *dropped);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_CONF_WARN_H_INCLUDED_ */
