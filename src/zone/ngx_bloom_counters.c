/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Each process of nginx counts in the row of its slot in nginx's table of
 * processes.  Jobs count in the row before: the one that holds sh->helper of a
 * zone counts what happens to that zone.
 */

#include "ngx_bloom_counters.h"

#include <ngx_md5.h>


#define NGX_BLOOM_COUNTERS_NAME_LEN  16


/* The owner of a series. */
typedef struct {
    u_char              name[NGX_BLOOM_COUNTERS_NAME_LEN];  /* its MD5 */
    uint64_t            claimed;         /* number of the last configuration
                                            that claimed it, from 1; 0: none */
    uint64_t            base[NGX_BLOOM_COUNTERS];   /* counts of previous
                                            owners, to be subtracted */
    uint64_t            wrong_at;        /* atomic, ms since 1970: time of the
                                            last wrong absent; 0: none */
} ngx_bloom_series_t;

typedef struct {
    uint64_t            configurations;
    ngx_atomic_t        rows;            /* number of rows in use */
    ngx_bloom_series_t  series[NGX_BLOOM_SERIES];
} ngx_bloom_counters_shm_t;

#define NGX_BLOOM_COUNTERS_SIZE                                               \
    (ngx_align(sizeof(ngx_bloom_counters_shm_t), ngx_pagesize)                \
     + (NGX_MAX_PROCESSES + 1) * sizeof(*ngx_bloom_counters_rows))


static ngx_int_t ngx_bloom_counters_init(ngx_shm_zone_t *shm_zone, void *data);
static void ngx_bloom_counters_raw(ngx_uint_t series, uint64_t *sums);


/* No zone can have this name: names in bloom_zone have no space. */
static ngx_str_t  ngx_bloom_counters_name = ngx_string("bloom counters");

static ngx_bloom_counters_shm_t  *ngx_bloom_counters_shm;

ngx_bloom_counters_t  (*ngx_bloom_counters_rows)[NGX_BLOOM_SERIES];


ngx_int_t
ngx_bloom_counters_declare(ngx_conf_t *cf)
{
    size_t           size;
    ngx_shm_zone_t  *shm_zone;

    /* "nginx -t" and signals have nothing to count */

    size = 8 * ngx_pagesize;

    if (!ngx_test_config && ngx_process != NGX_PROCESS_SIGNALLER) {

        /* the slab allocator has a descriptor for each page */

        size += NGX_BLOOM_COUNTERS_SIZE / ngx_pagesize
                * (ngx_pagesize + sizeof(ngx_slab_page_t));
    }

    shm_zone = ngx_shared_memory_add(cf, &ngx_bloom_counters_name, size,
                                     &ngx_bloom_counters_name);
    if (shm_zone == NULL) {
        return NGX_ERROR;
    }

    shm_zone->init = ngx_bloom_counters_init;

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_counters_init(ngx_shm_zone_t *shm_zone, void *data)
{
    u_char           *p;
    ngx_slab_pool_t  *shpool;

    /* not NULL: nginx passes it on to the next configuration */

    shm_zone->data = &ngx_bloom_counters_name;

    if (data != NULL || ngx_test_config) {
        return NGX_OK;
    }

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    p = ngx_slab_alloc(shpool, NGX_BLOOM_COUNTERS_SIZE);
    if (p == NULL) {
        return NGX_ERROR;
    }

    /* new memory is zero; most of it is never touched */

#if (NGX_DEBUG_MALLOC)
    ngx_memzero(p, NGX_BLOOM_COUNTERS_SIZE);
#endif

    shpool->data = p;

    ngx_bloom_counters_shm = (ngx_bloom_counters_shm_t *) p;
    ngx_bloom_counters_rows = (void *) (p
                                        + ngx_align(
                                              sizeof(ngx_bloom_counters_shm_t),
                                              ngx_pagesize));
    ngx_bloom_counters_rows++;                               /* that of jobs */

    return NGX_OK;
}


void
ngx_bloom_counters_begin(void)
{
    ngx_bloom_counters_shm->configurations++;
    ngx_bloom_counters_process();
}


ngx_uint_t
ngx_bloom_counters_claim(ngx_str_t *name)
{
    u_char               digest[NGX_BLOOM_COUNTERS_NAME_LEN];
    ngx_md5_t            md5;
    ngx_uint_t           i, idle;
    ngx_bloom_series_t  *series;

    ngx_md5_init(&md5);
    ngx_md5_update(&md5, name->data, name->len);
    ngx_md5_final(digest, &md5);

    series = ngx_bloom_counters_shm->series;
    idle = NGX_BLOOM_SERIES_OTHER;

    for (i = 1; i < NGX_BLOOM_SERIES; i++) {

        if (series[i].claimed == 0) {
            idle = i;
            break;
        }

        if (ngx_memcmp(series[i].name, digest, sizeof(digest)) == 0) {
            series[i].claimed = ngx_bloom_counters_shm->configurations;
            return i;
        }

        /* processes of the previous configuration still count in its series */

        if (series[i].claimed + 1 < ngx_bloom_counters_shm->configurations
            && (idle == NGX_BLOOM_SERIES_OTHER
                || series[i].claimed < series[idle].claimed))
        {
            idle = i;
        }
    }

    if (idle != NGX_BLOOM_SERIES_OTHER) {
        ngx_memcpy(series[idle].name, digest, sizeof(digest));
        series[idle].claimed = ngx_bloom_counters_shm->configurations;
        ngx_bloom_counters_raw(idle, series[idle].base);
        series[idle].wrong_at = 0;
    }

    return idle;
}


void
ngx_bloom_counters_process(void)
{
    ngx_atomic_uint_t  rows, used;

    if (ngx_bloom_counters_shm == NULL) {
        return;
    }

    rows = ngx_process_slot + 1;

    do {
        used = ngx_bloom_counters_shm->rows;
    } while (used < rows
             && !ngx_atomic_cmp_set(&ngx_bloom_counters_shm->rows, used, rows));
}


void
ngx_bloom_counters_job(void)
{
    ngx_process_slot = -1;
}


void
ngx_bloom_counters_sums(ngx_uint_t series, uint64_t sums[NGX_BLOOM_COUNTERS])
{
    ngx_uint_t  i;

    ngx_bloom_counters_raw(series, sums);

    for (i = 0; i < NGX_BLOOM_COUNTERS; i++) {
        sums[i] -= ngx_bloom_counters_shm->series[series].base[i];
    }
}


void
ngx_bloom_counters_set_wrong_at(ngx_uint_t series, uint64_t ms)
{
    __atomic_store_n(&ngx_bloom_counters_shm->series[series].wrong_at, ms,
                     __ATOMIC_RELAXED);
}


uint64_t
ngx_bloom_counters_wrong_at(ngx_uint_t series)
{
    return __atomic_load_n(&ngx_bloom_counters_shm->series[series].wrong_at,
                           __ATOMIC_RELAXED);
}


static void
ngx_bloom_counters_raw(ngx_uint_t series, uint64_t *sums)
{
    ngx_int_t   i, rows;
    ngx_uint_t  j;

    ngx_memzero(sums, NGX_BLOOM_COUNTERS * sizeof(uint64_t));

    /* the workers' user can write to this memory: do not trust the number */

    rows = ngx_min(ngx_bloom_counters_shm->rows, NGX_MAX_PROCESSES);

    for (i = -1; i < rows; i++) {
        for (j = 0; j < NGX_BLOOM_COUNTERS; j++) {
            sums[j] += __atomic_load_n(&ngx_bloom_counters_rows[i][series].n[j],
                                       __ATOMIC_RELAXED);
        }
    }
}
