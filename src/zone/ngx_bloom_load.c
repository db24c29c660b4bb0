
#include "ngx_bloom_load.h"
#include "ngx_bloom_replace.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_pending.h"

#include <sys/mman.h>


/* Bytes of the journal in a step. */
#define NGX_BLOOM_LOAD_STEP  (256 * 1024)

/* When less than this is left, appending may be held up for it. */
#define NGX_BLOOM_LOAD_REST  (256 * 1024)

/* Clocks differ, and a key may be added before what it names is committed. */
#define NGX_BLOOM_LOAD_SLACK  (60 * 60 * 1000)


static ngx_int_t ngx_bloom_load_admit(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_chunk(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_replay(ngx_bloom_load_t *load, size_t bytes);
static void ngx_bloom_load_set(ngx_bloom_load_t *load,
    bloom_record_t *record);
static uint64_t ngx_bloom_load_lost(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_load_busy(ngx_bloom_load_t *load);
static void ngx_bloom_load_join(ngx_bloom_load_t *load,
    ngx_bloom_zone_bits_t *bits);
static ngx_int_t ngx_bloom_load_refuse(ngx_bloom_load_t *load,
    ngx_err_t err, const char *error);
static ngx_int_t ngx_cdecl ngx_bloom_load_fails(ngx_bloom_load_t *load,
    ngx_bloom_outcome_e outcome, ngx_err_t err, const char *fmt, ...);


ngx_int_t
ngx_bloom_load_begin(ngx_bloom_load_t *load, ngx_bloom_zone_t *zone,
    ngx_str_t *name, bloom_image_t *image, uint64_t position,
    const char *about)
{
    ngx_memzero(load, sizeof(ngx_bloom_load_t));

    load->zone = zone;
    load->bank = !(zone->sh->generation & 1);
    load->begun = ngx_bloom_time();
    load->position = position;
    load->about = about;
    load->file.fd = NGX_INVALID_FILE;
    load->file.name = *name;

    if (name->len != 0) {

        if (ngx_bloom_image_file_open(&load->file) != NGX_OK) {
            return ngx_bloom_load_refuse(load, load->file.err,
                                         load->file.error);
        }

        load->image = load->file.reader.image;
    }

    if (image != NULL) {

        if (name->len != 0
            && bloom_image_differs(image, &load->image) != NULL)
        {
            return ngx_bloom_load_refuse(load, 0, "is of another image");
        }

        load->image = *image;
    }

    load->cut = ngx_bloom_load_cut(&load->image);

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

    return NGX_OK;
}


uint64_t
ngx_bloom_load_covered(bloom_image_t *image)
{
    return image->as_of > NGX_BLOOM_LOAD_SLACK
           ? image->as_of - NGX_BLOOM_LOAD_SLACK : 0;
}


uint64_t
ngx_bloom_load_cut(bloom_image_t *image)
{
    uint64_t  covered;

    covered = ngx_bloom_load_covered(image);

    return covered < ngx_bloom_time() ? covered : 0;
}


/* Whether the image may be loaded into this zone at all. */
static ngx_int_t
ngx_bloom_load_admit(ngx_bloom_load_t *load)
{
    uint64_t           size;
    ngx_bloom_zone_t  *zone;

    zone = load->zone;
    size = bloom_image_payload_size(&load->image);

    if (size > zone->sh->bank_size) {
        return ngx_bloom_load_fails(load, NGX_BLOOM_NO_ROOM, 0,
                                    "bloom zone \"%V\" is too small: it has "
                                    "room for images of %uzk and this one has "
                                    "%uLk; %swrite \"zone=%V:%uzk\"",
                                    &zone->name, zone->sh->bank_size / 1024,
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
    uint64_t            dropped;
    ngx_bloom_state_t  *state;

    state = load->zone->state;
    dropped = state ? __atomic_load_n(&state->control->dropped,
                                      __ATOMIC_ACQUIRE)
                    : 0;

    return dropped != 0 && ngx_bloom_load_covered(&load->image) <= dropped;
}


ngx_int_t
ngx_bloom_load_step(ngx_bloom_load_t *load)
{
    uint64_t            from, limit;
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
            return ngx_bloom_load_fails(load, NGX_BLOOM_FAILED, ngx_errno,
                                        "the journal in \"%V\" cannot be read",
                                        &state->path);
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

        load->reading = 1;
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

#if (NGX_DEBUG_MALLOC)
        ngx_memzero(p, bloom_image_payload_size(&load->image));
#endif
        load->chunks = 1;
        return NGX_AGAIN;
    }

    chunk = load->file.reader.next;

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
        load->chunks = 1;
        return NGX_AGAIN;
    }

    words = (uint64_t *) (p + chunk * BLOOM_IMAGE_CHUNK);
    len = bloom_image_chunk_size(&load->image, chunk);

    sh->bank[load->bank].bits_set +=
                      bloom_layout_count_ones(words, len / sizeof(uint64_t));

    __atomic_store_n(&sh->load_done, chunk * BLOOM_IMAGE_CHUNK + len,
                     __ATOMIC_RELAXED);

    return NGX_AGAIN;
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

            /* how far it goes by now */

            load->reader.limit = ngx_bloom_state_tail(load->zone->state);

            return load->reader.limit - load->reader.position
                   < NGX_BLOOM_LOAD_REST || load->reader.lost
                   ? NGX_OK : NGX_AGAIN;
        }

        if (record.time >= load->cut) {
            ngx_bloom_load_set(load, &record);
        }
    } while (load->reader.position < until);

    return NGX_AGAIN;
}


static void
ngx_bloom_load_set(ngx_bloom_load_t *load, bloom_record_t *record)
{
    uint64_t               added;
    ngx_bloom_zone_bits_t  bits;

    ngx_bloom_zone_bits(load->zone, load->bank, &bits);

    load->records++;
    load->keys += ngx_bloom_zone_set(&bits, record->keys, record->end, &added);
}


ngx_int_t
ngx_bloom_load_switch(ngx_bloom_load_t *load, ngx_uint_t uploaded)
{
    uint64_t               damaged, lost;
    ngx_int_t              rc;
    ngx_uint_t             locked;
    bloom_record_t         record;
    ngx_bloom_zone_bits_t  bits;
    ngx_bloom_zone_t      *zone;
    ngx_bloom_state_t     *state;
    ngx_bloom_shctx_t     *sh;

    zone = load->zone;
    sh = zone->sh;
    state = zone->state;
    locked = 0;

    ngx_bloom_zone_bits(zone, zone->joins ? sh->generation & 1 : load->bank,
                        &bits);

    if (state != NULL) {

        if (ngx_bloom_lock(&state->control->append, 1000) != NGX_OK) {
            return ngx_bloom_load_busy(load);
        }

        locked = 1;

        /* what was appended since the last step: a little */

        load->reader.limit = ngx_bloom_state_tail(state);

        while ((rc = ngx_bloom_reader_next(&load->reader, &record)) == NGX_OK) {

            if (record.time >= load->cut) {
                ngx_bloom_load_set(load, &record);
            }
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
    }

    damaged = 0;

    if (state != NULL) {
        damaged = ngx_bloom_load_damage(zone, &load->reader, load->cut);
    }

    /*
     * A key may be pending because the journal is locked here.  It became so
     * before this, and is set in the new generation, or it becomes so after
     * the release, and whoever adds it finds the generation changed.
     */

    if (ngx_bloom_pending_hold(zone, &bits) != NGX_OK) {

        if (locked) {
            ngx_bloom_unlock(&state->control->append);
        }

        return ngx_bloom_load_busy(load);
    }

    __atomic_store_n(&sh->switches, 1, __ATOMIC_SEQ_CST);

    lost = ngx_bloom_load_lost(load);
    damaged = ngx_max(damaged, lost);

    /* new damage counts before it serves, what it repairs only after */

    if (damaged > sh->damaged) {
        __atomic_store_n(&sh->damaged, damaged, __ATOMIC_SEQ_CST);
    }

    ngx_bloom_fault("held");

    if (zone->joins) {
        ngx_bloom_load_join(load, &bits);

    } else {
        __atomic_fetch_add(&sh->generation, 1, __ATOMIC_SEQ_CST);
    }

    /* who reads in the old bank what is written from here on must find that
     * the generation has changed */

    __atomic_thread_fence(__ATOMIC_SEQ_CST);

    ngx_bloom_fault("turned");

    ngx_bloom_pending_release(zone);

    __atomic_store_n(&sh->switches, 0, __ATOMIC_SEQ_CST);

    /* if the locks were held for so long that somebody gave up */

    lost = ngx_bloom_load_lost(load);
    damaged = ngx_max(damaged, lost);

    ngx_bloom_fault("switched");

    sh->uploaded = uploaded;

    if (state != NULL) {
        __atomic_store_n(&sh->applied, load->reader.limit, __ATOMIC_SEQ_CST);
        __atomic_store_n(&state->control->instance[state->instance].applied,
                         load->reader.limit, __ATOMIC_SEQ_CST);

        sh->checkpoint = load->position;
    }

    __atomic_store_n(&sh->damaged, damaged, __ATOMIC_SEQ_CST);

    ngx_bloom_fault("served");

    if (locked) {
        ngx_bloom_unlock(&state->control->append);
    }

    return NGX_OK;
}


/* When a key was last lost that neither the image nor the journal has, or 0. */
static uint64_t
ngx_bloom_load_lost(ngx_bloom_load_t *load)
{
    uint64_t  lost;

    lost = __atomic_load_n(&load->zone->sh->lost, __ATOMIC_SEQ_CST);

    return lost >= load->cut ? lost : 0;
}


/* Adds the bits that were loaded to those that serve, of the same hash. */
static void
ngx_bloom_load_join(ngx_bloom_load_t *load, ngx_bloom_zone_bits_t *bits)
{
    uint64_t  i, n, old, bits_set, *words;

    if (load->records == 0) {
        return;                                /* whole pages stay untouched */
    }

    words = (uint64_t *) ngx_bloom_zone_bank(load->zone, load->bank);
    n = bloom_image_payload_size(&load->image) / sizeof(uint64_t);
    bits_set = 0;

    for (i = 0; i < n; i++) {

        if (words[i] != 0) {
            old = __atomic_fetch_or(&bits->words[i], words[i],
                                    __ATOMIC_RELAXED);
            bits_set += __builtin_popcountll(words[i] & ~old);
        }
    }

    (void) __atomic_fetch_add(bits->bits_set, bits_set, __ATOMIC_RELAXED);
}


void
ngx_bloom_load_end(ngx_bloom_load_t *load)
{
    ngx_bloom_image_file_close(&load->file);

    if (load->reading) {
        ngx_bloom_reader_close(&load->reader);
        load->reading = 0;
    }

    __atomic_store_n(&load->zone->sh->load_total, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&load->zone->sh->load_done, 0, __ATOMIC_RELAXED);
}


uint64_t
ngx_bloom_load_damage(ngx_bloom_zone_t *zone, ngx_bloom_reader_t *reader,
    uint64_t cut)
{
    uint64_t   lost, no_room, before, position;
    ngx_tm_t   tm;
    ngx_int_t  rc;

    lost = reader->lost;

    rc = ngx_bloom_state_read_mark(zone->state, "lost", &before, &position);

    if (rc != NGX_OK) {
        ngx_log_error(NGX_LOG_ALERT, zone->shm_zone->shm.log, ngx_errno,
                      "\"%V/lost\" cannot be read; remove it when an image "
                      "newer than it is loaded", &zone->state->path);
        before = ngx_bloom_time();
    }

    if (lost == UINT64_MAX) {

        /* not later than it is seen, and it is seen at every load */

        lost = (before != 0 && position == reader->damaged)
               ? before : ngx_bloom_time();
    }

    no_room = __atomic_load_n(&zone->sh->lost, __ATOMIC_SEQ_CST);
    lost = ngx_max(lost, no_room);

    if (reader->damage[0]) {
        position = reader->damaged;

    } else if (before == 0) {
        position = NGX_BLOOM_NO_DAMAGE;
    }

    /* what was lost once may be found no more: in a segment that a start from
     * a checkpoint does not read */

    if (rc == NGX_OK && lost > before
        && ngx_bloom_state_write_mark(zone->state, "lost", lost, position)
           != NGX_OK)
    {
        ngx_log_error(NGX_LOG_ALERT, zone->shm_zone->shm.log, ngx_errno,
                      "\"%V/lost\" cannot be written", &zone->state->path);
    }

    lost = ngx_max(lost, before);

    if (lost < cut || lost == 0) {
        return 0;
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
                  : lost == no_room ? "there was no room for them while the "
                                      "journal could not be written"
                                    : "it was seen at an earlier start");
    return lost;
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

    if (sh->bank[bank].held == 0 || sh->bank[bank].held > sh->bank_size) {
        sh->bank[bank].held = sh->bank_size;
    }

    len = ngx_min(max, sh->bank[bank].held);
    p = ngx_bloom_zone_bank(zone, bank) + sh->bank[bank].held - len;

    if (len < sh->bank[bank].held && len > NGX_BLOOM_HUGEPAGE_SIZE) {

        /* half a huge page could not be given back */

        whole = ngx_align_ptr(p, NGX_BLOOM_HUGEPAGE_SIZE);
        len -= whole - p;
        p = whole;
    }

    ngx_bloom_hugepages_clear(p, len, sh->hugepages);

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

    return NGX_ERROR;
}
