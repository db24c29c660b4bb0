/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The keys are listed without a lock.  A key that is removed or added meanwhile
 * may be restored or not.
 */

#include "ngx_bloom_restore.h"
#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_journal.h"


/* Bytes of keys that one step restores.  Appending is locked meanwhile. */
#define NGX_BLOOM_RESTORE_STEP      (16 * 1024)

/* How long to wait for other processes in all, ms. */
#define NGX_BLOOM_RESTORE_PATIENCE  10000


static uint64_t ngx_bloom_restore_list(ngx_bloom_restore_t *restore,
    ngx_bloom_zone_bits_t *bits, bloom_record_maker_t *maker);
static ngx_int_t ngx_bloom_restore_append(ngx_bloom_restore_t *restore,
    ngx_bloom_zone_bits_t *bits, bloom_record_maker_t *maker);
static ngx_int_t ngx_bloom_restore_lift(ngx_bloom_restore_t *restore,
    ngx_bloom_zone_bits_t *bits, bloom_record_maker_t *maker,
    uint64_t position);
static ngx_int_t ngx_bloom_restore_wait(ngx_bloom_restore_t *restore);


void
ngx_bloom_restore_begin(ngx_bloom_restore_t *restore, ngx_bloom_zone_t *zone)
{
    ngx_memzero(restore, sizeof(ngx_bloom_restore_t));

    restore->zone = zone;
}


ngx_int_t
ngx_bloom_restore_step(ngx_bloom_restore_t *restore)
{
    uint64_t               cursor;
    ngx_int_t              rc;
    ngx_bloom_zone_t      *zone;
    ngx_bloom_zone_bits_t  bits;
    bloom_record_maker_t   maker;

    static u_char          buf[BLOOM_RECORD_MAX];

    zone = restore->zone;

    if (zone->sh->generation == 0) {
        restore->error = "the zone is not loaded; load an image";
        return NGX_ERROR;
    }

    /* keys that another instance has removed */

    if (zone->state != NULL && ngx_bloom_catch_up(zone) != NGX_OK) {
        return ngx_bloom_restore_wait(restore);
    }

    /* sh->helper is held, so the generation does not change */

    ngx_bloom_zone_bits(zone, zone->sh->generation & 1, &bits);

    bloom_record_begin(&maker, buf, sizeof(buf));
    maker.type = BLOOM_RECORD_RESTORE;

    cursor = ngx_bloom_restore_list(restore, &bits, &maker);

    if (maker.count == 0) {
        return NGX_OK;
    }

    rc = (zone->state != NULL)
         ? ngx_bloom_restore_append(restore, &bits, &maker)
         : ngx_bloom_restore_lift(restore, &bits, &maker, UINT64_MAX);

    if (rc == NGX_OK) {
        restore->cursor = cursor;
        restore->keys += maker.count;
        restore->waits = 0;
        return NGX_AGAIN;
    }

    return rc;
}


/* Puts the next removed keys into a record.  Returns the cursor after them. */
static uint64_t
ngx_bloom_restore_list(ngx_bloom_restore_t *restore,
    ngx_bloom_zone_bits_t *bits, bloom_record_maker_t *maker)
{
    uint64_t           cursor, next;
    bloom_exception_t  exception;

    static u_char      key[BLOOM_EXCEPTION_KEY_MAX];

    cursor = restore->cursor;
    next = cursor;

    while (maker->len < NGX_BLOOM_RESTORE_STEP
           && bloom_exceptions_next(&bits->exceptions, &next, &exception, key))
    {
        if ((exception.kinds & BLOOM_EXCEPTION_REMOVED) != 0
            && bloom_record_put(maker, &exception.key) != 0)
        {
            break;                               /* for the next record */
        }

        cursor = next;
    }

    return cursor;
}


/* Appends the record, and restores its keys.  Returns NGX_OK, NGX_AGAIN or
 * NGX_ERROR. */
static ngx_int_t
ngx_bloom_restore_append(ngx_bloom_restore_t *restore,
    ngx_bloom_zone_bits_t *bits, bloom_record_maker_t *maker)
{
    ngx_int_t             rc;
    ngx_bloom_end_t       end;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = restore->zone->state;
    control = state->control;

    if (ngx_bloom_lock(&control->append, 0) != NGX_OK) {
        return ngx_bloom_restore_wait(restore);
    }

    rc = ngx_bloom_journal_append(state, maker, &end);

    if (rc == NGX_OK) {
        rc = ngx_bloom_restore_lift(restore, bits, maker, end.tail);
    }

    if (rc == NGX_OK) {
        ngx_bloom_fault("restore");
        ngx_bloom_journal_publish(state, &end);
    }

    ngx_bloom_unlock(&control->append);

    if (rc == NGX_AGAIN && control->failed == 0) {
        return ngx_bloom_restore_wait(restore);
    }

    if (rc != NGX_OK) {
        restore->err = (ngx_err_t) control->err;
        restore->error = ngx_bloom_state_error(control->failed, restore->err);

        if (restore->error == NULL) {
            restore->error = "the journal could not be written; try again";
        }

        return NGX_ERROR;
    }

    return NGX_OK;
}


/* Drops the keys of a record at `position` from the exceptions.  Returns NGX_OK
 * or NGX_AGAIN. */
static ngx_int_t
ngx_bloom_restore_lift(ngx_bloom_restore_t *restore,
    ngx_bloom_zone_bits_t *bits, bloom_record_maker_t *maker,
    uint64_t position)
{
    bloom_record_t  record;

    ngx_memzero(&record, sizeof(bloom_record_t));

    record.keys = maker->buf + BLOOM_RECORD_HEADER;
    record.end = maker->buf + maker->len;

    return ngx_bloom_zone_lift_before(restore->zone, bits, &record,
                                      BLOOM_EXCEPTION_REMOVED, position)
           == NGX_OK ? NGX_OK : NGX_AGAIN;
}


/* Returns NGX_AGAIN, or NGX_ERROR if that took too long. */
static ngx_int_t
ngx_bloom_restore_wait(ngx_bloom_restore_t *restore)
{
    if (restore->waits == 0) {
        restore->waits = ngx_current_msec ? ngx_current_msec : 1;
    }

    if (ngx_current_msec - restore->waits < NGX_BLOOM_RESTORE_PATIENCE) {
        return NGX_AGAIN;
    }

    restore->error = "another process has used the journal for ten seconds; "
                     "check the processes that use bloom_state_path";

    return NGX_ERROR;
}
