/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * madvise() requests huge pages.  /proc/self/smaps tells which pages are huge.
 */

#include "ngx_bloom_hugepages.h"

#include <sys/mman.h>


/* Bytes that are given back to the system at a time. */
#define NGX_BLOOM_HUGEPAGES_PIECE  (32 * 1024 * 1024)


/* Moves *p to the first whole huge page of a range.  Returns the length of all
 * whole huge pages, or 0. */
static size_t
ngx_bloom_hugepages_whole(u_char **p, size_t len)
{
    u_char  *from, *to;

    from = ngx_align_ptr(*p, NGX_BLOOM_HUGEPAGE_SIZE);
    to = (u_char *) ((uintptr_t) (*p + len)
                     & ~((uintptr_t) NGX_BLOOM_HUGEPAGE_SIZE - 1));
    *p = from;

    return from < to ? (size_t) (to - from) : 0;
}


void
ngx_bloom_hugepages_advise(u_char *p, size_t len)
{
    len = ngx_bloom_hugepages_whole(&p, len);

    if (len == 0) {
        return;
    }

    /* a system without MADV_HUGEPAGE has no transparent huge pages */

#ifdef MADV_HUGEPAGE
    (void) madvise(p, len, MADV_HUGEPAGE);
#endif
}


void
ngx_bloom_hugepages_clear(u_char *p, size_t len)
{
    u_char  *next, *end;

    end = p + len;

    /* piece by piece, because the system locks the memory meanwhile; a huge
     * page can only be given back as a whole */

    for ( /* void */ ; p < end; p = next) {
        next = ngx_align_ptr(p + NGX_BLOOM_HUGEPAGES_PIECE,
                             NGX_BLOOM_HUGEPAGE_SIZE);
        next = ngx_min(next, end);

#ifdef MADV_REMOVE
        if (madvise(p, next - p, MADV_REMOVE) == 0) {
            continue;
        }
#endif

        ngx_memzero(p, next - p);
    }
}


size_t
ngx_bloom_hugepages_measure(u_char *p, size_t len)
{
    char           line[512];
    FILE          *smaps;
    u_char        *page, resident[NGX_BLOOM_HUGEPAGE_SIZE / 4096];
    size_t         huge;
    ngx_uint_t     i, within;
    unsigned long  from, to, kb;

    len = ngx_bloom_hugepages_whole(&p, len);

    if (len == 0) {
        return 0;
    }

    /* smaps counts only pages that this process has touched */

    for (page = p; page < p + len; page += NGX_BLOOM_HUGEPAGE_SIZE) {

        if (mincore(page, NGX_BLOOM_HUGEPAGE_SIZE, resident) == 0) {

            for (i = 0; i < NGX_BLOOM_HUGEPAGE_SIZE / ngx_pagesize; i++) {

                if (resident[i] & 1) {
                    (void) *(volatile u_char *) (page + i * ngx_pagesize);
                    break;
                }
            }
        }
    }

    smaps = fopen("/proc/self/smaps", "re");

    if (smaps == NULL) {
        return 0;
    }

    huge = 0;
    within = 0;

    while (fgets(line, sizeof(line), smaps) != NULL) {

        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            within = from < (uintptr_t) (p + len) && to > (uintptr_t) p;

        } else if (!within) {
            continue;

        } else if (sscanf(line, "ShmemPmdMapped: %lu", &kb) == 1) {
            huge += kb * 1024;
        }
    }

    (void) fclose(smaps);

    return huge;
}
