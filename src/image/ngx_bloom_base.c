/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A base is loaded in one go, not in slices: no request can wait for it.
 */

#include "ngx_bloom_base.h"
#include "ngx_bloom_removals.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_base_change.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_cleared.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_place.h"
#include "ngx_bloom_ring.h"
#include "ngx_bloom_state_files.h"
#include "ngx_bloom_load_checks.h"


static ngx_int_t ngx_bloom_base_settle(ngx_bloom_zone_t *zone,
    uint64_t position);
static void ngx_bloom_base_clear_place(ngx_bloom_zone_t *zone,
    bloom_reached_t *place);
static ngx_int_t ngx_bloom_base_try(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_base_load_state(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load, ngx_uint_t *lacks);
static ngx_uint_t ngx_bloom_base_lacks(ngx_bloom_zone_t *zone,
    const bloom_base_t *base, ngx_uint_t uploaded);
static ngx_int_t ngx_bloom_base_load_checkpoint(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load, const bloom_base_t *base, ngx_uint_t number);
static ngx_int_t ngx_bloom_base_open_checkpoint(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load, ngx_bloom_image_file_t *file, uint32_t checksum);
static ngx_int_t ngx_bloom_base_suits(ngx_bloom_zone_t *zone,
    const bloom_base_t *base, ngx_bloom_image_file_t *file,
    const bloom_image_t *image);
static ngx_uint_t ngx_bloom_base_outgrown(ngx_bloom_zone_t *zone,
    const bloom_base_t *base, const bloom_image_t *saved);
static const char *ngx_bloom_base_differs(ngx_bloom_zone_t *zone,
    const bloom_image_t *image);
static ngx_int_t ngx_bloom_base_refuse_change(ngx_bloom_zone_t *zone,
    const char *what, u_char *path);
static ngx_int_t ngx_bloom_base_load_upload(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load, const bloom_base_t *base);
static ngx_uint_t ngx_bloom_base_gives_up(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_base_is_upload(ngx_bloom_load_t *load,
    const bloom_base_t *base);
static void ngx_bloom_base_start_clock(ngx_bloom_zone_t *zone);
static void ngx_bloom_base_log_replay(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load);
static void ngx_bloom_base_log(ngx_bloom_zone_t *zone, ngx_uint_t level,
    ngx_bloom_load_t *load, const char *then);


/*
 * Completes a clear whose record a load has found at a position, so that
 * nothing from before it is loaded (S7).  Returns NGX_OK, or NGX_ERROR,
 * logged.
 */
static ngx_int_t
ngx_bloom_base_settle(ngx_bloom_zone_t *zone, uint64_t position)
{
    ngx_int_t             rc;
    ngx_err_t             err;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = zone->state;
    control = state->control;

    ngx_bloom_cleared_found(state, position);

    rc = ngx_bloom_lock(&control->keeper, NGX_BLOOM_BASE_WAIT);
    err = NGX_EBUSY;

    if (rc == NGX_OK) {
        rc = ngx_bloom_cleared_settle(state, zone->file.name.len
                                             ? zone->image.build_id : NULL);
        err = ngx_errno;
        ngx_bloom_unlock(&control->keeper);
    }

    if (rc == NGX_OK) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, err,
                  "bloom zone \"%V\" was cleared, and what was dropped cannot "
                  "be removed from \"%V\"; correct the owner of the files "
                  "there, or repair the disk", &zone->name, &state->path);

    return NGX_ERROR;
}


ngx_int_t
ngx_bloom_base_load(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load)
{
    uint64_t         cleared;
    bloom_reached_t  place;

    while (ngx_bloom_base_try(zone, load) != NGX_OK) {

        cleared = load->replay.cleared;

        if (cleared == 0) {
            return NGX_ERROR;
        }

        place = load->replay.place;
        ngx_bloom_load_end(load);

        if (zone->state->alone) {
            ngx_bloom_base_clear_place(zone, &place);
        }

        if (ngx_bloom_base_settle(zone, cleared) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* Takes the zone back in its source from where it was before a clear, which the
 * page of the only instance does not know.  The load that follows finds out
 * where its image is. */
static void
ngx_bloom_base_clear_place(ngx_bloom_zone_t *zone, bloom_reached_t *place)
{
    static const bloom_position_t  none;

    if (zone->source.len != 0) {
        ngx_bloom_source_store(zone->state->control, place);
        ngx_bloom_place_clear(zone, none);
    }
}


/*
 * Loads what the zone stands on: the newer checkpoint, else the older one, else
 * the image that they were made from.
 */
static ngx_int_t
ngx_bloom_base_try(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load)
{
    ngx_int_t           rc;
    ngx_uint_t          lacks;
    bloom_image_t       image;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    lacks = 0;

    sh->uploaded = 0;
    sh->file = (zone->file.name.len != 0);

    if (!sh->file && ngx_bloom_zone_empty(zone, &zone->image) != NGX_OK) {
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, ngx_errno,
                      "getrandom() failed for bloom zone \"%V\"",
                      &zone->name);
        return NGX_ERROR;
    }

    image = zone->image;

    if (zone->state != NULL) {
        rc = ngx_bloom_base_load_state(zone, load, &lacks);

        if (rc != NGX_DECLINED) {
            return rc;
        }
    }

    if (ngx_bloom_load_begin(load, zone, &zone->file, sh->file ? NULL : &image,
                             NULL, NULL, 0)
        == NGX_OK
        && ngx_bloom_load_run(load) == NGX_OK)
    {
        if (lacks) {
            load->complete = 0;
            sh->standin = 1;             /* the first generation */
        }

        return NGX_OK;
    }

    if (!load->replay.cleared) {
        ngx_bloom_base_log(zone, ngx_bloom_zone_level(zone), load, NULL);
    }

    return NGX_ERROR;
}


/*
 * Loads what the state directory has.  Returns NGX_OK; NGX_ERROR, logged; or
 * NGX_DECLINED if the image of file= or an empty filter is to be loaded
 * instead, and then *lacks is 1 if that lacks keys of the zone.
 */
static ngx_int_t
ngx_bloom_base_load_state(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load,
    ngx_uint_t *lacks)
{
    ngx_int_t     rc;
    ngx_uint_t    i, uploaded;
    bloom_base_t  base;

    ngx_bloom_base_file_get(zone->state, &base);

    uploaded = ngx_bloom_base_uploaded(zone, &base);

    if (uploaded || ngx_bloom_base_stands(zone, &base)) {
        zone->sh->uploaded = uploaded;

        for (i = 2; i-- > 0; /* void */ ) {

            rc = ngx_bloom_base_load_checkpoint(zone, load, &base, i);

            if (rc != NGX_DECLINED) {
                return rc;
            }
        }
    }

    if (uploaded && base.kind == BLOOM_BASE_UPLOAD) {
        rc = ngx_bloom_base_load_upload(zone, load, &base);

        if (rc != NGX_DECLINED) {
            return rc;
        }

        *lacks = 1;
    }

    if (ngx_bloom_base_lacks(zone, &base, uploaded)) {
        (void) ngx_bloom_state_lose(zone->state, ngx_bloom_zone_time(zone));
        *lacks = 1;
    }

    zone->sh->uploaded = 0;

    return NGX_DECLINED;
}


/* Returns 1, logged, if an empty filter would lack keys that neither an image
 * nor the journal has any more. */
static ngx_uint_t
ngx_bloom_base_lacks(ngx_bloom_zone_t *zone, const bloom_base_t *base,
    ngx_uint_t uploaded)
{
    if (zone->sh->file) {
        return 0;
    }

    if (base->kind == BLOOM_BASE_CHECKPOINT) {
        ngx_log_error(NGX_LOG_ALERT, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" has lost the keys of its "
                      "checkpoints in \"%V\", and answers \"unknown\" "
                      "instead of \"absent\": an earlier line of this log "
                      "names them; restore the whole directory from a "
                      "backup, or clear the zone by POST clear and add its "
                      "keys again",
                      &zone->name, &zone->state->path);
        return 1;
    }

    if (!uploaded && base->dropped != 0
        && (base->kind == BLOOM_BASE_FILE || base->kind == BLOOM_BASE_UPLOAD))
    {
        ngx_log_error(NGX_LOG_ALERT, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" has no image any more, and its "
                      "journal in \"%V\" lacks the keys that the image "
                      "had: the zone answers \"unknown\" instead of "
                      "\"absent\"; name the image in \"file\" again, or "
                      "clear the zone by POST clear and add its keys again",
                      &zone->name, &zone->state->path);
        return 1;
    }

    return 0;
}


ngx_uint_t
ngx_bloom_base_uploaded(ngx_bloom_zone_t *zone, const bloom_base_t *base)
{
    static const uint8_t  none[BLOOM_IMAGE_BUILD_ID_LEN];

    if (base->kind == BLOOM_BASE_CHECKPOINT) {
        return zone->file.name.len == 0
               && ngx_memcmp(base->build_id, none, BLOOM_IMAGE_BUILD_ID_LEN)
                  != 0;
    }

    return base->kind == BLOOM_BASE_UPLOAD
           && ngx_memcmp(base->replaced,
                         zone->file.name.len ? zone->image.build_id : none,
                         BLOOM_IMAGE_BUILD_ID_LEN)
              == 0;
}


ngx_uint_t
ngx_bloom_base_stands(ngx_bloom_zone_t *zone, const bloom_base_t *base)
{
    if (zone->file.name.len == 0) {
        return base->kind == BLOOM_BASE_EMPTY
               || base->kind == BLOOM_BASE_CHECKPOINT;
    }

    return base->kind == BLOOM_BASE_FILE
           && ngx_memcmp(base->build_id, zone->image.build_id,
                         BLOOM_IMAGE_BUILD_ID_LEN)
              == 0;
}


/*
 * Loads a checkpoint of the entry.  Returns NGX_OK; NGX_DECLINED if there is
 * none, or if it cannot be used and the zone can start without it; NGX_ERROR if
 * the zone cannot start, logged.
 */
static ngx_int_t
ngx_bloom_base_load_checkpoint(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load,
    const bloom_base_t *base, ngx_uint_t number)
{
    u_char                  name[NGX_MAX_PATH], path[NGX_MAX_PATH];
    ngx_int_t               rc;
    bloom_image_t           image;
    const bloom_point_t    *point;
    ngx_bloom_image_file_t  file;

    point = &base->checkpoint[number];

    if (point->position == 0) {
        return NGX_DECLINED;
    }

    ngx_bloom_base_name(zone, &file,
                        ngx_bloom_state_files_checkpoint(base->build_id,
                                                         point->position,
                                                         name),
                        path);

    if (ngx_bloom_base_open_checkpoint(zone, load, &file,
                                       base->checksum[number])
        != NGX_OK)
    {
        goto without;
    }

    image = file.reader.image;

    if (zone->file.name.len != 0 && !zone->sh->uploaded) {

        /* the header of the image of file= says more than its checkpoint's */

        image = zone->image;
    }

    rc = ngx_bloom_base_suits(zone, base, &file, &image);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_bloom_load_begin(load, zone, &file,
                             zone->file.name.len && !zone->sh->uploaded
                             ? &image : NULL,
                             point, NULL, 0)
        == NGX_OK
        && ngx_bloom_load_run(load) == NGX_OK)
    {
        return NGX_OK;
    }

    if (ngx_bloom_base_gives_up(zone, load)) {
        return NGX_ERROR;
    }

    ngx_bloom_load_end(load);

without:

    ngx_bloom_base_log(zone, NGX_LOG_WARN, load,
                       "the zone starts without that checkpoint");

    return NGX_DECLINED;
}


/* Opens a checkpoint.  Returns NGX_OK, or NGX_ERROR with load->error. */
static ngx_int_t
ngx_bloom_base_open_checkpoint(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load,
    ngx_bloom_image_file_t *file, uint32_t checksum)
{
    if (ngx_bloom_image_file_open(file) != NGX_OK) {
        ngx_bloom_print(load->error, sizeof(load->error),
                        "checkpoint \"%V\" of bloom zone \"%V\" %s",
                        &file->name, &zone->name, file->error);
        return NGX_ERROR;
    }

    if (file->reader.checksum != checksum) {
        ngx_bloom_print(load->error, sizeof(load->error),
                        "checkpoint \"%V\" of bloom zone \"%V\" is not the "
                        "one that was written here", &file->name, &zone->name);
        ngx_bloom_image_file_close(file);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Checks that a checkpoint, which will serve as `image`, suits the
 * configuration.  If it does not, closes the file, and returns NGX_DECLINED if
 * the journal has all of its keys, else NGX_ERROR, logged.
 */
static ngx_int_t
ngx_bloom_base_suits(ngx_bloom_zone_t *zone, const bloom_base_t *base,
    ngx_bloom_image_file_t *file, const bloom_image_t *image)
{
    const char  *what;

    if (ngx_bloom_base_outgrown(zone, base, &file->reader.image)) {

        /* the journal has all of its keys */

        ngx_log_error(NGX_LOG_NOTICE, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" replays its whole journal, "
                      "because its checkpoint has another size",
                      &zone->name);

        ngx_bloom_image_file_close(file);
        return NGX_DECLINED;
    }

    if (zone->file.name.len == 0) {
        what = ngx_bloom_base_differs(zone, image);

        if (what != NULL && ngx_strcmp(what, "capacity") != 0) {
            ngx_bloom_image_file_close(file);
            return ngx_bloom_base_refuse_change(zone, what, file->name.data);
        }
    }

    if (zone->expire != 0
        && (image->capacity != zone->image.capacity
            || image->geometry.slices != zone->image.geometry.slices))
    {
        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" keeps the capacity of its checkpoint, "
                      "%uL, and the number of its slices, %uD, until it is "
                      "cleared by POST clear, since its keys are in the "
                      "checkpoint alone", &zone->name, image->capacity,
                      (uint32_t) image->geometry.slices);
    }

    return NGX_OK;
}


/* Returns 1 if a checkpoint differs from what its image would be now with the
 * keys of the journal: it has other layers or, without an image, another
 * filter. The journal has all keys of an image, but not those of older
 * checkpoints. */
static ngx_uint_t
ngx_bloom_base_outgrown(ngx_bloom_zone_t *zone, const bloom_base_t *base,
    const bloom_image_t *saved)
{
    u_char                  name[NGX_MAX_PATH], path[NGX_MAX_PATH];
    ngx_uint_t              fits;
    ngx_bloom_image_file_t  upload;

    switch (base->kind) {

    case BLOOM_BASE_EMPTY:
        return ngx_bloom_base_differs(zone, saved) != NULL
               || !ngx_bloom_layers_fit(zone, &zone->image, saved);

    case BLOOM_BASE_FILE:
        return !ngx_bloom_layers_fit(zone, &zone->image, saved);

    case BLOOM_BASE_UPLOAD:
        ngx_bloom_base_name(zone, &upload,
                            ngx_bloom_state_files_upload(base->build_id, name),
                            path);

        if (ngx_bloom_image_file_open(&upload) != NGX_OK) {
            return 0;                    /* the checkpoint is all there is */
        }

        fits = ngx_bloom_layers_fit(zone, &upload.reader.image, saved);
        ngx_bloom_image_file_close(&upload);

        return !fits;

    default: /* BLOOM_BASE_CHECKPOINT */
        return 0;
    }
}


/* Returns what the configuration of a zone without file= demands otherwise than
 * an image has it, a word for a message; NULL if they agree.  Of an uploaded
 * image, only the times of keys matter. */
static const char *
ngx_bloom_base_differs(ngx_bloom_zone_t *zone, const bloom_image_t *image)
{
    bloom_image_t     *demands;
    bloom_geometry_t   first, second;

    /* a filter without times has no key that can expire; and one with times has
     * no key that cannot */

    if ((zone->expire != 0) != (image->geometry.slices != 0)) {
        return "expire";
    }

    if (zone->sh->uploaded) {
        return NULL;
    }

    demands = &zone->image;

    first = bloom_geometry_part(&demands->geometry, 0);
    second = bloom_geometry_part(&image->geometry, 0);

    if (demands->key_form != image->key_form) {
        return "form";
    }

    if (demands->hasher.kind != image->hasher.kind) {
        return "hash";
    }

    if (first.layout != second.layout) {
        return "layout";
    }

    if (demands->fpr != image->fpr) {
        return "rate";
    }

    return demands->capacity == image->capacity
           && bloom_geometry_equal(&first, &second) ? NULL : "capacity";
}


/* Refuses a configuration with which a zone would lose the keys of an image in
 * its directory.  Returns NGX_ERROR, logged. */
static ngx_int_t
ngx_bloom_base_refuse_change(ngx_bloom_zone_t *zone, const char *what,
    u_char *path)
{
    ngx_log_error(ngx_bloom_zone_level(zone), zone->shm_zone->shm.log, 0,
                  "bloom zone \"%V\" cannot change its %s: its keys are in "
                  "\"%s\" alone, which was made with another one; undo the "
                  "change, or move the directory away, start empty, and add "
                  "the keys again", &zone->name, what, path);

    return NGX_ERROR;
}


/* Loads the uploaded image of the entry.  Returns as
 * ngx_bloom_base_load_checkpoint() does. */
static ngx_int_t
ngx_bloom_base_load_upload(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load,
    const bloom_base_t *base)
{
    u_char                  name[NGX_MAX_PATH], path[NGX_MAX_PATH];
    ngx_bloom_image_file_t  file;

    ngx_bloom_base_name(zone, &file,
                        ngx_bloom_state_files_upload(base->build_id, name),
                        path);

    if (zone->expire != 0) {
        return ngx_bloom_base_refuse_change(zone, "expire", path);
    }

    if (ngx_bloom_load_begin(load, zone, &file, NULL, NULL, NULL, 0) == NGX_OK
        && ngx_bloom_base_is_upload(load, base) == NGX_OK
        && ngx_bloom_load_run(load) == NGX_OK)
    {
        return NGX_OK;
    }

    if (ngx_bloom_base_gives_up(zone, load)) {
        return NGX_ERROR;
    }

    ngx_bloom_base_log(zone, NGX_LOG_ALERT, load,
                       "the zone answers \"unknown\" instead of \"absent\" "
                       "until you upload the image again, or load file= by "
                       "POST reload");
    ngx_bloom_load_end(load);

    return NGX_DECLINED;
}


/* Returns 1 if nothing else can be loaded in place of what could not: the start
 * fails, which is logged, or begins again behind a clear. */
static ngx_uint_t
ngx_bloom_base_gives_up(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load)
{
    if (load->replay.cleared) {
        return 1;
    }

    if (load->outcome != NGX_BLOOM_FAILED) {
        return 0;
    }

    ngx_bloom_base_log(zone, ngx_bloom_zone_level(zone), load, NULL);

    return 1;
}


/* Checks that a load has opened the uploaded image of the entry. */
static ngx_int_t
ngx_bloom_base_is_upload(ngx_bloom_load_t *load, const bloom_base_t *base)
{
    if (ngx_memcmp(load->image.build_id, base->build_id,
                   BLOOM_IMAGE_BUILD_ID_LEN)
        == 0)
    {
        return NGX_OK;
    }

    return ngx_bloom_load_fails(load, NGX_BLOOM_REFUSED, 0,
                                "image \"%V\" of bloom zone \"%V\" is not the "
                                "one that was uploaded", &load->file.name,
                                &load->zone->name);
}


void
ngx_bloom_base_name(ngx_bloom_zone_t *zone, ngx_bloom_image_file_t *file,
    u_char *name, u_char *path)
{
    ngx_memzero(file, sizeof(ngx_bloom_image_file_t));

    file->name.data = ngx_bloom_state_files_path(zone->state, name, path);
    file->name.len = ngx_strlen(path);
    file->state = zone->state;
    file->fd = NGX_INVALID_FILE;
}


ngx_int_t
ngx_bloom_base_load_journal(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load)
{
    zone->sh->file = (zone->file.name.len != 0);

    ngx_bloom_load_begin_journal(load, zone);

    if (ngx_bloom_load_journal(load) != NGX_OK) {
        ngx_bloom_base_log(zone, NGX_LOG_ALERT, load, NULL);
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_base_recover(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load)
{
    ngx_bloom_state_t  *state;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    state = zone->state;

    if ((state->alone
         && ngx_bloom_journal_recover(state, &load->replay.reader) != NGX_OK)
        || (!state->alone && load->replay.reader.lost != 0
            && ngx_bloom_state_lose(state, load->replay.reader.lost) != NGX_OK)
        || (load->cut != UINT64_MAX
            && ngx_bloom_place_start(zone, &load->replay.place,
                                     load->replay.start)
               != NGX_OK))
    {
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, ngx_errno,
                      "the journal in \"%V\" of bloom zone \"%V\" cannot be "
                      "recovered; repair the disk, or correct the owner of "
                      "the journal's files",
                      &state->path, &zone->name);
        return NGX_ERROR;
    }

    if (zone->expire != 0) {
        ngx_bloom_base_start_clock(zone);
    }

    if (load->replay.bits.ring != NULL) {
        ngx_bloom_ring_replayed(&load->replay.bits);
    }

    if (state->alone && load->replay.reader.cut) {
        ngx_log_error(NGX_LOG_NOTICE, zone->shm_zone->shm.log, 0,
                      "the journal in \"%V\" lacks additions that were not on "
                      "disk yet when the machine stopped: it now ends before "
                      "them, at position %uL, and records behind them were "
                      "cut off", &state->path, ngx_bloom_state_tail(state));
    }

    if (load->cut != UINT64_MAX && ngx_bloom_load_too_old(load)) {

        /* another instance has a newer image and removed records meanwhile */

        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                      "the image of bloom zone \"%V\" " NGX_BLOOM_LOAD_TOO_OLD,
                      &zone->name);
        return NGX_ERROR;
    }

    /* the first changes must not have to wait for the helper; if the disk is
     * full, what is prepared is used */

    while (state->alone && ngx_bloom_journal_prepare(state) == NGX_AGAIN) {
        /* void */
    }

    /* not load->replay.reader.limit: it may have moved after the last record */

    sh->applied = state->alone ? ngx_bloom_state_tail(state)
                               : load->replay.reader.position;
    sh->checkpoint = load->point.position;

    if (load->cut != UINT64_MAX) {
        ngx_bloom_as_of_serve(state, &load->image);
    }

    ngx_bloom_removals_applied(zone, sh->applied,
                           &load->replay.reader.end.removals);

    ngx_bloom_catch_up_log_lost(zone, &load->replay.reader, load->complete);

    ngx_bloom_base_log_replay(zone, load);

    return NGX_OK;
}


/* Starts the clock of a zone whose keys expire. */
static void
ngx_bloom_base_start_clock(ngx_bloom_zone_t *zone)
{
    ngx_bloom_state_t  *state;

    state = zone->state;

    ngx_bloom_clock_start(zone->clock, ngx_bloom_state_end(state).time);

    /* what was found lost before has the system's time, and the clock that has
     * begun now may be far behind it */

    if (state->alone) {
        ngx_bloom_control_lost_by(&state->control->loss,
                                  ngx_bloom_clock_now(zone->clock));
    }

    /* if a reload takes the journal away, the memory goes on with it */

    zone->sh->control.clock = *zone->clock;
}


static void
ngx_bloom_base_log_replay(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load)
{
    if (load->replay.records != 0 || load->point.position != 0) {
        ngx_log_error(NGX_LOG_NOTICE, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" replayed %uL key%s in %uL record%s of "
                      "its journal%s, in %uL ms", &zone->name,
                      load->replay.keys,
                      ngx_bloom_plural(load->replay.keys),
                      load->replay.records,
                      ngx_bloom_plural(load->replay.records),
                      load->point.position ? " after a checkpoint" : "",
                      ngx_bloom_time() - load->begun);
    }
}


ngx_int_t
ngx_bloom_base_refuse(ngx_bloom_zone_t *zone, ngx_err_t err, const char *error)
{
    ngx_log_error(ngx_bloom_zone_level(zone), zone->shm_zone->shm.log, err,
                  "image \"%V\" of bloom zone \"%V\" %s%s",
                  &zone->file.name, &zone->name, error,
                  err != 0 && err == zone->file.err
                  ? "; put an image there that the workers' user may read"
                  : "");

    return NGX_ERROR;
}


void
ngx_bloom_base_warn_access(ngx_bloom_zone_t *zone)
{
    u_char  path[NGX_MAX_PATH], *barrier;

    if (zone->file.name.len == 0 || zone->ccf->username == NULL) {
        return;
    }

    barrier = ngx_bloom_image_file_barrier(&zone->file.name, path);

    if (barrier != NULL) {
        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                      "image \"%V\" of bloom zone \"%V\" can be loaded at a "
                      "start only: \"%s\" is not accessible to user \"%s\"; "
                      "correct its owner or mode", &zone->file.name,
                      &zone->name, barrier, zone->ccf->username);
    }
}


char *
ngx_bloom_base_called(ngx_bloom_zone_t *zone, ngx_uint_t uploaded)
{
    return uploaded ? "an uploaded image"
           : zone->file.name.len ? (char *) zone->file.name.data
           : "a filter that starts empty";
}


/* Logs why a load has failed, and its consequence `then`, if not NULL. */
static void
ngx_bloom_base_log(ngx_bloom_zone_t *zone, ngx_uint_t level,
    ngx_bloom_load_t *load, const char *then)
{
    ngx_log_error(level, zone->shm_zone->shm.log, 0,
                  "%s%s%s", load->error, then ? "; " : "", then ? then : "");
}
