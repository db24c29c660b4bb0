
/*
 * What is shown of a zone, in JSON and as metrics: what it says of itself, and
 * what follows from that.
 */

#ifndef _NGX_HTTP_BLOOM_STATS_H_INCLUDED_
#define _NGX_HTTP_BLOOM_STATS_H_INCLUDED_

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


typedef struct {
    ngx_bloom_zone_t           *zone;
    ngx_bloom_info_t            info;

    /* of the filter that serves; 0 if none does */
    uint64_t                    filter_bytes;
    uint64_t                    estimated_items;
    double                      estimated_fpr;
    double                      fill_ratio;

    uint64_t                    checks;
    double                      measured_fpr;          /* NaN: nothing was */
    ngx_uint_t                  items_estimated;
    ngx_uint_t                  loading;
} ngx_http_bloom_view_t;


void ngx_http_bloom_view(ngx_http_bloom_view_t *view, ngx_bloom_zone_t *zone,
    ngx_bloom_info_t *info);


/* Tables name a value by its place: `entry` has the offset of one. */
#define ngx_http_bloom_value(view, entry, type)                               \
    (*(type *) ((u_char *) (view) + (entry)->offset))

#define ngx_http_bloom_of(field)  offsetof(ngx_http_bloom_view_t, field)


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_STATS_H_INCLUDED_ */
