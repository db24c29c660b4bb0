
#include "ngx_bloom_add.h"
#include "ngx_bloom_helper.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_journal.h"
#include "ngx_bloom_shutdown.h"


/* How long a lock is tried for without giving the worker back, in rounds of
 * about 100 ns: an append takes a few microseconds. */
#define NGX_BLOOM_SPINS   500

/* The same for a key that cannot be added later, ms. */
#define NGX_BLOOM_ONCE    5

/* If the helper has not made a segment by then, it does not come, ms. */
#define NGX_BLOOM_PATIENCE  10000


static ngx_int_t ngx_bloom_append_lock(ngx_bloom_batch_t *batch);
static uint64_t ngx_bloom_add_bits(ngx_bloom_zone_t *zone,
    const uint8_t *keys, const uint8_t *end, uint64_t *count,
    uint64_t *added);
static ngx_int_t ngx_bloom_batch_wait(ngx_bloom_batch_t *batch,
    const char *error);
static ngx_int_t ngx_bloom_batch_refuse(ngx_bloom_batch_t *batch);
static const char *ngx_bloom_add_canonical(ngx_bloom_zone_t *zone,
    bloom_key_t *key);
static void ngx_bloom_kept_put(ngx_bloom_zone_t *zone,
    const bloom_key_t *key);
static void ngx_bloom_kept_note_lost(ngx_bloom_zone_t *zone);
static uint64_t ngx_bloom_kept_set(ngx_bloom_kept_t *kept,
    ngx_bloom_bits_t *bits, uint64_t from);
static ngx_int_t ngx_bloom_kept_apply_serving(ngx_bloom_zone_t *zone);
static void ngx_bloom_kept_move(ngx_bloom_zone_t *zone);


static ngx_int_t
ngx_bloom_append_lock(ngx_bloom_batch_t *batch)
{
    ngx_uint_t        i, j;
    pthread_mutex_t  *mutex;

    mutex = &batch->zone->state->control->append;

    if (batch->once) {

        /* it will not come again: the holder, if it was preempted, runs */

        return ngx_bloom_lock(mutex, NGX_BLOOM_ONCE);
    }

    for (i = 0; i < NGX_BLOOM_SPINS; i++) {

        if (ngx_bloom_lock(mutex, 0) == NGX_OK) {
            return NGX_OK;
        }

        for (j = 0; j < 8; j++) {
            ngx_cpu_pause();
        }
    }

    return NGX_BUSY;
}


/*
 * Sets the bits of keys as records hold them in whichever generation serves
 * when it returns, which it returns.
 */
static uint64_t
ngx_bloom_add_bits(ngx_bloom_zone_t *zone, const uint8_t *keys,
    const uint8_t *end, uint64_t *count, uint64_t *added)
{
    uint64_t          generation;
    ngx_bloom_bits_t  bits;

    *count = 0;
    *added = 0;

    do {
        generation = ngx_bloom_zone_serving(zone, &bits);

        if (generation == 0) {
            break;                               /* nothing serves yet */
        }

        *count = ngx_bloom_zone_set(&bits, keys, end, added);

        ngx_bloom_fault("set");

        /* the bits first, then the question who serves */

        __atomic_thread_fence(__ATOMIC_SEQ_CST);

    } while (__atomic_load_n(&zone->sh->generation, __ATOMIC_SEQ_CST)
             != generation);

    return generation;
}


ngx_int_t
ngx_bloom_batch_init(ngx_bloom_batch_t *batch, ngx_bloom_zone_t *zone,
    u_char *buf)
{
    ngx_memzero(batch, sizeof(ngx_bloom_batch_t));

    batch->zone = zone;
    batch->buf = buf;

    if (zone->state == NULL) {

        if (zone->state_error != NULL) {
            batch->err = zone->state_err;
            batch->error = zone->state_error;
            return NGX_ERROR;
        }

        if (!ngx_bloom_zone_takes(zone)) {
            batch->error = "the zone has an image file and no journal, so an "
                           "added key would be lost with the next load; take "
                           "\"journal=off\" or \"bloom_state_path off\" away";
            return NGX_DECLINED;
        }
    }

    if (zone->sh->generation == 0) {
        batch->error = "the zone is not loaded";
        return NGX_ERROR;
    }

    batch->durable = (zone->state != NULL);

    bloom_record_begin(&batch->maker, buf, NGX_BLOOM_BATCH_SIZE);

    return NGX_OK;
}


/*
 * Brings a key into the form of what serves.  Should that change meanwhile, its
 * bits are set in the form of what follows.
 */
static const char *
ngx_bloom_add_canonical(ngx_bloom_zone_t *zone, bloom_key_t *key)
{
    uint64_t  generation;

    generation = __atomic_load_n(&zone->sh->generation, __ATOMIC_ACQUIRE);

    if (generation == 0) {
        return NULL;
    }

    if (generation != zone->generation) {
        (void) ngx_bloom_zone_attend(zone, generation);
    }

    return ngx_bloom_zone_canonical(zone->form, key);
}


ngx_int_t
ngx_bloom_batch_put(ngx_bloom_batch_t *batch, ngx_str_t *key)
{
    const char   *why;
    bloom_key_t   k;

    k.data = key->data;
    k.len = key->len;

    why = ngx_bloom_add_canonical(batch->zone, &k);

    if (why != NULL) {
        batch->err = 0;
        batch->error = why;
        return NGX_DECLINED;
    }

    return bloom_record_put(&batch->maker, &k) == 0 ? NGX_OK : NGX_AGAIN;
}


ngx_int_t
ngx_bloom_batch_add(ngx_bloom_batch_t *batch)
{
    uint8_t              *keys, *keys_end;
    uint64_t              count, added;
    ngx_int_t             rc;
    ngx_bloom_end_t       end;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    if (batch->maker.count == 0) {
        return NGX_OK;
    }

    zone = batch->zone;
    state = zone->state;

    keys = batch->buf + BLOOM_RECORD_HEADER;
    keys_end = batch->buf + batch->maker.len;

    if (state == NULL) {
        (void) ngx_bloom_add_bits(zone, keys, keys_end, &batch->keys,
                                  &batch->fresh);
        goto done;
    }

    control = state->control;

    if (batch->generation == 0) {

        /*
         * The bits are set before the record is written: so the lock is held
         * for the write alone.  But only when it is likely to succeed: what is
         * refused is not to be in the filter.
         */

        if (__atomic_load_n(&control->failed, __ATOMIC_ACQUIRE)
            == NGX_BLOOM_CANNOT_WRITE)
        {
            goto append;
        }

        end = ngx_bloom_state_end(state);

        if (end.tail + batch->maker.len + 8 > end.limit
            && __atomic_load_n(&control->prepared, __ATOMIC_ACQUIRE)
               <= end.limit)
        {
            ngx_bloom_helper_wake();

            if (control->failed != 0) {
                return ngx_bloom_batch_refuse(batch);
            }

            return ngx_bloom_batch_wait(batch, "the helper process has made "
                                        "no room in the journal for ten "
                                        "seconds; look whether \"nginx: cache "
                                        "manager process\" runs");
        }

        batch->generation = ngx_bloom_add_bits(zone, keys, keys_end,
                                               &batch->keys, &batch->fresh);

        ngx_bloom_fault("append");
    }

append:

    if (ngx_bloom_append_lock(batch) != NGX_OK) {
        return ngx_bloom_batch_wait(batch, "the journal has been locked for "
                                    "ten seconds; look at the processes that "
                                    "use bloom_state_path");
    }

    rc = ngx_bloom_journal_append(state, &batch->maker, &end);

    if (rc == NGX_OK) {

        if (batch->generation == 0
            || batch->generation != zone->sh->generation)
        {
            (void) ngx_bloom_add_bits(zone, keys, keys_end, &count, &added);

            if (batch->generation == 0) {
                batch->keys = count;
                batch->fresh = added;
            }
        }

        ngx_bloom_journal_publish(state, &end);

        batch->position = 0;
    }

    ngx_bloom_unlock(&state->control->append);

    if (rc == NGX_AGAIN) {
        ngx_bloom_helper_wake();
        return ngx_bloom_batch_wait(batch, "the journal has no room, and the "
                                    "helper process has made none for ten "
                                    "seconds; look at the error log");
    }

    if (rc == NGX_ERROR) {
        return ngx_bloom_batch_refuse(batch);
    }

    ngx_bloom_leave_appended(zone, end.tail);

    if (end.tail - end.base > (end.limit - end.base) / 4
        && control->prepared <= end.limit)
    {
        ngx_bloom_helper_wake();
    }

done:

    batch->added += batch->fresh;
    batch->known += batch->keys - batch->fresh;
    batch->generation = 0;
    batch->waits = 0;

    bloom_record_begin(&batch->maker, batch->buf, NGX_BLOOM_BATCH_SIZE);

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_batch_wait(ngx_bloom_batch_t *batch, const char *error)
{
    if (batch->waits == 0) {
        batch->waits = ngx_current_msec ? ngx_current_msec : 1;
    }

    if ((ngx_msec_int_t) (ngx_current_msec - batch->waits)
        < NGX_BLOOM_PATIENCE)
    {
        ngx_bloom_leave_waits(batch->zone, batch->waits);
        return NGX_AGAIN;
    }

    batch->err = 0;
    batch->error = error;

    return NGX_ERROR;
}


static ngx_int_t
ngx_bloom_batch_refuse(ngx_bloom_batch_t *batch)
{
    ngx_bloom_control_t  *control;

    control = batch->zone->state->control;

    batch->err = (ngx_err_t) control->err;
    batch->error = ngx_bloom_state_error(control->failed, batch->err);

    if (batch->error == NULL) {
        batch->error = "the journal could not be written; try again";
    }

    return NGX_ERROR;
}


ngx_int_t
ngx_bloom_batch_synced(ngx_bloom_batch_t *batch)
{
    uint64_t              wanted;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = batch->zone->state;

    if (state == NULL) {
        batch->error = "the zone is in memory only";
        return NGX_ERROR;
    }

    control = state->control;

    if (batch->position == 0) {

        /* keys that wait in memory are acknowledged, and in no record yet */

        if (!ngx_bloom_kept_empty(batch->zone->kept)) {

            if (__atomic_load_n(&control->failed, __ATOMIC_ACQUIRE) != 0) {
                return ngx_bloom_batch_refuse(batch);
            }

            ngx_bloom_helper_wake();

            return ngx_bloom_batch_wait(batch, "keys of bloom_add have waited "
                                        "for the journal for ten seconds; "
                                        "look whether \"nginx: cache manager "
                                        "process\" runs");
        }

        batch->position = ngx_bloom_state_tail(state);
    }

    if (__atomic_load_n(&control->synced, __ATOMIC_ACQUIRE)
        >= batch->position)
    {
        batch->waits = 0;
        return NGX_OK;
    }

    if (__atomic_load_n(&control->failed, __ATOMIC_ACQUIRE)
        == NGX_BLOOM_CANNOT_SYNC)
    {
        return ngx_bloom_batch_refuse(batch);
    }

    wanted = __atomic_load_n(&control->wanted, __ATOMIC_RELAXED);

    while (wanted < batch->position
           && !__atomic_compare_exchange_n(&control->wanted, &wanted,
                                           batch->position, 0,
                                           __ATOMIC_SEQ_CST,
                                           __ATOMIC_RELAXED))
    {
        /* void */
    }

    ngx_bloom_helper_wake();

    return ngx_bloom_batch_wait(batch, "the helper process has not "
                                "synchronised the journal for ten seconds; "
                                "look at the disk of bloom_state_path");
}


ngx_uint_t
ngx_bloom_zone_takes(ngx_bloom_zone_t *zone)
{
    return zone->state != NULL || zone->state_error != NULL
           || zone->file.name.len == 0;
}


const char *
ngx_bloom_zone_add(ngx_bloom_zone_t *zone, ngx_str_t *key)
{
    u_char             buf[BLOOM_RECORD_HEADER + BLOOM_RECORD_KEY_MAX + 1 + 8];
    uint64_t           count, added;
    ngx_int_t          rc;
    const char        *why;
    bloom_key_t        canonical;
    ngx_bloom_batch_t  batch;

    if (key->len == 0) {
        return NULL;
    }

    rc = ngx_bloom_batch_init(&batch, zone, buf);

    if (rc == NGX_DECLINED) {
        return NULL;
    }

    canonical.data = key->data;
    canonical.len = key->len;

    why = ngx_bloom_add_canonical(zone, &canonical);

    if (why == NULL && canonical.len > BLOOM_RECORD_KEY_MAX) {
        why = "is longer than 65535 bytes";
    }

    if (why != NULL) {
        ngx_bloom_count(zone, NGX_BLOOM_COUNT_UNPARSABLE, 1);
        return why;
    }

    bloom_record_begin(&batch.maker, buf, sizeof(buf));

    (void) bloom_record_put(&batch.maker, &canonical);

    /* where it stays: what sets bits uses the other memory again */

    canonical.data = buf + batch.maker.len - canonical.len;

    if (rc == NGX_OK) {
        batch.once = 1;
        rc = ngx_bloom_batch_add(&batch);
    }

    if (rc != NGX_OK) {

        /* kept first, so that a load cannot miss it */

        ngx_bloom_kept_put(zone, &canonical);

        (void) ngx_bloom_add_bits(zone, buf + BLOOM_RECORD_HEADER,
                                  buf + batch.maker.len, &count, &added);

        batch.added = batch.generation ? batch.fresh : added;
        batch.known = 1 - batch.added;

        ngx_bloom_helper_wake();
    }

    ngx_bloom_count(zone, NGX_BLOOM_COUNT_ADDED, batch.added);
    ngx_bloom_count(zone, NGX_BLOOM_COUNT_KNOWN, batch.known);

    return NULL;
}


static void
ngx_bloom_kept_put(ngx_bloom_zone_t *zone, const bloom_key_t *key)
{
    u_char             *p;
    uint64_t            now;
    ngx_bloom_kept_t   *kept;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    kept = zone->kept;

    if (ngx_bloom_lock(&kept->mutex, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        (void) __atomic_fetch_add(&kept->lost, 1, __ATOMIC_RELAXED);

        /* a switch either sees that, or is seen to be under way, or is over
         * when it is asked for the last time who serves */

        now = ngx_bloom_time();

        __atomic_store_n(&sh->lost, now, __ATOMIC_SEQ_CST);

        if (__atomic_load_n(&sh->switches, __ATOMIC_SEQ_CST)) {
            __atomic_store_n(&sh->doubt, now, __ATOMIC_SEQ_CST);
        }

        goto lost;
    }

    if (kept->begin == kept->end) {
        kept->begin = 0;
        kept->end = 0;
        kept->count = 0;
    }

    if (NGX_BLOOM_KEPT_SIZE - kept->end < key->len + 2) {
        kept->lost++;
        __atomic_store_n(&sh->lost, ngx_bloom_time(), __ATOMIC_SEQ_CST);

        ngx_bloom_unlock(&kept->mutex);
        goto lost;
    }

    ngx_bloom_fault("keep");

    p = kept->data + kept->end;

    *p++ = (u_char) (key->len & 0xff);
    *p++ = (u_char) (key->len >> 8);
    ngx_memcpy(p, key->data, key->len);

    kept->count++;

    /* it counts from here on, if this process dies as well; others are told
     * before it is acknowledged */

    __atomic_store_n(&kept->end, kept->end + key->len + 2, __ATOMIC_SEQ_CST);

    if (zone->state != NULL) {
        ngx_bloom_state_keep(zone->state);
    }

    ngx_bloom_unlock(&kept->mutex);

    return;

lost:

    if (kept->lost & (kept->lost - 1)) {
        return;                                  /* said at 1, 2, 4, 8 ... */
    }

    ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                  "bloom zone \"%V\" has no room left for keys that the "
                  "journal cannot take: %uL are in the filter that serves and "
                  "nowhere else, and from the next load on it answers "
                  "\"cannot tell\" instead of \"absent\"; look at the disk of "
                  "bloom_state_path", &zone->name, kept->lost);
}


/* The kept key at *pos, which moves behind it. */
static void
ngx_bloom_kept_next(ngx_bloom_kept_t *kept, uint64_t *pos, bloom_key_t *key)
{
    size_t  rest;

    /* after a power failure the file may have anything in it */

    rest = (*pos + 2 < kept->end) ? kept->end - *pos - 2 : 0;

    key->len = kept->data[*pos] + ((size_t) kept->data[*pos + 1] << 8);
    key->len = ngx_min(key->len, rest);
    key->data = kept->data + *pos + 2;

    *pos = (rest == 0) ? kept->end : *pos + 2 + key->len;
}


/* Sets the bits of those from a position on; how far they go. */
static uint64_t
ngx_bloom_kept_set(ngx_bloom_kept_t *kept, ngx_bloom_bits_t *bits,
    uint64_t from)
{
    int          changed;
    uint64_t     pos;
    bloom_key_t  key;

    for (pos = from; pos < kept->end; /* void */) {
        ngx_bloom_kept_next(kept, &pos, &key);

        if (ngx_bloom_zone_canonical(bits->form, &key) != NULL) {
            continue;
        }

        changed = bloom_layout_add_atomic(bits->geometry, bits->words,
                                          bloom_hash(bits->hasher, key.data,
                                                     key.len));

        (void) __atomic_fetch_add(bits->ones, changed, __ATOMIC_RELAXED);
    }

    return pos;
}


ngx_int_t
ngx_bloom_kept_apply(ngx_bloom_zone_t *zone, ngx_bloom_bits_t *bits)
{
    ngx_bloom_kept_t  *kept;

    kept = zone->kept;

    if (ngx_bloom_kept_empty(kept)) {
        return NGX_OK;
    }

    if (ngx_bloom_lock(&kept->mutex, 10 * NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        return NGX_ERROR;
    }

    (void) ngx_bloom_kept_set(kept, bits, kept->begin);

    ngx_bloom_unlock(&kept->mutex);

    return NGX_OK;
}


ngx_int_t
ngx_bloom_kept_hold(ngx_bloom_zone_t *zone, ngx_bloom_bits_t *bits)
{
    uint64_t           done[2];
    ngx_uint_t         i, n, round;
    ngx_bloom_kept_t  *kept[2];

    /* in this order, as keys are moved: from memory to the state */

    n = 0;
    kept[n++] = &zone->sh->kept;

    if (zone->kept != &zone->sh->kept) {
        kept[n++] = zone->kept;
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

            if (ngx_bloom_lock(&kept[i]->mutex, 10 * NGX_BLOOM_TASK_WAIT)
                != NGX_OK)
            {
                while (round == 1 && i-- != 0) {
                    ngx_bloom_unlock(&kept[i]->mutex);
                }

                return NGX_ERROR;
            }

            if (ngx_bloom_kept_empty(kept[i])) {
                done[i] = 0;             /* the next is put at the beginning */

            } else {
                done[i] = ngx_bloom_kept_set(kept[i], bits,
                                             ngx_max(kept[i]->begin, done[i]));
            }

            if (round == 0) {
                ngx_bloom_unlock(&kept[i]->mutex);
            }
        }

        if (round == 0) {
            ngx_bloom_fault("switch");
        }
    }

    return NGX_OK;
}


void
ngx_bloom_kept_release(ngx_bloom_zone_t *zone)
{
    if (zone->kept != &zone->sh->kept) {
        ngx_bloom_unlock(&zone->kept->mutex);
    }

    ngx_bloom_unlock(&zone->sh->kept.mutex);
}


ngx_int_t
ngx_bloom_kept_drain(ngx_bloom_zone_t *zone)
{
    u_char                *buf;
    uint64_t               pos, next;
    ngx_int_t              rc;
    bloom_key_t            key;
    ngx_bloom_end_t        end;
    ngx_bloom_kept_t      *kept;
    ngx_bloom_state_t     *state;
    bloom_record_maker_t   maker;

    kept = zone->kept;
    state = zone->state;

    if (state == NULL) {
        return NGX_OK;
    }

    ngx_bloom_kept_move(zone);
    ngx_bloom_kept_note_lost(zone);

    if (ngx_bloom_kept_empty(kept)) {
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

    if (ngx_bloom_lock(&kept->mutex, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        goto unlock;
    }

    for (pos = kept->begin; pos < kept->end; pos = next) {
        next = pos;
        ngx_bloom_kept_next(kept, &next, &key);

        if (key.len != 0 && bloom_record_put(&maker, &key) != 0) {
            break;
        }
    }

    /* workers wait for this lock, and so it is not held over the disk */

    ngx_bloom_unlock(&kept->mutex);

    if (maker.count != 0) {

        if (ngx_bloom_journal_append(state, &maker, &end) != NGX_OK) {
            goto unlock;
        }

        /*
         * Another instance may have kept them, and then their bits are not in
         * this one's filter: all of them follow.
         */

        if (ngx_bloom_kept_apply_serving(zone) != NGX_OK) {
            goto unlock;
        }

        ngx_bloom_journal_publish(state, &end);
    }

    if (ngx_bloom_lock(&kept->mutex, 10 * NGX_BLOOM_TASK_WAIT) == NGX_OK) {

        kept->count -= ngx_min(kept->count, maker.count);
        __atomic_store_n(&kept->begin, pos, __ATOMIC_SEQ_CST);

        rc = ngx_bloom_kept_empty(kept) ? NGX_OK : NGX_AGAIN;

        ngx_bloom_unlock(&kept->mutex);
    }

unlock:

    ngx_bloom_unlock(&state->control->append);

done:

    free(buf);

    return rc;
}


/* The lock control->append is held: no other generation comes to serve. */
static ngx_int_t
ngx_bloom_kept_apply_serving(ngx_bloom_zone_t *zone)
{
    ngx_bloom_bits_t  bits;

    if (ngx_bloom_zone_serving(zone, &bits) == 0) {
        return NGX_OK;
    }

    return ngx_bloom_kept_apply(zone, &bits);
}


/*
 * Those of memory without a state, when the zone has come to have one: workers
 * that do not know of it yet go on to keep them there.
 */
static void
ngx_bloom_kept_move(ngx_bloom_zone_t *zone)
{
    uint64_t           pos;
    bloom_key_t        key;
    ngx_bloom_kept_t  *from;

    from = &zone->sh->kept;

    if (ngx_bloom_kept_empty(from)
        || ngx_bloom_lock(&from->mutex, NGX_BLOOM_TASK_WAIT) != NGX_OK)
    {
        return;
    }

    for (pos = from->begin; pos < from->end; /* void */) {
        ngx_bloom_kept_next(from, &pos, &key);
        ngx_bloom_kept_put(zone, &key);
    }

    from->begin = 0;
    from->end = 0;
    from->count = 0;

    ngx_bloom_unlock(&from->mutex);
}


/* A start is to know as well that keys were lost, and when. */
static void
ngx_bloom_kept_note_lost(ngx_bloom_zone_t *zone)
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
