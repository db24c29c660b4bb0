/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The room for a batch is checked before its record is written, so that what
 * the journal says also holds in memory.
 */

#include "ngx_bloom_remove.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_removals.h"


/* How many lines of the set, of 64 bytes, are searched for a key at a time. */
#define NGX_BLOOM_REMOVE_LINES  16384

/* How many keys that are exceptions of other kinds are passed over at a
 * time. */
#define NGX_BLOOM_REMOVE_OTHERS  64

static ngx_int_t ngx_bloom_remove_look(ngx_bloom_batch_t *batch,
    ngx_bloom_zone_bits_t *bits);
static void ngx_bloom_remove_apply(ngx_bloom_batch_t *batch,
    ngx_bloom_zone_bits_t *bits, uint64_t time, uint64_t position);
static bloom_record_t ngx_bloom_remove_record(ngx_bloom_batch_t *batch);
static void ngx_bloom_remove_log(ngx_bloom_zone_t *zone,
    ngx_bloom_batch_t *batch);


const ngx_bloom_change_kind_t  ngx_bloom_remove_kind = {
    .look = ngx_bloom_remove_look,
    .apply = ngx_bloom_remove_apply,
    .type = BLOOM_RECORD_REMOVE
};


ngx_int_t
ngx_bloom_remove(ngx_bloom_batch_t *batch)
{
    ngx_int_t             rc;
    bloom_record_maker_t  all;

    if (batch->maker.count == 0) {
        return NGX_OK;
    }

    all = batch->maker;

    rc = ngx_bloom_write(batch);

    if (rc != NGX_OK && rc != NGX_DONE) {

        /* another time others may fit */

        batch->maker = all;
        return rc;
    }

    /* NGX_DONE: none fits */

    if (rc == NGX_DONE || batch->maker.count < all.count) {
        batch->err = 0;
        batch->error = (batch->zone->removals == 0)
                       ? "the zone has no room for removed keys; raise "
                         "\"removals=0\" of bloom_zone"
                       : batch->zone->expire != 0
                       ? "the zone has no room for more removed keys until "
                         "older keys have expired; raise \"removals\" of "
                         "bloom_zone"
                       : "the zone has no room for more removed keys; load an "
                         "image without the removed keys, built with a later "
                         "--as-of, or raise \"removals\" of bloom_zone";
        rc = NGX_DONE;
    }

    batch->waits = 0;

    ngx_bloom_batch_record(batch, batch->buf);

    return rc;
}


/* Shortens the batch to the keys that there is room for.  Returns NGX_OK, or
 * NGX_DONE if no key is left. */
static ngx_int_t
ngx_bloom_remove_look(ngx_bloom_batch_t *batch, ngx_bloom_zone_bits_t *bits)
{
    const uint8_t   *end;
    bloom_record_t   record;

    record = ngx_bloom_remove_record(batch);

    batch->maker.count -= ngx_bloom_remove_excess(batch->zone, bits, &record,
                                                  &end);
    batch->maker.len = end - batch->buf;

    return batch->maker.count != 0 ? NGX_OK : NGX_DONE;
}


static void
ngx_bloom_remove_apply(ngx_bloom_batch_t *batch, ngx_bloom_zone_bits_t *bits,
    uint64_t time, uint64_t position)
{
    bloom_record_t  record;

    record = ngx_bloom_remove_record(batch);

    ngx_bloom_remove_except(batch, bits, &record, time, position);
}


/* Returns the keys of a batch as a record that can be read. */
static bloom_record_t
ngx_bloom_remove_record(ngx_bloom_batch_t *batch)
{
    bloom_record_t  record;

    ngx_memzero(&record, sizeof(bloom_record_t));

    record.type = BLOOM_RECORD_REMOVE;
    record.count = batch->maker.count;
    record.keys = batch->buf + BLOOM_RECORD_HEADER;
    record.end = batch->buf + batch->maker.len;

    return record;
}


uint32_t
ngx_bloom_remove_excess(ngx_bloom_zone_t *zone, ngx_bloom_zone_bits_t *bits,
    const bloom_record_t *removals, const uint8_t **last)
{
    uint32_t             fit;
    uint64_t             left, free, cells;
    bloom_key_t          key;
    const uint8_t       *end;
    bloom_record_t       record;
    bloom_exceptions_t  *set;

    record = *removals;
    set = &bits->exceptions;
    free = bloom_exceptions_free(set);

    left = ngx_bloom_removals_left(zone);

    /* usually there is room even if all keys are new */

    if (bits->form == BLOOM_FORM_RAW && record.count <= left
        && bloom_exceptions_cells_most(record.count, record.end - record.keys)
           <= free)
    {
        *last = record.end;
        return 0;
    }

    for (fit = 0, end = record.keys; bloom_record_key(&record, &key); fit++) {

        if (ngx_bloom_zone_canonical(bits->form, &key) == NULL
            && !bloom_exceptions_has(set, key.data, key.len))
        {
            cells = bloom_exceptions_cells(key.len);

            if (left == 0 || cells > free) {
                break;
            }

            left--;
            free -= cells;
        }

        end = record.keys;
    }

    *last = end;

    return record.count - fit;
}


void
ngx_bloom_remove_except(ngx_bloom_batch_t *batch,
    ngx_bloom_zone_bits_t *bits, const bloom_record_t *removals, uint64_t time,
    uint64_t position)
{
    ngx_int_t          rc;
    ngx_uint_t         i, n, in_bits;
    bloom_key_t        key[NGX_BLOOM_ZONE_GROUP];
    bloom_hash_t       hash[NGX_BLOOM_ZONE_GROUP];
    bloom_record_t     record;
    bloom_exception_t  exception;

    record = *removals;

    exception.kinds = BLOOM_EXCEPTION_REMOVED;
    exception.time = time;
    exception.position = position;

    do {
        n = ngx_bloom_zone_keys(&record, key, NGX_BLOOM_ZONE_GROUP);
        ngx_bloom_zone_prefetch(bits, key, n);

        for (i = 0; i < n; i++) {
            hash[i] = bloom_hash(bits->hasher, key[i].data, key[i].len);
        }

        for (i = 0; i < n; i++) {
            bloom_layout_prefetch(bits->geometry, bits->words, hash[i]);
        }

        for (i = 0; i < n; i++) {

            if (ngx_bloom_zone_canonical(bits->form, &key[i]) != NULL) {
                batch->invalid++;
                continue;
            }

            exception.key = key[i];

            in_bits = bloom_layout_test(bits->geometry, bits->words,
                                        bloom_hash(bits->hasher, key[i].data,
                                                   key[i].len));
            rc = bloom_exceptions_put(&bits->exceptions, &exception);

            /* an exception was absent, whatever its bits are */

            if (in_bits && rc != 0) {
                batch->removed++;
                ngx_bloom_count(batch->zone, NGX_BLOOM_COUNTER_REMOVED, 1);

            } else {
                batch->absent++;
                ngx_bloom_count(batch->zone, NGX_BLOOM_COUNTER_REMOVED_ABSENT,
                                1);
            }

            if (rc == -1) {

                /* a process has died while it put a key, and its room is
                 * lost */

                ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, 0,
                              "bloom zone \"%V\" has no room for a removed "
                              "key, which stays present until the next load; "
                              "load an image", &batch->zone->name);
            }

            ngx_bloom_fault("put");
        }
    } while (n == NGX_BLOOM_ZONE_GROUP);
}


ngx_int_t
ngx_bloom_remove_one(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_bloom_batch_t *batch)
{
    u_char     buf[NGX_BLOOM_BATCH_SIZE];
    ngx_int_t  rc;

    rc = ngx_bloom_batch_begin(batch, zone, &ngx_bloom_remove_kind, buf);

    if (rc == NGX_DECLINED) {
        return NGX_DECLINED;
    }

    if (rc == NGX_OK) {

        /* an empty batch has room for any key */

        if (ngx_bloom_batch_key(batch, key) != NGX_OK) {
            return NGX_ABORT;
        }

        batch->single = 1;
        batch->waits_for_lock = 1;
        rc = ngx_bloom_remove(batch);

        if (rc == NGX_AGAIN || rc == NGX_BUSY) {
            batch->err = 0;
            batch->error = "another process holds the lock of the zone, or "
                           "keys of bloom_add wait for it; remove the key "
                           "again later";
            rc = NGX_ERROR;
        }
    }

    if (rc != NGX_OK) {
        ngx_bloom_count(zone, NGX_BLOOM_COUNTER_NOT_REMOVED, 1);
    }

    return rc;
}


const char *
ngx_bloom_remove_key(ngx_bloom_zone_t *zone, ngx_str_t *key)
{
    ngx_bloom_batch_t  batch;

    if (key->len == 0) {
        return NULL;
    }

    switch (ngx_bloom_remove_one(zone, key, &batch)) {

    case NGX_ABORT:
        return batch.error;

    case NGX_DONE:
    case NGX_ERROR:
        ngx_bloom_remove_log(zone, &batch);
        return NULL;

    default: /* NGX_OK, NGX_DECLINED */
        return NULL;
    }
}


/* Logs, at most once a second, that bloom_remove could not remove a key. */
static void
ngx_bloom_remove_log(ngx_bloom_zone_t *zone, ngx_bloom_batch_t *batch)
{
    static time_t  logged;

    if (logged == ngx_time()) {
        return;
    }

    logged = ngx_time();

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, batch->err,
                  "bloom_remove could not remove a key from bloom zone "
                  "\"%V\", so the key stays as it was: %s", &zone->name,
                  batch->error != NULL ? batch->error : "the journal was busy");
}


ngx_int_t
ngx_bloom_removed_list(ngx_bloom_zone_t *zone, unsigned kind, uint64_t cursor,
    ngx_uint_t n, ngx_bloom_removed_t *removed, ngx_pool_t *pool)
{
    int                    rc;
    u_char                *p;
    ngx_uint_t             others;
    bloom_exception_t      exception, *key;
    ngx_bloom_zone_bits_t  bits;

    static u_char          buf[BLOOM_KEY_MAX];

    ngx_memzero(removed, sizeof(ngx_bloom_removed_t));

    if (ngx_array_init(&removed->keys, pool, 16, sizeof(bloom_exception_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    removed->generation = ngx_bloom_zone_serving(zone, &bits);

    if (removed->generation == 0) {
        return NGX_OK;
    }

    for (others = 0; others < NGX_BLOOM_REMOVE_OTHERS; ) {

        rc = bloom_exceptions_next_within(&bits.exceptions, &cursor,
                                          NGX_BLOOM_REMOVE_LINES, &exception,
                                          buf);

        if (rc != 1) {
            removed->cursor = (rc == 0) ? 0 : cursor;
            return NGX_OK;
        }

        if ((exception.kinds & kind) == 0) {
            others++;
            continue;
        }

        key = ngx_array_push(&removed->keys);
        p = ngx_pnalloc(pool, exception.key.len);

        if (key == NULL || p == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(p, exception.key.data, exception.key.len);

        *key = exception;
        key->key.data = p;

        if (removed->keys.nelts >= n) {
            break;
        }
    }

    removed->cursor = cursor;

    return NGX_OK;
}


uint64_t
ngx_bloom_removed_count(ngx_bloom_zone_t *zone, uint64_t *limit)
{
    uint64_t  removed;

    removed = ngx_bloom_removals_count(zone);

    if (limit != NULL) {
        *limit = removed + ngx_bloom_removals_left(zone);
    }

    return removed;
}
