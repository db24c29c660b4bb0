/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Each process has an entry of its own, in the shared memory of the counters.
 * A process writes to one bank at a time.
 */

#include "ngx_bloom_writers.h"


/* How often, once a millisecond, a load looks whether a bank is free. */
#define NGX_BLOOM_WRITERS_LOOKS  1000


static ngx_pid_t ngx_bloom_writers_find(uint64_t what);


/* Returns what an entry says of a process that writes to a bank: control blocks
 * begin at pages, so the number is unique in a process and in its forks. */
static ngx_inline uint64_t
ngx_bloom_writers_what(ngx_bloom_zone_t *zone, ngx_uint_t bank)
{
    return (uint64_t) (uintptr_t) zone->sh | bank;
}


ngx_int_t
ngx_bloom_writers_enter(ngx_bloom_zone_t *zone, uint64_t generation)
{
    ngx_bloom_writer_t  *writer;

    writer = &ngx_bloom_counters_writers[ngx_process_slot];

    __atomic_store_n(&writer->pid, (int64_t) ngx_pid, __ATOMIC_RELAXED);
    __atomic_store_n(&writer->what,
                     ngx_bloom_writers_what(zone, generation & 1),
                     __ATOMIC_SEQ_CST);

    __atomic_thread_fence(__ATOMIC_SEQ_CST);

    return __atomic_load_n(&zone->sh->generation, __ATOMIC_SEQ_CST)
           == generation ? NGX_OK : NGX_AGAIN;
}


void
ngx_bloom_writers_leave(void)
{
    __atomic_store_n(&ngx_bloom_counters_writers[ngx_process_slot].what, 0,
                     __ATOMIC_RELEASE);
}


ngx_pid_t
ngx_bloom_writers_wait(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    const bloom_geometry_t *geometry)
{
    ngx_pid_t   pid;
    ngx_uint_t  i;

    if (geometry->layout != BLOOM_LAYOUT_FUSE
        || ngx_bloom_counters_writers == NULL)   /* "nginx -t" */
    {
        return 0;
    }

    __atomic_thread_fence(__ATOMIC_SEQ_CST);

    for (i = 0; /* void */ ; i++) {
        pid = ngx_bloom_writers_find(ngx_bloom_writers_what(zone, bank));

        if (pid == 0 || i == NGX_BLOOM_WRITERS_LOOKS) {
            return pid;
        }

        ngx_msleep(1);
    }
}


/* Returns a living process whose entry says this, or 0. */
static ngx_pid_t
ngx_bloom_writers_find(uint64_t what)
{
    ngx_pid_t            pid;
    ngx_uint_t           i;
    ngx_bloom_writer_t  *writer;

    for (i = 0; i < NGX_MAX_PROCESSES; i++) {
        writer = &ngx_bloom_counters_writers[i];

        if (__atomic_load_n(&writer->what, __ATOMIC_SEQ_CST) != what) {
            continue;
        }

        pid = (ngx_pid_t) __atomic_load_n(&writer->pid, __ATOMIC_RELAXED);

        /* the workers' user can write to this memory: 0 and less are no
         * process */

        if (pid > 0 && pid != ngx_pid
            && (kill(pid, 0) == 0 || ngx_errno != NGX_ESRCH))
        {
            return pid;
        }
    }

    return 0;
}
