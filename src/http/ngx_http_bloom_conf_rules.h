/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the functions that read the directives with rules and
 * lookups: bloom_pass, bloom_reject, bloom_route, bloom_rules and bloom_lookup.
 */

#ifndef _NGX_HTTP_BLOOM_CONF_RULES_H_INCLUDED_
#define _NGX_HTTP_BLOOM_CONF_RULES_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


char *ngx_http_bloom_conf_rules_lookup(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_bloom_conf_rules_rule(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_bloom_conf_rules_unknown(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_bloom_conf_rules_off(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* Records that the rules of `conf` apply in the server or location that is
 * being merged.  Returns NGX_CONF_OK or NGX_CONF_ERROR. */
char *ngx_http_bloom_conf_rules_apply(ngx_conf_t *cf,
    ngx_http_bloom_loc_conf_t *conf);

/* Refuses routes to named locations that do not exist.  Returns NGX_OK, or
 * NGX_ERROR with an error logged. */
ngx_int_t ngx_http_bloom_conf_rules_check_routes(ngx_conf_t *cf,
    ngx_http_bloom_main_conf_t *bmcf);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_CONF_RULES_H_INCLUDED_ */
