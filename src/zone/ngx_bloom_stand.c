/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Each step takes as long as the disk needs to synchronise a slice.
 */

#include "ngx_bloom_stand.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_state_files.h"


/* How long to wait for the lock `keeper`, ms. */
#define NGX_BLOOM_STAND_WAIT   1000

/* How long to wait before another attempt, ms. */
#define NGX_BLOOM_STAND_RETRY  10000


static ngx_int_t ngx_bloom_stand_open(ngx_bloom_stand_t *stand,
    ngx_bloom_zone_t *zone);
static ngx_uint_t ngx_bloom_stand_serves(ngx_bloom_stand_t *stand,
    ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_stand_store(ngx_bloom_zone_t *zone);
static void ngx_bloom_stand_log(ngx_bloom_stand_t *stand,
    ngx_bloom_zone_t *zone, ngx_err_t err, const char *error);


void
ngx_bloom_stand_init(ngx_bloom_stand_t *stand)
{
    ngx_memzero(stand, sizeof(ngx_bloom_stand_t));

    stand->file.fd = NGX_INVALID_FILE;
}


void
ngx_bloom_stand_begin(ngx_bloom_stand_t *stand)
{
    stand->tried = 0;
}


void
ngx_bloom_stand_end(ngx_bloom_stand_t *stand)
{
    ngx_bloom_image_file_close(&stand->file);
}


ngx_int_t
ngx_bloom_stand_step(ngx_bloom_stand_t *stand, ngx_bloom_zone_t *zone)
{
    ngx_int_t           rc;
    ngx_file_info_t     fi;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (sh->based == sh->generation || sh->standin == sh->generation
        || sh->uploaded)
    {
        ngx_bloom_stand_end(stand);
        return NGX_OK;
    }

    if (!sh->file) {
        return ngx_bloom_stand_store(zone) == NGX_OK ? NGX_OK : NGX_DECLINED;
    }

    if (stand->file.fd == NGX_INVALID_FILE) {
        return ngx_bloom_stand_open(stand, zone);
    }

    rc = (ngx_fd_info(stand->file.fd, &fi) == NGX_FILE_ERROR) ? NGX_ERROR
                                                               : NGX_OK;

    if (rc == NGX_OK && stand->synced < (uint64_t) ngx_file_size(&fi)) {
        rc = ngx_bloom_io_sync_slice(stand->file.fd, stand->synced);
        stand->synced += NGX_BLOOM_IO_SLICE;

        if (rc == NGX_OK) {
            return NGX_AGAIN;
        }
    }

    /* the workers' user may not open the directory of the file, so its whole
     * file system is synchronised: the name must not be lost */

    if (rc == NGX_OK) {
        rc = (ngx_bloom_io_sync(stand->file.fd) == NGX_OK
              && ngx_bloom_io_sync_all(stand->file.fd) == NGX_OK)
             ? NGX_OK : NGX_ERROR;
    }

    if (rc != NGX_OK) {
        ngx_bloom_stand_log(stand, zone, ngx_errno, "cannot be synchronised");

    } else if (!ngx_bloom_stand_serves(stand, zone)) {
        rc = NGX_DECLINED;

    } else if (ngx_bloom_stand_store(zone) != NGX_OK) {
        ngx_bloom_stand_log(stand, zone, ngx_errno,
                            "cannot be recorded in the file \"base\"");
        rc = NGX_ERROR;
    }

    ngx_bloom_stand_end(stand);

    return rc == NGX_OK ? NGX_OK : NGX_DECLINED;
}


/* Opens file=.  Returns NGX_AGAIN; or NGX_DECLINED if it does not have the
 * image that serves. */
static ngx_int_t
ngx_bloom_stand_open(ngx_bloom_stand_t *stand, ngx_bloom_zone_t *zone)
{
    if (stand->tried != 0
        && ngx_current_msec - stand->tried < NGX_BLOOM_STAND_RETRY)
    {
        return NGX_DECLINED;
    }

    stand->tried = ngx_current_msec ? ngx_current_msec : 1;

    stand->file.name.data = zone->sh->file_name;
    stand->file.name.len = ngx_strlen(zone->sh->file_name);
    stand->synced = 0;

    if (ngx_bloom_image_file_open(&stand->file) != NGX_OK) {
        ngx_bloom_stand_log(stand, zone, stand->file.err, stand->file.error);
        return NGX_DECLINED;
    }

    if (!ngx_bloom_stand_serves(stand, zone)) {
        ngx_bloom_stand_end(stand);
        return NGX_DECLINED;
    }

    return NGX_AGAIN;
}


/* Returns 1 if the open file has the image that serves. */
static ngx_uint_t
ngx_bloom_stand_serves(ngx_bloom_stand_t *stand, ngx_bloom_zone_t *zone)
{
    return ngx_memcmp(stand->file.reader.image.build_id, zone->sh->file_build,
                      BLOOM_IMAGE_BUILD_ID_LEN)
           == 0;
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
ngx_bloom_stand_log(ngx_bloom_stand_t *stand, ngx_bloom_zone_t *zone,
    ngx_err_t err, const char *error)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (stand->logged == sh->generation) {
        return;
    }

    stand->logged = sh->generation;

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, err,
                  "bloom zone \"%V\": nothing is removed from the journal in "
                  "\"%V\" until the image that serves is known to be on disk, "
                  "and \"%s\" %s%s", &zone->name, &zone->state->path,
                  sh->file_name, error,
                  err ? "; correct its owner or mode, or check its disk" : "");
}
