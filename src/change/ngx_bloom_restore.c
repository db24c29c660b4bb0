/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * One record restores all keys that were removed before it, also those that are
 * no exceptions now because the image that serves covers their removal.  Then
 * this instance applies the record as all instances do: it drops the exceptions
 * from before the record piece by piece, and does not say "absent" until then.
 * So if this process dies after the record was published, the next helper
 * applies it.  An excepted key has no position in the journal: the record about
 * excepted keys concerns those of images that were saved earlier.
 */

#include "ngx_bloom_restore.h"
#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_cleared.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_write.h"


/* How long to wait for other processes in all, ms. */
#define NGX_BLOOM_RESTORE_PATIENCE  10000

/* The pause between attempts, ms. */
#define NGX_BLOOM_RESTORE_PAUSE     1


static ngx_int_t ngx_bloom_restore_step(ngx_bloom_restore_t *restore);
static ngx_int_t ngx_bloom_restore_in_memory(ngx_bloom_restore_t *restore);
static ngx_int_t ngx_bloom_restore_write(ngx_bloom_restore_t *restore);
static ngx_int_t ngx_bloom_restore_apply(ngx_bloom_restore_t *restore);
static ngx_int_t ngx_bloom_restore_wait(ngx_bloom_restore_t *restore);
static ngx_int_t ngx_bloom_restore_pause(void);


static const ngx_bloom_change_kind_t  ngx_bloom_restore_kind = {
    .type = BLOOM_RECORD_RESTORE,
    .reserve = 1
};


ngx_int_t
ngx_bloom_restore(ngx_bloom_restore_t *restore, ngx_bloom_zone_t *zone,
    unsigned kinds)
{
    ngx_int_t  rc;

    ngx_memzero(restore, sizeof(ngx_bloom_restore_t));

    restore->zone = zone;
    restore->kinds = kinds;

    if (zone->sh->generation == 0) {
        restore->error = "the zone is not loaded; load an image";
        return NGX_ERROR;
    }

    if (ngx_bloom_lock(&zone->sh->applying, NGX_BLOOM_APPLYING_WAIT)
        != NGX_OK)
    {
        restore->error = "another process applies the journal, which takes too "
                         "long; try again";
        return NGX_ERROR;
    }

    do {
        rc = ngx_bloom_restore_step(restore);
    } while (rc == NGX_AGAIN);

    ngx_bloom_unlock(&zone->sh->applying);

    return rc;
}


/* Writes the record, or drops some of the keys.  Returns NGX_OK; NGX_AGAIN if
 * there is more to do; or NGX_ERROR. */
static ngx_int_t
ngx_bloom_restore_step(ngx_bloom_restore_t *restore)
{
    if (restore->zone->state == NULL) {
        return ngx_bloom_restore_in_memory(restore);
    }

    return restore->position == 0 ? ngx_bloom_restore_write(restore)
                                  : ngx_bloom_restore_apply(restore);
}


/* Drops some of the keys of a zone without a journal.  Returns as
 * ngx_bloom_restore_step() does. */
static ngx_int_t
ngx_bloom_restore_in_memory(ngx_bloom_restore_t *restore)
{
    ngx_int_t              rc;
    ngx_bloom_zone_t      *zone;
    ngx_bloom_zone_bits_t  bits;

    zone = restore->zone;

    if (ngx_bloom_zone_lock_unowed(zone, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        return ngx_bloom_restore_wait(restore);
    }

    ngx_bloom_zone_bits(zone, zone->sh->generation & 1, &bits);

    rc = ngx_bloom_zone_restore(&bits, restore->kinds, 0, UINT64_MAX,
                                &restore->cursor, &restore->keys);

    ngx_bloom_zone_unlock(zone);

    restore->waits = 0;

    return rc;
}


/* Applies a piece of the record.  Returns as ngx_bloom_restore_step() does. */
static ngx_int_t
ngx_bloom_restore_apply(ngx_bloom_restore_t *restore)
{
    uint64_t            cursor, applied;
    ngx_int_t           rc;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_shctx_t  *sh;

    zone = restore->zone;
    sh = zone->sh;

    rc = NGX_OK;
    applied = sh->applied;
    cursor = zone->restoring.cursor;

    if (applied < restore->position) {
        rc = ngx_bloom_catch_up(zone);
    }

    if (zone->restoring.position == restore->position) {
        restore->keys = zone->restoring.keys;
    }

    if (sh->applied >= restore->position) {
        return NGX_OK;
    }

    /* another instance has cleared the zone, which ends all exceptions */

    if (ngx_bloom_cleared_since(zone->state, sh->applied)) {
        return NGX_OK;
    }

    if (rc == NGX_ERROR) {
        restore->error = "the journal cannot be read; see the error log";
        return NGX_ERROR;
    }

    if (sh->applied != applied || zone->restoring.cursor != cursor) {
        restore->waits = 0;
        return NGX_AGAIN;
    }

    return ngx_bloom_restore_wait(restore);
}


/* Writes the record.  Returns NGX_AGAIN or NGX_ERROR. */
static ngx_int_t
ngx_bloom_restore_write(ngx_bloom_restore_t *restore)
{
    u_char             buf[NGX_BLOOM_BATCH_SIZE];
    ngx_int_t          rc;
    ngx_bloom_batch_t  batch;

    /* keys that another instance has removed */

    if (ngx_bloom_catch_up(restore->zone) != NGX_OK) {
        return ngx_bloom_restore_wait(restore);
    }

    ngx_memzero(&batch, sizeof(ngx_bloom_batch_t));

    batch.zone = restore->zone;
    batch.kind = &ngx_bloom_restore_kind;
    batch.waits = restore->waits;

    ngx_bloom_batch_record(&batch, buf);
    batch.maker.kinds = restore->kinds;

    rc = ngx_bloom_write(&batch);

    restore->waits = batch.waits;
    restore->err = batch.err;
    restore->error = batch.error;

    if (rc == NGX_OK) {
        restore->position = batch.end;
        restore->zone->sh->restored = batch.end;

        ngx_bloom_fault("restoring");
        return NGX_AGAIN;
    }

    return rc == NGX_AGAIN ? ngx_bloom_restore_pause() : rc;
}


/* Waits for another process.  Returns NGX_AGAIN, or NGX_ERROR if that took too
 * long. */
static ngx_int_t
ngx_bloom_restore_wait(ngx_bloom_restore_t *restore)
{
    if (restore->waits == 0) {
        restore->waits = ngx_current_msec ? ngx_current_msec : 1;
    }

    if (ngx_current_msec - restore->waits < NGX_BLOOM_RESTORE_PATIENCE) {
        return ngx_bloom_restore_pause();
    }

    restore->error = "another process has used the journal for ten seconds; "
                     "check the processes that use bloom_state_path";

    return NGX_ERROR;
}


static ngx_int_t
ngx_bloom_restore_pause(void)
{
    ngx_msleep(NGX_BLOOM_RESTORE_PAUSE);
    ngx_time_update();

    return NGX_AGAIN;
}
