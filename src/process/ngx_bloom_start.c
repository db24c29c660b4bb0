/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The master and its loader fill a zone's new memory, or check for "nginx -t"
 * that it could be filled.
 */

#include "ngx_bloom_start.h"
#include "ngx_bloom_removals.h"
#include "bloom_exceptions_image.h"
#include "bloom_growth.h"
#include "ngx_bloom_base.h"
#include "ngx_bloom_base_change.h"
#include "ngx_bloom_base_state.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_guard.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_log.h"
#include "ngx_bloom_state_files.h"

#include <sys/mman.h>
#include <sys/random.h>


/* What a zone with "required=off" tries, one after the other. */
typedef enum {
    NGX_BLOOM_START_WHOLE = 0,
    NGX_BLOOM_START_JOURNAL,             /* the journal without a filter */
    NGX_BLOOM_START_NOTHING              /* neither can be used */
} ngx_bloom_start_e;

typedef struct {
    ngx_bloom_zone_t   *zone;
    ngx_bloom_start_e   what;
} ngx_bloom_start_t;


static void ngx_bloom_start_check_child(void *data,
    ngx_bloom_reply_t *reply);
static ngx_int_t ngx_bloom_start_check_guards(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_start_check_map(ngx_bloom_zone_t *zone,
    ngx_bloom_guard_t *guard, u_char *filter, u_char *end);
static ngx_int_t ngx_bloom_start_exceptions(const bloom_image_t *image,
    const u_char *data, bloom_exceptions_t *set, void **memory);
static void ngx_bloom_start_child(void *data, ngx_bloom_reply_t *reply);
static ngx_int_t ngx_bloom_start_init(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_start_fill(ngx_bloom_zone_t *zone,
    ngx_bloom_start_e what);
static void ngx_bloom_start_log_lost(ngx_bloom_zone_t *zone);
static void ngx_bloom_start_log_hugepages(ngx_bloom_zone_t *zone);


ngx_int_t
ngx_bloom_start_check(ngx_bloom_zone_t *zone)
{
    ngx_int_t           rc;
    ngx_bloom_user_t    user;
    ngx_bloom_reply_t   reply;

    rc = ngx_bloom_base_state_directory(zone, 0);

    if (rc == NGX_OK) {
        user = ngx_bloom_unprivileged_workers(zone->ccf);

        (void) ngx_bloom_unprivileged(&user, zone->shm_zone->shm.log,
                                      "checks a bloom zone",
                                      ngx_bloom_start_check_child, zone,
                                      &reply);
        rc = reply.rc;
    }

    return zone->optional ? NGX_OK : rc;
}


/* Reads the image and the journal, which may have a segment of a newer version,
 * and opens every other file that a start would open. */
static void
ngx_bloom_start_check_child(void *data, ngx_bloom_reply_t *reply)
{
    ngx_bloom_zone_t *zone = data;

    ngx_int_t            rc;
    bloom_record_t       record;
    ngx_bloom_reader_t   reader;
    ngx_bloom_failure_t  failure;

    static ngx_bloom_control_t  control;     /* zeros, but for `base` */

    ngx_bloom_base_warn_access(zone);

    if (zone->file.name.len != 0
        && (zone->file.fd == NGX_INVALID_FILE
            || ngx_bloom_image_file_check(&zone->file) != NGX_OK))
    {
        (void) ngx_bloom_base_refuse(zone, zone->file.err, zone->file.error);
        return;
    }

    if (zone->state == NULL) {
        reply->rc = ngx_bloom_start_check_guards(zone);
        return;
    }

    if (ngx_bloom_state_check(zone->state, &failure) != NGX_OK) {
        ngx_bloom_base_state_log(zone, &failure);
        return;
    }

    rc = ngx_bloom_base_file_read(zone->state, &control.base[0], &failure);

    if (rc == NGX_ERROR) {
        ngx_bloom_base_state_log(zone, &failure);
        return;
    }

    zone->state->control = &control;
    ngx_memcpy(control.journal, control.base[0].journal, BLOOM_JOURNAL_ID_LEN);

    if (ngx_bloom_start_check_guards(zone) != NGX_OK) {
        return;
    }

    if (ngx_bloom_reader_open(&reader, zone->state, &control.base[0].from, NULL)
        != NGX_OK)
    {
        return;
    }

    do {
        rc = ngx_bloom_reader_next(&reader, &record);
    } while (rc == NGX_OK);

    if (rc == NGX_ERROR) {
        ngx_log_error(ngx_bloom_zone_level(zone),
                      zone->shm_zone->shm.log, reader.err,
                      "bloom zone \"%V\": %s", &zone->name, reader.error);
        return;
    }

    reply->rc = NGX_OK;
}


/*
 * Checks the image of file= against the zone's guards, unless a start would
 * load an upload or a checkpoint in its place.  The filter is mapped, not
 * read: it may be larger than the memory that is left.
 */
static ngx_int_t
ngx_bloom_start_check_guards(ngx_bloom_zone_t *zone)
{
    u_char             *map;
    size_t              skip, len;
    uint64_t            at;
    ngx_int_t           rc;
    bloom_base_t       *base;
    bloom_image_t      *image;
    ngx_bloom_guard_t   guard;

    image = &zone->image;

    if (zone->file.name.len == 0) {
        return NGX_OK;
    }

    if (zone->state != NULL) {
        base = &zone->state->control->base[0];

        if (ngx_bloom_base_uploaded(zone, base)
            || (ngx_bloom_base_stands(zone, base)
                && base->checkpoint[1].position != 0))
        {
            return NGX_OK;
        }
    }

    ngx_memzero(&guard, sizeof(ngx_bloom_guard_t));

    if (ngx_bloom_guard_header(&guard, zone, image, 0) != NGX_OK) {
        return ngx_bloom_base_refuse(zone, guard.err, guard.error);
    }

    at = BLOOM_IMAGE_PAGE + bloom_image_table_size(image);
    skip = at % ngx_pagesize;
    len = skip + bloom_image_file_size(image) - at;

    map = mmap(NULL, len, PROT_READ, MAP_SHARED, zone->file.fd,
               (off_t) (at - skip));

    if (map == MAP_FAILED) {
        return ngx_bloom_base_refuse(zone, ngx_errno, "cannot be mapped");
    }

    rc = ngx_bloom_start_check_map(zone, &guard, map + skip, map + len);

    (void) munmap(map, len);

    return rc == NGX_OK ? NGX_OK
           : ngx_bloom_base_refuse(zone, guard.err, guard.error);
}


/* Checks the filter and the exceptions of the image of file=, which begin and
 * end a map.  Returns NGX_OK, or NGX_ERROR with the guard's error. */
static ngx_int_t
ngx_bloom_start_check_map(ngx_bloom_zone_t *zone, ngx_bloom_guard_t *guard,
    u_char *filter, u_char *end)
{
    void                   *exceptions;
    uint64_t                bits_set[BLOOM_PARTS_MAX];
    ngx_int_t               rc;
    bloom_image_t          *image;
    ngx_bloom_zone_bits_t   bits;

    image = &zone->image;

    ngx_memzero(&bits, sizeof(ngx_bloom_zone_bits_t));
    bits.form = image->key_form;
    bits.geometry = &image->geometry;
    bits.hasher = &image->hasher;
    bits.words = (uint64_t *) filter;

    if (ngx_bloom_start_exceptions(image,
                                   end - bloom_image_exceptions_padded(image),
                                   &bits.exceptions, &exceptions)
        != NGX_OK)
    {
        ngx_bloom_print((u_char *) guard->error, NGX_BLOOM_GUARD_ERROR_LEN,
                        "cannot be checked for lack of memory");
        return NGX_ERROR;
    }

    rc = NGX_OK;

    if (zone->guards.min_keys != 0 || bloom_guard_limited(&zone->guards.max)) {
        ngx_memzero(bits_set, sizeof(bits_set));
        ngx_bloom_layers_count_words(&image->geometry, bits.words, 0,
                                     bloom_image_payload_size(image) / 8,
                                     bits_set);
        rc = ngx_bloom_guard_bits(guard, zone, image, 0, bits_set);
    }

    if (rc == NGX_OK) {
        rc = ngx_bloom_guard_keys(guard, zone, &bits);
    }

    free(exceptions);

    return rc;
}


/* Makes a set of the exceptions of an image, whose checksums are right.  Sets
 * *memory to the set's memory, or to NULL if the image has no exceptions.
 * Returns NGX_OK, or NGX_ERROR if memory is short. */
static ngx_int_t
ngx_bloom_start_exceptions(const bloom_image_t *image, const u_char *data,
    bloom_exceptions_t *set, void **memory)
{
    size_t              size;
    uint8_t             secret[BLOOM_HASH_KEY_LEN];
    const uint8_t      *p, *end;
    bloom_exception_t   exception;

    size = bloom_exceptions_size(image->exceptions, image->exceptions_size);

    *memory = NULL;

    if (size == 0) {
        return NGX_OK;
    }

    if (getrandom(secret, BLOOM_HASH_KEY_LEN, 0) == -1
        || posix_memalign(memory, 64, size) != 0)
    {
        return NGX_ERROR;
    }

    ngx_memzero(*memory, size);
    bloom_exceptions_attach(set, *memory, image->exceptions,
                            image->exceptions_size);
    bloom_exceptions_init(set, secret);

    p = data;
    end = p + image->exceptions_size;

    while (bloom_exception_read(&p, end, &exception) == 1) {
        (void) bloom_exceptions_put(set, &exception);
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_start_zone(ngx_bloom_zone_t *zone)
{
    ngx_int_t           rc;
    ngx_log_t          *log;
    ngx_uint_t          loads;
    ngx_bloom_user_t    user;
    ngx_bloom_start_t   start;
    ngx_bloom_reply_t   reply;

    log = zone->shm_zone->shm.log;

    /* without a size, the zone may be too small for the image */

    loads = (zone->file.name.len != 0 && zone->size != 0);

    /* before other processes are forked, so that they share these pages */

    ngx_bloom_hugepages_advise(zone->banks, 2 * zone->bank_size);

    user = ngx_bloom_unprivileged_workers(zone->ccf);

    start.zone = zone;
    start.what = NGX_BLOOM_START_WHOLE;

    if (ngx_bloom_base_state_directory(zone, 1) != NGX_OK) {

        if (!zone->optional) {
            return NGX_ERROR;
        }

        start.what = NGX_BLOOM_START_NOTHING;
        loads = 0;
    }

    for ( ;; ) {
        rc = ngx_bloom_unprivileged(&user, log, "loads a bloom zone",
                                    ngx_bloom_start_child, &start, &reply);

        if (rc == NGX_OK && reply.rc == NGX_OK) {
            break;
        }

        if (!zone->optional || start.what == NGX_BLOOM_START_NOTHING) {
            return NGX_ERROR;
        }

        /* undo what the loader has written */

        ngx_memzero(zone->sh, sizeof(ngx_bloom_shctx_t));
        ngx_bloom_hugepages_clear(zone->banks, 2 * zone->bank_size);

        start.what = (zone->state == NULL) ? NGX_BLOOM_START_NOTHING
                                           : start.what + 1;
    }

    ngx_bloom_base_state_take(zone, &reply);

    if (start.what != NGX_BLOOM_START_WHOLE) {
        ngx_log_error(NGX_LOG_ALERT, log, 0,
                      "bloom zone \"%V\" is not loaded and answers "
                      "\"unknown\": an earlier line of this log says why; "
                      "correct that, and %sreload nginx", &zone->name,
                      loads ? "send \"POST reload\" or " : "");
    }

    return NGX_OK;
}


static void
ngx_bloom_start_child(void *data, ngx_bloom_reply_t *reply)
{
    ngx_bloom_start_t *start = data;

    ngx_bloom_zone_t  *zone;

    zone = start->zone;

    if (start->what == NGX_BLOOM_START_WHOLE) {
        ngx_bloom_base_warn_access(zone);
    }

    if (ngx_bloom_start_init(zone) != NGX_OK) {
        return;
    }

    if (start->what == NGX_BLOOM_START_NOTHING) {
        reply->rc = NGX_OK;
        return;
    }

    if (zone->state != NULL && ngx_bloom_base_state_open(zone) != NGX_OK) {
        return;
    }

    if (ngx_bloom_start_fill(zone, start->what) != NGX_OK) {
        return;
    }

    ngx_bloom_base_state_reply(zone, reply);
}


static ngx_int_t
ngx_bloom_start_init(ngx_bloom_zone_t *zone)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    /* new memory is zero; most of it is never touched */

#if (NGX_DEBUG_MALLOC)
    ngx_memzero(sh, sizeof(ngx_bloom_shctx_t));
#endif

    sh->heartbeat = ngx_current_msec;

    if (getrandom(&sh->instance, sizeof(uint64_t), 0) == -1
        || ngx_bloom_lock_init(&sh->helper) != NGX_OK
        || ngx_bloom_lock_init(&sh->applying) != NGX_OK
        || ngx_bloom_lock_init(&sh->tasks) != NGX_OK
        || ngx_bloom_control_fill(&sh->control) != NGX_OK)
    {
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, ngx_errno,
                      "the memory of bloom zone \"%V\" cannot be set up",
                      &zone->name);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_start_fill(ngx_bloom_zone_t *zone, ngx_bloom_start_e what)
{
    ngx_int_t           rc;
    ngx_bloom_load_t    load;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    ngx_memzero(&load, sizeof(ngx_bloom_load_t));
    load.zone = zone;
    load.file.fd = NGX_INVALID_FILE;

    if (zone->state == NULL && zone->expire != 0) {
        ngx_bloom_clock_start(zone->clock, 0);
    }

    if (what == NGX_BLOOM_START_WHOLE) {
        rc = ngx_bloom_base_load(zone, &load);

    } else if (zone->state != NULL) {
        rc = ngx_bloom_base_load_journal(zone, &load);

    } else {
        return NGX_OK;
    }

    if (rc == NGX_OK && zone->state != NULL) {
        rc = ngx_bloom_base_recover(zone, &load);
    }

    ngx_bloom_load_end(&load);

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    if (zone->state != NULL && zone->state->alone) {
        ngx_bloom_state_files_clean(zone->state, NGX_BLOOM_STATE_FILES_ALL);
    }

    if (what != NGX_BLOOM_START_WHOLE) {
        return NGX_OK;
    }

    sh->complete = load.complete;

    ngx_bloom_base_note_file(zone);
    ngx_bloom_start_log_lost(zone);
    ngx_bloom_start_log_hugepages(zone);

    /* no other process has seen this memory, so no switch is needed */

    sh->generation = 1;

    if (zone->state != NULL) {
        ngx_bloom_removals_applied(zone, sh->applied,
                               &load.replay.reader.end.removals);
    }

    /* what is not an upload is not the base until the helper has stored it */

    sh->based = sh->uploaded ? 1 : 0;

    ngx_bloom_log_serves(&load, zone->shm_zone->shm.log, "starts with",
                         ngx_bloom_base_called(zone, sh->uploaded));

    if (sh->file || sh->uploaded) {
        ngx_bloom_guard_accept(zone, &load.image, load.begun);
    }

    return NGX_OK;
}


/* Warns of keys that only the previous memory had. */
static void
ngx_bloom_start_log_lost(ngx_bloom_zone_t *zone)
{
    ngx_log_t  *log;

    log = zone->shm_zone->shm.log;

    if (zone->before == NULL || zone->file.name.len != 0) {
        return;
    }

    if (zone->state == NULL) {
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "bloom zone \"%V\" starts empty again: it has no journal,"
                      " and its size, capacity, rate, layout, %shash or key "
                      "form changed", &zone->name,
                      zone->expire ? "expire, " : "");

    } else if (zone->before->state == NULL
               && zone->before->file.name.len == 0)
    {
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "bloom zone \"%V\" starts again from its journal: keys "
                      "that were added while it had none are lost",
                      &zone->name);
    }
}


/* Logs how much of the filter is on huge pages, if it is larger than two of
 * them. */
static void
ngx_bloom_start_log_hugepages(ngx_bloom_zone_t *zone)
{
    uint64_t            filter;
    bloom_image_t       image;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    ngx_bloom_layers_image(zone, 1, &image);
    filter = bloom_image_payload_size(&image);

    if (filter < 2 * NGX_BLOOM_HUGEPAGE_SIZE) {
        return;
    }

    ngx_bloom_zone_measure_hugepages(zone);

    ngx_log_error(NGX_LOG_NOTICE, zone->shm_zone->shm.log, 0,
                  "bloom zone \"%V\" has a filter of %uLk, and %uzk of its "
                  "memory is on huge pages",
                  &zone->name, filter / 1024, sh->huge_bytes / 1024);
}
