/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_stand.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_state_files.h"


/* How long to wait for the lock `keeper`, ms. */
#define NGX_BLOOM_STAND_WAIT   1000

/* How long to wait before another attempt, ms. */
#define NGX_BLOOM_STAND_RETRY  10000


static ngx_int_t ngx_bloom_stand_on_file(ngx_bloom_zone_t *zone,
    ngx_bloom_image_file_t *file);
static ngx_int_t ngx_bloom_stand_store(ngx_bloom_zone_t *zone);
static void ngx_bloom_stand_log(ngx_bloom_zone_t *zone, ngx_err_t err,
    const char *error);


ngx_uint_t
ngx_bloom_stand_due(ngx_bloom_zone_t *zone)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    return zone->state != NULL && sh->generation != 0
           && sh->based != sh->generation && sh->standin != sh->generation
           && !sh->uploaded
           && (sh->stand_tried == 0
               || ngx_current_msec - sh->stand_tried >= NGX_BLOOM_STAND_RETRY);
}


ngx_int_t
ngx_bloom_stand(ngx_bloom_zone_t *zone)
{
    ngx_int_t                rc;
    ngx_bloom_shctx_t       *sh;
    ngx_bloom_image_file_t   file;

    sh = zone->sh;

    if (sh->based == sh->generation || sh->standin == sh->generation
        || sh->uploaded)
    {
        return NGX_OK;
    }

    ngx_time_update();
    sh->stand_tried = ngx_current_msec ? ngx_current_msec : 1;

    if (!sh->file) {
        return ngx_bloom_stand_store(zone);
    }

    ngx_memzero(&file, sizeof(ngx_bloom_image_file_t));

    file.name.data = sh->file_name;
    file.name.len = ngx_strlen(sh->file_name);

    if (ngx_bloom_image_file_open(&file) != NGX_OK) {
        ngx_bloom_stand_log(zone, file.err, file.error);
        return NGX_ERROR;
    }

    rc = ngx_bloom_stand_on_file(zone, &file);

    ngx_bloom_image_file_close(&file);

    return rc;
}


static ngx_int_t
ngx_bloom_stand_on_file(ngx_bloom_zone_t *zone, ngx_bloom_image_file_t *file)
{
    /* a newer file is loaded first */

    if (ngx_memcmp(file->reader.image.build_id, zone->sh->file_build,
                   BLOOM_IMAGE_BUILD_ID_LEN)
        != 0)
    {
        return NGX_ERROR;
    }

    ngx_bloom_fault("stand");

    if (ngx_bloom_io_sync_foreign(file->fd) != NGX_OK) {
        ngx_bloom_stand_log(zone, ngx_errno, "cannot be synchronised");
        return NGX_ERROR;
    }

    if (ngx_bloom_stand_store(zone) != NGX_OK) {
        ngx_bloom_stand_log(zone, ngx_errno,
                            "cannot be recorded in the file \"base\"");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* Stores that the zone stands on the image of file= that serves or, without
 * file=, on an empty filter and its checkpoints.  Returns NGX_OK, or NGX_ERROR
 * with errno. */
static ngx_int_t
ngx_bloom_stand_store(ngx_bloom_zone_t *zone)
{
    ngx_int_t           rc;
    ngx_err_t           err;
    const u_char       *build;
    bloom_base_e        kind;
    bloom_base_t        base;
    ngx_bloom_shctx_t  *sh;
    ngx_bloom_state_t  *state;

    static const u_char  none[BLOOM_IMAGE_BUILD_ID_LEN];

    sh = zone->sh;
    state = zone->state;
    kind = sh->file ? BLOOM_BASE_FILE : BLOOM_BASE_EMPTY;
    build = sh->file ? sh->file_build : none;

    if (ngx_bloom_lock(&state->control->keeper, NGX_BLOOM_STAND_WAIT)
        != NGX_OK)
    {
        ngx_set_errno(NGX_EBUSY);
        return NGX_ERROR;
    }

    rc = NGX_OK;
    ngx_bloom_base_file_get(state, &base);

    if ((base.kind != kind
         && (sh->file || base.kind != BLOOM_BASE_CHECKPOINT))
        || ngx_memcmp(base.build_id, build, BLOOM_IMAGE_BUILD_ID_LEN) != 0)
    {
        base.kind = kind;
        ngx_memcpy(base.build_id, build, BLOOM_IMAGE_BUILD_ID_LEN);
        ngx_memzero(base.replaced, BLOOM_IMAGE_BUILD_ID_LEN);
        bloom_base_forget(&base, 0);
        bloom_base_forget(&base, 1);

        rc = ngx_bloom_base_file_put(state, &base);
    }

    err = ngx_errno;

    if (rc == NGX_OK) {
        sh->based = sh->generation;
        ngx_bloom_state_files_sweep(state, &base);
    }

    ngx_bloom_unlock(&state->control->keeper);
    ngx_set_errno(err);

    return rc;
}


/* Logs, once for each generation, why no segment is removed. */
static void
ngx_bloom_stand_log(ngx_bloom_zone_t *zone, ngx_err_t err, const char *error)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (sh->stand_logged == sh->generation) {
        return;
    }

    sh->stand_logged = sh->generation;

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, err,
                  "bloom zone \"%V\": nothing is removed from the journal in "
                  "\"%V\" until the image that serves is known to be on disk, "
                  "and \"%s\" %s%s", &zone->name, &zone->state->path,
                  sh->file_name, error,
                  err ? "; correct its owner or mode, or check its disk" : "");
}
