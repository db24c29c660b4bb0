
/*
 * This file loads a zone's base into fresh memory, or checks for "nginx -t"
 * that it could be loaded.
 */

#include "ngx_bloom_start.h"
#include "ngx_bloom_base.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_log.h"

#include <sys/random.h>


static void ngx_bloom_start_log_hugepages(ngx_bloom_zone_t *zone);


ngx_int_t
ngx_bloom_start_check(ngx_bloom_zone_t *zone)
{
    u_char              *path;
    ngx_int_t            rc;
    bloom_record_t       record;
    ngx_bloom_state_t    state;
    ngx_bloom_reader_t   reader;
    ngx_bloom_control_t  control;

    if (zone->file.name.len != 0
        && ngx_bloom_image_file_check(&zone->file) != NGX_OK)
    {
        return ngx_bloom_base_refuse(zone);
    }

    path = ngx_bloom_base_state_path(zone, ngx_cycle->pool);

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

/* Returns 1 for a zone that has nothing to serve, as a test wants it. */
static ngx_uint_t
ngx_bloom_start_stays_unloaded(ngx_bloom_zone_t *zone)
{
    char  *name;

    name = getenv("NGX_BLOOM_FAULT_UNLOADED");

    return name != NULL && ngx_strlen(name) == zone->name.len
           && ngx_strncmp(name, zone->name.data, zone->name.len) == 0;
}

#endif


ngx_int_t
ngx_bloom_start_zone(ngx_bloom_zone_t *zone)
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
        || ngx_bloom_lock_init(&sh->pending.mutex) != NGX_OK)
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

    sh->hugepages = zone->hugepages;

    if (ngx_bloom_hugepages_take(sh->banks, 2 * sh->bank_size, &sh->hugepages,
                                 &zone->name, zone->shm_zone->shm.log)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    shpool->data = sh;
    zone->sh = sh;
    zone->pending = &sh->pending;

    if (ngx_bloom_base_open_state(zone) != NGX_OK) {
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
                      NGX_BLOOM_BASE_FORGETS, &zone->name);
    }

    ngx_memzero(&load, sizeof(ngx_bloom_load_t));
    load.zone = zone;
    load.file.fd = NGX_INVALID_FILE;

    rc = ngx_bloom_base_load(zone, &load);

    if (rc == NGX_OK && zone->state != NULL) {
        rc = ngx_bloom_base_recover(zone, &load);
    }

    ngx_bloom_load_end(&load);

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    if (zone->state != NULL) {
        ngx_bloom_state_ready(zone->state);
    }

    ngx_bloom_base_note_file(zone);
    ngx_bloom_start_log_hugepages(zone);

#if (NGX_BLOOM_FAULTS)
    if (ngx_bloom_start_stays_unloaded(zone)) {
        return NGX_OK;
    }
#endif

    /* no process has seen this memory: it serves without waiting */

    sh->generation = 1;
    sh->based = 1;

    ngx_bloom_log_serves(&load, zone->shm_zone->shm.log, "starts with",
                         ngx_bloom_base_called(zone, sh->uploaded));

    return NGX_OK;
}


/* Logs how much of the filter is on huge pages, if it is larger than two. */
static void
ngx_bloom_start_log_hugepages(ngx_bloom_zone_t *zone)
{
    uint64_t            filter;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    filter = bloom_image_payload_size(&sh->bank[1].image);

    if (filter < 2 * NGX_BLOOM_HUGEPAGE_SIZE) {
        return;
    }

    ngx_bloom_zone_measure_hugepages(zone);

    ngx_log_error(NGX_LOG_NOTICE, zone->shm_zone->shm.log, 0,
                  "bloom zone \"%V\" has %uLk for its filter and, by now, "
                  "%uzk of its memory on huge pages (with huge_pages=%s)",
                  &zone->name, filter / 1024, sh->huge_bytes / 1024,
                  ngx_bloom_hugepages_name(sh->hugepages));
}
