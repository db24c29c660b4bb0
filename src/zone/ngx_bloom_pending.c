/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A key is pending from the moment at which pending->end moves behind it, even
 * if its process dies then.
 */

#include "ngx_bloom_pending.h"
#include "ngx_bloom_cleared.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_journal.h"
#include "ngx_bloom_layers.h"


static u_char *ngx_bloom_pending_keys(ngx_bloom_zone_t *zone, size_t *room);
static void ngx_bloom_pending_write(ngx_bloom_zone_t *zone, uint64_t pos,
    const void *data, size_t len);
static void ngx_bloom_pending_read(ngx_bloom_zone_t *zone, uint64_t pos,
    void *data, size_t len);
static void ngx_bloom_pending_next(ngx_bloom_zone_t *zone, uint64_t *pos,
    bloom_key_t *key);
static uint64_t ngx_bloom_pending_begin(ngx_bloom_zone_t *zone);
static void ngx_bloom_pending_set(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_bits_t *bits, uint64_t pos, uint64_t end);
static void ngx_bloom_pending_unlock(ngx_bloom_zone_t *zone);
static void ngx_bloom_pending_take(ngx_bloom_zone_t *zone);
static void ngx_bloom_pending_lose(ngx_bloom_zone_t *zone, ngx_uint_t locked);
static void ngx_bloom_pending_log_lost(ngx_bloom_zone_t *zone);
static void ngx_bloom_pending_sync_lost(ngx_bloom_zone_t *zone);


ngx_int_t
ngx_bloom_pending_put(ngx_bloom_zone_t *zone, const bloom_key_t *key)
{
    u_char                len[2];
    size_t                room;
    ngx_bloom_pending_t  *pending;

    pending = zone->pending;

    if (ngx_bloom_lock(&pending->mutex, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        ngx_bloom_pending_lose(zone, 0);
        ngx_bloom_pending_log_lost(zone);
        return NGX_ERROR;
    }

    (void) ngx_bloom_pending_keys(zone, &room);

    if (room - (pending->end - pending->begin) < sizeof(len) + key->len) {
        ngx_bloom_pending_lose(zone, 1);
        ngx_bloom_unlock(&pending->mutex);
        ngx_bloom_pending_log_lost(zone);
        return NGX_ERROR;
    }

    ngx_bloom_fault("pending");

    len[0] = (u_char) (key->len & 0xff);
    len[1] = (u_char) (key->len >> 8);

    ngx_bloom_pending_write(zone, pending->end, len, sizeof(len));
    ngx_bloom_pending_write(zone, pending->end + sizeof(len), key->data,
                            key->len);

    pending->count++;

    /* the key is pending from here on, even if this process dies; other
     * instances are told before it is acknowledged */

    __atomic_store_n(&pending->end, pending->end + sizeof(len) + key->len,
                     __ATOMIC_SEQ_CST);

    if (zone->state != NULL) {
        ngx_bloom_state_require(zone->state, NGX_BLOOM_PENDING);
    }

    ngx_bloom_unlock(&pending->mutex);

    return NGX_OK;
}


/*
 * Records that a key is, or will be at once, in the filter that serves and
 * nowhere else.  Without the lock (`locked` is 0) this cannot record that the
 * filter has the key, because another filter may be about to serve.
 *
 * Two losses at the same time could not be told apart: an instance that has one
 * of the keys would seem to have the other.  So the recorded time is later than
 * any earlier one.  The time of the last loss is used again only if this
 * instance recorded it, that is, if `complete` is right behind it or if there
 * is no other instance.
 */
static void
ngx_bloom_pending_lose(ngx_bloom_zone_t *zone, ngx_uint_t locked)
{
    uint64_t            now, time, lost, complete, others;
    ngx_uint_t          whole;
    ngx_bloom_state_t  *state;

    (void) __atomic_fetch_add(&zone->pending->lost_keys, 1, __ATOMIC_RELAXED);

    now = ngx_bloom_zone_time(zone);
    state = zone->state;
    others = 0;

    if (state != NULL) {
        others = __atomic_load_n(&state->control->instances, __ATOMIC_SEQ_CST)
                 & ~((uint64_t) 1 << state->instance);
    }

    lost = __atomic_load_n(&zone->pending->lost, __ATOMIC_SEQ_CST);

    do {
        complete = __atomic_load_n(&zone->sh->complete, __ATOMIC_SEQ_CST);
        whole = (lost < complete);

        if (!whole) {
            time = ngx_max(now, lost + (others != 0));

        } else if (locked && complete == lost + 1 && now <= lost) {
            return;

        } else {

            /* if the clock went back, `now` may be before what the image
             * covers */

            time = ngx_max(now, complete);
        }
    } while (!__atomic_compare_exchange_n(&zone->pending->lost, &lost, time, 0,
                                          __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));

    ngx_bloom_control_check_lost(zone->pending);

    ngx_bloom_fault("lost");

    if (whole && locked) {
        __atomic_store_n(&zone->sh->complete, time + 1, __ATOMIC_SEQ_CST);
    }
}


void
ngx_bloom_pending_have_lost(ngx_bloom_zone_t *zone)
{
    uint64_t              lost;
    ngx_bloom_shctx_t    *sh;
    ngx_bloom_state_t    *state;
    ngx_bloom_pending_t  *pending;

    sh = zone->sh;
    state = zone->state;
    pending = zone->pending;

    lost = state->lost_now;
    state->lost_now = 0;

    if (lost == 0
        || ngx_bloom_lock(&pending->mutex, NGX_BLOOM_TASK_WAIT) != NGX_OK)
    {
        return;
    }

    if (state->lost_before < sh->complete
        && __atomic_load_n(&pending->lost, __ATOMIC_SEQ_CST) == lost
        && __atomic_load_n(zone->required, __ATOMIC_SEQ_CST)
           <= __atomic_load_n(&sh->applied, __ATOMIC_SEQ_CST))
    {
        __atomic_store_n(&sh->complete, lost + 1, __ATOMIC_SEQ_CST);
    }

    ngx_bloom_unlock(&pending->mutex);
}


/* Logs that keys have no room, when their number reaches 1, 2, 4, 8 ... */
static void
ngx_bloom_pending_log_lost(ngx_bloom_zone_t *zone)
{
    uint64_t  n;

    n = __atomic_load_n(&zone->pending->lost_keys, __ATOMIC_RELAXED);

    if (n & (n - 1)) {
        return;
    }

    ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                  "bloom zone \"%V\" has no room left for keys that the "
                  "journal cannot take: %uL key%s only in the filter that "
                  "serves, so from the next load or start on the zone answers "
                  "\"unknown\" instead of \"absent\"; check the disk of "
                  "bloom_state_path", &zone->name, n, n == 1 ? " is" : "s are");
}


/* Returns the memory of the pending keys, and its size in *room. */
static u_char *
ngx_bloom_pending_keys(ngx_bloom_zone_t *zone, size_t *room)
{
    if (zone->state != NULL) {
        *room = NGX_BLOOM_PENDING_ROOM;
        return zone->state->control->keys;
    }

    *room = NGX_BLOOM_ZONE_PENDING;

    return zone->sh->keys;
}


/* Writes bytes at a position of the pending keys. */
static void
ngx_bloom_pending_write(ngx_bloom_zone_t *zone, uint64_t pos, const void *data,
    size_t len)
{
    size_t   room, at, first;
    u_char  *keys;

    keys = ngx_bloom_pending_keys(zone, &room);

    at = pos % room;
    first = ngx_min(len, room - at);

    ngx_memcpy(keys + at, data, first);
    ngx_memcpy(keys, (const u_char *) data + first, len - first);
}


/* Reads bytes at a position of the pending keys. */
static void
ngx_bloom_pending_read(ngx_bloom_zone_t *zone, uint64_t pos, void *data,
    size_t len)
{
    size_t   room, at, first;
    u_char  *keys;

    keys = ngx_bloom_pending_keys(zone, &room);

    at = pos % room;
    first = ngx_min(len, room - at);

    ngx_memcpy(data, keys + at, first);
    ngx_memcpy((u_char *) data + first, keys, len - first);
}


/*
 * Copies the pending key at *pos, and moves *pos behind it.  The next call
 * overwrites the copy.
 */
static void
ngx_bloom_pending_next(ngx_bloom_zone_t *zone, uint64_t *pos, bloom_key_t *key)
{
    u_char         len[2];
    uint64_t       rest;

    static u_char  buf[BLOOM_KEY_MAX];

    key->data = buf;
    key->len = 0;

    rest = zone->pending->end - *pos;

    /* after a power failure the file may contain anything */

    if (rest <= sizeof(len)) {
        *pos = zone->pending->end;
        return;
    }

    ngx_bloom_pending_read(zone, *pos, len, sizeof(len));

    key->len = len[0] + ((size_t) len[1] << 8);
    key->len = ngx_min(key->len, rest - sizeof(len));

    *pos += sizeof(len);
    ngx_bloom_pending_read(zone, *pos, buf, key->len);
    *pos += key->len;
}


/* Returns the position of the first pending key that no clear has dropped. */
static uint64_t
ngx_bloom_pending_begin(ngx_bloom_zone_t *zone)
{
    uint64_t  begin, dropped;

    begin = zone->pending->begin;
    dropped = (zone->state != NULL) ? ngx_bloom_cleared_pending(zone->state)
                                    : 0;

    return ngx_max(begin, ngx_min(dropped, zone->pending->end));
}


/* Sets the bits of the keys between two positions, remembers them as recent,
 * and drops their exceptions: they are going to be appended to the journal. */
static void
ngx_bloom_pending_set(ngx_bloom_zone_t *zone, ngx_bloom_zone_bits_t *bits,
    uint64_t pos, uint64_t end)
{
    u_char        changed;
    bloom_key_t   key;
    bloom_hash_t  hash;

    while (pos < end) {
        ngx_bloom_pending_next(zone, &pos, &key);

        if (ngx_bloom_zone_canonical(bits->form, &key) != NULL) {
            continue;
        }

        hash = bloom_hash(bits->hasher, key.data, key.len);

        ngx_bloom_layers_put(bits, &hash, 1, &changed);

        if (bits->recent != NULL) {
            ngx_bloom_recent_put(bits->recent, bits->hasher, &hash, 1);
        }

        /* a process that excepts the key now finds it in the memory of recent
         * additions, or has put it among the exceptions already */

        __atomic_thread_fence(__ATOMIC_SEQ_CST);

        (void) bloom_exceptions_drop(&bits->exceptions, key.data, key.len,
                                     BLOOM_EXCEPTION_KINDS, UINT64_MAX);
    }
}


ngx_int_t
ngx_bloom_pending_apply(ngx_bloom_zone_t *zone, ngx_bloom_zone_bits_t *bits)
{
    ngx_bloom_pending_t  *pending;

    pending = zone->pending;

    if (ngx_bloom_pending_empty(pending)) {
        return NGX_OK;
    }

    if (ngx_bloom_lock(&pending->mutex, 10 * NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_bloom_pending_set(zone, bits, ngx_bloom_pending_begin(zone),
                          pending->end);

    ngx_bloom_unlock(&pending->mutex);

    return NGX_OK;
}


ngx_int_t
ngx_bloom_pending_hold(ngx_bloom_zone_t *zone, ngx_bloom_zone_bits_t *bits)
{
    uint64_t              end;
    ngx_bloom_pending_t  *pending;

    pending = zone->pending;

    /*
     * Set the bits of the keys that are pending already before the lock is
     * taken, because workers wait for it.  Nobody removes keys meanwhile.
     */

    end = __atomic_load_n(&pending->end, __ATOMIC_SEQ_CST);

    if (bits != NULL) {
        ngx_bloom_pending_set(zone, bits, ngx_bloom_pending_begin(zone), end);
    }

    ngx_bloom_fault("switch");

    if (zone->state != NULL) {

        if (ngx_bloom_lock(&zone->sh->pending.mutex, 10 * NGX_BLOOM_TASK_WAIT)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        ngx_bloom_pending_take(zone);
    }

    if (ngx_bloom_lock(&pending->mutex, 10 * NGX_BLOOM_TASK_WAIT) != NGX_OK) {

        if (zone->state != NULL) {
            ngx_bloom_unlock(&zone->sh->pending.mutex);
        }

        return NGX_ERROR;
    }

    if (ngx_bloom_lock(&zone->sh->exceptions, 10 * NGX_BLOOM_TASK_WAIT)
        != NGX_OK)
    {
        ngx_bloom_pending_unlock(zone);
        return NGX_ERROR;
    }

    if (bits != NULL) {
        ngx_bloom_pending_set(zone, bits, end, pending->end);
    }

    return NGX_OK;
}


void
ngx_bloom_pending_release(ngx_bloom_zone_t *zone)
{
    ngx_bloom_unlock(&zone->sh->exceptions);
    ngx_bloom_pending_unlock(zone);
}


static void
ngx_bloom_pending_unlock(ngx_bloom_zone_t *zone)
{
    ngx_bloom_unlock(&zone->pending->mutex);

    if (zone->state != NULL) {
        ngx_bloom_unlock(&zone->sh->pending.mutex);
    }
}


/*
 * Takes over the keys that workers of a configuration without a journal have
 * put into the zone's shared memory.  Holds the lock of those keys meanwhile.
 */
static void
ngx_bloom_pending_take(ngx_bloom_zone_t *zone)
{
    uint64_t              pos;
    bloom_key_t           key;
    ngx_bloom_zone_t      memory;
    ngx_bloom_pending_t  *pending;

    memory = *zone;
    memory.state = NULL;
    memory.pending = &zone->sh->pending;

    pending = memory.pending;
    pos = pending->begin;

    while (pos < pending->end) {
        ngx_bloom_pending_next(&memory, &pos, &key);

        if (key.len != 0) {
            ngx_bloom_pending_put(zone, &key);
        }

        __atomic_store_n(&pending->begin, pos, __ATOMIC_SEQ_CST);
    }

    pending->count = 0;

    ngx_bloom_control_lose(zone->pending,
                           __atomic_load_n(&pending->lost, __ATOMIC_SEQ_CST));
}


ngx_int_t
ngx_bloom_pending_drain(ngx_bloom_zone_t *zone)
{
    u_char                 *buf;
    uint64_t                pos, next, last;
    ngx_int_t               rc;
    bloom_key_t             key;
    ngx_bloom_end_t         end;
    ngx_bloom_state_t      *state;
    ngx_bloom_pending_t    *pending;
    bloom_record_maker_t    maker;
    ngx_bloom_zone_bits_t   bits;

    pending = zone->pending;
    state = zone->state;

    if (state == NULL) {
        return NGX_OK;
    }

    if (!ngx_bloom_pending_empty(&zone->sh->pending)
        && ngx_bloom_lock(&zone->sh->pending.mutex, NGX_BLOOM_TASK_WAIT)
           == NGX_OK)
    {
        ngx_bloom_pending_take(zone);
        ngx_bloom_unlock(&zone->sh->pending.mutex);
    }

    ngx_bloom_pending_sync_lost(zone);

    if (ngx_bloom_pending_empty(pending)) {
        return NGX_OK;
    }

    if (ngx_bloom_cleared_unsettled(state)) {
        return NGX_AGAIN;                /* it may have dropped some of them */
    }

    buf = malloc(BLOOM_RECORD_MAX);
    if (buf == NULL) {
        return NGX_AGAIN;
    }

    rc = NGX_AGAIN;

    /* the lock lets only one process drain, and no key is overwritten */

    if (ngx_bloom_lock(&state->control->append, NGX_BLOOM_TASK_WAIT)
        != NGX_OK)
    {
        goto done;
    }

    bloom_record_begin(&maker, buf, BLOOM_RECORD_MAX);

    last = __atomic_load_n(&pending->end, __ATOMIC_SEQ_CST);

    for (pos = pending->begin; pos < last; pos = next) {
        next = pos;
        ngx_bloom_pending_next(zone, &next, &key);

        if (key.len != 0 && bloom_record_put(&maker, &key) != 0) {
            break;
        }
    }

    if (maker.count != 0) {

        if (ngx_bloom_journal_append(state, &maker, &end) != NGX_OK) {
            goto unlock;
        }

        /*
         * If another instance has added the keys, their bits are not in this
         * instance's filter yet.  The generation does not change meanwhile.
         */

        if (ngx_bloom_zone_serving(zone, &bits) != 0) {
            ngx_bloom_pending_set(zone, &bits, pending->begin, pos);
        }

        ngx_bloom_journal_publish(state, &end);
    }

    if (ngx_bloom_lock(&pending->mutex, 10 * NGX_BLOOM_TASK_WAIT) == NGX_OK) {

        pending->count -= ngx_min(pending->count, maker.count);
        __atomic_store_n(&pending->begin, pos, __ATOMIC_SEQ_CST);

        rc = NGX_AGAIN;

        if (ngx_bloom_pending_empty(pending)) {
            pending->count = 0;
            rc = NGX_OK;
        }

        ngx_bloom_unlock(&pending->mutex);
    }

unlock:

    ngx_bloom_unlock(&state->control->append);

done:

    free(buf);

    return rc;
}


/*
 * Writes to disk that keys were lost.  Workers record it only in the mapped
 * control page, which outlives them but not a power failure.
 */
static void
ngx_bloom_pending_sync_lost(ngx_bloom_zone_t *zone)
{
    uint64_t            lost;
    ngx_bloom_state_t  *state;

    state = zone->state;
    lost = __atomic_load_n(&zone->pending->lost, __ATOMIC_SEQ_CST);

    if (lost != state->lost && ngx_bloom_io_sync(state->fd) == NGX_OK) {
        state->lost = lost;
    }
}
