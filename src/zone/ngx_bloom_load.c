/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file loads images and replays the journal step by step, and switches to
 * a new generation.
 */

#include "ngx_bloom_load.h"
#include "ngx_bloom_adapt.h"
#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_bank.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_place.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_unprivileged.h"
#include "ngx_bloom_memory.h"
#include "ngx_bloom_pending.h"
#include "ngx_bloom_ring.h"
#include "ngx_bloom_writers.h"

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
static ngx_int_t ngx_bloom_load_unopened(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_admit(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_chunk(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_check_keys(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_room(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_exceptions(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_unreplayed(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_refuse(ngx_bloom_load_t *load,
    ngx_err_t err, const char *error);


/* Bytes of memory that the loads of this process have still to take. */
static uint64_t  ngx_bloom_load_takes;


ngx_int_t
ngx_bloom_load_begin(ngx_bloom_load_t *load, ngx_bloom_zone_t *zone,
    ngx_bloom_image_file_t *file, bloom_image_t *image, uint64_t position,
    const char *about, ngx_uint_t force)
{
    ngx_memzero(load, sizeof(ngx_bloom_load_t));

    load->zone = zone;
    load->force = force;
    load->position = position;
    load->about = about;

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
    char               error[BLOOM_IMAGE_ERROR_LEN];
    uint8_t            secret[BLOOM_HASH_KEY_LEN];
    ngx_pid_t          pid;
    bloom_geometry_t   geometry;
    ngx_bloom_zone_t  *zone;

    zone = load->zone;

    load->bank = !(zone->sh->generation & 1);
    load->begun = ngx_bloom_time();
    load->file = *file;

    file->fd = NGX_INVALID_FILE;
    load->file.reader.ctx = &load->file;

    /* what is in the state directory was made of accepted images */

    load->guarded = (load->file.name.len != 0 && load->file.state == NULL);

    if (load->file.name.len != 0) {

        if (load->file.fd == NGX_INVALID_FILE
            && ngx_bloom_image_file_open(&load->file) != NGX_OK)
        {
            return ngx_bloom_load_unopened(load);
        }

        load->image = load->file.reader.image;

        ngx_log_debug5(NGX_LOG_DEBUG_CORE, zone->shm_zone->shm.log, 0,
                       "bloom zone \"%V\": load opens \"%V\": %uL key%s, "
                       "%uL bytes", &zone->name, &load->file.name,
                       load->image.items, ngx_bloom_plural(load->image.items),
                       bloom_image_payload_size(&load->image));
    }

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

    } else if (load->position != 0) {

        /* the removed keys of the checkpoint take the room for removed keys:
         * an empty filter has none of its own */

        load->image.exceptions = 0;
        load->image.exceptions_size = 0;
        bloom_image_set_source(&load->image, NULL);
    }

    /* the checkpoint of an empty filter may be older than the zone's "form=" */

    if ((load->position == 0 || image != NULL)
        && ngx_bloom_guard_form(zone, &load->image, error) != NGX_OK)
    {
        return ngx_bloom_load_refuse(load, 0, error);
    }

    /* a filter that starts empty knows nothing, nor does its checkpoint */

    load->truth = (load->file.name.len == 0
                   || (load->position != 0 && image == NULL))
                  ? 0 : ngx_bloom_as_of_truth(zone->state, &load->image);

    load->cut = ngx_bloom_as_of_cut(zone->state, &load->image);
    load->complete = ngx_max(load->cut, 1);

    if (ngx_bloom_load_admit(load) != NGX_OK) {
        return NGX_ERROR;
    }

    pid = ngx_bloom_writers_wait(zone, load->bank, &load->image.geometry);

    if (pid != 0) {
        return ngx_bloom_load_fails(load, NGX_BLOOM_FAILED, 0,
                                    "bloom zone \"%V\" cannot load an image of "
                                    "layout fuse while the stopped process %P "
                                    "adds keys to an older one; resume or end "
                                    "that process, and try again",
                                    &zone->name, pid);
    }

    while (ngx_bloom_bank_release(zone, load->bank, (size_t) -1)) {
        /* void */
    }

    zone->sh->bank[load->bank].filled = 1;
    ngx_bloom_layers_plan(zone, load->bank, &load->image,
                          zone->sh->generation + 1);
    zone->sh->bank[load->bank].removals = zone->removals;
    zone->sh->bank[load->bank].excepted = 0;

    if (getrandom(secret, BLOOM_HASH_KEY_LEN, 0) == -1) {
        return ngx_bloom_load_fails(load, NGX_BLOOM_FAILED, ngx_errno,
                                    "getrandom() failed");
    }

    ngx_bloom_replay_begin(&load->replay, zone);

    load->replay.cut = load->cut;
    load->replay.truth = load->truth;
    load->replay.position = load->position;
    load->replay.start = ngx_bloom_zone_position(zone, load->file.name.len != 0
                                                 ? &load->file.reader.image
                                                 : &load->image);

    ngx_bloom_zone_bits(zone, load->bank, &load->replay.bits);

#if (NGX_DEBUG_MALLOC)
    ngx_memzero(ngx_bloom_zone_bank(zone, load->bank)
                + bloom_image_payload_size(&load->image),
                ngx_bloom_zone_bank_needs(&zone->sh->bank[load->bank].image,
                                          zone->removals)
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

    __atomic_store_n(&zone->sh->load_done, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&zone->sh->load_total,
                     bloom_image_payload_size(&load->image),
                     __ATOMIC_RELAXED);

    if (load->file.name.len != 0) {
        load->takes = bloom_image_payload_size(&load->image);
        ngx_bloom_load_takes += load->takes;
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_load_check(ngx_bloom_load_t *load, ngx_bloom_zone_t *zone,
    const u_char header[BLOOM_IMAGE_PAGE], uint64_t size, const char *about,
    ngx_uint_t force)
{
    char  error[BLOOM_IMAGE_ERROR_LEN];

    ngx_memzero(load, sizeof(ngx_bloom_load_t));

    load->zone = zone;
    load->about = about;
    load->force = force;
    load->guarded = 1;

    if (bloom_image_decode(&load->image, header, size, error) != 0
        || ngx_bloom_guard_form(zone, &load->image, error) != NGX_OK)
    {
        return ngx_bloom_load_refuse(load, 0, error);
    }

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
    load->stage = NGX_BLOOM_LOAD_JOURNAL;

    ngx_bloom_replay_begin(&load->replay, zone);
    load->replay.cut = UINT64_MAX;
}


/* Refuses a file that cannot be opened.  If the workers' user has no access to
 * it, the message says which path is in the way, and its owner and mode. */
static ngx_int_t
ngx_bloom_load_unopened(ngx_bloom_load_t *load)
{
    char               error[512];
    u_char             path[NGX_MAX_PATH], *what, owner[NGX_BLOOM_USER_LEN];
    struct stat        st;
    struct group      *group;
    ngx_core_conf_t   *ccf;

    ccf = load->zone->ccf;

    if (load->about == NULL && load->file.err == NGX_ENOENT) {
        return ngx_bloom_load_refuse(load, NGX_ENOENT,
                                     "cannot be opened; put an image there");
    }

    if (load->about != NULL
        || load->file.err != NGX_EACCES
        || ngx_bloom_image_file_readable(&load->file.name, ccf, path, &what)
        || stat((char *) what, &st) == -1)
    {
        return ngx_bloom_load_refuse(load, load->file.err, load->file.error);
    }

    group = getgrgid(st.st_gid);

    snprintf(error, sizeof(error),
             "%s: correct the owner or the mode of \"%s\", which user \"%s\" "
             "cannot access: it has user %s, group %u (%s) and mode %04o",
             load->file.error, (char *) what,
             ccf->username ? ccf->username : "unknown",
             (char *) ngx_bloom_unprivileged_called(owner, st.st_uid),
             (unsigned) st.st_gid, group ? group->gr_name : "unknown",
             (unsigned) (st.st_mode & 07777));

    return ngx_bloom_load_refuse(load, load->file.err, error);
}


/* Checks whether the image may be loaded into this zone at all. */
static ngx_int_t
ngx_bloom_load_admit(ngx_bloom_load_t *load)
{
    uint64_t           size;
    ngx_bloom_zone_t  *zone;

    zone = load->zone;
    size = ngx_bloom_layers_need(&load->image, 0);

    if (!ngx_bloom_layers_extensible(&load->image)) {
        return ngx_bloom_load_refuse(load, 0, NGX_BLOOM_LOAD_NO_LAYER);
    }

    if (size > zone->image_room) {
        return ngx_bloom_load_fails(load, NGX_BLOOM_NO_ROOM, 0,
                                    "bloom zone \"%V\" is too small: it has "
                                    "room for an image of %uzk, and this one "
                                    "has %uLk; %swrite \"zone=%V:%uzk\"",
                                    &zone->name, zone->image_room / 1024,
                                    (size + 1023) / 1024,
                                    load->about == NULL
                                    ? "reload nginx, or, if the zone's size "
                                      "is given, " : "",
                                    &zone->name,
                                    (ngx_bloom_zone_needs(size) + 1023)
                                    / 1024);
    }

    if (zone->max_age != 0 && load->image.as_of == 0) {
        return ngx_bloom_load_refuse(load, 0, NGX_BLOOM_LOAD_NO_AS_OF);
    }

    if (!load->clears && ngx_bloom_load_too_old(load)) {
        return ngx_bloom_load_refuse(load, 0, NGX_BLOOM_LOAD_TOO_OLD);
    }

    if (load->guarded
        && ngx_bloom_guard_header(&load->guard, zone, &load->image,
                                  load->force)
           != NGX_OK)
    {
        return ngx_bloom_load_refuse(load, 0, load->guard.error);
    }

    return NGX_OK;
}


ngx_uint_t
ngx_bloom_load_too_old(ngx_bloom_load_t *load)
{
    return ngx_bloom_as_of_too_old(load->zone->state, &load->image);
}


/* Returns why the image cannot be loaded with this journal: a phrase that
 * follows its name; NULL if it can. */
static const char *
ngx_bloom_load_lacks(ngx_bloom_load_t *load)
{
    if (ngx_bloom_load_too_old(load)) {
        return NGX_BLOOM_LOAD_TOO_OLD;
    }

    /* if records are lost, the zone answers "unknown" instead */

    return load->replay.hole && load->replay.reader.lost == 0
           ? NGX_BLOOM_LOAD_TOO_EARLY : NULL;
}


ngx_int_t
ngx_bloom_load_step(ngx_bloom_load_t *load)
{
    ngx_int_t  rc;

    if (load->stage == NGX_BLOOM_LOAD_CHUNKS) {
        return ngx_bloom_load_chunk(load);
    }

    if (load->stage == NGX_BLOOM_LOAD_EXCEPTIONS) {
        return ngx_bloom_load_exceptions(load);
    }

    if (load->guarded) {
        rc = ngx_bloom_load_check_keys(load);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if (load->clears) {
        return NGX_OK;
    }

    rc = ngx_bloom_replay_step(&load->replay);

    if (rc == NGX_OK && ngx_bloom_load_lacks(load) != NULL) {
        return ngx_bloom_load_refuse(load, 0, ngx_bloom_load_lacks(load));
    }

    if (rc == NGX_OK) {
        return ngx_bloom_adapt_keep(load->zone, &load->image,
                                    &load->replay.bits,
                                    load->replay.reader.position, &load->kept);
    }

    return (rc == NGX_ERROR) ? ngx_bloom_load_unreplayed(load) : rc;
}


static ngx_int_t
ngx_bloom_load_chunk(ngx_bloom_load_t *load)
{
    u_char             *p;
    size_t              len;
    uint64_t            chunk, bits_set[BLOOM_PARTS_MAX];
    ngx_bloom_shctx_t  *sh;

    sh = load->zone->sh;
    p = ngx_bloom_zone_bank(load->zone, load->bank);

    if (load->file.name.len == 0) {

        ngx_log_debug1(NGX_LOG_DEBUG_CORE, load->zone->shm_zone->shm.log, 0,
                       "bloom zone \"%V\": load begins with an empty filter",
                       &load->zone->name);

#if (NGX_DEBUG_MALLOC)
        ngx_memzero(p, bloom_image_payload_size(&load->image));
#endif
        load->stage = NGX_BLOOM_LOAD_EXCEPTIONS;
        return NGX_AGAIN;
    }

    chunk = load->file.reader.next;

    if (chunk % NGX_BLOOM_LOAD_ROOM == 0
        && ngx_bloom_load_room(load) != NGX_OK)
    {
        return NGX_ERROR;
    }

#ifdef MADV_POPULATE_WRITE

    /* populate all pages of the chunk at once: that is cheaper than a fault for
     * each.  Older kernels refuse it, which does no harm */

    if (chunk < bloom_image_chunks(&load->image)) {
        (void) madvise(p + chunk * BLOOM_IMAGE_CHUNK,
                       ngx_align(bloom_image_chunk_size(&load->image, chunk),
                                 ngx_pagesize),
                       MADV_POPULATE_WRITE);
    }
#endif

    switch (ngx_bloom_image_file_next(&load->file,
                                      p + chunk * BLOOM_IMAGE_CHUNK))
    {

    case NGX_ERROR:
        return ngx_bloom_load_refuse(load, load->file.err,
                                     load->file.error);
    case NGX_DONE:
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

        load->stage = NGX_BLOOM_LOAD_EXCEPTIONS;
        return NGX_AGAIN;
    }

    len = bloom_image_chunk_size(&load->image, chunk);

    if (load->takes != 0) {
        load->takes -= len;
        ngx_bloom_load_takes -= len;
    }

    ngx_bloom_layers_count(load->zone, load->bank,
                           chunk * BLOOM_IMAGE_CHUNK / sizeof(uint64_t),
                           len / sizeof(uint64_t));

    __atomic_store_n(&sh->load_done, chunk * BLOOM_IMAGE_CHUNK + len,
                     __ATOMIC_RELAXED);

    return NGX_AGAIN;
}


/* Checks some keys of the image, before keys of the journal are added.  Returns
 * NGX_OK when all are checked, NGX_AGAIN or NGX_ERROR. */
static ngx_int_t
ngx_bloom_load_check_keys(ngx_bloom_load_t *load)
{
    ngx_int_t  rc;

    rc = ngx_bloom_guard_keys(&load->guard, load->zone, &load->replay.bits);

    if (rc == NGX_ERROR) {
        return ngx_bloom_load_refuse(load, load->guard.err,
                                     load->guard.error);
    }

    load->guarded = (rc == NGX_AGAIN);

    return rc;
}


/* Reads a piece of the image's exceptions, and at the end puts them into the
 * bank.  Returns NGX_AGAIN or NGX_ERROR. */
static ngx_int_t
ngx_bloom_load_exceptions(ngx_bloom_load_t *load)
{
    ngx_int_t  rc;

    rc = NGX_OK;

    if (load->file.name.len != 0) {
        rc = ngx_bloom_image_file_except(&load->file,
                                         &load->replay.bits.exceptions);
    }

    switch (rc) {

    case NGX_OK:
        load->zone->sh->bank[load->bank].excepted = load->file.excepted;
        load->stage = NGX_BLOOM_LOAD_JOURNAL;
        return NGX_AGAIN;

    case NGX_AGAIN:
        return NGX_AGAIN;

    case NGX_DECLINED:
        return ngx_bloom_load_fails(load, NGX_BLOOM_NO_ROOM, 0,
                                    "bloom zone \"%V\" has no room for the "
                                    "%uL removed keys of the image; make the "
                                    "zone larger", &load->zone->name,
                                    load->file.reader.image.exceptions);

    default: /* NGX_ERROR */
        return ngx_bloom_load_refuse(load, load->file.err, load->file.error);
    }
}


/*
 * Checks that there is memory for what this load and others of this process
 * have still to take.  If they took more than there is, the system would kill a
 * process, and not necessarily this one.
 */
static ngx_int_t
ngx_bloom_load_room(ngx_bloom_load_t *load)
{
    uint64_t            needs;
    ngx_bloom_memory_t  left;

    if (load->takes == 0) {
        return NGX_OK;
    }

    needs = ngx_bloom_load_takes
            + ngx_min(bloom_image_payload_size(&load->image) / 8,
                      NGX_BLOOM_LOAD_SPARE);

    ngx_bloom_memory_left(&left);

    if (needs <= left.bytes) {
        return NGX_OK;
    }

    return ngx_bloom_load_fails(load, NGX_BLOOM_NO_ROOM, 0,
                                "bloom zone \"%V\" cannot load an image for "
                                "lack of memory: loads need %uLk more, and "
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
                                load->zone->removals,
                                load->zone->expire ? ""
                                : ", or load an image built with a later "
                                  "--as-of");
}


/*
 * The order of these steps keeps every key:
 *
 *  1. lock `append`, so that nobody publishes a record; add the last records
 *  2. raise `lost` to what the reader has found lost
 *  3. lock the pending keys, and add them to the new bank
 *  4. lower `complete`, if the new filter has less of what was lost
 *  5. raise the generation
 *  6. raise `complete`, if the new filter has more of what was lost
 *  7. unlock the pending keys; set `applied`; unlock `append`
 *
 * Let `add` be ngx_bloom_add_key() of a worker of any instance, at any moment.
 *
 * If add has appended its key, the key is in the new bank after step 1; if the
 * key is pending, after step 3.  Otherwise add gets its lock after step 7, sees
 * that the generation has changed, and sets the bits in the new bank.
 *
 * If there is no room for the key, add raises `lost` and `complete` under the
 * lock of step 3.  If it does so before step 3, step 4 lowers `complete` again,
 * because the new filter may lack the key; bits that add sets there all the
 * same do no harm.  If it does so after step 7, the bits are in the new filter,
 * as above.  If add has given up waiting for the lock, it raises `lost` alone,
 * above `complete`, so the zone answers "unknown" whichever filter serves.  An
 * add of another instance raises only `lost`, as this instance sees it.
 *
 * A lookup reads the generation before and after it reads `lost` and
 * `complete`.  If it reads the new generation before, it sees step 4.  If it
 * has seen step 6, it reads the new generation after, and starts again.
 *
 * A process that dies between steps 4 and 6 leaves a `complete` that is too
 * low, never too high: the zone may answer "unknown" until the next load.
 */
ngx_int_t
ngx_bloom_load_switch(ngx_bloom_load_t *load, ngx_uint_t uploaded)
{
    const char         *lacks;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_state_t  *state;

    zone = load->zone;
    state = zone->state;

    if (state != NULL) {

        if (ngx_bloom_as_of_remember(state, &load->image, load->begun)
            != NGX_OK)
        {
            return ngx_bloom_load_fails(load, NGX_BLOOM_FAILED, ngx_errno,
                                        "the as_of of the image for bloom zone "
                                        "\"%V\" is in the future, which cannot "
                                        "be recorded in \"%V/control\"",
                                        &zone->name, &state->path);
        }

        if (ngx_bloom_lock(&state->control->append, 1000) != NGX_OK) {
            return ngx_bloom_load_busy(load);
        }

        /* replay what was appended since the last step; it is little */

        if (ngx_bloom_replay_rest(&load->replay) != NGX_OK) {
            ngx_bloom_unlock(&state->control->append);
            return ngx_bloom_load_unreplayed(load);
        }

        lacks = ngx_bloom_load_lacks(load);

        if (lacks != NULL) {

            /* another instance has a newer image and has removed records */

            ngx_bloom_unlock(&state->control->append);
            return ngx_bloom_load_refuse(load, 0, lacks);
        }

        if (load->replay.reader.lost != 0) {
            ngx_bloom_control_lose(zone->pending, load->replay.reader.lost);
        }
    }

    if (load->replay.bits.ring != NULL) {
        ngx_bloom_ring_replayed(&load->replay.bits);
    }

    if (ngx_bloom_pending_hold(zone, &load->replay.bits) != NGX_OK) {

        if (state != NULL) {
            ngx_bloom_unlock(&state->control->append);
        }

        return ngx_bloom_load_busy(load);
    }

    ngx_bloom_load_turn(load, uploaded, load->replay.reader.limit);

    if (state != NULL) {
        ngx_bloom_unlock(&state->control->append);

        /* do this without the locks: a crash before it loses nothing, since
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
    uint64_t applied)
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

    ngx_bloom_pending_release(zone);

    ngx_bloom_fault("switched");

    sh->uploaded = uploaded;

    if (state != NULL) {
        __atomic_store_n(&sh->applied, applied, __ATOMIC_SEQ_CST);
        __atomic_store_n(&state->control->instance[state->instance].applied,
                         applied, __ATOMIC_SEQ_CST);

        sh->checkpoint = load->position;
    }

    ngx_bloom_fault("served");
}


void
ngx_bloom_load_end(ngx_bloom_load_t *load)
{
    ngx_bloom_image_file_close(&load->file);
    ngx_bloom_guard_end(&load->guard);

    ngx_bloom_replay_end(&load->replay);

    ngx_bloom_load_takes -= load->takes;
    load->takes = 0;

    __atomic_store_n(&load->zone->sh->load_total, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&load->zone->sh->load_done, 0, __ATOMIC_RELAXED);
}


ngx_int_t
ngx_bloom_load_busy(ngx_bloom_load_t *load)
{
    return ngx_bloom_load_fails(load, NGX_BLOOM_FAILED, 0,
                                "bloom zone \"%V\" is busy with additions; "
                                "try again", &load->zone->name);
}


static ngx_int_t
ngx_bloom_load_refuse(ngx_bloom_load_t *load, ngx_err_t err,
    const char *error)
{
    if (load->about != NULL) {
        return ngx_bloom_load_fails(load, NGX_BLOOM_REFUSED, err,
                                    "%s for bloom zone \"%V\" %s",
                                    load->about, &load->zone->name, error);
    }

    return ngx_bloom_load_fails(load, NGX_BLOOM_REFUSED, err,
                                "image \"%V\" of bloom zone \"%V\" %s",
                                &load->file.name, &load->zone->name, error);
}


ngx_int_t
ngx_bloom_load_fails(ngx_bloom_load_t *load, ngx_bloom_outcome_e outcome,
    ngx_err_t err, const char *fmt, ...)
{
    u_char   *p, *last;
    va_list   args;

    load->outcome = outcome;
    load->err = err;

    last = load->error + sizeof(load->error) - 1;

    va_start(args, fmt);
    p = ngx_vslprintf(load->error, last, fmt, args);
    va_end(args);

    if (err != 0) {
        p = ngx_slprintf(p, last, " (%d: %s)", err, strerror(err));
    }

    *p = '\0';

    ngx_log_debug2(NGX_LOG_DEBUG_CORE, load->zone->shm_zone->shm.log, 0,
                   "bloom zone \"%V\": load fails: %s",
                   &load->zone->name, load->error);

    return NGX_ERROR;
}
