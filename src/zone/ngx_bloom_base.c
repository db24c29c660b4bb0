/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A base is loaded in one go, not in slices: no request can wait for it.
 */

#include "ngx_bloom_base.h"
#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_cleared.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_pending.h"
#include "ngx_bloom_place.h"
#include "ngx_bloom_ring.h"
#include "ngx_bloom_state_files.h"


static ngx_int_t ngx_bloom_base_read_dropped(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_base_load_image(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load, ngx_bloom_image_file_t *file,
    bloom_image_t *image);
static ngx_uint_t ngx_bloom_base_outgrown(ngx_bloom_zone_t *zone,
    ngx_bloom_image_file_t *checkpoint, bloom_image_t *base);
static ngx_int_t ngx_bloom_base_run(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_base_settle(ngx_bloom_zone_t *zone,
    ngx_uint_t read);
static ngx_int_t ngx_bloom_base_try(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load);
static void ngx_bloom_base_log(ngx_bloom_zone_t *zone, ngx_uint_t level,
    ngx_bloom_load_t *load, const char *then);


ngx_int_t
ngx_bloom_base_open_directory(ngx_bloom_zone_t *zone, ngx_uint_t make)
{
    u_char            *path, error[NGX_MAX_ERROR_STR];
    ngx_fd_t           dir;
    ngx_int_t          rc;
    ngx_log_t         *log;
    ngx_bloom_user_t   user;

    if (zone->state_path.len == 0 || !zone->journal) {
        return NGX_OK;
    }

    log = zone->shm_zone->shm.log;
    user = ngx_bloom_unprivileged_workers(zone->ccf);

    path = ngx_bloom_directory_path(zone->pool, &zone->state_path, &zone->name);

    if (path == NULL) {
        return NGX_ERROR;
    }

    /* earlier configurations may have added keys, even if this one does not */

    rc = ngx_bloom_directory_open(&zone->state_path, path, &user,
                                  make && zone->adds, &dir, error);

    switch (rc) {

    case NGX_OK:
        zone->state = ngx_palloc(zone->pool, sizeof(ngx_bloom_state_t));

        if (zone->state == NULL) {
            (void) ngx_close_file(dir);
            return NGX_ERROR;
        }

        ngx_bloom_state_init(zone->state, path, dir);
        zone->state->expire = zone->expire;

        return NGX_OK;

    case NGX_DECLINED:
        return NGX_OK;

    default:
        ngx_log_error(ngx_bloom_zone_level(zone), log, 0,
                      "%s; bloom zone \"%V\" keeps added keys there",
                      error, &zone->name);

        zone->state_error = NGX_BLOOM_BASE_NO_DIRECTORY;

        return NGX_ERROR;
    }
}


ngx_int_t
ngx_bloom_base_open_state(ngx_bloom_zone_t *zone)
{
    ngx_bloom_failure_t  failure;

    if (ngx_bloom_state_open(zone->state, &failure) != NGX_OK) {
        ngx_bloom_base_log_state(zone, &failure);
        return NGX_ERROR;
    }

    zone->required = &zone->state->control->instance[zone->state->instance]
                      .required;
    zone->pending = &zone->state->control->pending;
    zone->clock = &zone->state->control->clock;

    if (ngx_bloom_base_read_dropped(zone) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_bloom_base_settle(zone, 0);
}


void
ngx_bloom_base_answer_state(ngx_bloom_zone_t *zone, ngx_bloom_answer_t *answer)
{
    ngx_bloom_state_t  *state;

    state = zone->state;
    answer->rc = NGX_OK;

    if (state == NULL) {
        return;
    }

    ngx_bloom_state_ready(state);

    answer->value = state->instance;
    answer->fd[0] = state->fd;
    answer->fd[1] = state->lock;
}


void
ngx_bloom_base_take_state(ngx_bloom_zone_t *zone, ngx_bloom_answer_t *answer)
{
    ngx_bloom_state_t  *state;

    state = zone->state;

    if (state == NULL) {
        return;
    }

    if (answer->fd[0] != NGX_INVALID_FILE && answer->fd[1] != NGX_INVALID_FILE)
    {
        state->fd = answer->fd[0];
        state->lock = answer->fd[1];
        state->instance = answer->value % NGX_BLOOM_INSTANCES;
        return;
    }

    ngx_bloom_io_close(&answer->fd[0]);
    ngx_bloom_io_close(&answer->fd[1]);
    ngx_bloom_state_close(state);

    zone->state = NULL;
    zone->state_error = NGX_BLOOM_BASE_NO_DIRECTORY;
}


void
ngx_bloom_base_log_state(ngx_bloom_zone_t *zone, ngx_bloom_failure_t *failure)
{
    u_char  then[256];

    if (failure->holder != 0) {
        ngx_bloom_print(then, sizeof(then),
                        ": process %P has locked it; find out which process "
                        "that is, and end it", failure->holder);

    } else if (failure->then != NULL) {
        ngx_bloom_print(then, sizeof(then), ": %s", failure->then);

    } else {
        ngx_bloom_print(then, sizeof(then), "%s",
                        ngx_bloom_io_advice(failure->err));
    }

    ngx_log_error(ngx_bloom_zone_level(zone),
                  zone->shm_zone->shm.log, failure->err,
                  "cannot %s \"%V/%s\" in the state directory of bloom zone "
                  "\"%V\"%s", failure->what, &zone->state->path,
                  failure->name, &zone->name, then);
}


/* Reads from disk which records have been removed, unless other instances have
 * it in the control page. */
static ngx_int_t
ngx_bloom_base_read_dropped(ngx_bloom_zone_t *zone)
{
    if (!zone->state->alone) {
        return NGX_OK;
    }

    if (ngx_bloom_state_read_mark(zone->state, "dropped",
                                  &zone->state->control->dropped,
                                  &zone->state->control->begin)
        != NGX_OK)
    {
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, ngx_errno,
                      "cannot read \"%V/dropped\", which says which images "
                      "bloom zone \"%V\" may load; restore that file",
                      &zone->state->path, &zone->name);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* Completes a clear, so that nothing from before it is loaded. */
static ngx_int_t
ngx_bloom_base_settle(ngx_bloom_zone_t *zone, ngx_uint_t read)
{
    if (ngx_bloom_cleared_recover(zone->state, &zone->image, read) != NGX_OK) {
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, ngx_errno,
                      "bloom zone \"%V\" was cleared, and what was dropped "
                      "cannot be removed from \"%V\"; correct the owner of "
                      "the files there, or repair the disk",
                      &zone->name, &zone->state->path);
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_base_load(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load)
{
    while (ngx_bloom_base_try(zone, load) != NGX_OK) {

        if (!load->replay.cleared) {
            return NGX_ERROR;
        }

        /* another instance has cleared the zone meanwhile */

        ngx_bloom_load_end(load);

        if (ngx_bloom_base_settle(zone, 1) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_base_try(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load)
{
    u_char                  name[NGX_MAX_PATH], path[NGX_MAX_PATH], *build;
    bloom_image_t           image;
    ngx_uint_t              lacks;
    ngx_bloom_image_file_t  file;
    ngx_bloom_shctx_t      *sh;

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

    build = sh->file ? zone->image.build_id : NULL;

    /* what a zone has that expires is in its journal alone */

    if (zone->state != NULL && zone->expire == 0) {

        (void) ngx_bloom_state_files_upload(build, name);

        ngx_memzero(&file, sizeof(ngx_bloom_image_file_t));
        file.name.data = ngx_bloom_state_files_path(zone->state, name, path);
        file.name.len = ngx_strlen(path);
        file.state = zone->state;
        file.fd = NGX_INVALID_FILE;

        if (ngx_bloom_image_file_open(&file) == NGX_OK) {
            image = file.reader.image;
            sh->uploaded = 1;

            if (ngx_bloom_base_load_image(zone, load, &file, &image)
                == NGX_OK)
            {
                return NGX_OK;
            }

        } else if (file.err == NGX_ENOENT) {
            goto file;

        } else {
            ngx_bloom_print(load->error, sizeof(load->error),
                            "uploaded image \"%s\" of bloom zone \"%V\" %s"
                            " (%d: %s)", path, &zone->name, file.error,
                            file.err, strerror(file.err));
        }

        sh->uploaded = 0;

        if (load->outcome == NGX_BLOOM_FAILED) {
            goto failed;                         /* not the image's fault */
        }

        lacks = 1;

        ngx_bloom_base_log(zone, NGX_LOG_ALERT, load,
                            "the zone answers \"unknown\" instead of "
                            "\"absent\" until you upload the image again, or "
                            "load file= by POST reload");
        ngx_bloom_load_end(load);
    }

file:

    image = zone->image;

    if (ngx_bloom_base_load_image(zone, load, &zone->file, &image) == NGX_OK) {

        if (lacks) {
            load->complete = 0;
        }

        return NGX_OK;
    }

failed:

    if (!load->replay.cleared) {
        ngx_bloom_base_log(zone, ngx_bloom_zone_level(zone), load, NULL);
    }

    return NGX_ERROR;
}


ngx_int_t
ngx_bloom_base_load_journal(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load)
{
    zone->sh->file = (zone->file.name.len != 0);

    ngx_bloom_load_begin_journal(load, zone);

    if (ngx_bloom_base_run(load) != NGX_OK) {
        ngx_bloom_base_log(zone, NGX_LOG_ALERT, load, NULL);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Loads the newest checkpoint of an image.  Without a checkpoint, loads the
 * image in `file`, or, if file->name.len is 0, the empty filter `image`.
 */
static ngx_int_t
ngx_bloom_base_load_image(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load,
    ngx_bloom_image_file_t *file, bloom_image_t *image)
{
    u_char                  name[NGX_MAX_PATH], path[NGX_MAX_PATH], *build;
    uint64_t                position;
    ngx_uint_t              empty;
    ngx_bloom_image_file_t  checkpoint;

    empty = (file->name.len == 0);
    build = empty ? NULL : image->build_id;

    if (zone->state != NULL && zone->expire == 0
        && ngx_bloom_state_files_find(zone->state, build, name, &position)
           == NGX_OK
        && position != 0)
    {
        ngx_memzero(&checkpoint, sizeof(ngx_bloom_image_file_t));
        checkpoint.name.data = ngx_bloom_state_files_path(zone->state, name,
                                                          path);
        checkpoint.name.len = ngx_strlen(path);
        checkpoint.state = zone->state;
        checkpoint.fd = NGX_INVALID_FILE;

        if (ngx_bloom_base_outgrown(zone, &checkpoint, image)) {
            goto file;
        }

        if (ngx_bloom_load_begin(load, zone, &checkpoint, empty ? NULL : image,
                                 position, NULL, 0)
            == NGX_OK)
        {
            if (empty && !ngx_bloom_base_alike(&load->image, image)) {

                /* it has another geometry; the journal has all of its keys */

                goto without;
            }

            if (ngx_bloom_base_run(load) == NGX_OK) {
                ngx_bloom_image_file_close(file);
                return NGX_OK;
            }
        }

        if (load->outcome == NGX_BLOOM_FAILED) {
            return NGX_ERROR;
        }

        ngx_bloom_base_log(zone, NGX_LOG_WARN, load,
                            "the zone starts without that checkpoint");

without:

        ngx_bloom_load_end(load);
    }

file:

    if (ngx_bloom_load_begin(load, zone, file, empty ? image : NULL, 0, NULL,
                             0)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_bloom_base_run(load);
}


/* Returns 1 if a checkpoint has other layers than the zone would have now: the
 * journal has all of its keys. */
static ngx_uint_t
ngx_bloom_base_outgrown(ngx_bloom_zone_t *zone,
    ngx_bloom_image_file_t *checkpoint, bloom_image_t *base)
{
    if (ngx_bloom_image_file_open(checkpoint) != NGX_OK
        || !ngx_bloom_base_alike(&checkpoint->reader.image, base)
        || ngx_bloom_layers_fit(zone, base, &checkpoint->reader.image))
    {
        return 0;
    }

    ngx_log_error(NGX_LOG_NOTICE, zone->shm_zone->shm.log, 0,
                  "bloom zone \"%V\" replays its whole journal, because its "
                  "checkpoint has grown with another \"max_keys\" or size",
                  &zone->name);

    ngx_bloom_image_file_close(checkpoint);

    return 1;
}


static ngx_int_t
ngx_bloom_base_run(ngx_bloom_load_t *load)
{
    ngx_int_t  rc;

    do {
        rc = ngx_bloom_load_step(load);
    } while (rc == NGX_AGAIN);

    return rc;
}


ngx_uint_t
ngx_bloom_base_alike(bloom_image_t *one, bloom_image_t *other)
{
    bloom_geometry_t  first, second;

    first = bloom_geometry_part(&one->geometry, 0);
    second = bloom_geometry_part(&other->geometry, 0);

    return bloom_geometry_equal(&first, &second)
           && one->capacity == other->capacity
           && one->fpr == other->fpr
           && one->hasher.kind == other->hasher.kind
           && one->key_form == other->key_form;
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
            && (ngx_bloom_as_of_remember(state, &load->image, load->begun)
                != NGX_OK
                || ngx_bloom_place_start(zone, &load->replay.place,
                                         load->replay.start)
                   != NGX_OK)))
    {
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, ngx_errno,
                      "the journal in \"%V\" of bloom zone \"%V\" cannot be "
                      "recovered; repair the disk, or correct the owner of "
                      "the journal's files",
                      &state->path, &zone->name);
        return NGX_ERROR;
    }

    if (zone->expire != 0) {
        ngx_bloom_clock_start(zone->clock, ngx_bloom_state_end(state).time);

        /* if a reload takes the journal away, the memory goes on with it */

        zone->sh->clock = *zone->clock;
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

    /*
     * Set the bits of pending keys.  The helper appends these keys later.  If
     * this misses keys of another instance, this instance catches up then.
     */

    if (load->cut != UINT64_MAX) {
        (void) ngx_bloom_pending_apply(zone, &load->replay.bits);
    }

    /* not load->replay.reader.limit: it may have moved after the last record */

    sh->applied = state->alone ? ngx_bloom_state_tail(state)
                               : load->replay.reader.position;
    sh->checkpoint = ngx_min(load->position, ngx_bloom_state_tail(state));

    if (load->cut != UINT64_MAX) {
        ngx_bloom_as_of_serve(state, &load->image);
    }

    __atomic_store_n(&state->control->instance[state->instance].applied,
                     sh->applied, __ATOMIC_SEQ_CST);

    ngx_bloom_catch_up_log_lost(zone, &load->replay.reader, load->complete);

    if (load->replay.records != 0 || load->position != 0) {
        ngx_log_error(NGX_LOG_NOTICE, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" replayed %uL key%s in %uL record%s of "
                      "its journal%s, in %uL ms", &zone->name,
                      load->replay.keys,
                      ngx_bloom_plural(load->replay.keys),
                      load->replay.records,
                      ngx_bloom_plural(load->replay.records),
                      load->position ? " after a checkpoint" : "",
                      ngx_bloom_time() - load->begun);
    }

    return NGX_OK;
}


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


ngx_int_t
ngx_bloom_base_change(ngx_bloom_load_t *load, ngx_bloom_copy_t *upload)
{
    u_char              name[NGX_MAX_PATH];
    uint64_t            position;
    ngx_bloom_shctx_t  *sh;
    ngx_bloom_state_t  *state;

    sh = load->zone->sh;
    state = load->zone->state;

    if (state == NULL) {
        return NGX_OK;
    }

    if (upload == NULL) {
        (void) ngx_bloom_state_files_remove(state, "upload.", NULL);

        if (ngx_bloom_io_sync_directory(state->dir) != NGX_OK) {
            return NGX_ERROR;
        }

    } else {
        ngx_bloom_state_files_upload(sh->file ? sh->file_build : NULL, name);

        if (ngx_bloom_copy_place(upload, name, sh->applied) != NGX_OK) {
            return NGX_ERROR;
        }

        sh->based = sh->generation;

        (void) ngx_bloom_state_files_remove(state, "upload.", name);
    }

    /* a start would use an older checkpoint of this image */

    if (ngx_bloom_state_files_find(state, load->image.build_id, name,
                                   &position)
        == NGX_OK)
    {
        sh->checkpoint = position;
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_base_refuse(ngx_bloom_zone_t *zone)
{
    ngx_log_error(ngx_bloom_zone_level(zone),
                  zone->shm_zone->shm.log, zone->file.err,
                  "image \"%V\" of bloom zone \"%V\" %s%s",
                  &zone->file.name, &zone->name, zone->file.error,
                  zone->file.err ? "; put an image there that the workers' "
                                   "user may read" : "");

    return NGX_ERROR;
}


ngx_int_t
ngx_bloom_base_refuse_by_guard(ngx_bloom_zone_t *zone, ngx_bloom_guard_t *guard)
{
    ngx_log_error(ngx_bloom_zone_level(zone),
                  zone->shm_zone->shm.log, guard->err,
                  "image \"%V\" of bloom zone \"%V\" %s",
                  &zone->file.name, &zone->name, guard->error);

    return NGX_ERROR;
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
