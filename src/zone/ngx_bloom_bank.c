/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file gives the memory of idle banks back to the system.
 */

#include "ngx_bloom_bank.h"


/* Bytes that are given back at a time. */
#define NGX_BLOOM_BANK_PIECE  (32 * 1024 * 1024)


void
ngx_bloom_bank_release(ngx_bloom_zone_t *zone, ngx_uint_t bank)
{
    u_char             *p, *next, *end;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (!sh->bank[bank].filled) {
        return;
    }

    p = ngx_bloom_zone_bank(zone, bank);
    end = p + zone->bank_size;

    /* piece by piece, because the system locks the memory meanwhile; a huge
     * page can only be given back as a whole */

    while (p < end) {
        next = ngx_align_ptr(p + NGX_BLOOM_BANK_PIECE, NGX_BLOOM_HUGEPAGE_SIZE);
        next = ngx_min(next, end);

        ngx_bloom_hugepages_clear(p, next - p);
        p = next;
    }

    sh->bank[bank].filled = 0;
}
