/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the functions that read the directives with zones:
 * bloom_state_path, bloom_zone, bloom_guard and bloom_source.
 */

#ifndef _NGX_HTTP_BLOOM_CONF_ZONE_H_INCLUDED_
#define _NGX_HTTP_BLOOM_CONF_ZONE_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


char *ngx_http_bloom_conf_zone_state_path(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_bloom_conf_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_bloom_conf_zone_guard(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_bloom_conf_zone_source(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * Completes the zones once the whole configuration has been read: their state
 * path, and whether anything adds keys to them.  Refuses directives that
 * contradict one another.  Warns of zones that cannot take the keys of
 * bloom_add or bloom_audit.
 */
ngx_int_t ngx_http_bloom_conf_zone_init(ngx_conf_t *cf,
    ngx_http_bloom_main_conf_t *bmcf);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_CONF_ZONE_H_INCLUDED_ */
