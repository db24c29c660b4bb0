
#include "ngx_bloom_start.h"
#include "ngx_bloom_add.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_load.h"
#include "ngx_bloom_repair.h"
#include "ngx_bloom_log.h"
#include "ngx_bloom_save.h"
#include "ngx_bloom_task.h"

#include <sys/random.h>


/* How long the master waits for a load that is under way, ms. */
#define NGX_BLOOM_START_PATIENCE  10000

#define NGX_BLOOM_START_FORGETS                                              \
    "bloom zone \"%V\" starts again from its journal: keys that were added "  \
    "while it had none are lost"


static ngx_int_t ngx_bloom_start_check(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_start_create(ngx_bloom_zone_t *zone);
static void ngx_bloom_start_pages(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_start_renew(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_t *old);
static void ngx_bloom_start_repage(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_start_file(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_start_refill(ngx_bloom_zone_t *zone);
static ngx_uint_t ngx_bloom_start_like(bloom_image_t *one,
    bloom_image_t *other);
static ngx_int_t ngx_bloom_start_journal(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_start_state(ngx_bloom_zone_t *zone);
static void ngx_bloom_start_attach(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_start_times(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_start_recover(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_start_load(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_start_base(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load, ngx_str_t *name, bloom_image_t *image);
static ngx_int_t ngx_bloom_start_run(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_start_random(ngx_bloom_zone_t *zone);
static void ngx_bloom_start_file_name(ngx_bloom_zone_t *zone);
static void ngx_bloom_start_file_seen(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_start_refuse(ngx_bloom_zone_t *zone);
static char *ngx_bloom_start_called(ngx_bloom_zone_t *zone,
    ngx_uint_t uploaded);
static void ngx_bloom_start_log(ngx_bloom_zone_t *zone, ngx_uint_t level,
    ngx_bloom_load_t *load, const char *then);


ngx_int_t
ngx_bloom_start_zone(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_bloom_zone_t  *old = data;

    ngx_int_t          rc;
    ngx_bloom_zone_t  *zone;

    zone = shm_zone->data;

    if (zone->file.name.len != 0 && zone->max_age != 0
        && zone->image.as_of == 0)
    {
        zone->file.err = 0;
        zone->file.error = NGX_BLOOM_NO_AS_OF;

        rc = ngx_bloom_start_refuse(zone);

    } else if (ngx_test_config) {
        rc = ngx_bloom_start_check(zone);

    } else if (old != NULL) {
        zone->sh = old->sh;
        zone->kept = &old->sh->kept;
        rc = ngx_bloom_start_renew(zone, old);

    } else {
        rc = ngx_bloom_start_create(zone);
    }

    ngx_bloom_file_close(&zone->file);

    return rc;
}


/* The directory of the zone's state, NULL if it has none. */
static u_char *
ngx_bloom_start_path(ngx_bloom_zone_t *zone, ngx_pool_t *pool)
{
    u_char  *path;

    if (zone->state_path.len == 0 || !zone->journal) {
        return NULL;
    }

    path = ngx_bloom_state_path(pool, &zone->state_path, &zone->name);

    /* a zone that nothing adds to still has the keys added before */

    return (path != NULL && (zone->adds || ngx_bloom_state_exists(path)))
           ? path : NULL;
}


/* "nginx -t": reads, and leaves nothing behind. */
static ngx_int_t
ngx_bloom_start_check(ngx_bloom_zone_t *zone)
{
    u_char              *path;
    ngx_int_t            rc;
    bloom_record_t       record;
    ngx_bloom_state_t    state;
    ngx_bloom_reader_t   reader;
    ngx_bloom_control_t  control;

    if (zone->file.name.len != 0
        && ngx_bloom_file_check(&zone->file) != NGX_OK)
    {
        return ngx_bloom_start_refuse(zone);
    }

    path = ngx_bloom_start_path(zone, ngx_cycle->pool);

    if (path == NULL || !ngx_bloom_state_exists(path)) {
        return NGX_OK;
    }

    /* is there a segment of a newer version? */

    ngx_memzero(&state, sizeof(ngx_bloom_state_t));
    ngx_memzero(&control, sizeof(ngx_bloom_control_t));

    state.path.data = path;
    state.path.len = ngx_strlen(path);
    state.control = &control;

    if (ngx_bloom_reader_open(&reader, &state, 0, NGX_BLOOM_TO_THE_END)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    do {
        rc = ngx_bloom_reader_next(&reader, &record);
    } while (rc == NGX_OK);

    if (rc == NGX_ERROR) {
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, reader.err,
                      "bloom zone \"%V\": %s", &zone->name, reader.error);
    }

    ngx_bloom_reader_close(&reader);

    return rc == NGX_DONE ? NGX_OK : NGX_ERROR;
}


#if (NGX_BLOOM_FAULTS)

/* A zone that has nothing to serve, as a test wants it. */
static ngx_uint_t
ngx_bloom_start_stays_unloaded(ngx_bloom_zone_t *zone)
{
    char  *name;

    name = getenv("NGX_BLOOM_FAULT_UNLOADED");

    return name != NULL && ngx_strlen(name) == zone->name.len
           && ngx_strncmp(name, zone->name.data, zone->name.len) == 0;
}

#endif


static ngx_int_t
ngx_bloom_start_create(ngx_bloom_zone_t *zone)
{
    size_t               len;
    ngx_int_t            rc;
    ngx_slab_pool_t     *shpool;
    ngx_bloom_load_t     load;
    ngx_bloom_shctx_t   *sh;

    shpool = (ngx_slab_pool_t *) zone->shm_zone->shm.addr;

    len = sizeof(" in bloom zone \"\"") + zone->name.len;

    sh = ngx_slab_alloc(shpool, sizeof(ngx_bloom_shctx_t));
    shpool->log_ctx = ngx_slab_alloc(shpool, len);

    if (sh == NULL || shpool->log_ctx == NULL) {
        return NGX_ERROR;
    }

    /* the memory is fresh, and so zero; most of it is never touched */

#if (NGX_DEBUG_MALLOC)
    ngx_memzero(sh, sizeof(ngx_bloom_shctx_t));
#endif

    ngx_sprintf(shpool->log_ctx, " in bloom zone \"%V\"%Z", &zone->name);

    if (getrandom(&sh->instance, sizeof(uint64_t), 0) == -1
        || ngx_bloom_lock_init(&sh->helper) != NGX_OK
        || ngx_bloom_lock_init(&sh->tasks) != NGX_OK
        || ngx_bloom_lock_init(&sh->kept.mutex) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* all the rest, in one piece: no page of it is touched here */

    sh->heartbeat = ngx_bloom_time();
    sh->bank_size = shpool->pfree / 2 * ngx_pagesize;
    sh->banks = ngx_slab_alloc(shpool, 2 * sh->bank_size);

    if (sh->banks == NULL) {
        return NGX_ERROR;
    }

    sh->pages = zone->pages;

    if (ngx_bloom_pages_take(sh->banks, 2 * sh->bank_size, &sh->pages,
                             &zone->name, zone->shm_zone->shm.log)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    shpool->data = sh;
    zone->sh = sh;
    zone->kept = &sh->kept;

    if (ngx_bloom_start_state(zone) != NGX_OK) {
        return NGX_ERROR;
    }

    if (zone->resized && zone->file.name.len == 0 && zone->state == NULL) {
        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" starts empty: its size changed, and "
                      "it has no journal", &zone->name);

    } else if (zone->resized && zone->file.name.len == 0
               && zone->state->alone)
    {
        /* the memory before was no instance of this journal */

        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                      NGX_BLOOM_START_FORGETS, &zone->name);
    }

    ngx_memzero(&load, sizeof(ngx_bloom_load_t));
    load.zone = zone;
    load.file.fd = NGX_INVALID_FILE;

    rc = ngx_bloom_start_load(zone, &load);

    if (rc == NGX_OK && zone->state != NULL) {
        rc = ngx_bloom_start_recover(zone, &load);
    }

    ngx_bloom_load_end(&load);

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    if (zone->state != NULL) {
        ngx_bloom_state_ready(zone->state);
    }

    ngx_bloom_start_file_seen(zone);
    ngx_bloom_start_pages(zone);

#if (NGX_BLOOM_FAULTS)
    if (ngx_bloom_start_stays_unloaded(zone)) {
        return NGX_OK;
    }
#endif

    /* no process has seen this memory: there is no need to wait for commit */

    sh->generation = 1;
    sh->based = 1;

    ngx_bloom_notice_serves(&load, zone->shm_zone->shm.log, "starts with",
                            ngx_bloom_start_called(zone, sh->uploaded));

    return NGX_OK;
}


/* Says what kind of pages the filter is on, where it has a whole huge one. */
static void
ngx_bloom_start_pages(ngx_bloom_zone_t *zone)
{
    uint64_t            filter;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    filter = bloom_image_payload_size(&sh->bank[1].image);

    if (filter < 2 * NGX_BLOOM_HUGE_PAGE) {
        return;
    }

    ngx_bloom_zone_count_huge(zone);

    ngx_log_error(NGX_LOG_NOTICE, zone->shm_zone->shm.log, 0,
                  "bloom zone \"%V\" has %uLk for its filter and, by now, "
                  "%uzk of its memory on huge pages (with huge_pages=%s)",
                  &zone->name, filter / 1024, sh->huge / 1024,
                  ngx_bloom_pages_name(sh->pages));
}


/* Opens the state directory, if the zone is to have one. */
static ngx_int_t
ngx_bloom_start_state(ngx_bloom_zone_t *zone)
{
    u_char               *path;
    ngx_log_t            *log;
    ngx_uint_t            existed;
    ngx_pool_t           *pool;
    ngx_core_conf_t      *ccf;
    ngx_bloom_failure_t   failure;

    log = zone->shm_zone->shm.log;
    pool = zone->pool;

    path = ngx_bloom_start_path(zone, pool);

    if (path == NULL) {
        return NGX_OK;
    }

    zone->state = ngx_pcalloc(pool, sizeof(ngx_bloom_state_t));
    if (zone->state == NULL) {
        return NGX_ERROR;
    }

    ccf = zone->ccf;
    existed = ngx_bloom_state_exists(path);

    if (ngx_bloom_state_open(zone->state, &zone->state_path, path, ccf,
                             &failure)
        == NGX_OK)
    {
        ngx_bloom_start_attach(zone);

        return ngx_bloom_start_times(zone);
    }

    zone->state = NULL;

    if (existed) {

        /* there may be keys in it */

        ngx_log_error(NGX_LOG_EMERG, log, failure.err,
                      "cannot %s \"%s\", where the added keys of bloom zone "
                      "\"%V\" are%s", failure.what, failure.name, &zone->name,
                      failure.err == NGX_EBUSY
                      ? ": another version of the module uses it; stop that "
                        "first" : "");
        return NGX_ERROR;
    }

    ngx_log_error(NGX_LOG_WARN, log, failure.err,
                  "cannot %s \"%s\": bloom zone \"%V\" takes no additions; "
                  "mend it and reload, or set another bloom_state_path",
                  failure.what, failure.name, &zone->name);

    zone->state_err = failure.err;
    zone->state_error = "the directory of bloom_state_path cannot be used; "
                        "the error log says why: mend it and reload nginx";

    return NGX_OK;
}


/* What of the control page is asked for by every lookup or addition. */
static void
ngx_bloom_start_attach(ngx_bloom_zone_t *zone)
{
    ngx_bloom_state_t  *state;

    state = zone->state;

    zone->required = &state->control->instance[state->instance].required;
    zone->kept = &state->control->kept;
}


static ngx_int_t
ngx_bloom_start_times(ngx_bloom_zone_t *zone)
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
                      "\"%V/dropped\" cannot be read; it says which images "
                      "bloom zone \"%V\" may load: restore it",
                      &zone->state->path, &zone->name);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* After all was read: where the journal goes on. */
static ngx_int_t
ngx_bloom_start_recover(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load)
{
    uint64_t            doubt;
    ngx_err_t           err;
    ngx_int_t           rc;
    ngx_bloom_bits_t    bits;
    ngx_bloom_state_t  *state;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    state = zone->state;

    rc = state->alone ? ngx_bloom_repair(state, &load->reader) : NGX_OK;

    if (rc == NGX_DECLINED) {
        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, ngx_errno,
                      "the journal in \"%V\" lacks additions that were not "
                      "synchronised when the machine stopped, and there is no "
                      "room to write it anew without the gap, which will be "
                      "taken for damage; free space and restart nginx before "
                      "anything is added", &state->path);
    }

    if (rc == NGX_ERROR
        || (state->alone
            && ngx_bloom_journal_recover(state, &load->reader, load->position)
               != NGX_OK))
    {
        err = ngx_errno;
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, err,
                      "the journal in \"%V\" of bloom zone \"%V\" cannot be "
                      "recovered; mend the disk, or the owner of its files",
                      &state->path, &zone->name);
        return NGX_ERROR;
    }

    if (ngx_bloom_load_too_old(load)) {

        /* another instance, with a newer image, removed records meanwhile */

        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                      "the image of bloom zone \"%V\" " NGX_BLOOM_TOO_OLD,
                      &zone->name);
        return NGX_ERROR;
    }

    /*
     * Keys that were added while the disk refused: the helper appends them.
     * Those of another instance this one follows then, if it misses them here.
     */

    ngx_bloom_zone_bits(zone, load->bank, &bits);
    (void) ngx_bloom_kept_apply(zone, &bits);

    /* not load->reader.limit: it may have moved after the last record */

    sh->applied = state->alone ? ngx_bloom_state_tail(state)
                               : load->reader.position;
    doubt = ngx_bloom_load_doubt(zone, &load->reader, load->cut);
    sh->doubt = ngx_max(sh->doubt, doubt);
    sh->checkpoint = load->position;

    __atomic_store_n(&state->control->instance[state->instance].applied,
                     sh->applied, __ATOMIC_SEQ_CST);

    if (load->records != 0 || load->position != 0) {
        ngx_log_error(NGX_LOG_NOTICE, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" has %uL keys of %uL records of its "
                      "journal%s, in %uL ms", &zone->name, load->keys,
                      load->records,
                      load->position ? " behind a checkpoint" : "",
                      ngx_bloom_time() - load->begun);
    }

    return NGX_OK;
}


/*
 * Loads what is to serve: the newest checkpoint of the base, else the base,
 * and the journal.  The base is an uploaded image if there is one for the
 * image of file=, else that, or an empty filter.
 */
static ngx_int_t
ngx_bloom_start_load(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load)
{
    u_char              upload[NGX_MAX_PATH], *build;
    ngx_str_t           name;
    bloom_image_t       image;
    ngx_bloom_file_t    file;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    sh->uploaded = 0;
    sh->file = (zone->file.name.len != 0);

    if (sh->file) {
        ngx_bloom_file_close(&zone->file);

    } else if (zone->joins) {
        zone->image = sh->bank[sh->generation & 1].image;

    } else if (ngx_bloom_start_random(zone) != NGX_OK) {
        return NGX_ERROR;
    }

    build = sh->file ? zone->image.build_id : ngx_bloom_save_empty;

    if (zone->state != NULL) {

        name.data = ngx_bloom_save_upload_name(zone->state, build, upload);
        name.len = ngx_strlen(upload);

        ngx_memzero(&file, sizeof(ngx_bloom_file_t));
        file.name = name;
        file.fd = NGX_INVALID_FILE;

        if (ngx_bloom_file_open(&file) == NGX_OK) {
            image = file.reader.image;
            ngx_bloom_file_close(&file);

            sh->uploaded = 1;

            if (ngx_bloom_start_base(zone, load, &name, &image) == NGX_OK) {
                return NGX_OK;
            }

        } else if (file.err == NGX_ENOENT) {
            goto file;

        } else {
            ngx_bloom_print(load->error, sizeof(load->error),
                                "image \"%s\" of bloom zone \"%V\" %s",
                                upload, &zone->name, file.error);
        }

        sh->uploaded = 0;
        sh->doubt = ngx_bloom_time();

        ngx_bloom_start_log(zone, NGX_LOG_ALERT, load,
                            "it answers \"cannot tell\" instead of \"absent\" "
                            "until an image is loaded");
    }

file:

    name = zone->file.name;
    image = zone->image;

    if (ngx_bloom_start_base(zone, load, &name, &image) != NGX_OK) {
        ngx_bloom_start_log(zone, NGX_LOG_EMERG, load, NULL);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_start_base(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load,
    ngx_str_t *name, bloom_image_t *image)
{
    u_char              checkpoint[NGX_MAX_PATH], *build;
    uint64_t            position;
    ngx_str_t           from;
    ngx_uint_t          empty;

    empty = (name->len == 0);
    build = empty ? ngx_bloom_save_empty : image->build_id;

    if (zone->state != NULL && !zone->joins
        && ngx_bloom_save_find(zone->state, build, checkpoint, &position)
           == NGX_OK
        && position != 0)
    {
        from.data = checkpoint;
        from.len = ngx_strlen(checkpoint);

        if (ngx_bloom_load_begin(load, zone, &from, empty ? NULL : image,
                                 position, NULL)
            == NGX_OK)
        {
            if (empty && !ngx_bloom_start_like(&load->image, image)) {

                /* of another "capacity" or the like: the journal has it all */

                goto without;
            }

            if (ngx_bloom_start_run(load) == NGX_OK) {
                return NGX_OK;
            }
        }

        ngx_bloom_start_log(zone, NGX_LOG_WARN, load,
                            "it starts without that checkpoint");

without:

        ngx_bloom_load_end(load);
    }

    if (ngx_bloom_load_begin(load, zone, name, empty ? image : NULL, 0, NULL)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_bloom_start_run(load);
}


static ngx_int_t
ngx_bloom_start_run(ngx_bloom_load_t *load)
{
    ngx_int_t  rc;

    do {
        rc = ngx_bloom_load_step(load);
    } while (rc == NGX_AGAIN);

    return rc;
}


/* The image of a zone that starts empty: a seed and a name of its own. */
static ngx_int_t
ngx_bloom_start_random(ngx_bloom_zone_t *zone)
{
    bloom_image_t  *image;

    image = &zone->image;

    if (getrandom(image->hasher.key,
                  image->hasher.kind == BLOOM_HASH_MURMUR3
                  ? sizeof(uint32_t) : BLOOM_HASH_KEY_LEN, 0) == -1
        || getrandom(image->build_id, BLOOM_IMAGE_BUILD_ID_LEN, 0) == -1)
    {
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, ngx_errno,
                      "getrandom() failed for bloom zone \"%V\"",
                      &zone->name);
        return NGX_ERROR;
    }

    image->created = ngx_bloom_time();

    return NGX_OK;
}


/* Which file is the zone's from now on: for helpers of every cycle. */
static void
ngx_bloom_start_file_name(ngx_bloom_zone_t *zone)
{
    ngx_str_t  *name;

    name = &zone->file.name;

    ngx_cpystrn(zone->sh->file_name, name->len ? name->data : (u_char *) "",
                NGX_MAX_PATH);
}


static void
ngx_bloom_start_file_seen(ngx_bloom_zone_t *zone)
{
    ngx_bloom_start_file_name(zone);

    zone->sh->file_id = zone->file.id;

    ngx_memcpy(zone->sh->file_build, zone->image.build_id,
               BLOOM_IMAGE_BUILD_ID_LEN);
}


/* Shared memory that is kept: its workers serve on, whatever becomes of this
 * configuration. */
static ngx_int_t
ngx_bloom_start_renew(ngx_bloom_zone_t *zone, ngx_bloom_zone_t *old)
{
    u_char               *path;
    ngx_uint_t            bank, file;
    bloom_image_t        *live;
    ngx_bloom_failure_t   failure;

    bank = zone->sh->generation & 1;
    live = &zone->sh->bank[bank].image;
    file = (zone->file.name.len != 0);

    if (zone->pages != old->pages) {
        ngx_bloom_start_repage(zone);
    }

    if (old->state != NULL && zone->state_path.len != 0 && zone->journal) {

        if (zone->state_path.len != old->state_path.len
            || ngx_strncmp(zone->state_path.data, old->state_path.data,
                           old->state_path.len)
               != 0)
        {
            ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                          "bloom_state_path cannot change at a reload, from "
                          "\"%V\" to \"%V\": move the directory while nginx "
                          "is stopped", &old->state_path, &zone->state_path);
            return NGX_ERROR;
        }

        zone->state = ngx_pcalloc(zone->pool, sizeof(ngx_bloom_state_t));

        if (zone->state == NULL) {
            return NGX_ERROR;
        }

        path = ngx_bloom_state_path(zone->pool, &zone->state_path,
                                    &zone->name);
        if (path == NULL) {
            return NGX_ERROR;
        }

        if (ngx_bloom_state_inherit(zone->state, old->state, path, &failure)
            != NGX_OK)
        {
            zone->state = NULL;
            ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, failure.err,
                          "cannot %s \"%s\" of bloom zone \"%V\"",
                          failure.what, failure.name, &zone->name);
            return NGX_ERROR;
        }

        ngx_bloom_start_attach(zone);

    } else if (old->state == NULL) {

        if (ngx_bloom_start_state(zone) != NGX_OK) {
            return NGX_ERROR;
        }

        if (zone->state != NULL) {
            return ngx_bloom_start_journal(zone);
        }

    } else {
        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" has no journal any more: keys that "
                      "were added are lost with the next load", &zone->name);
    }

    if (zone->sh->file == file && zone->sh->generation != 0) {

        if (file) {
            return ngx_bloom_start_file(zone);
        }

        if (zone->sh->uploaded || ngx_bloom_start_like(live, &zone->image)) {
            return NGX_OK;
        }
    }

    if (!file && zone->state == NULL) {
        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" starts empty again: its capacity, "
                      "rate, layout, hash or key form changed", &zone->name);
    }

    return ngx_bloom_start_refill(zone);
}


/* Of the same kind, whatever their seeds. */
static ngx_uint_t
ngx_bloom_start_like(bloom_image_t *one, bloom_image_t *other)
{
    return bloom_geometry_equal(&one->geometry, &other->geometry)
           && one->capacity == other->capacity
           && one->fpr == other->fpr
           && one->hasher.kind == other->hasher.kind
           && one->key_form == other->key_form;
}


/*
 * A zone that was in memory only has a journal from now on.  Keys that were
 * added without one are nowhere else, so the filter goes on to serve if it can.
 */
static ngx_int_t
ngx_bloom_start_journal(ngx_bloom_zone_t *zone)
{
    u_char              upload[NGX_MAX_PATH];
    ngx_uint_t          bank, added;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    bank = sh->generation & 1;

    if (sh->file || sh->generation == 0) {
        return ngx_bloom_start_refill(zone);   /* that took no keys */
    }

    added = (__atomic_load_n(&sh->bank[bank].ones, __ATOMIC_RELAXED) != 0);

    ngx_bloom_save_upload_name(zone->state, ngx_bloom_save_empty, upload);

    zone->joins = zone->file.name.len == 0 && !sh->uploaded
                  && ngx_bloom_start_like(&sh->bank[bank].image, &zone->image)
                  && access((char *) upload, F_OK) == -1;

    if (zone->joins && added) {
        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" has a journal from now on: keys that "
                      "were added before are not in it, and are lost with the "
                      "next load or start", &zone->name);

    } else if (added) {
        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                      NGX_BLOOM_START_FORGETS, &zone->name);
    }

    return ngx_bloom_start_refill(zone);
}


/* Another kind of pages is wanted for memory that is in use. */
static void
ngx_bloom_start_repage(ngx_bloom_zone_t *zone)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (zone->pages == NGX_BLOOM_PAGES_RESERVED
        || sh->pages == NGX_BLOOM_PAGES_RESERVED)
    {
        if (zone->pages != sh->pages) {
            ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                          "bloom zone \"%V\" keeps its memory, and its "
                          "huge_pages \"%s\": restart nginx to change them",
                          &zone->name, ngx_bloom_pages_name(sh->pages));
        }

        return;
    }

    sh->pages = zone->pages;

    ngx_bloom_pages_advise(sh->banks, 2 * sh->bank_size, zone->pages);
}


/* Has the file changed, and is it whole?  The helper will load it. */
static ngx_int_t
ngx_bloom_start_file(ngx_bloom_zone_t *zone)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (ngx_bloom_file_same(&sh->file_id, &zone->file.id)) {
        return NGX_OK;
    }

    if (ngx_bloom_file_check(&zone->file) != NGX_OK) {
        return ngx_bloom_start_refuse(zone);
    }

    if (ngx_memcmp(sh->file_build, zone->image.build_id,
                   BLOOM_IMAGE_BUILD_ID_LEN)
        == 0)
    {
        /* touched, moved, or the like */

        sh->file_id = zone->file.id;
        return NGX_OK;
    }

    if (zone->state != NULL && zone->state->control->dropped != 0
        && ngx_bloom_load_covered(&zone->image)
           <= zone->state->control->dropped)
    {
        zone->file.err = 0;
        zone->file.error = NGX_BLOOM_TOO_OLD;
        return ngx_bloom_start_refuse(zone);
    }

    if (zone->max_age != 0 && zone->image.as_of == 0) {
        zone->file.err = 0;
        zone->file.error = NGX_BLOOM_NO_AS_OF;
        return ngx_bloom_start_refuse(zone);
    }

    zone->changed = 1;

    return NGX_OK;
}


/*
 * Another kind of filter in the same memory: loaded by the master, and let
 * serve when the configuration is accepted.
 */
static ngx_int_t
ngx_bloom_start_refill(ngx_bloom_zone_t *zone)
{
    uint64_t            doubt, applied, checkpoint;
    ngx_int_t           rc;
    ngx_uint_t          uploaded, file;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    uploaded = sh->uploaded;
    file = sh->file;

    if (ngx_bloom_lock(&sh->helper, NGX_BLOOM_START_PATIENCE) != NGX_OK) {
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" is loading an image: reload again "
                      "when it has", &zone->name);
        return NGX_ERROR;
    }

    zone->load = ngx_pcalloc(zone->pool, sizeof(ngx_bloom_load_t));
    zone->pending = 1;

    if (zone->load == NULL) {
        return NGX_ERROR;
    }

    zone->load->zone = zone;
    zone->load->file.fd = NGX_INVALID_FILE;

    doubt = sh->doubt;
    applied = sh->applied;
    checkpoint = sh->checkpoint;

    rc = ngx_bloom_start_load(zone, zone->load);

    zone->uploaded = sh->uploaded;

    sh->uploaded = uploaded;
    sh->file = file;

    if (zone->state != NULL && zone->state->starts != NGX_INVALID_FILE) {

        if (rc == NGX_OK) {
            rc = ngx_bloom_start_recover(zone, zone->load);
        }

        ngx_bloom_state_ready(zone->state);
    }

    /* what serves goes on as it is; the switch sets these */

    sh->doubt = doubt;
    sh->applied = applied;
    sh->checkpoint = checkpoint;

    return rc;
}


void
ngx_bloom_start_abandon(ngx_bloom_zone_t *zone)
{
    if (!zone->pending) {
        return;
    }

    zone->pending = 0;
    zone->joins = 0;

    if (zone->load != NULL) {
        ngx_bloom_load_end(zone->load);

        while (ngx_bloom_load_release(zone, zone->load->bank, (size_t) -1)) {
            /* void */
        }
    }

    ngx_bloom_unlock(&zone->sh->helper);
}


static ngx_int_t
ngx_bloom_start_refuse(ngx_bloom_zone_t *zone)
{
    ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, zone->file.err,
                  "image \"%V\" of bloom zone \"%V\" %s",
                  &zone->file.name, &zone->name, zone->file.error);

    return NGX_ERROR;
}


/* What the log calls the base. */
static char *
ngx_bloom_start_called(ngx_bloom_zone_t *zone, ngx_uint_t uploaded)
{
    return uploaded ? "an uploaded image"
           : zone->file.name.len ? (char *) zone->file.name.data
           : "a filter that starts empty";
}


static void
ngx_bloom_start_log(ngx_bloom_zone_t *zone, ngx_uint_t level,
    ngx_bloom_load_t *load, const char *then)
{
    ngx_log_error(level, zone->shm_zone->shm.log, 0,
                  "%s%s%s", load->error, then ? "; " : "", then ? then : "");
}


void
ngx_bloom_zones_commit(ngx_cycle_t *cycle, ngx_array_t *zones)
{
    u_char              path[NGX_MAX_PATH], control[NGX_MAX_PATH], *what;
    uint64_t            ticket;
    ngx_str_t           name;
    const char         *error;
    ngx_uint_t          i, old;
    ngx_core_conf_t    *ccf;
    ngx_bloom_zone_t   *zone, **zonep;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    zonep = zones->elts;

    for (i = 0; i < zones->nelts; i++) {
        zone = zonep[i];

        if (zone->file.name.len != 0
            && !ngx_bloom_file_readable(&zone->file.name, ccf, path, &what))
        {
            ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                          "image \"%V\" of bloom zone \"%V\" could not be "
                          "loaded again while nginx runs: \"%s\" does not let "
                          "user \"%s\" in; mend its owner or mode",
                          &zone->file.name, &zone->name, what, ccf->username);
        }

        if (ngx_test_config) {
            continue;                            /* there is no memory */
        }

        if (zone->state != NULL) {
            name.data = ngx_bloom_state_name(zone->state, control, "control");
            name.len = ngx_strlen(control);

            if (!ngx_bloom_file_readable(&name, ccf, path, &what)) {
                ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                              "bloom zone \"%V\" takes no additions: \"%s\" "
                              "does not let user \"%s\" in; mend its owner or "
                              "mode", &zone->name, what, ccf->username);
            }
        }

        if (!zone->pending) {
            ngx_bloom_start_file_name(zone);
        }

        if (zone->changed) {
            zone->changed = 0;

            if (ngx_bloom_task_request(zone, NGX_BLOOM_TASK_LOAD, NULL,
                                       &ticket, &error)
                != NGX_OK)
            {
                ngx_log_error(NGX_LOG_ERR, cycle->log, 0,
                              "bloom zone \"%V\" is loading another image: "
                              "\"%V\" is not loaded; reload again",
                              &zone->name, &zone->file.name);

            } else {
                ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                              "bloom zone \"%V\" is going to load \"%V\", "
                              "which changed", &zone->name,
                              &zone->file.name);
            }
        }

        if (!zone->pending) {
            continue;
        }

        old = zone->joins ? zone->load->bank : zone->sh->generation & 1;

        if (ngx_bloom_load_switch(zone->load, zone->uploaded) != NGX_OK) {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                          "bloom zone \"%V\" goes on as it was: %s; reload "
                          "again", &zone->name, zone->load->error);

            ngx_bloom_start_abandon(zone);
            continue;
        }

        zone->pending = 0;
        zone->sh->based = zone->sh->generation;
        zone->sh->file = (zone->file.name.len != 0);
        ngx_bloom_start_file_seen(zone);

        if (!zone->joins) {
            ngx_bloom_notice_serves(zone->load, cycle->log, "serves",
                                    ngx_bloom_start_called(zone,
                                                           zone->uploaded));
        }

        zone->joins = 0;

        ngx_bloom_load_end(zone->load);

        while (ngx_bloom_load_release(zone, old, (size_t) -1)) {
            /* void */
        }

        ngx_bloom_unlock(&zone->sh->helper);
    }
}
