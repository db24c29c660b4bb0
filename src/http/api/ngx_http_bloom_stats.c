
#include "ngx_http_bloom_stats.h"


void
ngx_http_bloom_view(ngx_http_bloom_view_t *view, ngx_bloom_zone_t *zone,
    ngx_bloom_info_t *info)
{
    uint64_t          *counter, wrong, right;
    bloom_geometry_t  *g;

    ngx_memzero(view, sizeof(ngx_http_bloom_view_t));

    view->zone = zone;
    view->info = *info;

    if (info->generation != 0) {
        g = &view->info.image.geometry;

        view->filter_bytes = bloom_geometry_bytes(g);
        view->estimated_items = bloom_geometry_items(g, info->bits_set);
        view->estimated_fpr = bloom_geometry_fpr(g, view->estimated_items);
        view->fill_ratio = (double) info->bits_set / (double) g->bits;
    }

    view->items_estimated = (info->image.flags & BLOOM_IMAGE_ESTIMATED) != 0;
    view->loading = (info->load_total != 0);

    counter = view->info.counter;

    view->checks = counter[NGX_BLOOM_COUNTER_ABSENT]
                   + counter[NGX_BLOOM_COUNTER_PRESENT]
                   + counter[NGX_BLOOM_COUNTER_UNKNOWN];

    /* of 0 requests: 0 / 0 */

    wrong = counter[NGX_BLOOM_COUNTER_FALSE_POSITIVE];
    right = counter[NGX_BLOOM_COUNTER_FEEDBACK_ABSENT];

    view->measured_fpr = (double) wrong / (double) (wrong + right);
}
