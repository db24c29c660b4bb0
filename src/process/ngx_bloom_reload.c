/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file compares a zone's new configuration with the previous one, and its
 * file with the image that serves.
 */

#include "ngx_bloom_reload.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_base.h"
#include "ngx_bloom_base_state.h"
#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_task.h"
#include "ngx_bloom_load_checks.h"


/* Why a reload loads a file. */
typedef enum {
    NGX_BLOOM_RELOAD_NOT = 0,
    NGX_BLOOM_RELOAD_CHANGED,            /* it has another image */
    NGX_BLOOM_RELOAD_NAMED,              /* file= has another name */
    NGX_BLOOM_RELOAD_FORM,               /* what serves has another key form
                                            than "form=" wants */
    NGX_BLOOM_RELOAD_FIRST               /* nothing serves */
} ngx_bloom_reload_e;


static ngx_int_t ngx_bloom_reload_inherit(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_t *old);
static ngx_uint_t ngx_bloom_reload_alike(bloom_image_t *one,
    bloom_image_t *other);
static ngx_int_t ngx_bloom_reload_join(ngx_bloom_zone_t *zone);
static void ngx_bloom_reload_join_child(void *data,
    ngx_bloom_reply_t *reply);
static void ngx_bloom_reload_check_file(void *data,
    ngx_bloom_reply_t *reply);


/* by ngx_bloom_reload_e */
static const char  *const ngx_bloom_reload_reasons[] = {
    "",
    "which changed",
    "which \"file\" names now",
    "since the image that serves has another key form than \"form\" wants",
    "since no image serves"
};


ngx_uint_t
ngx_bloom_reload_differs(ngx_bloom_zone_t *zone, ngx_bloom_zone_t *old)
{
    ngx_uint_t  file;

    file = (zone->file.name.len != 0);

    if (file != (old->file.name.len != 0)
        || (!file && (!ngx_bloom_reload_alike(&old->image, &zone->image)
                      || !ngx_bloom_zone_serves_form(zone, old->sh))))
    {
        return 1;
    }

    /* the zone gets a journal whose base is not what serves */

    if (old->state == NULL && zone->has_image) {
        return 1;
    }

    /* the clock of the journal may be another than that of the memory */

    if (zone->expire != 0 && old->state == NULL
        && zone->state_path.len != 0 && zone->journal && zone->state_wanted)
    {
        return 1;
    }

    if (zone->expire != old->expire || zone->slices != old->slices) {
        return 1;
    }

    /* the size of the memory may be equal, and the room for keys is not */

    return zone->removals != old->removals || zone->max_keys != old->max_keys;
}


/* Returns 1 if two filters have the same geometry, capacity, rate, key form and
 * kind of hash; their seeds may differ. */
static ngx_uint_t
ngx_bloom_reload_alike(bloom_image_t *one, bloom_image_t *other)
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
ngx_bloom_reload_zone(ngx_bloom_zone_t *zone, ngx_bloom_zone_t *old)
{
    ngx_bloom_user_t    user;
    ngx_bloom_reply_t   reply;

    if (old->state != NULL && zone->state_path.len != 0 && zone->journal) {

        if (ngx_bloom_reload_inherit(zone, old) != NGX_OK) {
            return NGX_ERROR;
        }

    } else if (old->state == NULL) {

        if (ngx_bloom_reload_join(zone) != NGX_OK) {
            return NGX_ERROR;
        }

    } else {
        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" has no journal any more: added keys "
                      "are lost at the next start or load", &zone->name);
    }

    if (zone->file.name.len == 0) {
        return NGX_OK;
    }

    user = ngx_bloom_unprivileged_workers(zone->ccf);

    if (ngx_bloom_unprivileged(&user, zone->shm_zone->shm.log,
                               "checks the file of a bloom zone",
                               ngx_bloom_reload_check_file, zone, &reply)
        != NGX_OK
        || reply.rc != NGX_OK)
    {
        return zone->optional ? NGX_OK : NGX_ERROR;
    }

    zone->changed = ngx_min(reply.value, NGX_BLOOM_RELOAD_FIRST);

    return NGX_OK;
}


/* Takes over the state of the previous configuration. */
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

    zone->state = ngx_palloc(zone->pool, sizeof(ngx_bloom_state_t));

    if (zone->state == NULL) {
        return NGX_ERROR;
    }

    path = ngx_bloom_directory_path(zone->pool, &zone->state_path,
                                    &zone->name);
    if (path == NULL) {
        return NGX_ERROR;
    }

    if (ngx_bloom_state_inherit(zone->state, old->state, path, &failure)
        != NGX_OK)
    {
        zone->state = NULL;
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, failure.err,
                      "cannot %s \"%s/%s\" of bloom zone \"%V\"",
                      failure.what, path, failure.name, &zone->name);
        return NGX_ERROR;
    }

    zone->state->expire = zone->expire;

    return NGX_OK;
}


/*
 * Gives a journal to a zone that was in memory only.  Its filter serves on, as
 * an instance that has applied nothing of its journal yet.  The helper then
 * applies the journal.
 */
static ngx_int_t
ngx_bloom_reload_join(ngx_bloom_zone_t *zone)
{
    ngx_bloom_user_t    user;
    ngx_bloom_reply_t   reply;

    if (ngx_bloom_base_state_directory(zone, 1) != NGX_OK) {
        return NGX_ERROR;
    }

    if (zone->state == NULL) {
        return NGX_OK;
    }

    user = ngx_bloom_unprivileged_workers(zone->ccf);

    if (ngx_bloom_unprivileged(&user, zone->shm_zone->shm.log,
                               "opens the journal of a bloom zone",
                               ngx_bloom_reload_join_child, zone, &reply)
        != NGX_OK
        || reply.rc != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_bloom_base_state_take(zone, &reply);

    return NGX_OK;
}


static void
ngx_bloom_reload_join_child(void *data, ngx_bloom_reply_t *reply)
{
    ngx_bloom_zone_t *zone = data;

    uint64_t             bits_set[BLOOM_PARTS_MAX];
    ngx_uint_t           bank;
    ngx_bloom_load_t     load;
    ngx_bloom_shctx_t   *sh;

    sh = zone->sh;
    bank = sh->generation & 1;

    if (ngx_bloom_base_state_open(zone) != NGX_OK) {
        return;
    }

    if (zone->state != NULL) {

        ngx_bloom_load_begin_journal(&load, zone);
        load.image = sh->bank[bank].image;

        if (sh->file && ngx_bloom_load_too_old(&load)) {
            (void) ngx_bloom_base_refuse(zone, 0, NGX_BLOOM_LOAD_TOO_OLD);
            return;
        }

        if (ngx_bloom_base_load_journal(zone, &load) != NGX_OK
            || ngx_bloom_base_recover(zone, &load) != NGX_OK)
        {
            return;
        }

        ngx_bloom_load_end(&load);

        /* earlier losses happened without a journal: the image's as_of says
         * which keys the filter has */

        sh->complete = ngx_max(ngx_bloom_as_of_cut(zone->state,
                                               &sh->bank[bank].image), 1);
        ngx_bloom_catch_up_begin(zone);

        if (!sh->file && sh->generation != 0
            && ngx_bloom_layers_bits_set(zone, bank, bits_set) != 0)
        {
            ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                          "bloom zone \"%V\" has a journal from now on: keys "
                          "that were added before are not in it, and are lost "
                          "at the next load or start", &zone->name);
        }
    }

    ngx_bloom_base_state_reply(zone, reply);
}


/* Checks, in a loader, a file that is not as it was last seen. */
static void
ngx_bloom_reload_check_file(void *data, ngx_bloom_reply_t *reply)
{
    ngx_bloom_zone_t *zone = data;

    uint64_t            ticket;
    ngx_uint_t          serves;
    const char         *error;
    ngx_bloom_load_t    load;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    serves = ngx_bloom_zone_serves_form(zone, sh);

    ngx_bloom_base_warn_access(zone);

    if (serves && ngx_bloom_image_file_same(&sh->file_id, &zone->file.id)) {
        reply->rc = NGX_OK;
        return;
    }

    if (zone->file.fd == NGX_INVALID_FILE
        || ngx_bloom_image_file_check(&zone->file) != NGX_OK)
    {
        (void) ngx_bloom_base_refuse(zone, zone->file.err, zone->file.error);

        if (zone->optional) {

            /* let the helper refuse it too, so that the endpoint shows it */

            (void) ngx_bloom_task_request(zone, NGX_BLOOM_TASK_LOAD, NULL, 0,
                                          &ticket, &error);
        }

        return;
    }

    if (serves && sh->generation != 0
        && ngx_memcmp(sh->file_build, zone->image.build_id,
                      BLOOM_IMAGE_BUILD_ID_LEN)
           == 0)
    {
        /* the same image: the file was only touched or moved */

        sh->file_id = zone->file.id;
        reply->rc = NGX_OK;
        return;
    }

    ngx_bloom_zone_attach_state(zone);

    if (ngx_bloom_load_check_image(&load, zone, &zone->image) != NGX_OK) {
        ngx_log_error(ngx_bloom_zone_level(zone), zone->shm_zone->shm.log, 0,
                      "%s", load.error);
        return;
    }

    /* a reload is a request to try a refused file again */

    ngx_memzero(&sh->refused, sizeof(ngx_bloom_image_id_t));

    reply->value =
        (sh->generation == 0) ? NGX_BLOOM_RELOAD_FIRST
        : (ngx_strcmp(sh->file_name, zone->file.name.data) != 0)
          ? NGX_BLOOM_RELOAD_NAMED
        : serves ? NGX_BLOOM_RELOAD_CHANGED : NGX_BLOOM_RELOAD_FORM;
    reply->rc = NGX_OK;
}


void
ngx_bloom_reload_accepted(ngx_cycle_t *cycle, ngx_array_t *zones)
{
    ngx_uint_t          i;
    ngx_bloom_zone_t  **zone;

    zone = zones->elts;

    for (i = 0; i < zones->nelts; i++) {

        if (zone[i]->before != NULL) {

            /*
             * nginx reads the flag of the new zone when it creates memory, and
             * that of the old zone when it frees memory, which it does next.
             */

            zone[i]->shm_zone->noreuse = 0;
            zone[i]->before->shm_zone->noreuse = 1;
            zone[i]->before = NULL;
        }

        if (zone[i]->changed != NGX_BLOOM_RELOAD_NOT) {
            ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                          "bloom zone \"%V\" is going to load \"%V\", %s",
                          &zone[i]->name, &zone[i]->file.name,
                          ngx_bloom_reload_reasons[zone[i]->changed]);
        }
    }
}
