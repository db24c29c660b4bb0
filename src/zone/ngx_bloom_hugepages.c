/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * madvise() requests transparent pages.  Reserved pages are mapped in place of
 * the memory that nginx has created.  /proc/self/smaps tells which pages there
 * are.
 */

#include "ngx_bloom_hugepages.h"

#include <sys/mman.h>


/* Not every C library defines these.  The size of a page is 2 to the 21st. */
#ifndef MFD_HUGETLB
#define MFD_HUGETLB          0x0004
#endif
#define NGX_BLOOM_MFD_2MB    (21U << 26)


static ngx_int_t ngx_bloom_hugepages_reserved(u_char *p, size_t len,
    const char **failed);


static const char  *ngx_bloom_hugepages_names[] = {
    "transparent",
    "off",
    "reserved"
};


ngx_int_t
ngx_bloom_hugepages_parse(ngx_str_t *value, ngx_uint_t *pages)
{
    ngx_uint_t  i;

    for (i = 0; i <= NGX_BLOOM_HUGEPAGES_RESERVED; i++) {

        if (ngx_strcmp(value->data, ngx_bloom_hugepages_names[i]) == 0) {
            *pages = i;
            return NGX_OK;
        }
    }

    return NGX_ERROR;
}


const char *
ngx_bloom_hugepages_name(ngx_uint_t pages)
{
    return ngx_bloom_hugepages_names[pages];
}


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


ngx_int_t
ngx_bloom_hugepages_take(u_char *p, size_t len, ngx_uint_t *pages,
    ngx_str_t *zone, ngx_log_t *log)
{
    size_t       whole;
    u_char      *from;
    ngx_int_t    rc;
    const char  *failed;

    from = p;
    whole = ngx_bloom_hugepages_whole(&from, len);

    if (*pages == NGX_BLOOM_HUGEPAGES_RESERVED && whole != 0) {

        rc = ngx_bloom_hugepages_reserved(from, whole, &failed);

        if (rc == NGX_OK) {
            return NGX_OK;
        }

        if (rc == NGX_ERROR) {
            ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                          "%s failed for bloom zone \"%V\"", failed, zone);
            return NGX_ERROR;
        }

        ngx_log_error(NGX_LOG_WARN, log, ngx_errno,
                      "bloom zone \"%V\" has no reserved huge pages: it needs "
                      "%uz of 2048k, and %s failed; reserve that many with "
                      "\"sysctl vm.nr_hugepages\" and restart nginx, or remove "
                      "\"huge_pages=reserved\"", zone,
                      whole / NGX_BLOOM_HUGEPAGE_SIZE, failed);
    }

    if (*pages == NGX_BLOOM_HUGEPAGES_RESERVED) {
        *pages = NGX_BLOOM_HUGEPAGES_TRANSPARENT;
    }

    ngx_bloom_hugepages_advise(p, len, *pages);

    return NGX_OK;
}


/*
 * Maps reserved huge pages.  Returns NGX_OK; NGX_DECLINED if there are not
 * enough, and then nothing has changed; NGX_ERROR.  Everything that may fail is
 * done before the mapping that replaces nginx's memory.
 */
static ngx_int_t
ngx_bloom_hugepages_reserved(u_char *p, size_t len, const char **failed)
{
    int        fd;
    void      *mapped;
    ngx_err_t  err;

    fd = memfd_create("nginx bloom",
                      MFD_CLOEXEC|MFD_HUGETLB|NGX_BLOOM_MFD_2MB);
    if (fd == -1) {
        *failed = "memfd_create()";
        return NGX_DECLINED;
    }

    if (ftruncate(fd, (off_t) len) == -1 || fallocate(fd, 0, 0, len) == -1) {
        err = ngx_errno;
        (void) close(fd);
        ngx_set_errno(err);
        *failed = "fallocate()";
        return NGX_DECLINED;
    }

    mapped = mmap(p, len, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_FIXED, fd, 0);
    err = ngx_errno;

    (void) close(fd);

    if (mapped == MAP_FAILED) {
        ngx_set_errno(err);
        *failed = "mmap(MAP_FIXED)";
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_bloom_hugepages_advise(u_char *p, size_t len, ngx_uint_t pages)
{
    len = ngx_bloom_hugepages_whole(&p, len);

    if (len == 0) {
        return;
    }

    /* a system without MADV_HUGEPAGE has no transparent huge pages */

#ifdef MADV_HUGEPAGE
    (void) madvise(p, len, pages == NGX_BLOOM_HUGEPAGES_OFF ? MADV_NOHUGEPAGE
                                                        : MADV_HUGEPAGE);
#endif
}


void
ngx_bloom_hugepages_clear(u_char *p, size_t len, ngx_uint_t pages)
{
    /*
     * Reserved pages are not given back: Linux keeps no reservation for a hole,
     * so the zone might not get them again.
     */

#ifdef MADV_REMOVE
    if (pages != NGX_BLOOM_HUGEPAGES_RESERVED
        && madvise(p, len, MADV_REMOVE) == 0)
    {
        return;
    }
#endif

    ngx_memzero(p, len);
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

        } else if (sscanf(line, "KernelPageSize: %lu", &kb) == 1
                   && kb * 1024 == NGX_BLOOM_HUGEPAGE_SIZE)
        {
            huge += to - from;                   /* reserved: all are there */

        } else if (sscanf(line, "ShmemPmdMapped: %lu", &kb) == 1) {
            huge += kb * 1024;
        }
    }

    (void) fclose(smaps);

    return huge;
}
