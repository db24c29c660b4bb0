/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_checkpoint.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_cleared.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_journal.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_lost.h"
#include "ngx_bloom_state_files.h"


/* How long to wait for another process's synchronisation, ms. */
#define NGX_BLOOM_CHECKPOINT_KEEPER  1000

/* How long after a checkpoint that failed or killed its process another one may
 * begin, ms. */
#define NGX_BLOOM_CHECKPOINT_RETRY   60000

/* A checkpoint is not due for fewer bytes of the journal than this.  Their
 * replay takes about a second. */
#define NGX_BLOOM_CHECKPOINT_MIN     (64 * 1024 * 1024)


static uint64_t ngx_bloom_checkpoint_min(void);
static ngx_int_t ngx_bloom_checkpoint_record(ngx_bloom_zone_t *zone,
    const bloom_point_t *point, uint32_t checksum, const u_char *tmp,
    u_char *name);
static void ngx_bloom_checkpoint_push(ngx_bloom_zone_t *zone,
    bloom_base_t *base, const bloom_point_t *point, uint32_t checksum);
static ngx_uint_t ngx_bloom_checkpoint_stands(ngx_bloom_zone_t *zone,
    const bloom_base_t *base);


ngx_uint_t
ngx_bloom_checkpoint_due(ngx_bloom_zone_t *zone)
{
    uint64_t            behind, limit;
    bloom_base_t        base;
    bloom_image_t       image;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (sh->generation == 0) {
        return 0;
    }

    ngx_bloom_layers_image(zone, sh->generation & 1, &image);

    ngx_bloom_base_file_get(zone->state, &base);

    behind = ngx_max(base.checkpoint[1].position, base.from.position);
    limit = ngx_max(ngx_bloom_checkpoint_min(),
                    bloom_image_payload_size(&image));

    return sh->applied > behind && sh->applied - behind > limit
           && (sh->checkpoint_tried == 0
               || ngx_current_msec - sh->checkpoint_tried
                  >= NGX_BLOOM_CHECKPOINT_RETRY);
}


static uint64_t
ngx_bloom_checkpoint_min(void)
{
#if (NGX_BLOOM_FAULTS)
    if (getenv("NGX_BLOOM_FAULT_CHECKPOINT") != NULL) {
        return strtoull(getenv("NGX_BLOOM_FAULT_CHECKPOINT"), NULL, 10);
    }
#endif

    return NGX_BLOOM_CHECKPOINT_MIN;
}


ngx_int_t
ngx_bloom_checkpoint_name(ngx_bloom_zone_t *zone, uint64_t position,
    u_char *name)
{
    bloom_base_t  base;

    ngx_bloom_base_file_get(zone->state, &base);

    if (!ngx_bloom_checkpoint_stands(zone, &base)) {
        return NGX_ERROR;
    }

    ngx_bloom_state_files_checkpoint(base.build_id, position, name);

    return NGX_OK;
}


/* Returns 1 if the zone stands on the image that serves. */
static ngx_uint_t
ngx_bloom_checkpoint_stands(ngx_bloom_zone_t *zone, const bloom_base_t *base)
{
    bloom_image_t      *image;
    ngx_bloom_shctx_t  *sh;

    static const u_char  none[BLOOM_IMAGE_BUILD_ID_LEN];

    sh = zone->sh;
    image = &sh->bank[sh->generation & 1].image;

    /* an image that another instance got is not in this one */

    if (!sh->file && !sh->uploaded) {
        return (base->kind == BLOOM_BASE_EMPTY
                || base->kind == BLOOM_BASE_CHECKPOINT)
               && ngx_memcmp(base->build_id, none, BLOOM_IMAGE_BUILD_ID_LEN)
                  == 0;
    }

    return base->kind != BLOOM_BASE_EMPTY
           && ngx_memcmp(base->build_id, image->build_id,
                         BLOOM_IMAGE_BUILD_ID_LEN)
              == 0;
}


ngx_int_t
ngx_bloom_checkpoint_place(ngx_bloom_zone_t *zone, const bloom_point_t *point,
    uint32_t checksum, const u_char *tmp, u_char *name)
{
    ngx_err_t             err;
    ngx_int_t             rc;
    ngx_bloom_control_t  *control;

    control = zone->state->control;

    if (ngx_bloom_lock(&control->keeper, NGX_BLOOM_CHECKPOINT_KEEPER)
        != NGX_OK)
    {
        ngx_set_errno(NGX_EBUSY);
        return NGX_ERROR;
    }

    rc = ngx_bloom_checkpoint_record(zone, point, checksum, tmp, name);
    err = ngx_errno;

    ngx_bloom_unlock(&control->keeper);
    ngx_set_errno(err);

    return rc;
}


/*
 * Makes the file the newer checkpoint of the zone (S5): the journal up to its
 * position is on disk first, then its name, then the entry.  Returns NGX_OK, or
 * NGX_ERROR with errno.
 */
static ngx_int_t
ngx_bloom_checkpoint_record(ngx_bloom_zone_t *zone, const bloom_point_t *point,
    uint32_t checksum, const u_char *tmp, u_char *name)
{
    ngx_err_t             err;
    ngx_int_t             rc;
    bloom_base_t          base;
    ngx_bloom_state_t    *state;
    const bloom_point_t  *last;

    state = zone->state;

    if (state->control->synced < point->position) {
        rc = ngx_bloom_journal_sync(state);
        err = ngx_errno;

        ngx_bloom_lost_by_disk(zone);

        if (rc != NGX_OK) {
            ngx_set_errno(err);
            return NGX_ERROR;
        }
    }

    ngx_bloom_base_file_get(state, &base);

    if (!ngx_bloom_checkpoint_stands(zone, &base)) {
        ngx_set_errno(ECANCELED);
        return NGX_ERROR;
    }

    last = &base.checkpoint[1];

    if (point->position < last->position
        || (point->position == last->position
            && zone->sh->checkpoint == last->position))
    {
        /* another instance has written a newer one meanwhile, or there has been
         * no change since that one */

        ngx_bloom_state_files_checkpoint(base.build_id, last->position,
                                         name);
        return ngx_bloom_io_remove(state->dir, tmp);
    }

    if (ngx_bloom_cleared_place(state, tmp, name, point->position)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (point->position == last->position) {

        /* that one was found damaged, and its file is replaced */

        base.checksum[1] = checksum;

    } else {
        ngx_bloom_checkpoint_push(zone, &base, point, checksum);
    }

    if (ngx_bloom_base_file_put(state, &base) != NGX_OK) {
        return NGX_ERROR;
    }

    zone->sh->checkpoint = point->position;

    ngx_bloom_state_files_sweep(state, &base);

    return NGX_OK;
}


/*
 * Makes the checkpoint the newer one of an entry.  The older one is the last
 * that this zone has loaded or written.  Later ones were found damaged, were
 * left out because of their size, or are those of another instance, whose size
 * may differ.
 */
static void
ngx_bloom_checkpoint_push(ngx_bloom_zone_t *zone, bloom_base_t *base,
    const bloom_point_t *point, uint32_t checksum)
{
    uint64_t        last;
    bloom_point_t  *checkpoint;

    last = zone->sh->checkpoint;
    checkpoint = base->checkpoint;

    if (checkpoint[1].position <= last
        || (checkpoint[0].position > last
            && base->kind == BLOOM_BASE_CHECKPOINT))
    {
        checkpoint[0] = checkpoint[1];
        base->checksum[0] = base->checksum[1];

    } else if (checkpoint[0].position > last) {
        bloom_base_forget(base, 0);
    }

    checkpoint[1] = *point;
    base->checksum[1] = checksum;
}
