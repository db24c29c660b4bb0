/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the handler of GET metrics, which writes the metrics of
 * all zones and rules for Prometheus.
 */

#ifndef _NGX_HTTP_BLOOM_METRICS_H_INCLUDED_
#define _NGX_HTTP_BLOOM_METRICS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


ngx_int_t ngx_http_bloom_metrics_get(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_METRICS_H_INCLUDED_ */
