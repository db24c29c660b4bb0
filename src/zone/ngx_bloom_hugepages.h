/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions put the banks of a zone on huge pages if the system has any.
 *
 * A lookup reads a cache line anywhere in a filter.  In a large filter it costs
 * as much to find the line's page as to read the line.  One huge page of 2 MiB
 * replaces 512 small ones.  Linux has two kinds of them:
 *
 *     transparent   The system allocates them when memory is first touched, if
 *                   it finds any and .../transparent_hugepage/shmem_enabled
 *                   permits it.  They come and go, and unused memory is given
 *                   back.
 *     reserved      The administrator sets them aside with vm.nr_hugepages.
 *                   All that the zone needs are taken when it is created, since
 *                   a process that touched a missing one would be killed.  They
 *                   are kept until the zone's memory is freed.
 *
 * Huge pages begin at multiples of 2 MiB, so up to 2 MiB at either end of a
 * range stay on small pages.
 */

#ifndef _NGX_BLOOM_HUGEPAGES_H_INCLUDED_
#define _NGX_BLOOM_HUGEPAGES_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


#define NGX_BLOOM_HUGEPAGE_SIZE  (2 * 1024 * 1024)

/* The kind of pages that a zone requests, or has. */
typedef enum {
    NGX_BLOOM_HUGEPAGES_TRANSPARENT = 0,
    NGX_BLOOM_HUGEPAGES_OFF,                 /* small pages */
    NGX_BLOOM_HUGEPAGES_RESERVED
} ngx_bloom_hugepages_e;


/* Parses "transparent", "off" or "reserved".  Returns NGX_OK, or NGX_ERROR for
 * any other value. */
ngx_int_t ngx_bloom_hugepages_parse(ngx_str_t *value, ngx_uint_t *pages);

/* Returns the name of a kind, as the function above parses it. */
const char *ngx_bloom_hugepages_name(ngx_uint_t pages);

/*
 * Requests huge pages for shared memory that no process has touched yet, before
 * other processes are forked; the contents of the memory are lost.  *pages is
 * the kind to request.  If there are not enough reserved pages, the function
 * logs a warning, requests transparent ones and changes *pages.  Returns
 * NGX_OK, or NGX_ERROR, logged, if the memory cannot be used any more.
 */
ngx_int_t ngx_bloom_hugepages_take(u_char *p, size_t len, ngx_uint_t *pages,
    ngx_str_t *zone, ngx_log_t *log);

/*
 * Requests transparent huge pages, or none, for memory that is in use.  This
 * applies to the pages that this process and its children touch from now on.
 */
void ngx_bloom_hugepages_advise(u_char *p, size_t len, ngx_uint_t pages);

/* Sets memory to zero, and gives it back to the system unless its pages are
 * reserved. */
void ngx_bloom_hugepages_clear(u_char *p, size_t len, ngx_uint_t pages);

/*
 * Returns how many bytes of the memory are on huge pages, as the system reports
 * for this process.  The system counts only pages that a process has touched,
 * so this touches each page that is in memory.  Takes some milliseconds per
 * GiB.
 */
size_t ngx_bloom_hugepages_measure(u_char *p, size_t len);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_HUGEPAGES_H_INCLUDED_ */
