/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The banks of a zone lie on huge pages where the system has any.
 *
 * A lookup reads a line somewhere in a filter, and where that is large, finding
 * the page costs as much as reading the line.  One huge page, of 2 MiB, stands
 * for 512 small ones.  Linux has two kinds:
 *
 *     transparent   the system makes them as memory is touched, if it finds any
 *                   and .../transparent_hugepage/shmem_enabled lets it; they
 *                   come and go, and what is not in use is given back
 *     reserved      set aside by vm.nr_hugepages.  They are taken when the zone
 *                   is made, all of them, so that none can be missing later,
 *                   which would kill whoever touches it; and kept until the
 *                   zone's memory is gone
 *
 * Only whole huge pages within a range can be any: up to 2 MiB at either end
 * stay on small ones.
 */

#ifndef _NGX_BLOOM_HUGEPAGES_H_INCLUDED_
#define _NGX_BLOOM_HUGEPAGES_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


#define NGX_BLOOM_HUGEPAGE_SIZE  (2 * 1024 * 1024)

/* What is wanted, or was got. */
typedef enum {
    NGX_BLOOM_HUGEPAGES_TRANSPARENT = 0,
    NGX_BLOOM_HUGEPAGES_OFF,                 /* small ones */
    NGX_BLOOM_HUGEPAGES_RESERVED
} ngx_bloom_hugepages_e;


/* "transparent", "off", "reserved"; NGX_ERROR if it is neither. */
ngx_int_t ngx_bloom_hugepages_parse(ngx_str_t *value, ngx_uint_t *pages);
const char *ngx_bloom_hugepages_name(ngx_uint_t pages);

/*
 * Asks for huge pages in shared memory that nobody has touched yet, before
 * other processes are forked; what it was before is lost.  Where there are not
 * enough reserved ones it says so at level warn, and asks for transparent
 * ones.  *pages says what is wanted, and then which of them they are.
 * NGX_ERROR, logged, if the memory is lost.
 */
ngx_int_t ngx_bloom_hugepages_take(u_char *p, size_t len, ngx_uint_t *pages,
    ngx_str_t *zone, ngx_log_t *log);

/*
 * Asks for transparent ones, or for none, in memory that is in use: for what
 * this process and those it forks touch from now on.
 */
void ngx_bloom_hugepages_advise(u_char *p, size_t len, ngx_uint_t pages);

/* Makes it zero, and gives it back to the system unless it is reserved. */
void ngx_bloom_hugepages_clear(u_char *p, size_t len, ngx_uint_t pages);

/*
 * How many bytes of it lie on huge pages, as the system says of this process,
 * which touches each page that is in memory.  Takes milliseconds for each GiB.
 */
size_t ngx_bloom_hugepages_measure(u_char *p, size_t len);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_HUGEPAGES_H_INCLUDED_ */
