/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Whoever owes keys holds the lock loss.ower[i], and then sets bit i of
 * loss.owes, and makes loss.owing odd, which is what lookups read.  The lock
 * says whether the process is alive.  It does so in every control page that it
 * has: in the one of the state directory, for other instances, and in the one
 * in shared memory, for workers of a configuration without a journal, which
 * have the same memory after a reload.
 */

#include "ngx_bloom_owed.h"
#include "ngx_bloom_add.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_lost.h"
#include "ngx_bloom_wake.h"

#include <ngx_event.h>


/* Bytes of keys that a process can owe, each with 2 bytes for its length. */
#define NGX_BLOOM_OWED_ROOM   (256 * 1024)

/* How long to wait between two attempts, ms, which is less than the time for
 * which batches leave the lock to them; and how many a process makes when it
 * exits. */
#define NGX_BLOOM_OWED_RETRY  1
#define NGX_BLOOM_OWED_LAST   1000


struct ngx_bloom_owed_s {
    ngx_event_t            event;        /* must be the first member */
    ngx_connection_t       c;            /* for nginx's debug log */
    ngx_bloom_zone_t      *zone;
    ngx_uint_t             number;       /* in loss.ower */
    size_t                 len;          /* 0: nothing is owed */
    u_char                 keys[NGX_BLOOM_OWED_ROOM];
};

typedef struct ngx_bloom_owed_s  ngx_bloom_owed_t;


static ngx_bloom_owed_t *ngx_bloom_owed_get(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_owed_enlist(ngx_bloom_owed_t *owed);
static void ngx_bloom_owed_event(ngx_event_t *ev);
static ngx_int_t ngx_bloom_owed_pay(ngx_bloom_owed_t *owed);
static void ngx_bloom_owed_leave(ngx_bloom_owed_t *owed);
static void ngx_bloom_owed_end_zone(ngx_bloom_zone_t *zone);
static ngx_uint_t ngx_bloom_owed_is(ngx_bloom_zone_t *zone, ngx_uint_t number);
static ngx_int_t ngx_bloom_owed_lock(ngx_bloom_zone_t *zone,
    ngx_uint_t number);
static void ngx_bloom_owed_unlock(ngx_bloom_zone_t *zone, ngx_uint_t number);
static void ngx_bloom_owed_mark(ngx_bloom_loss_t *loss, ngx_uint_t number);
static void ngx_bloom_owed_unmark(ngx_bloom_loss_t *loss, ngx_uint_t number);
static void ngx_bloom_owed_even(ngx_bloom_loss_t *loss);
static void ngx_bloom_owed_clean(void *data);


ngx_uint_t
ngx_bloom_owed(ngx_bloom_zone_t *zone)
{
    return zone->owed != NULL && zone->owed->len != 0;
}


ngx_int_t
ngx_bloom_owed_put(ngx_bloom_zone_t *zone, const bloom_key_t *key)
{
    u_char            *p;
    ngx_bloom_owed_t  *owed;

    owed = ngx_bloom_owed_get(zone);

    if (owed == NULL
        || (owed->len == 0 && ngx_bloom_owed_enlist(owed) != NGX_OK)
        || NGX_BLOOM_OWED_ROOM - owed->len < 2 + key->len)
    {
        ngx_bloom_lost_owed(zone);
        return NGX_ERROR;
    }

    p = owed->keys + owed->len;

    p[0] = (u_char) (key->len & 0xff);
    p[1] = (u_char) (key->len >> 8);
    ngx_memcpy(p + 2, key->data, key->len);

    owed->len += 2 + key->len;

    ngx_bloom_fault("owed");

    if (!owed->event.timer_set) {
        ngx_add_timer(&owed->event, NGX_BLOOM_OWED_RETRY);
    }

    return NGX_OK;
}


/* Returns what this process owes the zone, which may be nothing; or NULL if
 * memory is short. */
static ngx_bloom_owed_t *
ngx_bloom_owed_get(ngx_bloom_zone_t *zone)
{
    ngx_bloom_owed_t    *owed;
    ngx_pool_cleanup_t  *cln;

    if (zone->owed != NULL) {
        return zone->owed;
    }

    cln = ngx_pool_cleanup_add(zone->pool, 0);
    owed = ngx_pcalloc(zone->pool, sizeof(ngx_bloom_owed_t));

    if (cln == NULL || owed == NULL) {
        return NULL;
    }

    /* with "master_process off", the cycle may end before the process */

    cln->handler = ngx_bloom_owed_clean;
    cln->data = zone;

    owed->zone = zone;
    owed->c.fd = (ngx_socket_t) -1;
    owed->event.handler = ngx_bloom_owed_event;
    owed->event.data = &owed->c;
    owed->event.log = ngx_cycle->log;

    zone->owed = owed;

    return owed;
}


/* Takes a number.  Returns NGX_OK, or NGX_ERROR if all are taken. */
static ngx_int_t
ngx_bloom_owed_enlist(ngx_bloom_owed_t *owed)
{
    ngx_uint_t         i;
    ngx_bloom_zone_t  *zone;

    zone = owed->zone;

    for (i = 0; i < NGX_BLOOM_OWERS; i++) {

        if (ngx_bloom_owed_lock(zone, i) != NGX_OK) {
            continue;
        }

        /* a process has died with this number, and its loss is settled first */

        if (ngx_bloom_owed_is(zone, i)) {
            ngx_bloom_owed_unlock(zone, i);
            continue;
        }

        owed->number = i;
        ngx_bloom_owed_mark(&zone->control->loss, i);
        ngx_bloom_owed_mark(&zone->sh->control.loss, i);

        ngx_bloom_fault("owing");

        return NGX_OK;
    }

    return NGX_ERROR;
}


static void
ngx_bloom_owed_event(ngx_event_t *ev)
{
    ngx_bloom_owed_t *owed = (ngx_bloom_owed_t *) ev;

    if (ngx_bloom_owed_pay(owed) == NGX_BUSY) {
        ngx_add_timer(ev, NGX_BLOOM_OWED_RETRY);
    }
}


/* Adds the owed keys.  Returns NGX_OK, or NGX_BUSY if some are left. */
static ngx_int_t
ngx_bloom_owed_pay(ngx_bloom_owed_t *owed)
{
    u_char             *p, *last, buf[NGX_BLOOM_BATCH_SIZE];
    bloom_key_t         key;
    ngx_bloom_batch_t   batch;

    while (owed->len != 0) {

        last = owed->keys + owed->len;

        (void) ngx_bloom_batch_begin(&batch, owed->zone, &ngx_bloom_add_kind,
                                     buf);
        batch.single = 1;

        for (p = owed->keys; p < last; p += 2 + key.len) {
            key.data = p + 2;
            key.len = p[0] + ((size_t) p[1] << 8);

            if (ngx_bloom_batch_put(&batch, &key) != NGX_OK) {
                break;
            }
        }

        if (ngx_bloom_add_anyway(&batch) == NGX_BUSY) {
            return NGX_BUSY;
        }

        ngx_memmove(owed->keys, p, last - p);
        owed->len = last - p;
    }

    ngx_bloom_owed_leave(owed);
    ngx_bloom_wake(owed->zone);

    return NGX_OK;
}


/* Owes nothing any more. */
static void
ngx_bloom_owed_leave(ngx_bloom_owed_t *owed)
{
    ngx_bloom_zone_t  *zone;

    zone = owed->zone;

    ngx_bloom_owed_unmark(&zone->control->loss, owed->number);
    ngx_bloom_owed_unmark(&zone->sh->control.loss, owed->number);
    ngx_bloom_owed_unlock(zone, owed->number);
}


void
ngx_bloom_owed_end(ngx_array_t *zones)
{
    ngx_uint_t          i;
    ngx_bloom_zone_t  **zone;

    zone = zones->elts;

    for (i = 0; i < zones->nelts; i++) {

        if (zone[i]->owed != NULL) {
            ngx_bloom_owed_end_zone(zone[i]);
        }
    }
}


static void
ngx_bloom_owed_end_zone(ngx_bloom_zone_t *zone)
{
    ngx_uint_t         i;
    ngx_bloom_owed_t  *owed;

    owed = zone->owed;

    if (owed->len == 0) {
        return;
    }

    for (i = 0; i < NGX_BLOOM_OWED_LAST; i++) {

        if (ngx_bloom_owed_pay(owed) == NGX_OK) {
            return;
        }

        ngx_msleep(1);
    }

    ngx_bloom_lost_owed(zone);
    owed->len = 0;

    /* on disk before nothing else tells of it (S3); otherwise the bit stays,
     * and the helper records the loss once more */

    if (zone->state == NULL || ngx_bloom_io_sync(zone->state->fd) == NGX_OK) {
        ngx_bloom_owed_leave(owed);

    } else {
        ngx_bloom_owed_unlock(zone, owed->number);
    }
}


static void
ngx_bloom_owed_clean(void *data)
{
    ngx_bloom_zone_t *zone = data;

    ngx_bloom_owed_end_zone(zone);

    if (zone->owed->event.timer_set) {
        ngx_del_timer(&zone->owed->event);
    }
}


void
ngx_bloom_owed_settle(ngx_bloom_zone_t *zone)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_BLOOM_OWERS; i++) {

        if (!ngx_bloom_owed_is(zone, i)) {
            zone->settled[i] = 0;
            continue;
        }

        if (ngx_bloom_owed_lock(zone, i) != NGX_OK) {
            continue;
        }

        if (ngx_bloom_owed_is(zone, i)) {

            /* once, even if the disk refuses for long */

            if (!zone->settled[i]) {
                ngx_bloom_lost_owed(zone);
                zone->settled[i] = 1;
            }

            /* on disk before nothing else tells of it (S3) */

            if (zone->state == NULL
                || ngx_bloom_io_sync(zone->state->fd) == NGX_OK)
            {
                ngx_bloom_owed_unmark(&zone->control->loss, i);
                ngx_bloom_owed_unmark(&zone->sh->control.loss, i);
            }
        }

        ngx_bloom_owed_unlock(zone, i);
    }

    /* a process may have died before it did so */

    ngx_bloom_owed_even(&zone->control->loss);
    ngx_bloom_owed_even(&zone->sh->control.loss);
}


/* Returns 1 if a process with this number owes keys, or did when it died. */
static ngx_uint_t
ngx_bloom_owed_is(ngx_bloom_zone_t *zone, ngx_uint_t number)
{
    uint64_t  owes;

    owes = __atomic_load_n(&zone->control->loss.owes[number / 64],
                           __ATOMIC_SEQ_CST)
           | __atomic_load_n(&zone->sh->control.loss.owes[number / 64],
                             __ATOMIC_SEQ_CST);

    return owes >> number % 64 & 1;
}


/* Takes the locks of a number.  Returns NGX_OK or NGX_BUSY. */
static ngx_int_t
ngx_bloom_owed_lock(ngx_bloom_zone_t *zone, ngx_uint_t number)
{
    ngx_bloom_loss_t  *memory;

    memory = &zone->sh->control.loss;

    if (ngx_bloom_lock(&memory->ower[number], 0) != NGX_OK) {
        return NGX_BUSY;
    }

    if (zone->control != &zone->sh->control
        && ngx_bloom_lock(&zone->control->loss.ower[number], 0) != NGX_OK)
    {
        ngx_bloom_unlock(&memory->ower[number]);
        return NGX_BUSY;
    }

    return NGX_OK;
}


static void
ngx_bloom_owed_unlock(ngx_bloom_zone_t *zone, ngx_uint_t number)
{
    if (zone->control != &zone->sh->control) {
        ngx_bloom_unlock(&zone->control->loss.ower[number]);
    }

    ngx_bloom_unlock(&zone->sh->control.loss.ower[number]);
}


/* Sets the bit of a number whose lock this process holds. */
static void
ngx_bloom_owed_mark(ngx_bloom_loss_t *loss, ngx_uint_t number)
{
    uint64_t  owing;

    __atomic_fetch_or(&loss->owes[number / 64], (uint64_t) 1 << number % 64,
                      __ATOMIC_SEQ_CST);

    owing = __atomic_load_n(&loss->owing, __ATOMIC_SEQ_CST);

    while (!__atomic_compare_exchange_n(&loss->owing, &owing, (owing + 2) | 1,
                                        0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    {
        /* void */
    }
}


/* Clears it. */
static void
ngx_bloom_owed_unmark(ngx_bloom_loss_t *loss, ngx_uint_t number)
{
    __atomic_fetch_and(&loss->owes[number / 64],
                       ~((uint64_t) 1 << number % 64), __ATOMIC_SEQ_CST);

    ngx_bloom_fault("even");

    ngx_bloom_owed_even(loss);
}


/* Makes `owing` even if no process owes keys.  If one sets its bit meanwhile,
 * `owing` has changed when it has. */
static void
ngx_bloom_owed_even(ngx_bloom_loss_t *loss)
{
    uint64_t    owing;
    ngx_uint_t  i;

    owing = __atomic_load_n(&loss->owing, __ATOMIC_SEQ_CST);

    while (owing & 1) {

        for (i = 0; i < NGX_BLOOM_OWERS / 64; i++) {

            if (__atomic_load_n(&loss->owes[i], __ATOMIC_SEQ_CST) != 0) {
                return;
            }
        }

        if (__atomic_compare_exchange_n(&loss->owing, &owing, owing + 1, 0,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        {
            return;
        }
    }
}
