/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file loads images, replays the journal, and switches to a new
 * generation.
 */

#include "ngx_bloom_load.h"
#include "ngx_bloom_removals.h"
#include "ngx_bloom_adapt.h"
#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_place.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_unprivileged.h"
#include "ngx_bloom_memory.h"
#include "ngx_bloom_ring.h"
#include "ngx_bloom_ring_image.h"
#include "bloom_image_decode.h"

#include <sys/mman.h>
#include <sys/random.h>


/* After how many chunks a load checks again that there is memory for the rest.
 */
#define NGX_BLOOM_LOAD_ROOM   32

/* How much memory a load leaves to other processes, which may take some before
 * its next check: an eighth of the image, but at most this many bytes. */
#define NGX_BLOOM_LOAD_SPARE  (16 * 1024 * 1024)


static ngx_int_t ngx_bloom_load_open(ngx_bloom_load_t *load,
    ngx_bloom_image_file_t *file, bloom_image_t *image);
static ngx_int_t ngx_bloom_load_open_file(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_describe(ngx_bloom_load_t *load,
    bloom_image_t *image);
static ngx_int_t ngx_bloom_load_prepare(ngx_bloom_load_t *load,
    bloom_image_t *image);
static void ngx_bloom_load_copied(ngx_bloom_load_t *load, ngx_uint_t reads);
static void ngx_bloom_load_begin_check(ngx_bloom_load_t *load,
    ngx_bloom_zone_t *zone, const char *about, ngx_uint_t force);
static void ngx_bloom_load_plan(ngx_bloom_load_t *load,
    const bloom_image_t *image);
static ngx_int_t ngx_bloom_load_filter(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_chunk(ngx_bloom_load_t *load, uint64_t chunk);
static ngx_int_t ngx_bloom_load_filled(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_room(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_exceptions(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_unreplayed(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_switch_locked(ngx_bloom_load_t *load,
    ngx_uint_t uploaded);


ngx_int_t
ngx_bloom_load_begin(ngx_bloom_load_t *load, ngx_bloom_zone_t *zone,
    ngx_bloom_image_file_t *file, bloom_image_t *image,
    const bloom_point_t *point, const char *about, ngx_uint_t force)
{
    ngx_memzero(load, sizeof(ngx_bloom_load_t));

    load->zone = zone;
    load->force = force;
    load->about = about;

    if (point != NULL) {
        load->point = *point;
    }

    return ngx_bloom_load_open(load, file, image);
}


ngx_int_t
ngx_bloom_load_begin_clear(ngx_bloom_load_t *load, ngx_bloom_zone_t *zone,
    ngx_bloom_image_file_t *file, bloom_image_t *image)
{
    ngx_memzero(load, sizeof(ngx_bloom_load_t));

    load->zone = zone;
    load->clears = 1;
    load->force = 1;

    return ngx_bloom_load_open(load, file, image);
}


static ngx_int_t
ngx_bloom_load_open(ngx_bloom_load_t *load, ngx_bloom_image_file_t *file,
    bloom_image_t *image)
{
    ngx_bloom_zone_t  *zone;

    zone = load->zone;

    load->bank = !(zone->sh->generation & 1);
    load->begun = ngx_bloom_time();
    load->file = *file;
    load->empty = (file->name.len == 0);

    file->fd = NGX_INVALID_FILE;
    load->file.reader.ctx = &load->file;

    /* what is in the state directory was made of accepted images */

    load->guarded = (load->file.name.len != 0 && load->file.state == NULL);

    if (load->file.name.len != 0 && ngx_bloom_load_open_file(load) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_bloom_load_describe(load, image) != NGX_OK) {
        return NGX_ERROR;
    }

    /* a filter that starts empty knows nothing, nor does its checkpoint */

    load->truth = (load->file.name.len == 0
                   || (load->point.position != 0 && image == NULL))
                  ? 0 : ngx_bloom_as_of_truth(zone->state, &load->image);

    load->cut = ngx_bloom_as_of_cut(zone->state, &load->image);
    load->complete = ngx_max(load->cut, 1);

    ngx_bloom_load_copied(load, 1);

    if (ngx_bloom_load_admit(load) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_bloom_load_prepare(load, image) != NGX_OK) {
        return NGX_ERROR;
    }

    __atomic_store_n(&zone->sh->load_done, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&zone->sh->load_total,
                     bloom_image_payload_size(&load->image),
                     __ATOMIC_RELAXED);

    if (load->file.name.len != 0) {
        load->takes = bloom_image_payload_size(&load->image);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_load_open_file(ngx_bloom_load_t *load)
{
    if (load->file.fd == NGX_INVALID_FILE
        && ngx_bloom_image_file_open(&load->file) != NGX_OK)
    {
        return ngx_bloom_load_unopened(load);
    }

    load->image = load->file.reader.image;

    ngx_log_debug5(NGX_LOG_DEBUG_CORE, load->zone->shm_zone->shm.log, 0,
                   "bloom zone \"%V\": load opens \"%V\": %uL key%s, "
                   "%uL bytes", &load->zone->name, &load->file.name,
                   load->image.items, ngx_bloom_plural(load->image.items),
                   bloom_image_payload_size(&load->image));

    return NGX_OK;
}


/* Makes load->image what will serve, from `image` unless that is NULL, and
 * checks its key form. */
static ngx_int_t
ngx_bloom_load_describe(ngx_bloom_load_t *load, bloom_image_t *image)
{
    char              error[BLOOM_IMAGE_ERROR_LEN];
    bloom_geometry_t  geometry;

    if (image != NULL) {

        geometry = load->image.geometry;
        load->image.geometry.layers = 0;

        if (load->file.name.len != 0
            && bloom_image_differs(image, &load->image) != NULL)
        {
            return ngx_bloom_load_refuse(load, 0, "belongs to another image");
        }

        load->image = *image;

        if (load->file.name.len != 0) {
            load->image.geometry = geometry;
        }

    } else if (load->point.position != 0) {

        /* the removed keys of the checkpoint take the room for removed keys:
         * an empty filter has none of its own */

        load->image.exceptions = 0;
        load->image.exceptions_size = 0;
        load->image.built = 0;
        load->image.built_size = 0;
        bloom_image_set_source(&load->image, NULL);
    }

    /* the checkpoint of an empty filter may be older than the zone's "form=" */

    if ((load->point.position == 0 || image != NULL)
        && ngx_bloom_guard_form(load->zone, &load->image, error) != NGX_OK)
    {
        return ngx_bloom_load_refuse(load, 0, error);
    }

    return NGX_OK;
}


/* Prepares the bank, and the replay that fills it. */
static ngx_int_t
ngx_bloom_load_prepare(ngx_bloom_load_t *load, bloom_image_t *image)
{
    uint8_t            secret[BLOOM_HASH_KEY_LEN];
    ngx_bloom_zone_t  *zone;

    zone = load->zone;

    ngx_bloom_zone_release(zone, load->bank);

    zone->sh->bank[load->bank].filled = 1;
    ngx_bloom_load_plan(load, image);
    zone->sh->bank[load->bank].removals = zone->removals_room;

    if (getrandom(secret, BLOOM_HASH_KEY_LEN, 0) == -1) {
        return ngx_bloom_load_fails(load, NGX_BLOOM_FAILED, ngx_errno,
                                    "getrandom() failed");
    }

    ngx_bloom_replay_begin(&load->replay, zone);

    load->replay.cut = load->cut;
    load->replay.truth = load->truth;
    load->replay.point = load->copy ? load->copied : load->point;
    load->replay.start = ngx_bloom_zone_position(zone, load->file.name.len != 0
                                                 ? &load->file.reader.image
                                                 : &load->image);

    ngx_bloom_zone_bits(zone, load->bank, &load->replay.bits);

#if (NGX_DEBUG_MALLOC)
    ngx_memzero(ngx_bloom_zone_bank(zone, load->bank)
                + bloom_image_payload_size(&load->image),
                ngx_bloom_zone_bank_needs(&zone->sh->bank[load->bank].image,
                                          zone->removals_room)
                - bloom_image_payload_size(&load->image));
#endif

    bloom_exceptions_init(&load->replay.bits.exceptions, secret);

    if (load->image.origin_len != 0
        && ngx_bloom_io_read(load->file.fd, zone->sh->bank[load->bank].header,
                             BLOOM_IMAGE_PAGE, 0)
           != BLOOM_IMAGE_PAGE)
    {
        return ngx_bloom_load_refuse(load, ngx_errno, "cannot be read");
    }

    return NGX_OK;
}


/*
 * Finds out if the image is a copy of this zone, made where the journal still
 * has all that followed.  It has what was before, and everything behind is
 * newer, whatever the time.  The journal has to have that point, if this
 * process `reads` it; workers only look at its ends.
 */
static void
ngx_bloom_load_copied(ngx_bloom_load_t *load, ngx_uint_t reads)
{
    bloom_base_t         base;
    bloom_point_t        point;
    ngx_bloom_end_t      end;
    ngx_bloom_state_t   *state;
    bloom_image_copy_t  *copy;

    state = load->zone->state;
    copy = &load->image.copy;

    if (state == NULL || load->clears || load->point.position != 0
        || load->empty
        || ngx_memcmp(copy->journal, state->control->journal,
                      BLOOM_JOURNAL_ID_LEN)
           != 0)
    {
        return;
    }

    ngx_bloom_base_file_get(state, &base);
    end = ngx_bloom_state_end(state);

    if (copy->position < base.from.position
        || copy->sequence < base.from.sequence
        || (end.sequence != 0 && copy->position > end.tail))
    {
        return;
    }

    point.position = copy->position;
    point.sequence = copy->sequence;
    point.time = copy->time;
    point.removals.keys = copy->removed;
    point.removals.bytes = copy->removed_bytes;
    point.place = base.from.place;

    if (reads && !ngx_bloom_reader_has(state, &point, &base.from,
                                       end.sequence != 0 ? &end : NULL))
    {
        return;
    }

    load->copy = 1;
    load->copied = point;

    if (load->zone->expire == 0) {
        load->cut = 0;
        load->truth = 0;
    }

    load->complete = ngx_max(load->complete, load->image.created);
}


/* Plans the layers of the bank.  The checkpoint of an empty filter gets layers
 * up to the capacity that the zone has now. */
static void
ngx_bloom_load_plan(ngx_bloom_load_t *load, const bloom_image_t *image)
{
    uint64_t           max_keys;
    ngx_bloom_zone_t  *zone;

    zone = load->zone;
    max_keys = zone->max_keys;

    if (load->point.position != 0 && image == NULL && !zone->sh->uploaded) {
        zone->max_keys = ngx_max(max_keys, zone->image.capacity);
    }

    ngx_bloom_layers_plan(zone, load->bank, &load->image,
                          zone->sh->generation + 1);

    zone->max_keys = max_keys;
}


static void
ngx_bloom_load_begin_check(ngx_bloom_load_t *load, ngx_bloom_zone_t *zone,
    const char *about, ngx_uint_t force)
{
    ngx_memzero(load, sizeof(ngx_bloom_load_t));

    load->zone = zone;
    load->about = about;
    load->force = force;
    load->guarded = 1;
}


ngx_int_t
ngx_bloom_load_check(ngx_bloom_load_t *load, ngx_bloom_zone_t *zone,
    const u_char header[BLOOM_IMAGE_PAGE], uint64_t size, const char *about,
    ngx_uint_t force)
{
    char  error[BLOOM_IMAGE_ERROR_LEN];

    ngx_bloom_load_begin_check(load, zone, about, force);

    if (bloom_image_decode(&load->image, header, size, error) != 0
        || ngx_bloom_guard_form(zone, &load->image, error) != NGX_OK)
    {
        return ngx_bloom_load_refuse(load, 0, error);
    }

    if (load->image.flags & BLOOM_IMAGE_RING) {
        return ngx_bloom_load_refuse(load, 0, BLOOM_IMAGE_IS_RING);
    }

    ngx_bloom_load_copied(load, 0);

    return ngx_bloom_load_admit(load);
}


ngx_int_t
ngx_bloom_load_check_image(ngx_bloom_load_t *load, ngx_bloom_zone_t *zone,
    const bloom_image_t *image)
{
    ngx_bloom_load_begin_check(load, zone, NULL, 0);

    load->image = *image;
    load->file.name = zone->file.name;

    ngx_bloom_load_copied(load, 0);

    return ngx_bloom_load_admit(load);
}


void
ngx_bloom_load_begin_journal(ngx_bloom_load_t *load, ngx_bloom_zone_t *zone)
{
    ngx_memzero(load, sizeof(ngx_bloom_load_t));

    load->zone = zone;
    load->begun = ngx_bloom_time();
    load->file.fd = NGX_INVALID_FILE;
    load->cut = UINT64_MAX;
    load->complete = 1;

    ngx_bloom_replay_begin(&load->replay, zone);
    load->replay.cut = UINT64_MAX;
}


ngx_int_t
ngx_bloom_load_run(ngx_bloom_load_t *load)
{
    if (ngx_bloom_load_filter(load) != NGX_OK
        || ngx_bloom_load_exceptions(load) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* before keys of the journal are added */

    if (load->guarded
        && ngx_bloom_guard_keys(&load->guard, load->zone, &load->replay.bits)
           != NGX_OK)
    {
        return ngx_bloom_load_refuse(load, load->guard.err, load->guard.error);
    }

    return load->clears ? NGX_OK : ngx_bloom_load_journal(load);
}


ngx_int_t
ngx_bloom_load_journal(ngx_bloom_load_t *load)
{
    const char  *lacks;

    ngx_bloom_fault("load");

    if (ngx_bloom_replay_run(&load->replay) != NGX_OK) {
        return ngx_bloom_load_unreplayed(load);
    }

    lacks = ngx_bloom_load_lacks(load);

    if (lacks != NULL) {
        return ngx_bloom_load_refuse(load, 0, lacks);
    }

    ngx_bloom_adapt_keep(load->zone, &load->image, &load->replay.bits,
                         load->replay.reader.position);

    return NGX_OK;
}


/* Fills the bank.  Returns NGX_OK or NGX_ERROR. */
static ngx_int_t
ngx_bloom_load_filter(ngx_bloom_load_t *load)
{
    uint64_t  chunk, chunks;

    if (load->file.name.len == 0) {

        ngx_log_debug1(NGX_LOG_DEBUG_CORE, load->zone->shm_zone->shm.log, 0,
                       "bloom zone \"%V\": load begins with an empty filter",
                       &load->zone->name);

#if (NGX_DEBUG_MALLOC)
        ngx_memzero(ngx_bloom_zone_bank(load->zone, load->bank),
                    bloom_image_payload_size(&load->image));
#endif
        return NGX_OK;
    }

    chunks = bloom_image_chunks(&load->file.reader.image);

    for (chunk = 0; chunk < chunks; chunk++) {

        if (ngx_bloom_load_chunk(load, chunk) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return ngx_bloom_load_filled(load);
}


/* Copies a chunk of the image into the bank. */
static ngx_int_t
ngx_bloom_load_chunk(ngx_bloom_load_t *load, uint64_t chunk)
{
    u_char             *p;
    size_t              len;
    uint64_t            offset;
    ngx_bloom_shctx_t  *sh;

    sh = load->zone->sh;

    ngx_bloom_fault("load");

    if (chunk % NGX_BLOOM_LOAD_ROOM == 0
        && ngx_bloom_load_room(load) != NGX_OK)
    {
        return NGX_ERROR;
    }

    offset = chunk * BLOOM_IMAGE_CHUNK;
    len = bloom_image_chunk_size(&load->image, chunk);
    p = ngx_bloom_zone_bank(load->zone, load->bank) + offset;

#ifdef MADV_POPULATE_WRITE

    /* populate all pages of the chunk at once: that is cheaper than a fault for
     * each.  Older kernels refuse it, which does no harm */

    (void) madvise(p, ngx_align(len, ngx_pagesize), MADV_POPULATE_WRITE);
#endif

    if (ngx_bloom_image_file_next(&load->file, p) != NGX_OK) {
        return ngx_bloom_load_refuse(load, load->file.err, load->file.error);
    }

    if (load->takes != 0) {
        load->takes -= len;
    }

    if (load->image.geometry.slices == 0) {
        ngx_bloom_layers_count_words(&sh->bank[load->bank].image.geometry,
                                     (uint64_t *) p, offset / sizeof(uint64_t),
                                     len / sizeof(uint64_t),
                                     sh->bank[load->bank].bits_set);
    }

    __atomic_store_n(&sh->load_done, offset + len, __ATOMIC_RELAXED);

    return NGX_OK;
}


/* Checks the bank when it has the whole filter. */
static ngx_int_t
ngx_bloom_load_filled(ngx_bloom_load_t *load)
{
    uint64_t  bits_set[BLOOM_PARTS_MAX];

    ngx_log_debug2(NGX_LOG_DEBUG_CORE, load->zone->shm_zone->shm.log, 0,
                   "bloom zone \"%V\": load verified the image, which sets "
                   "%uL bits", &load->zone->name,
                   ngx_bloom_layers_bits_set(load->zone, load->bank,
                                             bits_set));

    (void) ngx_bloom_layers_bits_set(load->zone, load->bank, bits_set);

    if (load->guarded
        && ngx_bloom_guard_bits(&load->guard, load->zone, &load->image,
                                load->force, bits_set)
           != NGX_OK)
    {
        return ngx_bloom_load_refuse(load, 0, load->guard.error);
    }

    if (load->image.flags & BLOOM_IMAGE_RING) {
        ngx_bloom_ring_image_load(load->zone, load->bank,
                                  &load->file.reader.ring);
    }

    return NGX_OK;
}


/* Puts the image's exceptions into the bank. */
static ngx_int_t
ngx_bloom_load_exceptions(ngx_bloom_load_t *load)
{
    if (load->file.name.len == 0) {
        return NGX_OK;
    }

    switch (ngx_bloom_image_file_except(&load->file,
                                        &load->replay.bits.exceptions))
    {

    case NGX_OK:
        return NGX_OK;

    case NGX_DECLINED:
        return ngx_bloom_load_fails(load, NGX_BLOOM_NO_ROOM, 0,
                                    "bloom zone \"%V\" has no room for the "
                                    "%uL removed keys of the image; raise "
                                    "\"removals\"", &load->zone->name,
                                    load->file.reader.image.exceptions);

    default: /* NGX_ERROR */
        return ngx_bloom_load_refuse(load, load->file.err, load->file.error);
    }
}


/*
 * Checks that there is memory for what this load has still to take.  If it took
 * more than there is, the system would kill a process, and not necessarily this
 * one.
 */
static ngx_int_t
ngx_bloom_load_room(ngx_bloom_load_t *load)
{
    uint64_t            needs;
    ngx_bloom_memory_t  left;

    if (load->takes == 0) {
        return NGX_OK;
    }

    needs = load->takes
            + ngx_min(bloom_image_payload_size(&load->image) / 8,
                      NGX_BLOOM_LOAD_SPARE);

    ngx_bloom_memory_left(&left);

    if (needs <= left.bytes) {
        return NGX_OK;
    }

    return ngx_bloom_load_fails(load, NGX_BLOOM_NO_ROOM, 0,
                                "bloom zone \"%V\" cannot load an image for "
                                "lack of memory: it needs %uLk more, and "
                                "%s%s%s has %uLk left; free memory, or raise "
                                "the limit, and try again",
                                &load->zone->name,
                                (needs + 1023) / 1024,
                                left.group[0] ? "the control group \"" : "",
                                left.group[0] ? (char *) left.group
                                              : "the machine",
                                left.group[0] ? "\"" : "",
                                left.bytes / 1024);
}


/* Fails for the reason for which the replay has failed. */
static ngx_int_t
ngx_bloom_load_unreplayed(ngx_bloom_load_t *load)
{
    ngx_bloom_replay_t  *replay;

    replay = &load->replay;

    if (!replay->full) {
        return ngx_bloom_load_fails(load, NGX_BLOOM_FAILED, replay->err,
                                    "%s", replay->error);
    }

    return ngx_bloom_load_fails(load, NGX_BLOOM_NO_ROOM, 0,
                                "bloom zone \"%V\" has no room for all keys "
                                "that were removed %s: it has room for %ui; "
                                "raise \"removals\"%s", &load->zone->name,
                                load->zone->expire ? "within a life"
                                : "after this image was built",
                                load->zone->removals_room,
                                load->zone->expire ? ""
                                : ", or load an image built with a later "
                                  "--as-of");
}


/*
 * With the lock of the zone, so that nobody changes it (I9):
 *
 *  1. add the last records to the new bank
 *  2. raise `lost` to what the reader has found lost
 *  3. lower `complete`, if the new filter has less of what was lost
 *  4. raise the generation
 *  5. raise `complete`, if the new filter has more of what was lost
 *  6. set `applied`
 *
 * A key that is lost without the lock raises `lost` above `complete`, so the
 * zone answers "unknown" whichever filter serves; one that is lost with the
 * lock raises both, before step 3, which lowers `complete` again, or after step
 * 6.
 *
 * A lookup reads the generation before and after it reads `lost` and
 * `complete`.  If it reads the new generation before, it sees step 3.  If it
 * has seen step 5, it reads the new generation after, and starts again.
 *
 * A process that dies between steps 3 and 5 leaves a `complete` that is too
 * low, never too high: the zone may answer "unknown" until the next load.
 */
ngx_int_t
ngx_bloom_load_switch(ngx_bloom_load_t *load, ngx_uint_t uploaded)
{
    ngx_int_t           rc;
    ngx_bloom_shctx_t  *sh;

    sh = load->zone->sh;

    ngx_bloom_fault("switch");

    if (ngx_bloom_lock(&sh->applying, NGX_BLOOM_APPLYING_WAIT) != NGX_OK) {
        return ngx_bloom_load_busy(load);
    }

    /* what was appended while this waited for the lock */

    rc = (ngx_bloom_replay_run(&load->replay) == NGX_OK)
         ? ngx_bloom_load_switch_locked(load, uploaded)
         : ngx_bloom_load_unreplayed(load);

    ngx_bloom_unlock(&sh->applying);

    return rc;
}


static ngx_int_t
ngx_bloom_load_switch_locked(ngx_bloom_load_t *load, ngx_uint_t uploaded)
{
    const char         *lacks;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_state_t  *state;

    zone = load->zone;
    state = zone->state;

    if (ngx_bloom_zone_lock(zone, 1000) != NGX_OK) {
        return ngx_bloom_load_busy(load);
    }

    if (state != NULL) {

        /* replay what was appended since the last step; it is little */

        if (ngx_bloom_replay_rest(&load->replay) != NGX_OK) {
            ngx_bloom_zone_unlock(zone);
            return ngx_bloom_load_unreplayed(load);
        }

        lacks = ngx_bloom_load_lacks(load);

        if (lacks != NULL) {

            /* another instance has a newer image and has removed records */

            ngx_bloom_zone_unlock(zone);
            return ngx_bloom_load_refuse(load, 0, lacks);
        }

        if (load->replay.reader.lost != 0) {
            ngx_bloom_control_lose(&zone->control->loss,
                                   load->replay.reader.lost);
        }

    } else if (ngx_bloom_load_knows(load) != NGX_OK) {
        ngx_bloom_zone_unlock(zone);
        return NGX_ERROR;
    }

    if (load->replay.bits.ring != NULL) {
        ngx_bloom_ring_replayed(&load->replay.bits);
    }

    ngx_bloom_load_turn(load, uploaded, load->replay.reader.limit,
                        &load->replay.reader.end.removals);

    ngx_bloom_zone_unlock(zone);

    if (state != NULL) {

        /* do this without the lock: a crash before it loses nothing, since
         * the next reader finds the same damage */

        if (load->replay.reader.lost != 0) {
            (void) ngx_bloom_io_sync(state->fd);
        }

        ngx_log_debug4(NGX_LOG_DEBUG_CORE, zone->shm_zone->shm.log, 0,
                       "bloom zone \"%V\": load replayed up to %uL: "
                       "records %uL, keys %uL", &zone->name,
                       load->replay.reader.limit, load->replay.records,
                       load->replay.keys);
    }

    ngx_log_debug2(NGX_LOG_DEBUG_CORE, zone->shm_zone->shm.log, 0,
                   "bloom zone \"%V\": load serves generation %uL",
                   &zone->name, zone->sh->generation);

    ngx_bloom_catch_up_log_lost(zone, &load->replay.reader, load->complete);

    return NGX_OK;
}


void
ngx_bloom_load_turn(ngx_bloom_load_t *load, ngx_uint_t uploaded,
    uint64_t applied, const bloom_removals_t *removals)
{
    ngx_bloom_zone_t   *zone;
    ngx_bloom_state_t  *state;
    ngx_bloom_shctx_t  *sh;

    zone = load->zone;
    sh = zone->sh;
    state = zone->state;

    if (state != NULL) {
        ngx_bloom_as_of_serve(state, &load->image);

        if (load->clears) {
            ngx_bloom_place_clear(zone, load->replay.start);

        } else {
            ngx_bloom_place_serve(zone, &load->replay.place,
                                  load->replay.start);
        }
    }

    if (load->complete < sh->complete) {
        __atomic_store_n(&sh->complete, load->complete, __ATOMIC_SEQ_CST);
    }

    ngx_bloom_fault("held");

    __atomic_fetch_add(&sh->generation, 1, __ATOMIC_SEQ_CST);

    /* a lookup that reads from the old bank what is written from here on must
     * find that the generation has changed */

    __atomic_thread_fence(__ATOMIC_SEQ_CST);

    ngx_bloom_fault("turned");

    __atomic_store_n(&sh->complete, load->complete, __ATOMIC_SEQ_CST);

    ngx_bloom_fault("switched");

    sh->uploaded = uploaded;

    if (state != NULL) {
        __atomic_store_n(&sh->applied, applied, __ATOMIC_SEQ_CST);
        ngx_bloom_removals_applied(zone, applied, removals);

        sh->checkpoint = load->point.position;
    }

    ngx_bloom_fault("served");
}


void
ngx_bloom_load_end(ngx_bloom_load_t *load)
{
    ngx_bloom_image_file_close(&load->file);
    ngx_bloom_replay_end(&load->replay);

    __atomic_store_n(&load->zone->sh->load_total, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&load->zone->sh->load_done, 0, __ATOMIC_RELAXED);
}
