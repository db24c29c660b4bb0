/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_base_change.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_cleared.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_state_files.h"


static ngx_int_t ngx_bloom_base_sync_file(ngx_bloom_zone_t *zone);


void
ngx_bloom_base_note_name(ngx_bloom_zone_t *zone)
{
    ngx_str_t  *name;

    name = &zone->file.name;

    ngx_cpystrn(zone->sh->file_name, name->len ? name->data : (u_char *) "",
                NGX_MAX_PATH);
}


void
ngx_bloom_base_note_file(ngx_bloom_zone_t *zone)
{
    ngx_bloom_base_note_name(zone);

    zone->sh->file_id = zone->file.id;

    ngx_memcpy(zone->sh->file_build, zone->image.build_id,
               BLOOM_IMAGE_BUILD_ID_LEN);
}


void
ngx_bloom_base_note_loaded(ngx_bloom_zone_t *zone, bloom_image_t *image)
{
    zone->sh->file_id = zone->sh->loads;

    ngx_memcpy(zone->sh->file_build, image->build_id,
               BLOOM_IMAGE_BUILD_ID_LEN);
}


/*
 * Synchronises the image of file= that an upload replaces, and its name, unless
 * that is known to be done: a start uses the upload in place of that image
 * only. A file that cannot be opened keeps the next start from starting.
 * Returns NGX_OK, or NGX_ERROR with errno.
 */
static ngx_int_t
ngx_bloom_base_sync_file(ngx_bloom_zone_t *zone)
{
    ngx_fd_t       fd;
    ngx_err_t      err;
    ngx_int_t      rc;
    bloom_base_t   base;
    const u_char  *build;

    ngx_bloom_base_file_get(zone->state, &base);

    build = (base.kind == BLOOM_BASE_UPLOAD) ? base.replaced : base.build_id;

    if ((base.kind == BLOOM_BASE_UPLOAD || base.kind == BLOOM_BASE_FILE)
        && ngx_memcmp(build, zone->sh->file_build, BLOOM_IMAGE_BUILD_ID_LEN)
           == 0)
    {
        return NGX_OK;
    }

    fd = ngx_bloom_io_open(AT_FDCWD, zone->sh->file_name, O_RDONLY);

    if (fd == NGX_INVALID_FILE) {
        return NGX_OK;
    }

    rc = ngx_bloom_io_sync_foreign(fd);
    err = ngx_errno;

    (void) ngx_close_file(fd);
    ngx_set_errno(err);

    return rc;
}


ngx_int_t
ngx_bloom_base_change(ngx_bloom_load_t *load, const u_char *body)
{
    u_char              name[NGX_MAX_PATH];
    ngx_int_t           rc;
    bloom_base_t        base;
    ngx_bloom_shctx_t  *sh;
    ngx_bloom_state_t  *state;

    sh = load->zone->sh;
    state = load->zone->state;

    if (sh->file && ngx_bloom_base_sync_file(load->zone) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_bloom_lock(&state->control->keeper, NGX_BLOOM_BASE_WAIT)
        != NGX_OK)
    {
        ngx_set_errno(NGX_EBUSY);
        return NGX_ERROR;
    }

    ngx_bloom_state_files_upload(load->image.build_id, name);

    rc = ngx_bloom_cleared_place(state, body, name, sh->applied);

    if (rc == NGX_OK) {
        ngx_bloom_base_file_get(state, &base);

        base.kind = BLOOM_BASE_UPLOAD;
        ngx_memcpy(base.build_id, load->image.build_id,
                   BLOOM_IMAGE_BUILD_ID_LEN);
        ngx_memzero(base.replaced, BLOOM_IMAGE_BUILD_ID_LEN);
        bloom_base_forget(&base, 0);
        bloom_base_forget(&base, 1);

        if (sh->file) {
            ngx_memcpy(base.replaced, sh->file_build,
                       BLOOM_IMAGE_BUILD_ID_LEN);
        }

        rc = ngx_bloom_base_file_put(state, &base);
    }

    if (rc == NGX_OK) {
        sh->based = sh->generation;
        ngx_bloom_state_files_sweep(state, &base);
    }

    ngx_bloom_unlock(&state->control->keeper);

    return rc;
}


ngx_uint_t
ngx_bloom_base_returns(ngx_bloom_zone_t *zone)
{
    bloom_base_t        base;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (zone->state == NULL || !sh->file || sh->uploaded) {
        return 0;
    }

    ngx_bloom_base_file_get(zone->state, &base);

    return base.kind == BLOOM_BASE_UPLOAD
           && ngx_memcmp(base.replaced, sh->file_build,
                         BLOOM_IMAGE_BUILD_ID_LEN)
              == 0;
}
