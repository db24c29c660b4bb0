/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file gives the memory of idle banks back to the system.
 */

#include "ngx_bloom_bank.h"


ngx_uint_t
ngx_bloom_bank_release(ngx_bloom_zone_t *zone, ngx_uint_t bank, size_t max)
{
    u_char             *p, *whole;
    size_t              len;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (!sh->bank[bank].filled) {
        return 0;
    }

    if (sh->bank[bank].held == 0 || sh->bank[bank].held > zone->bank_size) {
        sh->bank[bank].held = zone->bank_size;
    }

    len = ngx_min(max, sh->bank[bank].held);
    p = ngx_bloom_zone_bank(zone, bank) + sh->bank[bank].held - len;

    if (len < sh->bank[bank].held && len > NGX_BLOOM_HUGEPAGE_SIZE) {

        /* a huge page can only be given back as a whole */

        whole = ngx_align_ptr(p, NGX_BLOOM_HUGEPAGE_SIZE);
        len -= whole - p;
        p = whole;
    }

    ngx_bloom_hugepages_clear(p, len);

    sh->bank[bank].held -= len;

    if (sh->bank[bank].held == 0) {
        sh->bank[bank].filled = 0;
        return 0;
    }

    return 1;
}
