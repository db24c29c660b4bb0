/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file loads images and replays the journal step by step, and switches to
 * a new generation.
 */

#include "ngx_bloom_load.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_replace.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_memory.h"
#include "ngx_bloom_pending.h"

#include <sys/mman.h>


/* Bytes of the journal in a step. */
#define NGX_BLOOM_LOAD_STEP  (256 * 1024)

/* When less than this is left, appending may be held up for it. */
#define NGX_BLOOM_LOAD_REST  (256 * 1024)

/* Chunks of an image after which it is asked again whether there is memory for
 * the rest; and what is to be left for others, who may need some before it is
 * asked again: an eighth of the image, up to so many bytes. */
#define NGX_BLOOM_LOAD_ROOM   32
#define NGX_BLOOM_LOAD_SPARE  (16 * 1024 * 1024)


static ngx_int_t ngx_bloom_load_admit(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_chunk(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_room(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_replay(ngx_bloom_load_t *load, size_t bytes);
static void ngx_bloom_load_set(ngx_bloom_load_t *load,
    bloom_record_t *record);
static ngx_int_t ngx_bloom_load_busy(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_refuse(ngx_bloom_load_t *load,
    ngx_err_t err, const char *error);
static ngx_int_t ngx_cdecl ngx_bloom_load_fails(ngx_bloom_load_t *load,
    ngx_bloom_outcome_e outcome, ngx_err_t err, const char *fmt, ...);


/* Bytes that the loads of this process are going to take. */
static uint64_t  ngx_bloom_load_takes;


ngx_int_t
ngx_bloom_load_begin(ngx_bloom_load_t *load, ngx_bloom_zone_t *zone,
    ngx_bloom_image_file_t *file, bloom_image_t *image, uint64_t position,
    const char *about)
{
    ngx_memzero(load, sizeof(ngx_bloom_load_t));

    load->zone = zone;
    load->bank = !(zone->sh->generation & 1);
    load->begun = ngx_bloom_time();
    load->position = position;
    load->about = about;
    load->file = *file;

    file->fd = NGX_INVALID_FILE;
    load->file.reader.ctx = &load->file;

    if (load->file.name.len != 0) {

        if (load->file.fd == NGX_INVALID_FILE
            && ngx_bloom_image_file_open(&load->file) != NGX_OK)
        {
            return ngx_bloom_load_refuse(load, load->file.err,
                                         load->file.error);
        }

        load->image = load->file.reader.image;

        ngx_log_debug5(NGX_LOG_DEBUG_CORE, zone->shm_zone->shm.log, 0,
                       "bloom zone \"%V\": load opens \"%V\": %uL key%s, "
                       "%uL bytes", &zone->name, &load->file.name,
                       load->image.items, load->image.items == 1 ? "" : "s",
                       bloom_image_payload_size(&load->image));
    }

    if (image != NULL) {

        if (load->file.name.len != 0
            && bloom_image_differs(image, &load->image) != NULL)
        {
            return ngx_bloom_load_refuse(load, 0, "is of another image");
        }

        load->image = *image;
    }

    load->cut = ngx_bloom_as_of_cut(zone->state, &load->image);
    load->complete = ngx_max(load->cut, 1);

    if (ngx_bloom_load_admit(load) != NGX_OK) {
        return NGX_ERROR;
    }

    while (ngx_bloom_load_release(zone, load->bank, (size_t) -1)) {
        /* void */
    }

    zone->sh->bank[load->bank].filled = 1;
    zone->sh->bank[load->bank].image = load->image;
    zone->sh->bank[load->bank].bits_set = 0;

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

    if (load->file.name.len != 0
        && zone->hugepages_got != NGX_BLOOM_HUGEPAGES_RESERVED)
    {
        load->takes = bloom_image_payload_size(&load->image);
        ngx_bloom_load_takes += load->takes;
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_load_check(ngx_bloom_load_t *load, ngx_bloom_zone_t *zone,
    const u_char header[BLOOM_IMAGE_PAGE], uint64_t size, const char *about)
{
    char  error[BLOOM_IMAGE_ERROR_LEN];

    ngx_memzero(load, sizeof(ngx_bloom_load_t));

    load->zone = zone;
    load->about = about;

    if (bloom_image_decode(&load->image, header, size, error) != 0) {
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
    load->chunks = 1;
}


/* Whether the image may be loaded into this zone at all. */
static ngx_int_t
ngx_bloom_load_admit(ngx_bloom_load_t *load)
{
    uint64_t           size;
    ngx_bloom_zone_t  *zone;

    zone = load->zone;
    size = bloom_image_payload_size(&load->image);

    if (size > zone->bank_size) {
        return ngx_bloom_load_fails(load, NGX_BLOOM_NO_ROOM, 0,
                                    "bloom zone \"%V\" is too small: it has "
                                    "room for images of %uzk and this one has "
                                    "%uLk; %swrite \"zone=%V:%uzk\"",
                                    &zone->name, zone->bank_size / 1024,
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

    if (ngx_bloom_load_too_old(load)) {
        return ngx_bloom_load_refuse(load, 0, NGX_BLOOM_LOAD_TOO_OLD);
    }

    return NGX_OK;
}


ngx_uint_t
ngx_bloom_load_too_old(ngx_bloom_load_t *load)
{
    return ngx_bloom_as_of_too_old(load->zone->state, &load->image);
}


ngx_int_t
ngx_bloom_load_step(ngx_bloom_load_t *load)
{
    uint64_t            from, limit;
    ngx_err_t           err;
    ngx_int_t           rc;
    ngx_bloom_state_t  *state;

    if (!load->chunks) {
        return ngx_bloom_load_chunk(load);
    }

    state = load->zone->state;

    if (state == NULL) {
        return NGX_OK;
    }

    if (!load->reading) {

        /* the control page of who is alone is still empty */

        limit = NGX_BLOOM_TO_THE_END;

        if (state->control->end[0].sequence != 0) {
            limit = ngx_bloom_state_tail(state);
        }

        rc = ngx_bloom_replace_settle(state);

        from = state->control->begin;

        if (rc == NGX_OK && load->position != 0) {
            rc = ngx_bloom_segment_find(state, load->position - 1, &from);
        }

        if (rc == NGX_ERROR) {
            err = ngx_errno;
            return ngx_bloom_load_fails(load, NGX_BLOOM_FAILED, err,
                                        "\"%V/journal.%016xL\" cannot be "
                                        "opened%s", &state->path, from,
                                        ngx_bloom_io_advice(err));
        }

        if (load->position != 0 && from >= load->position) {
            from = load->position - 1;       /* that there is none will show */
        }

        if (ngx_bloom_reader_open(&load->reader, state, from, limit)
            != NGX_OK)
        {
            return ngx_bloom_load_fails(load, NGX_BLOOM_FAILED, ngx_errno,
                                        "no memory to read the journal");
        }

        if (from == 0) {
            load->reader.sequence = 1;
        }

        /* a checkpoint is made of what is on disk */

        load->reader.promised = ngx_max(load->reader.promised,
                                        load->position);

        load->reading = 1;

        ngx_log_debug3(NGX_LOG_DEBUG_CORE, load->zone->shm_zone->shm.log, 0,
                       "bloom zone \"%V\": load replays \"%V\" from the "
                       "segment at %uL", &load->zone->name, &state->path, from);
    }

    return ngx_bloom_load_replay(load, NGX_BLOOM_LOAD_STEP);
}


static ngx_int_t
ngx_bloom_load_chunk(ngx_bloom_load_t *load)
{
    u_char             *p;
    size_t              len;
    uint64_t            chunk, *words;
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
        load->chunks = 1;
        return NGX_AGAIN;
    }

    chunk = load->file.reader.next;

    if (chunk % NGX_BLOOM_LOAD_ROOM == 0
        && ngx_bloom_load_room(load) != NGX_OK)
    {
        return NGX_ERROR;
    }

#ifdef MADV_POPULATE_WRITE

    /* all pages of the chunk at once, which costs less than a fault for each;
     * an older kernel does not know it */

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
                       sh->bank[load->bank].bits_set);

        load->chunks = 1;
        return NGX_AGAIN;
    }

    words = (uint64_t *) (p + chunk * BLOOM_IMAGE_CHUNK);
    len = bloom_image_chunk_size(&load->image, chunk);

    if (load->takes != 0) {
        load->takes -= len;
        ngx_bloom_load_takes -= len;
    }

    sh->bank[load->bank].bits_set +=
                      bloom_layout_bits_set(words, len / sizeof(uint64_t));

    __atomic_store_n(&sh->load_done, chunk * BLOOM_IMAGE_CHUNK + len,
                     __ATOMIC_RELAXED);

    return NGX_AGAIN;
}


/*
 * Whether there is memory for what this load and others of this process are
 * still going to take.  More than there is would kill a process, and which one
 * is not for this one to say.
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
                                "want of memory: loads need %uLk more, and "
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


/* NGX_OK at the end, NGX_AGAIN after so many bytes. */
static ngx_int_t
ngx_bloom_load_replay(ngx_bloom_load_t *load, size_t bytes)
{
    uint64_t         until;
    ngx_int_t        rc;
    bloom_record_t   record;

    until = load->reader.position + bytes;

    do {
        rc = ngx_bloom_reader_next(&load->reader, &record);

        if (rc == NGX_ERROR) {
            return ngx_bloom_load_fails(load, NGX_BLOOM_FAILED,
                                        load->reader.err, "%s",
                                        load->reader.error);
        }

        if (rc == NGX_DONE) {

            if (load->reader.limit == NGX_BLOOM_TO_THE_END) {
                return NGX_OK;
            }

            ngx_bloom_fault("replayed");

            /* how far it goes by now */

            load->reader.limit = ngx_bloom_state_tail(load->zone->state);

            return load->reader.limit - load->reader.position
                   < NGX_BLOOM_LOAD_REST ? NGX_OK : NGX_AGAIN;
        }

        ngx_bloom_load_set(load, &record);
    } while (load->reader.position < until);

    return NGX_AGAIN;
}


/* Adds the keys of a record, unless the image covers it: it is as old as it
 * says, and no older than any before it. */
static void
ngx_bloom_load_set(ngx_bloom_load_t *load, bloom_record_t *record)
{
    uint64_t               added;
    ngx_bloom_zone_bits_t  bits;

    if (ngx_max(record->time, load->reader.newest) < load->cut) {
        return;
    }

    ngx_bloom_zone_bits(load->zone, load->bank, &bits);

    load->records++;
    load->keys += ngx_bloom_zone_set(&bits, record->keys, record->end, &added);
}


/*
 * The order is what keeps every key: `add` is ngx_bloom_add_key() of a worker,
 * of this instance or of another, at any moment.
 *
 *  1. under the lock `append`: the last records; nobody publishes another
 *  2. `lost` is raised to what the reader has seen
 *  3. under the lock of the pending keys: these, into the new bank
 *  4. `complete` is lowered, if the new filter has less of what was lost
 *  5. the generation moves
 *  6. `complete` is raised, if it has more
 *  7. the lock of the pending keys is given back; `applied`; `append` is
 *
 * A key that add has appended is in the new bank by 1, and one that is pending
 * by 3.  Otherwise add gets its lock after 7, sees then that the generation has
 * moved, and sets the bits in the new bank.
 *
 * A key without room raises `lost` and `complete` under the lock of 3.  Before
 * that, 4 lowers `complete` to where `lost` says that the new filter may lack
 * it; the bits may be set there, too, which does no harm.  After 7, the bits
 * are in the new filter, as above.  If the lock was held for so long that add
 * gave up, it raises `lost` alone, above `complete`: whichever filter serves,
 * the zone says "unknown".  A key without room of another instance raises
 * `lost` alone, as seen from here.
 *
 * A lookup reads the generation before and after it reads `lost` and
 * `complete`.  With the new one before, it sees 4; if it has seen 6, it sees
 * the new one behind, and begins again.
 *
 * Whoever dies between 4 and 6 leaves a `complete` that is too low, never one
 * that is too high: the zone may say "unknown" until the next load.
 */
ngx_int_t
ngx_bloom_load_switch(ngx_bloom_load_t *load, ngx_uint_t uploaded)
{
    ngx_int_t              rc;
    bloom_record_t         record;
    ngx_bloom_zone_bits_t  bits;
    ngx_bloom_zone_t      *zone;
    ngx_bloom_state_t     *state;
    ngx_bloom_shctx_t     *sh;

    zone = load->zone;
    sh = zone->sh;
    state = zone->state;

    ngx_bloom_zone_bits(zone, load->bank, &bits);

    if (state != NULL) {

        if (ngx_bloom_as_of_remember(state, &load->image, load->begun)
            != NGX_OK)
        {
            return ngx_bloom_load_fails(load, NGX_BLOOM_FAILED, ngx_errno,
                                        "the as_of of the image for bloom zone "
                                        "\"%V\" is to come, which cannot be "
                                        "noted in \"%V/control\"", &zone->name,
                                        &state->path);
        }

        if (ngx_bloom_lock(&state->control->append, 1000) != NGX_OK) {
            return ngx_bloom_load_busy(load);
        }

        /* what was appended since the last step: a little */

        load->reader.limit = ngx_bloom_state_tail(state);

        while ((rc = ngx_bloom_reader_next(&load->reader, &record)) == NGX_OK) {

            ngx_bloom_fault("rest");

            ngx_bloom_load_set(load, &record);
        }

        if (rc == NGX_ERROR) {
            ngx_bloom_unlock(&state->control->append);
            return ngx_bloom_load_fails(load, NGX_BLOOM_FAILED,
                                        load->reader.err, "%s",
                                        load->reader.error);
        }

        if (ngx_bloom_load_too_old(load)) {

            /* another instance, with a newer image, removed records since */

            ngx_bloom_unlock(&state->control->append);
            return ngx_bloom_load_refuse(load, 0, NGX_BLOOM_LOAD_TOO_OLD);
        }

        if (load->reader.lost != 0) {
            ngx_bloom_control_lose(zone->pending, load->reader.lost);
        }
    }

    if (ngx_bloom_pending_hold(zone, &bits) != NGX_OK) {

        if (state != NULL) {
            ngx_bloom_unlock(&state->control->append);
        }

        return ngx_bloom_load_busy(load);
    }

    if (state != NULL) {
        ngx_bloom_as_of_serve(state, &load->image);
    }

    if (load->complete < sh->complete) {
        __atomic_store_n(&sh->complete, load->complete, __ATOMIC_SEQ_CST);
    }

    ngx_bloom_fault("held");

    __atomic_fetch_add(&sh->generation, 1, __ATOMIC_SEQ_CST);

    /* who reads in the old bank what is written from here on must find that
     * the generation has changed */

    __atomic_thread_fence(__ATOMIC_SEQ_CST);

    ngx_bloom_fault("turned");

    __atomic_store_n(&sh->complete, load->complete, __ATOMIC_SEQ_CST);

    ngx_bloom_pending_release(zone);

    ngx_bloom_fault("switched");

    sh->uploaded = uploaded;

    if (state != NULL) {
        __atomic_store_n(&sh->applied, load->reader.limit, __ATOMIC_SEQ_CST);
        __atomic_store_n(&state->control->instance[state->instance].applied,
                         load->reader.limit, __ATOMIC_SEQ_CST);

        sh->checkpoint = load->position;
    }

    ngx_bloom_fault("served");

    if (state != NULL) {
        ngx_bloom_unlock(&state->control->append);

        /* not while others wait: what was seen is still there to be seen */

        if (load->reader.lost != 0) {
            (void) ngx_bloom_io_sync(state->fd);
        }

        ngx_log_debug4(NGX_LOG_DEBUG_CORE, zone->shm_zone->shm.log, 0,
                       "bloom zone \"%V\": load replayed up to %uL: "
                       "records %uL, keys %uL", &zone->name,
                       load->reader.limit, load->records, load->keys);
    }

    ngx_log_debug2(NGX_LOG_DEBUG_CORE, zone->shm_zone->shm.log, 0,
                   "bloom zone \"%V\": load serves generation %uL",
                   &zone->name, sh->generation);

    ngx_bloom_load_log_lost(zone, &load->reader, load->complete);

    return NGX_OK;
}


void
ngx_bloom_load_end(ngx_bloom_load_t *load)
{
    ngx_bloom_image_file_close(&load->file);

    if (load->reading) {
        ngx_bloom_reader_close(&load->reader);
        load->reading = 0;
    }

    ngx_bloom_load_takes -= load->takes;
    load->takes = 0;

    __atomic_store_n(&load->zone->sh->load_total, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&load->zone->sh->load_done, 0, __ATOMIC_RELAXED);
}


void
ngx_bloom_load_log_lost(ngx_bloom_zone_t *zone, ngx_bloom_reader_t *reader,
    uint64_t complete)
{
    uint64_t  lost;
    ngx_tm_t  tm;

    lost = __atomic_load_n(&zone->pending->lost, __ATOMIC_SEQ_CST);

    if (lost == 0 || lost < complete) {
        return;
    }

    ngx_gmtime((time_t) (lost / 1000), &tm);

    ngx_log_error(NGX_LOG_ALERT, zone->shm_zone->shm.log, 0,
                  "bloom zone \"%V\" has lost added keys and answers "
                  "\"unknown\" instead of \"absent\" until an image built with "
                  "--as-of more than an hour after "
                  "%4d-%02d-%02dT%02d:%02d:%02dZ is loaded: %s",
                  &zone->name, tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                  tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec,
                  reader->damage[0] ? (char *) reader->damage
                  : "that was noted then, and the log of that time says why");
}


ngx_uint_t
ngx_bloom_load_release(ngx_bloom_zone_t *zone, ngx_uint_t bank, size_t max)
{
    u_char             *p, *whole;
    size_t              len;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (!sh->bank[bank].filled) {
        return 0;
    }

    if (sh->bank[bank].held == 0 || sh->bank[bank].held > zone->bank_size) {
        sh->bank[bank].held = zone->bank_size;
    }

    len = ngx_min(max, sh->bank[bank].held);
    p = ngx_bloom_zone_bank(zone, bank) + sh->bank[bank].held - len;

    if (len < sh->bank[bank].held && len > NGX_BLOOM_HUGEPAGE_SIZE) {

        /* half a huge page could not be given back */

        whole = ngx_align_ptr(p, NGX_BLOOM_HUGEPAGE_SIZE);
        len -= whole - p;
        p = whole;
    }

    ngx_bloom_hugepages_clear(p, len, zone->hugepages_got);

    sh->bank[bank].held -= len;

    if (sh->bank[bank].held == 0) {
        sh->bank[bank].filled = 0;
        return 0;
    }

    return 1;
}


static ngx_int_t
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


static ngx_int_t
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
