/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the function that reads bloom_add and bloom_remove.
 */

#ifndef _NGX_HTTP_BLOOM_CONF_CHANGE_H_INCLUDED_
#define _NGX_HTTP_BLOOM_CONF_CHANGE_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


char *ngx_http_bloom_conf_change(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_CONF_CHANGE_H_INCLUDED_ */
