/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions put the banks of a zone on huge pages if the system has any.
 *
 * A lookup reads a cache line anywhere in a filter.  In a large filter it costs
 * as much to find the line's page as to read the line.  One huge page of 2 MiB
 * replaces 512 small ones.
 *
 * These are transparent huge pages: the system allocates them when memory is
 * first touched, if it finds any and .../transparent_hugepage/shmem_enabled
 * permits it.  They come and go, and unused memory is given back.
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

/*
 * Requests huge pages for shared memory.  This applies to the pages that this
 * process, and those that it forks afterwards, touch from now on.
 */
void ngx_bloom_hugepages_advise(u_char *p, size_t len);

/* Sets memory to zero, and gives it back to the system. */
void ngx_bloom_hugepages_clear(u_char *p, size_t len);

/*
 * Returns how many bytes of the memory are on huge pages, as the system reports
 * for this process.  The system counts only pages that a process has touched,
 * so this touches each page that is in memory.  Takes some milliseconds per
 * GiB.
 */
size_t ngx_bloom_hugepages_measure(u_char *p, size_t len);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_HUGEPAGES_H_INCLUDED_ */
