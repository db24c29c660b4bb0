/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file recognises control pages, and initialises and resets them.
 */

#include "ngx_bloom_control.h"
#include "ngx_bloom_io.h"


static ngx_int_t ngx_bloom_control_locks(ngx_bloom_control_t *control);


ngx_bloom_control_e
ngx_bloom_control_look(ngx_fd_t fd)
{
    ssize_t          n;
    uint64_t         head[3];            /* magic, version, size */
    ngx_file_info_t  fi;

    n = ngx_bloom_io_read(fd, head, sizeof(head), 0);

    if (n == NGX_ERROR || ngx_fd_info(fd, &fi) == NGX_FILE_ERROR) {
        return NGX_BLOOM_CONTROL_UNREADABLE;
    }

    if (n == 0) {
        return NGX_BLOOM_CONTROL_EMPTY;
    }

    if (n < (ssize_t) sizeof(head) || head[0] != NGX_BLOOM_CONTROL_MAGIC) {
        return NGX_BLOOM_CONTROL_BROKEN;
    }

    if (head[1] != NGX_BLOOM_CONTROL_VERSION) {
        return NGX_BLOOM_CONTROL_FOREIGN;
    }

    if (head[2] != sizeof(ngx_bloom_control_t)
        || ngx_file_size(&fi) < (off_t) sizeof(ngx_bloom_control_t))
    {
        return NGX_BLOOM_CONTROL_BROKEN;
    }

    return NGX_BLOOM_CONTROL_OK;
}


ngx_int_t
ngx_bloom_control_fill(ngx_bloom_control_t *control)
{
    control->version = NGX_BLOOM_CONTROL_VERSION;
    control->size = sizeof(ngx_bloom_control_t);
    control->synced_check = ~control->synced;
    control->loss.lost_check = ~control->loss.lost;
    ngx_bloom_clock_boot_id(control->boot);

    if (ngx_bloom_control_locks(control) != NGX_OK) {
        return NGX_ERROR;
    }

    control->magic = NGX_BLOOM_CONTROL_MAGIC;

    return NGX_OK;
}


ngx_int_t
ngx_bloom_control_renew(ngx_bloom_control_t *control)
{
    uint64_t           now, lost;
    ngx_bloom_loss_t  *loss;

    loss = &control->loss;

    /*
     * A process may have died between a fact and its check, and a bit of one of
     * them may have changed.  Of both values, the one that promises less
     * counts.
     */

    if (loss->lost_check != ~loss->lost) {
        now = ngx_bloom_time();
        lost = ngx_max(loss->lost, ~loss->lost_check);

        __atomic_store_n(&loss->lost,
                         lost > now + NGX_BLOOM_CLOCKS_DIFFER ? now : lost,
                         __ATOMIC_SEQ_CST);
        ngx_bloom_control_check_lost(loss);
    }

    if (ngx_bloom_control_owing(loss)) {
        ngx_bloom_control_lose(loss, ngx_bloom_time());
        loss->owing = 0;
    }

    ngx_memzero(loss->owes, sizeof(loss->owes));

    control->synced = ngx_min(control->synced, ~control->synced_check);
    control->synced_check = ~control->synced;

    ngx_bloom_clock_check(&control->clock);

    /* after a loss of power, nothing says what was in memory */

    if (!ngx_bloom_control_fresh(control)) {
        control->rewrite = 0;
        ngx_bloom_clock_boot_id(control->boot);
    }

    control->which = 0;
    ngx_memzero(control->end, sizeof(control->end));
    control->prepared = 0;
    control->durable = 0;
    control->wanted = 0;
    control->err = 0;
    control->failed = 0;
    control->instances = 0;
    control->clear.position = 0;
    control->waiting = 0;
    ngx_memzero(&control->source, sizeof(ngx_bloom_places_t));
    ngx_memzero(&control->part, sizeof(ngx_bloom_part_t));
    ngx_memzero(control->instance, sizeof(control->instance));

    return ngx_bloom_control_locks(control);
}


ngx_uint_t
ngx_bloom_control_fresh(const ngx_bloom_control_t *control)
{
    u_char  boot[NGX_BLOOM_BOOT_LEN];

    ngx_bloom_clock_boot_id(boot);

    return ngx_memcmp(control->boot, boot, NGX_BLOOM_BOOT_LEN) == 0;
}


static ngx_int_t
ngx_bloom_control_locks(ngx_bloom_control_t *control)
{
    ngx_uint_t  i;

    ngx_memzero(&control->append, sizeof(pthread_mutex_t));
    ngx_memzero(&control->keeper, sizeof(pthread_mutex_t));
    ngx_memzero(control->loss.ower, sizeof(control->loss.ower));

    for (i = 0; i < NGX_BLOOM_OWERS; i++) {

        if (ngx_bloom_lock_init(&control->loss.ower[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return (ngx_bloom_lock_init(&control->append) == NGX_OK
            && ngx_bloom_lock_init(&control->keeper) == NGX_OK)
           ? NGX_OK : NGX_ERROR;
}


void
ngx_bloom_control_check_lost(ngx_bloom_loss_t *loss)
{
    uint64_t  lost;

    /* another process may change it meanwhile */

    do {
        lost = __atomic_load_n(&loss->lost, __ATOMIC_SEQ_CST);
        __atomic_store_n(&loss->lost_check, ~lost, __ATOMIC_SEQ_CST);
    } while (__atomic_load_n(&loss->lost, __ATOMIC_SEQ_CST) != lost);
}


void
ngx_bloom_control_lose(ngx_bloom_loss_t *loss, uint64_t time)
{
    uint64_t  lost;

    lost = __atomic_load_n(&loss->lost, __ATOMIC_SEQ_CST);

    while (lost < time
           && !__atomic_compare_exchange_n(&loss->lost, &lost, time, 0,
                                           __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST))
    {
        /* void */
    }

    ngx_bloom_control_check_lost(loss);
}


void
ngx_bloom_control_lost_by(ngx_bloom_loss_t *loss, uint64_t time)
{
    loss->lost = ngx_min(loss->lost, time);
    ngx_bloom_control_check_lost(loss);
}
