
/*
 * A pending key counts from the moment at which the end of the pending keys has
 * moved behind it, even if its process dies then.
 */

#include "ngx_bloom_pending.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_journal.h"


static uint64_t ngx_bloom_pending_set(ngx_bloom_pending_t *pending,
    ngx_bloom_zone_bits_t *bits, uint64_t from);
static ngx_int_t ngx_bloom_pending_apply_serving(ngx_bloom_zone_t *zone);
static void ngx_bloom_pending_move(ngx_bloom_zone_t *zone);
static void ngx_bloom_pending_note_lost(ngx_bloom_zone_t *zone);


void
ngx_bloom_pending_put(ngx_bloom_zone_t *zone, const bloom_key_t *key)
{
    u_char               *p;
    uint64_t              now;
    ngx_bloom_shctx_t    *sh;
    ngx_bloom_pending_t  *pending;

    sh = zone->sh;
    pending = zone->pending;

    if (ngx_bloom_lock(&pending->mutex, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        (void) __atomic_fetch_add(&pending->lost, 1, __ATOMIC_RELAXED);

        /* a switch either sees that, or is seen to be running, or is over
         * when it is asked for the last time who serves */

        now = ngx_bloom_time();

        __atomic_store_n(&sh->lost, now, __ATOMIC_SEQ_CST);

        if (__atomic_load_n(&sh->switches, __ATOMIC_SEQ_CST)) {
            __atomic_store_n(&sh->damaged, now, __ATOMIC_SEQ_CST);
        }

        goto lost;
    }

    if (pending->begin == pending->end) {
        pending->begin = 0;
        pending->end = 0;
        pending->count = 0;
    }

    if (NGX_BLOOM_PENDING_SIZE - pending->end < key->len + 2) {
        pending->lost++;
        __atomic_store_n(&sh->lost, ngx_bloom_time(), __ATOMIC_SEQ_CST);

        ngx_bloom_unlock(&pending->mutex);
        goto lost;
    }

    ngx_bloom_fault("pending");

    p = pending->data + pending->end;

    *p++ = (u_char) (key->len & 0xff);
    *p++ = (u_char) (key->len >> 8);
    ngx_memcpy(p, key->data, key->len);

    pending->count++;

    /* it counts from here on, if this process dies as well; others are told
     * before it is acknowledged */

    __atomic_store_n(&pending->end, pending->end + key->len + 2,
                     __ATOMIC_SEQ_CST);

    if (zone->state != NULL) {
        ngx_bloom_state_require(zone->state, NGX_BLOOM_PENDING);
    }

    ngx_bloom_unlock(&pending->mutex);

    return;

lost:

    if (pending->lost & (pending->lost - 1)) {
        return;                                  /* said at 1, 2, 4, 8 ... */
    }

    ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                  "bloom zone \"%V\" has no room left for keys that the "
                  "journal cannot take: %uL are in the filter that serves and "
                  "nowhere else, and from the next load on it answers "
                  "\"unknown\" instead of \"absent\"; look at the disk of "
                  "bloom_state_path", &zone->name, pending->lost);
}


/* Gives the pending key at *pos, and moves *pos behind it. */
static void
ngx_bloom_pending_next(ngx_bloom_pending_t *pending, uint64_t *pos,
    bloom_key_t *key)
{
    size_t  rest;

    /* after a power failure the file may have anything in it */

    rest = (*pos + 2 < pending->end) ? pending->end - *pos - 2 : 0;

    key->len = pending->data[*pos] + ((size_t) pending->data[*pos + 1] << 8);
    key->len = ngx_min(key->len, rest);
    key->data = pending->data + *pos + 2;

    *pos = (rest == 0) ? pending->end : *pos + 2 + key->len;
}


/* Sets the bits of the keys from a position on.  Returns where they end. */
static uint64_t
ngx_bloom_pending_set(ngx_bloom_pending_t *pending, ngx_bloom_zone_bits_t *bits,
    uint64_t from)
{
    int          changed;
    uint64_t     pos;
    bloom_key_t  key;

    for (pos = from; pos < pending->end; /* void */) {
        ngx_bloom_pending_next(pending, &pos, &key);

        if (ngx_bloom_zone_canonical(bits->form, &key) != NULL) {
            continue;
        }

        changed = bloom_layout_add_atomic(bits->geometry, bits->words,
                                          bloom_hash(bits->hasher, key.data,
                                                     key.len));

        (void) __atomic_fetch_add(bits->bits_set, changed, __ATOMIC_RELAXED);
    }

    return pos;
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

    (void) ngx_bloom_pending_set(pending, bits, pending->begin);

    ngx_bloom_unlock(&pending->mutex);

    return NGX_OK;
}


ngx_int_t
ngx_bloom_pending_hold(ngx_bloom_zone_t *zone, ngx_bloom_zone_bits_t *bits)
{
    uint64_t              done[2];
    ngx_uint_t            i, n, round;
    ngx_bloom_pending_t  *pending[2];

    /* in this order, as keys are moved: from memory to the state */

    n = 0;
    pending[n++] = &zone->sh->pending;

    if (zone->pending != &zone->sh->pending) {
        pending[n++] = zone->pending;
    }

    done[0] = 0;
    done[1] = 0;

    /*
     * Workers wait for these locks: most is set before they are held for the
     * switch, and what has come meanwhile then.  Keys are taken out under the
     * lock `append` or sh->helper alone, so what was set stays where it is.
     */

    for (round = 0; round < 2; round++) {

        for (i = 0; i < n; i++) {

            if (ngx_bloom_lock(&pending[i]->mutex, 10 * NGX_BLOOM_TASK_WAIT)
                != NGX_OK)
            {
                while (round == 1 && i-- != 0) {
                    ngx_bloom_unlock(&pending[i]->mutex);
                }

                return NGX_ERROR;
            }

            if (ngx_bloom_pending_empty(pending[i])) {
                done[i] = 0;             /* the next is put at the beginning */

            } else {
                done[i] = ngx_bloom_pending_set(pending[i], bits,
                                                ngx_max(pending[i]->begin,
                                                        done[i]));
            }

            if (round == 0) {
                ngx_bloom_unlock(&pending[i]->mutex);
            }
        }

        if (round == 0) {
            ngx_bloom_fault("switch");
        }
    }

    return NGX_OK;
}


void
ngx_bloom_pending_release(ngx_bloom_zone_t *zone)
{
    if (zone->pending != &zone->sh->pending) {
        ngx_bloom_unlock(&zone->pending->mutex);
    }

    ngx_bloom_unlock(&zone->sh->pending.mutex);
}


ngx_int_t
ngx_bloom_pending_drain(ngx_bloom_zone_t *zone)
{
    u_char                *buf;
    uint64_t               pos, next;
    ngx_int_t              rc;
    bloom_key_t            key;
    ngx_bloom_end_t        end;
    ngx_bloom_state_t     *state;
    ngx_bloom_pending_t   *pending;
    bloom_record_maker_t   maker;

    pending = zone->pending;
    state = zone->state;

    if (state == NULL) {
        return NGX_OK;
    }

    ngx_bloom_pending_move(zone);
    ngx_bloom_pending_note_lost(zone);

    if (ngx_bloom_pending_empty(pending)) {
        return NGX_OK;
    }

    buf = malloc(BLOOM_RECORD_MAX);
    if (buf == NULL) {
        return NGX_AGAIN;
    }

    rc = NGX_AGAIN;

    /* under this lock only one drains */

    if (ngx_bloom_lock(&state->control->append, NGX_BLOOM_TASK_WAIT)
        != NGX_OK)
    {
        goto done;
    }

    bloom_record_begin(&maker, buf, BLOOM_RECORD_MAX);

    if (ngx_bloom_lock(&pending->mutex, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        goto unlock;
    }

    for (pos = pending->begin; pos < pending->end; pos = next) {
        next = pos;
        ngx_bloom_pending_next(pending, &next, &key);

        if (key.len != 0 && bloom_record_put(&maker, &key) != 0) {
            break;
        }
    }

    /* workers wait for this lock, and so it is not held over the disk */

    ngx_bloom_unlock(&pending->mutex);

    if (maker.count != 0) {

        if (ngx_bloom_journal_append(state, &maker, &end) != NGX_OK) {
            goto unlock;
        }

        /*
         * Another instance may have added them, and then their bits are not
         * in this one's filter: all of them are set.
         */

        if (ngx_bloom_pending_apply_serving(zone) != NGX_OK) {
            goto unlock;
        }

        ngx_bloom_journal_publish(state, &end);
    }

    if (ngx_bloom_lock(&pending->mutex, 10 * NGX_BLOOM_TASK_WAIT) == NGX_OK) {

        pending->count -= ngx_min(pending->count, maker.count);
        __atomic_store_n(&pending->begin, pos, __ATOMIC_SEQ_CST);

        rc = ngx_bloom_pending_empty(pending) ? NGX_OK : NGX_AGAIN;

        ngx_bloom_unlock(&pending->mutex);
    }

unlock:

    ngx_bloom_unlock(&state->control->append);

done:

    free(buf);

    return rc;
}


/*
 * Sets the bits of all pending keys in the filter that serves.  The lock
 * control->append is held, so no other generation comes to serve meanwhile.
 */
static ngx_int_t
ngx_bloom_pending_apply_serving(ngx_bloom_zone_t *zone)
{
    ngx_bloom_zone_bits_t  bits;

    if (ngx_bloom_zone_serving(zone, &bits) == 0) {
        return NGX_OK;
    }

    return ngx_bloom_pending_apply(zone, &bits);
}


/*
 * Moves keys from the zone's memory to its state, when the zone has come to
 * have one.  Workers that do not know the state yet still put keys there.
 */
static void
ngx_bloom_pending_move(ngx_bloom_zone_t *zone)
{
    uint64_t              pos;
    bloom_key_t           key;
    ngx_bloom_pending_t  *from;

    from = &zone->sh->pending;

    if (ngx_bloom_pending_empty(from)
        || ngx_bloom_lock(&from->mutex, NGX_BLOOM_TASK_WAIT) != NGX_OK)
    {
        return;
    }

    for (pos = from->begin; pos < from->end; /* void */) {
        ngx_bloom_pending_next(from, &pos, &key);
        ngx_bloom_pending_put(zone, &key);
    }

    from->begin = 0;
    from->end = 0;
    from->count = 0;

    ngx_bloom_unlock(&from->mutex);
}


/* Notes on disk that keys were lost, and when: the next start has to know. */
static void
ngx_bloom_pending_note_lost(ngx_bloom_zone_t *zone)
{
    uint64_t            lost, before, position;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    lost = __atomic_load_n(&sh->lost, __ATOMIC_SEQ_CST);

    if (lost == sh->lost_noted) {
        return;
    }

    if (ngx_bloom_state_read_mark(zone->state, "lost", &before, &position)
        != NGX_OK)
    {
        return;                                  /* every load says so */
    }

    if (before == 0) {
        position = NGX_BLOOM_NO_DAMAGE;
    }

    if (lost <= before
        || ngx_bloom_state_write_mark(zone->state, "lost", lost, position)
           == NGX_OK)
    {
        sh->lost_noted = lost;
    }
}
