/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_snapshot.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_state_files.h"

#include <sys/statvfs.h>


/* How long the last snapshot is kept for further requests, ms. */
#define NGX_BLOOM_SNAPSHOT_LIFE   60000

/* The pause before another snapshot: at most so many ms, and so many times as
 * long as the last one took. */
#define NGX_BLOOM_SNAPSHOT_PAUSE  10000
#define NGX_BLOOM_SNAPSHOT_SHARE  9

/* How many snapshots may be in the state directory at a time. */
#define NGX_BLOOM_SNAPSHOT_FILES  4

/* Bytes that must stay free for the journal while a snapshot exists. */
#define NGX_BLOOM_SNAPSHOT_SPARE  (4 * (uint64_t) BLOOM_SEGMENT_SIZE)


static ngx_uint_t ngx_bloom_snapshot_holds(ngx_bloom_zone_t *zone);
static ngx_uint_t ngx_bloom_snapshot_has_all(ngx_bloom_zone_t *zone);
static uint64_t ngx_bloom_snapshot_bits(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_snapshot_admit(ngx_bloom_zone_t *zone,
    ngx_bloom_result_t *result);


void
ngx_bloom_snapshot(ngx_bloom_zone_t *zone, ngx_bloom_result_t *result)
{
    uint64_t               begun, pause;
    ngx_bloom_save_t       save;
    ngx_bloom_snapshot_t  *last;

    last = &zone->sh->snapshot;

    if (ngx_bloom_snapshot_has_all(zone)) {
        ngx_cpystrn(result->name, last->name, sizeof(result->name));
        return;
    }

    last->name[0] = '\0';

    if (ngx_bloom_snapshot_admit(zone, result) != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0, "%s", result->message);
        return;
    }

    begun = ngx_current_msec;

    if (ngx_bloom_save(&save, zone, NGX_BLOOM_TASK_SNAPSHOT) == NGX_OK) {
        ngx_cpystrn(result->name, save.name, sizeof(result->name));

        last->generation = save.generation;
        last->position = save.point.position;
        last->bits_set = save.bits_set;
        last->puts = save.excepted.puts;
        last->excepted = save.excepted.count;

        ngx_cpystrn(last->name, save.name, sizeof(last->name));

    } else {
        ngx_bloom_save_report(&save, result);
    }

    ngx_bloom_save_end(&save);

    ngx_time_update();

    pause = NGX_BLOOM_SNAPSHOT_SHARE * (ngx_current_msec - begun);

    last->ended = ngx_current_msec;
    last->next = ngx_current_msec + ngx_min(pause, NGX_BLOOM_SNAPSHOT_PAUSE);
}


/* Returns 1 if the last snapshot has all keys of the zone. */
static ngx_uint_t
ngx_bloom_snapshot_has_all(ngx_bloom_zone_t *zone)
{
    ngx_int_t  rc;

    if (zone->sh->snapshot.name[0] == '\0'
        || ngx_bloom_lock(&zone->sh->applying, NGX_BLOOM_APPLYING_WAIT)
           != NGX_OK)
    {
        return 0;
    }

    rc = ngx_bloom_catch_up(zone);

    ngx_bloom_unlock(&zone->sh->applying);

    return rc == NGX_OK && ngx_bloom_snapshot_holds(zone);
}


/* Returns 1 if the last snapshot has what the filter has now. */
static ngx_uint_t
ngx_bloom_snapshot_holds(ngx_bloom_zone_t *zone)
{
    ngx_bloom_snapshot_t         *last;
    ngx_bloom_save_exceptions_t   excepted;

    last = &zone->sh->snapshot;

    if (last->name[0] == '\0' || ngx_bloom_save_lacks(zone) != NULL) {
        return 0;
    }

    excepted = ngx_bloom_save_excepted(zone);

    return zone->sh->generation == last->generation
           && zone->sh->applied == last->position
           && ngx_bloom_snapshot_bits(zone) == last->bits_set
           && excepted.puts == last->puts
           && excepted.count == last->excepted
           && faccessat(zone->state->dir, (char *) last->name, F_OK, 0) == 0;
}


static uint64_t
ngx_bloom_snapshot_bits(ngx_bloom_zone_t *zone)
{
    uint64_t  bits_set[BLOOM_PARTS_MAX];

    return ngx_bloom_layers_bits_set(zone, zone->sh->generation & 1, bits_set);
}


ngx_msec_t
ngx_bloom_snapshot_wait(ngx_bloom_zone_t *zone)
{
    ngx_msec_int_t         wait;
    ngx_bloom_snapshot_t  *last;

    last = &zone->sh->snapshot;
    wait = (ngx_msec_int_t) (last->next - ngx_current_msec);

    return last->next == 0 || wait <= 0 || ngx_bloom_snapshot_holds(zone)
           ? 0 : (ngx_msec_t) wait;
}


/*
 * Removes snapshots that nobody reads.  Returns NGX_OK if another may be
 * written now, or NGX_ERROR with result->outcome and result->message.
 */
static ngx_int_t
ngx_bloom_snapshot_admit(ngx_bloom_zone_t *zone, ngx_bloom_result_t *result)
{
    uint64_t        size, room;
    ngx_uint_t      used;
    bloom_image_t   image;
    struct statvfs  fs;

    used = ngx_bloom_state_files_unused(zone->state, "snapshot.", NULL);

    if (used >= NGX_BLOOM_SNAPSHOT_FILES) {
        result->outcome = NGX_BLOOM_FAILED;

        ngx_bloom_print(result->message, sizeof(result->message),
                        "bloom zone \"%V\": %ui images of it are still being "
                        "sent, and no other is written until one of them has "
                        "been sent; try again later, and lower "
                        "\"send_timeout\" if clients are slow", &zone->name,
                        used);
        return NGX_ERROR;
    }

    if (zone->sh->generation == 0
        || fstatvfs(zone->state->dir, &fs) == -1)
    {
        return NGX_OK;               /* the save will report the error */
    }

    ngx_bloom_layers_image(zone, zone->sh->generation & 1, &image);

    size = bloom_image_file_size(&image);
    room = (uint64_t) fs.f_bavail * fs.f_frsize;

    if (room < size + NGX_BLOOM_SNAPSHOT_SPARE) {
        result->outcome = NGX_BLOOM_NO_ROOM;

        ngx_bloom_print(result->message, sizeof(result->message),
                        "the disk of \"%V\" has %uL bytes left: an image of "
                        "bloom zone \"%V\" needs %uL bytes, and the journal "
                        "needs %uL more; make room on that disk",
                        &zone->state->path, room, &zone->name, size,
                        NGX_BLOOM_SNAPSHOT_SPARE);
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_bloom_snapshot_clean(ngx_bloom_zone_t *zone)
{
    ngx_bloom_snapshot_t  *last;

    last = &zone->sh->snapshot;

    if (ngx_current_msec - last->ended >= NGX_BLOOM_SNAPSHOT_LIFE) {
        last->name[0] = '\0';
    }

    (void) ngx_bloom_state_files_unused(zone->state, "snapshot.", last->name);
}
