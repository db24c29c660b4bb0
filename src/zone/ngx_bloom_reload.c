
/*
 * This file compares a zone's new configuration with what serves, and prepares
 * what has changed.
 */

#include "ngx_bloom_reload.h"
#include "ngx_bloom_base.h"
#include "ngx_bloom_log.h"
#include "ngx_bloom_state_files.h"
#include "ngx_bloom_task.h"


/* How long the master waits for a load that is running, ms. */
#define NGX_BLOOM_RELOAD_PATIENCE  10000


static void ngx_bloom_reload_hugepages(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_reload_inherit(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_t *old);
static ngx_int_t ngx_bloom_reload_journal(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_reload_file(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_reload_refill(ngx_bloom_zone_t *zone);
static void ngx_bloom_reload_check_access(ngx_cycle_t *cycle,
    ngx_bloom_zone_t *zone);
static void ngx_bloom_reload_request_load(ngx_cycle_t *cycle,
    ngx_bloom_zone_t *zone);
static void ngx_bloom_reload_switch(ngx_cycle_t *cycle,
    ngx_bloom_zone_t *zone);


ngx_int_t
ngx_bloom_reload_zone(ngx_bloom_zone_t *zone, ngx_bloom_zone_t *old)
{
    ngx_uint_t          file;
    bloom_image_t      *live;
    ngx_bloom_shctx_t  *sh;

    sh = old->sh;
    zone->sh = sh;
    zone->pending = &sh->pending;

    live = &sh->bank[sh->generation & 1].image;
    file = (zone->file.name.len != 0);

    if (zone->hugepages != old->hugepages) {
        ngx_bloom_reload_hugepages(zone);
    }

    if (old->state != NULL && zone->state_path.len != 0 && zone->journal) {

        if (ngx_bloom_reload_inherit(zone, old) != NGX_OK) {
            return NGX_ERROR;
        }

    } else if (old->state == NULL) {

        if (ngx_bloom_base_open_state(zone) != NGX_OK) {
            return NGX_ERROR;
        }

        if (zone->state != NULL) {
            return ngx_bloom_reload_journal(zone);
        }

    } else {
        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" has no journal any more: keys that "
                      "were added are lost with the next load", &zone->name);
    }

    if (sh->file == file && sh->generation != 0) {

        if (file) {
            return ngx_bloom_reload_file(zone);
        }

        if (sh->uploaded || ngx_bloom_base_alike(live, &zone->image)) {
            return NGX_OK;
        }
    }

    if (!file && zone->state == NULL) {
        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" starts empty again: its capacity, "
                      "rate, layout, hash or key form changed", &zone->name);
    }

    return ngx_bloom_reload_refill(zone);
}


/* Asks for another kind of pages for memory that is in use. */
static void
ngx_bloom_reload_hugepages(ngx_bloom_zone_t *zone)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (zone->hugepages == NGX_BLOOM_HUGEPAGES_RESERVED
        || sh->hugepages == NGX_BLOOM_HUGEPAGES_RESERVED)
    {
        if (zone->hugepages != sh->hugepages) {
            ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                          "bloom zone \"%V\" keeps its memory, and its "
                          "huge_pages \"%s\": restart nginx to change them",
                          &zone->name, ngx_bloom_hugepages_name(sh->hugepages));
        }

        return;
    }

    sh->hugepages = zone->hugepages;

    ngx_bloom_hugepages_advise(sh->banks, 2 * sh->bank_size, zone->hugepages);
}


/* Goes on with the state of the configuration before. */
static ngx_int_t
ngx_bloom_reload_inherit(ngx_bloom_zone_t *zone, ngx_bloom_zone_t *old)
{
    u_char               *path;
    ngx_bloom_failure_t   failure;

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

    ngx_bloom_base_attach_state(zone);

    return NGX_OK;
}


/*
 * Gives a journal to a zone that was in memory only.  Keys that were added
 * without one are nowhere else, so the filter serves on if it can.
 */
static ngx_int_t
ngx_bloom_reload_journal(ngx_bloom_zone_t *zone)
{
    u_char              upload[NGX_MAX_PATH];
    ngx_uint_t          bank, added;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    bank = sh->generation & 1;

    if (sh->file || sh->generation == 0) {
        return ngx_bloom_reload_refill(zone);   /* that took no keys */
    }

    added = (__atomic_load_n(&sh->bank[bank].bits_set, __ATOMIC_RELAXED) != 0);

    ngx_bloom_state_files_upload(zone->state, NULL, upload);

    zone->joins = zone->file.name.len == 0 && !sh->uploaded
                  && ngx_bloom_base_alike(&sh->bank[bank].image, &zone->image)
                  && access((char *) upload, F_OK) == -1;

    if (zone->joins && added) {
        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" has a journal from now on: keys that "
                      "were added before are not in it, and are lost with the "
                      "next load or start", &zone->name);

    } else if (added) {
        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                      NGX_BLOOM_BASE_FORGETS, &zone->name);
    }

    return ngx_bloom_reload_refill(zone);
}


/* Checks a file that has changed: once it is accepted, the helper loads it. */
static ngx_int_t
ngx_bloom_reload_file(ngx_bloom_zone_t *zone)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (ngx_bloom_image_file_same(&sh->file_id, &zone->file.id)) {
        return NGX_OK;
    }

    if (ngx_bloom_image_file_check(&zone->file) != NGX_OK) {
        return ngx_bloom_base_refuse(zone);
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
        zone->file.error = NGX_BLOOM_LOAD_TOO_OLD;
        return ngx_bloom_base_refuse(zone);
    }

    zone->changed = 1;

    return NGX_OK;
}


/*
 * Loads another kind of filter into the same memory; it serves when the
 * configuration is accepted.
 */
static ngx_int_t
ngx_bloom_reload_refill(ngx_bloom_zone_t *zone)
{
    uint64_t            damaged, applied, checkpoint;
    ngx_int_t           rc;
    ngx_uint_t          uploaded, file;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    uploaded = sh->uploaded;
    file = sh->file;

    if (ngx_bloom_lock(&sh->helper, NGX_BLOOM_RELOAD_PATIENCE) != NGX_OK) {
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" is loading an image: reload again "
                      "when it has", &zone->name);
        return NGX_ERROR;
    }

    zone->load = ngx_pcalloc(zone->pool, sizeof(ngx_bloom_load_t));
    zone->prepared = 1;

    if (zone->load == NULL) {
        return NGX_ERROR;
    }

    zone->load->zone = zone;
    zone->load->file.fd = NGX_INVALID_FILE;

    damaged = sh->damaged;
    applied = sh->applied;
    checkpoint = sh->checkpoint;

    rc = ngx_bloom_base_load(zone, zone->load);

    zone->uploaded = sh->uploaded;

    sh->uploaded = uploaded;
    sh->file = file;

    if (zone->state != NULL && zone->state->starts != NGX_INVALID_FILE) {

        if (rc == NGX_OK) {
            rc = ngx_bloom_base_recover(zone, zone->load);
        }

        ngx_bloom_state_ready(zone->state);
    }

    /* what serves goes on as it is; the switch sets these */

    sh->damaged = damaged;
    sh->applied = applied;
    sh->checkpoint = checkpoint;

    return rc;
}


void
ngx_bloom_reload_abandon(ngx_bloom_zone_t *zone)
{
    if (!zone->prepared) {
        return;
    }

    zone->prepared = 0;
    zone->joins = 0;

    if (zone->load != NULL) {
        ngx_bloom_load_end(zone->load);

        while (ngx_bloom_load_release(zone, zone->load->bank, (size_t) -1)) {
            /* void */
        }
    }

    ngx_bloom_unlock(&zone->sh->helper);
}


void
ngx_bloom_reload_accepted(ngx_cycle_t *cycle, ngx_array_t *zones)
{
    ngx_uint_t          i;
    ngx_bloom_zone_t  **zone;

    zone = zones->elts;

    for (i = 0; i < zones->nelts; i++) {

        ngx_bloom_reload_check_access(cycle, zone[i]);

        if (ngx_test_config) {
            continue;                            /* there is no memory */
        }

        if (zone[i]->prepared) {
            ngx_bloom_reload_switch(cycle, zone[i]);
            continue;
        }

        ngx_bloom_base_note_name(zone[i]);

        if (zone[i]->changed) {
            ngx_bloom_reload_request_load(cycle, zone[i]);
        }
    }
}


/* Warns of files that the workers' user will not be able to open. */
static void
ngx_bloom_reload_check_access(ngx_cycle_t *cycle, ngx_bloom_zone_t *zone)
{
    u_char            path[NGX_MAX_PATH], control[NGX_MAX_PATH], *what;
    ngx_str_t         name;
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (zone->file.name.len != 0
        && !ngx_bloom_image_file_readable(&zone->file.name, ccf, path, &what))
    {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "image \"%V\" of bloom zone \"%V\" could not be loaded "
                      "again while nginx runs: \"%s\" does not let user \"%s\" "
                      "in; correct its owner or mode",
                      &zone->file.name, &zone->name, what, ccf->username);
    }

    if (zone->state == NULL) {
        return;
    }

    name.data = ngx_bloom_state_name(zone->state, control, "control");
    name.len = ngx_strlen(control);

    if (!ngx_bloom_image_file_readable(&name, ccf, path, &what)) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "bloom zone \"%V\" takes no additions: \"%s\" does not "
                      "let user \"%s\" in; correct its owner or mode",
                      &zone->name, what, ccf->username);
    }
}


/* Has the helper load the file of file=, which has changed. */
static void
ngx_bloom_reload_request_load(ngx_cycle_t *cycle, ngx_bloom_zone_t *zone)
{
    uint64_t     ticket;
    const char  *error;

    zone->changed = 0;

    if (ngx_bloom_task_request(zone, NGX_BLOOM_TASK_LOAD, NULL, &ticket, &error)
        != NGX_OK)
    {
        ngx_log_error(NGX_LOG_ERR, cycle->log, 0,
                      "bloom zone \"%V\" is loading another image: \"%V\" is "
                      "not loaded; reload again",
                      &zone->name, &zone->file.name);
        return;
    }

    ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                  "bloom zone \"%V\" is going to load \"%V\", which changed",
                  &zone->name, &zone->file.name);
}


/* Lets serve what the master has loaded. */
static void
ngx_bloom_reload_switch(ngx_cycle_t *cycle, ngx_bloom_zone_t *zone)
{
    ngx_uint_t          old;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    old = zone->joins ? zone->load->bank : sh->generation & 1;

    if (ngx_bloom_load_switch(zone->load, zone->uploaded) != NGX_OK) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                      "bloom zone \"%V\" goes on as it was: %s; reload again",
                      &zone->name, zone->load->error);

        ngx_bloom_reload_abandon(zone);
        return;
    }

    zone->prepared = 0;
    sh->based = sh->generation;
    sh->file = (zone->file.name.len != 0);
    ngx_bloom_base_note_file(zone);

    if (!zone->joins) {
        ngx_bloom_log_serves(zone->load, cycle->log, "serves",
                             ngx_bloom_base_called(zone, zone->uploaded));
    }

    zone->joins = 0;

    ngx_bloom_load_end(zone->load);

    while (ngx_bloom_load_release(zone, old, (size_t) -1)) {
        /* void */
    }

    ngx_bloom_unlock(&sh->helper);
}
