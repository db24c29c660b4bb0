/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file creates zones and sizes their shared memory.  Once nginx has
 * created the memory, this file has it filled, or takes it over from the
 * previous configuration.
 */

#include "ngx_bloom_declare.h"
#include "ngx_bloom_base.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_directory.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_journal.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_load_checks.h"
#include "ngx_bloom_reload.h"
#include "ngx_bloom_start.h"
#include "ngx_bloom_state_files.h"


/* The most removed keys that a zone gets room for, whatever its journal says:
 * the workers' user can write to it. */
#define NGX_BLOOM_DECLARE_REMOVALS    (1024 * 1024 * 1024)

/* The longest name of a file in a zone's directory. */
#define NGX_BLOOM_DECLARE_NAME_MAX    128


/* What a start of the zone needs memory for, besides file= as it is now. */
typedef struct {
    ngx_bloom_zone_t    *zone;
    uint64_t             bank;           /* bytes that the image in the state
                                            directory needs; 0: there is none,
                                            or it cannot be read */
    uint64_t             removals;       /* room for removed keys that the
                                            journal needs */
} ngx_bloom_stands_t;


static void ngx_bloom_declare_close(void *data);
static ngx_int_t ngx_bloom_declare_image(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_declare_open(ngx_bloom_zone_t *zone);
static ngx_shm_zone_t *ngx_bloom_declare_find_old(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone, void *tag);
static ngx_int_t ngx_bloom_declare_shm(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone, size_t size, void *tag);
static ngx_int_t ngx_bloom_declare_init(ngx_shm_zone_t *shm_zone, void *data);
static ngx_int_t ngx_bloom_declare_room(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone);
static void ngx_bloom_declare_removals(ngx_bloom_zone_t *zone,
    ngx_uint_t room);
static ngx_int_t ngx_bloom_declare_state(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone, ngx_bloom_stands_t *stands);
static void ngx_bloom_declare_look(void *data, ngx_bloom_reply_t *reply);
static ngx_int_t ngx_bloom_declare_look_at(ngx_bloom_zone_t *zone,
    ngx_bloom_stands_t *stands, const bloom_base_t *base);
static ngx_int_t ngx_bloom_declare_look_checkpoint(ngx_bloom_zone_t *zone,
    ngx_bloom_stands_t *stands, const bloom_base_t *base, ngx_uint_t number);
static ngx_int_t ngx_bloom_declare_look_upload(ngx_bloom_zone_t *zone,
    ngx_bloom_stands_t *stands, const bloom_base_t *base);
static ngx_int_t ngx_bloom_declare_fits(ngx_bloom_zone_t *zone,
    uint64_t bank, const char *what, u_char *path);
static ngx_int_t ngx_bloom_declare_form(ngx_bloom_zone_t *zone,
    bloom_image_t *image, u_char *path);
static void ngx_bloom_declare_warn_full(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone);


ngx_bloom_zone_t *
ngx_bloom_declare_find(ngx_array_t *zones, const ngx_str_t *name)
{
    ngx_uint_t          i;
    ngx_bloom_zone_t  **zone;

    zone = zones->elts;

    for (i = 0; i < zones->nelts; i++) {
        if (zone[i]->name.len == name->len
            && ngx_memcmp(zone[i]->name.data, name->data, name->len) == 0)
        {
            return zone[i];
        }
    }

    return NULL;
}


ngx_bloom_zone_t *
ngx_bloom_declare_get(ngx_conf_t *cf, ngx_array_t *zones, ngx_str_t *name)
{
    ngx_bloom_zone_t   *zone, **zonep;
    ngx_pool_cleanup_t *cln;

    zone = ngx_bloom_declare_find(zones, name);

    if (zone != NULL) {
        return zone;
    }

    zonep = ngx_array_push(zones);
    zone = ngx_pcalloc(cf->pool, sizeof(ngx_bloom_zone_t));
    cln = ngx_pool_cleanup_add(cf->pool, 0);

    if (zonep == NULL || zone == NULL || cln == NULL) {
        return NULL;
    }

    zone->name.len = name->len;
    zone->name.data = ngx_pnalloc(cf->pool, name->len + 1);

    if (zone->name.data == NULL) {
        return NULL;
    }

    ngx_cpystrn(zone->name.data, name->data, name->len + 1);

    zone->number = zones->nelts - 1;
    zone->conf_file = cf->conf_file->file.name.data;
    zone->conf_line = cf->conf_file->line;
    zone->file.fd = NGX_INVALID_FILE;
    zone->journal = NGX_BLOOM_JOURNAL_AUTO;
    zone->key_form = -1;
    zone->removals = NGX_BLOOM_REMOVALS;
    zone->max_lag = NGX_BLOOM_MAX_LAG;
    zone->pool = cf->pool;
    zone->ccf = (ngx_core_conf_t *) ngx_get_conf(cf->cycle->conf_ctx,
                                                 ngx_core_module);

    cln->handler = ngx_bloom_declare_close;
    cln->data = zone;

    *zonep = zone;

    return zone;
}


static void
ngx_bloom_declare_close(void *data)
{
    ngx_bloom_zone_t *zone = data;

    ngx_bloom_image_file_close(&zone->file);

    if (zone->state != NULL) {
        ngx_bloom_state_close(zone->state);
        zone->state = NULL;
        ngx_bloom_zone_use(zone);
    }
}


static ngx_shm_zone_t *
ngx_bloom_declare_find_old(ngx_conf_t *cf, ngx_bloom_zone_t *zone, void *tag)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_shm_zone_t   *shm_zone;

    if (cf->cycle->old_cycle == NULL) {
        return NULL;
    }

    for (part = &cf->cycle->old_cycle->shared_memory.part;
         part != NULL;
         part = part->next)
    {
        shm_zone = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (shm_zone[i].tag == tag
                && shm_zone[i].data != NULL
                && shm_zone[i].shm.name.len == zone->name.len
                && ngx_strncmp(shm_zone[i].shm.name.data, zone->name.data,
                               zone->name.len)
                   == 0)
            {
                return &shm_zone[i];
            }
        }
    }

    return NULL;
}


ngx_int_t
ngx_bloom_declare_zone(ngx_conf_t *cf, ngx_bloom_zone_t *zone, size_t size,
    void *tag)
{
    size_t             needs, roomy;
    uint64_t           bank;
    ngx_shm_zone_t    *old;
    ngx_bloom_zone_t  *live;

    zone->conf_file = cf->conf_file->file.name.data;
    zone->conf_line = cf->conf_file->line;

    if (ngx_process == NGX_PROCESS_SIGNALLER) {

        /* "nginx -s stop" must not depend on the state of an image */

        return ngx_bloom_declare_shm(cf, zone, NGX_BLOOM_ZONE_MIN, tag);
    }

    if (zone->file.name.len != 0
        && ngx_bloom_declare_image(cf, zone) != NGX_OK)
    {
        return NGX_ERROR;
    }

    bank = ngx_bloom_layers_need(&zone->image, zone->max_keys, zone->removals);
    needs = ngx_bloom_zone_needs(bank);
    roomy = zone->file.name.len
            ? ngx_bloom_zone_needs(ngx_bloom_layers_need_any(&zone->image,
                                                             zone->max_keys,
                                                             zone->removals))
            : needs;

    if (size != 0 && size < needs) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" is too small: it needs %uzk "
                           "for two images of %uLk, one that serves and one "
                           "that is being loaded; omit the size, or write "
                           "\"zone=%V:%uzk\"",
                           &zone->name, (needs + 1023) / 1024,
                           (bank + 1023) / 1024,
                           &zone->name, (needs + 1023) / 1024);
        return NGX_ERROR;
    }

    old = ngx_bloom_declare_find_old(cf, zone, tag);
    live = old ? old->data : NULL;

    zone->size = size;

    if (size == 0) {
        size = roomy;

        if (live != NULL
            && zone->file.name.len != 0
            && bank <= live->image_room)
        {
            size = old->shm.size
                   - ngx_bloom_zone_beside(live->removals_room);
        }
    }

    /* removed keys and the memory of additions have room of their own, whatever
     * size is configured */

    zone->removals_room = zone->removals;

    size += ngx_bloom_zone_beside(zone->removals_room);

    if (ngx_test_config) {

        /* nothing is loaded, so do not map the memory */

        size = NGX_BLOOM_ZONE_MIN;
    }

    return ngx_bloom_declare_shm(cf, zone, size, tag);
}


/* Sets zone->image to the image of file=.  Returns NGX_OK, also if the zone can
 * start without it; or NGX_ERROR, logged. */
static ngx_int_t
ngx_bloom_declare_image(ngx_conf_t *cf, ngx_bloom_zone_t *zone)
{
    u_char  why[256];

    if (ngx_bloom_declare_open(zone) == NGX_OK) {
        zone->image = zone->file.reader.image;
        return NGX_OK;
    }

    if (zone->optional) {
        return NGX_OK;
    }

    why[0] = '\0';

    if (zone->file.err != 0) {
        ngx_bloom_print(why, sizeof(why),
                        " (%d: %s); put an image there that nginx can read, "
                        "or, to start without it, add \"required=off\"",
                        zone->file.err, strerror(zone->file.err));
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "image \"%V\" of bloom zone \"%V\" %s%s",
                       &zone->file.name, &zone->name, zone->file.error, why);

    return NGX_ERROR;
}


/* Opens the image of file=.  Returns NGX_OK, or NGX_ERROR with err and error of
 * zone->file. */
static ngx_int_t
ngx_bloom_declare_open(ngx_bloom_zone_t *zone)
{
    ngx_bloom_image_file_t  *file;

    file = &zone->file;

    if (ngx_bloom_image_file_open(file) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_bloom_guard_form(zone, &file->reader.image, file->reader.error)
        != NGX_OK)
    {
        file->error = file->reader.error;
        ngx_bloom_image_file_close(file);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_declare_shm(ngx_conf_t *cf, ngx_bloom_zone_t *zone,
    size_t size, void *tag)
{
    zone->shm_zone = ngx_shared_memory_add(cf, &zone->name, size, tag);
    if (zone->shm_zone == NULL) {
        return NGX_ERROR;
    }

    zone->shm_zone->init = ngx_bloom_declare_init;
    zone->shm_zone->data = zone;

    return ngx_bloom_counters_declare(cf);
}


/*
 * Fills the new memory of a zone, or takes over the memory of `data`, the zone
 * of the previous configuration.  nginx 1.27.3 and later pass `data` even if
 * the memory is new.
 */
static ngx_int_t
ngx_bloom_declare_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_bloom_zone_t  *old = data;

    ngx_int_t          rc;
    ngx_bloom_zone_t  *zone;

    zone = shm_zone->data;

    if (!ngx_test_config) {
        ngx_bloom_zone_attach(zone);
    }

    if (zone->file.fd != NGX_INVALID_FILE && zone->max_age != 0
        && zone->image.as_of == 0 && !zone->optional)
    {
        rc = ngx_bloom_base_refuse(zone, 0, NGX_BLOOM_LOAD_NO_AS_OF);

    } else if (ngx_test_config) {
        rc = ngx_bloom_start_check(zone);

    } else if (old != NULL && zone->before == NULL) {
        rc = ngx_bloom_reload_zone(zone, old);

    } else {
        rc = ngx_bloom_start_zone(zone);
    }

    ngx_bloom_image_file_close(&zone->file);

    return rc;
}


ngx_int_t
ngx_bloom_declare_check(ngx_conf_t *cf, ngx_array_t *zones)
{
    ngx_uint_t          i;
    ngx_bloom_zone_t  **zone;

    zone = zones->elts;

    for (i = 0; i < zones->nelts; i++) {

        if (zone[i]->shm_zone == NULL) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "unknown bloom zone \"%V\" in %s:%ui: declare it "
                          "with \"bloom_zone zone=%V ...\"",
                          &zone[i]->name, zone[i]->conf_file,
                          zone[i]->conf_line, &zone[i]->name);
            return NGX_ERROR;
        }

        if (zone[i]->state_path.len + 3 * zone[i]->name.len
            > NGX_MAX_PATH - NGX_BLOOM_DECLARE_NAME_MAX)
        {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "bloom_state_path \"%V\" is too long for bloom "
                          "zone \"%V\": shorten the path or the zone's name",
                          &zone[i]->state_path,
                          &zone[i]->name);
            return NGX_ERROR;
        }

        if (ngx_process == NGX_PROCESS_SIGNALLER) {
            continue;
        }

        if (ngx_bloom_declare_room(cf, zone[i]) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_bloom_declare_warn_full(cf, zone[i]);
    }

    return NGX_OK;
}


/*
 * Enlarges a zone if its start would load a larger image from its directory, or
 * more removed keys than "removals" allows, and checks whether it can keep the
 * memory of the previous configuration.
 */
static ngx_int_t
ngx_bloom_declare_room(ngx_conf_t *cf, ngx_bloom_zone_t *zone)
{
    size_t               needs;
    ngx_shm_t           *shm;
    ngx_shm_zone_t      *old;
    ngx_bloom_zone_t    *live;
    ngx_bloom_stands_t   stands;

    shm = &zone->shm_zone->shm;

    ngx_memzero(&stands, sizeof(ngx_bloom_stands_t));
    stands.zone = zone;

    if (ngx_bloom_declare_state(cf, zone, &stands) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_test_config) {
        return NGX_OK;
    }

    old = ngx_bloom_declare_find_old(cf, zone, zone->shm_zone->tag);
    live = old ? old->data : NULL;

    /* a reload keeps the memory that it finds: its filter has all removals */

    if (live != NULL && live->removals == zone->removals) {
        ngx_bloom_declare_removals(zone, live->removals_room);

    } else {
        ngx_bloom_declare_removals(zone, stands.removals);
    }

    needs = ngx_bloom_zone_needs(stands.bank)
            + ngx_bloom_zone_beside(zone->removals_room);

    if (stands.bank != 0 && shm->size < needs) {
        shm->size = ngx_bloom_zone_needs(stands.bank + stands.bank / 8)
                    + ngx_bloom_zone_beside(zone->removals_room);
    }

    if (old == NULL) {
        return NGX_OK;
    }

    if (old->shm.size != shm->size) {
        ngx_log_error(NGX_LOG_NOTICE, cf->log, 0,
                      "bloom zone \"%V\" changes from %uzk to %uzk: its "
                      "memory is recreated, as configured in %s:%ui",
                      &zone->name, old->shm.size / 1024, shm->size / 1024,
                      zone->conf_file, zone->conf_line);

    } else if (ngx_bloom_reload_differs(zone, live)) {
        ngx_log_error(NGX_LOG_NOTICE, cf->log, 0,
                      "bloom zone \"%V\" changes its kind%s: its memory is "
                      "recreated, as configured in %s:%ui",
                      &zone->name,
                      zone->expire || live->expire
                      ? ", its expire= or its journal" : "",
                      zone->conf_file, zone->conf_line);

    } else {
        return NGX_OK;
    }

    /* the new memory is filled from the journal */

    if (stands.removals > zone->removals_room) {
        ngx_bloom_declare_removals(zone, stands.removals);
    }

    zone->shm_zone->noreuse = 1;
    zone->before = live;

    if (live->state != NULL) {
        zone->left = live->state->instance + 1;
    }

    return NGX_OK;
}


/* Gives the zone room for so many removed keys, but never less than "removals"
 * says. */
static void
ngx_bloom_declare_removals(ngx_bloom_zone_t *zone, ngx_uint_t room)
{
    ngx_shm_t  *shm;

    shm = &zone->shm_zone->shm;

    shm->size -= ngx_bloom_zone_beside(zone->removals_room);
    zone->removals_room = ngx_max(room, zone->removals);
    shm->size += ngx_bloom_zone_beside(zone->removals_room);
}


/*
 * Finds out whether the zone has a state directory or wants one, and what a
 * start would load from it.  Returns NGX_OK, or NGX_ERROR if that has another
 * key form than the zone wants.
 */
static ngx_int_t
ngx_bloom_declare_state(ngx_conf_t *cf, ngx_bloom_zone_t *zone,
    ngx_bloom_stands_t *stands)
{
    ngx_int_t            rc;
    u_char              *directory, error[NGX_MAX_ERROR_STR];
    ngx_fd_t             dir;
    ngx_bloom_user_t     user;
    ngx_bloom_state_t    state;
    ngx_bloom_reply_t   reply;

    if (zone->state_path.len == 0 || !zone->journal) {
        return NGX_OK;
    }

    zone->state_wanted = zone->adds;

    directory = ngx_bloom_directory_path(cf->pool, &zone->state_path,
                                         &zone->name);
    if (directory == NULL) {
        return NGX_OK;
    }

    /* the workers' user is not known yet: read as the directory's owner */

    if (ngx_bloom_directory_open(&zone->state_path, directory, NULL, 0, &dir,
                                 error)
        != NGX_OK)
    {
        return NGX_OK;
    }

    zone->state_wanted = 1;

    rc = NGX_OK;
    ngx_bloom_state_init(&state, directory, dir);

    if (ngx_bloom_directory_owner(dir, &user) == NGX_OK) {
        zone->state = &state;

        if (ngx_bloom_unprivileged(&user, cf->log,
                                   "looks what a bloom zone starts with",
                                   ngx_bloom_declare_look, stands, &reply)
            == NGX_OK)
        {
            rc = reply.rc;
            stands->bank = reply.value >> 1;
            stands->removals = ngx_min(reply.room, NGX_BLOOM_DECLARE_REMOVALS);

            /* and for those that another instance acknowledges meanwhile */

            if (stands->removals != 0) {
                stands->removals += zone->removals;
            }

            zone->has_image = reply.value & 1;
        }

        zone->state = NULL;
    }

    ngx_bloom_state_close(&state);

    return rc;
}


/* Looks, as the owner of the directory, at what a start would load. */
static void
ngx_bloom_declare_look(void *data, ngx_bloom_reply_t *reply)
{
    ngx_bloom_stands_t *stands = data;

    bloom_removals_t         removals;
    ngx_bloom_zone_t        *zone;
    ngx_bloom_failure_t      failure;
    const bloom_removals_t  *from;

    static ngx_bloom_control_t  control;         /* zeros, but for `base` */

    zone = stands->zone;
    from = &control.base[0].from.removals;
    reply->rc = NGX_OK;

    /* a start says what is wrong with a file that cannot be used */

    if (ngx_bloom_base_file_read(zone->state, &control.base[0], &failure)
        != NGX_OK)
    {
        return;
    }

    zone->state->control = &control;
    ngx_memcpy(control.journal, control.base[0].journal, BLOOM_JOURNAL_ID_LEN);

    reply->rc = ngx_bloom_declare_look_at(zone, stands, &control.base[0]);
    reply->value = stands->bank << 1
                    | (ngx_bloom_base_uploaded(zone, &control.base[0])
                       || control.base[0].kind == BLOOM_BASE_CHECKPOINT);

    /* a journal that is older than its `base` has fewer than that says */

    if (ngx_bloom_journal_removals(zone->state, &removals) == NGX_OK
        && removals.keys >= from->keys
        && removals.bytes >= from->bytes)
    {
        removals.keys -= from->keys;
        removals.bytes -= from->bytes;

        reply->room = stands->removals
                       + ngx_max(removals.keys,
                                 removals.bytes / BLOOM_EXCEPTION_KEY_USUAL);
    }

    zone->state->control = NULL;
}


/* Opens the images of the state directory that a start may load: also the older
 * checkpoint, as the newer one may be damaged.  Returns NGX_OK, or NGX_ERROR,
 * logged, if one does not fit the zone. */
static ngx_int_t
ngx_bloom_declare_look_at(ngx_bloom_zone_t *zone, ngx_bloom_stands_t *stands,
    const bloom_base_t *base)
{
    if ((ngx_bloom_base_uploaded(zone, base)
         || ngx_bloom_base_stands(zone, base))
        && (ngx_bloom_declare_look_checkpoint(zone, stands, base, 1) != NGX_OK
            || ngx_bloom_declare_look_checkpoint(zone, stands, base, 0)
               != NGX_OK))
    {
        return NGX_ERROR;
    }

    if (!ngx_bloom_base_uploaded(zone, base)
        || base->kind != BLOOM_BASE_UPLOAD)
    {
        return NGX_OK;
    }

    return ngx_bloom_declare_look_upload(zone, stands, base);
}


static ngx_int_t
ngx_bloom_declare_look_checkpoint(ngx_bloom_zone_t *zone,
    ngx_bloom_stands_t *stands, const bloom_base_t *base, ngx_uint_t number)
{
    u_char                   name[NGX_MAX_PATH], path[NGX_MAX_PATH];
    uint64_t                 max_keys, bank, room;
    ngx_int_t                rc;
    bloom_image_t           *image;
    ngx_bloom_image_file_t   file;

    if (base->checkpoint[number].position == 0) {
        return NGX_OK;
    }

    ngx_bloom_state_files_checkpoint(base->build_id,
                                     base->checkpoint[number].position, name);
    ngx_bloom_base_name(zone, &file, name, path);

    if (ngx_bloom_image_file_open(&file) != NGX_OK) {
        return NGX_OK;
    }

    image = &file.reader.image;

    /* its removed keys take the room for removed keys */

    room = ngx_max(image->exceptions,
                   image->exceptions_size / BLOOM_EXCEPTION_KEY_USUAL);
    stands->removals = ngx_max(stands->removals, room);
    image->exceptions = 0;
    image->exceptions_size = 0;
    image->built = 0;
    image->built_size = 0;

    /* that of an empty filter gets layers up to the capacity */

    max_keys = zone->file.name.len != 0 ? zone->max_keys
               : ngx_max(zone->max_keys, zone->image.capacity);

    rc = NGX_OK;

    /* a start leaves out any other one that is too large */

    if (base->kind == BLOOM_BASE_CHECKPOINT) {
        bank = ngx_bloom_layers_need(image, zone->size ? 0 : max_keys,
                                     zone->removals);
        stands->bank = ngx_max(stands->bank, bank);
        rc = ngx_bloom_declare_fits(zone, bank, "checkpoint", path);
    }

    ngx_bloom_image_file_close(&file);

    return rc;
}


static ngx_int_t
ngx_bloom_declare_look_upload(ngx_bloom_zone_t *zone,
    ngx_bloom_stands_t *stands, const bloom_base_t *base)
{
    u_char                  name[NGX_MAX_PATH], path[NGX_MAX_PATH];
    ngx_int_t               rc;
    ngx_bloom_image_file_t  file;

    ngx_bloom_base_name(zone, &file,
                        ngx_bloom_state_files_upload(base->build_id, name),
                        path);

    if (ngx_bloom_image_file_open(&file) != NGX_OK) {
        return NGX_OK;
    }

    /* a size that is given need not have room for the image's layers: it gets
     * fewer */

    stands->removals = ngx_max(stands->removals,
                               file.reader.image.exceptions
                               - file.reader.image.built);
    stands->bank = ngx_bloom_layers_need(&file.reader.image,
                                         zone->size ? 0 : zone->max_keys,
                                         zone->removals);

    rc = ngx_bloom_declare_form(zone, &file.reader.image, path);

    if (rc == NGX_OK) {
        rc = ngx_bloom_declare_fits(zone, stands->bank, "uploaded image",
                                    path);
    }

    ngx_bloom_image_file_close(&file);

    return rc;
}


/* Checks that the size of the zone, if it is given, has room for an image of
 * the state directory.  Returns NGX_OK, or NGX_ERROR, logged. */
static ngx_int_t
ngx_bloom_declare_fits(ngx_bloom_zone_t *zone, uint64_t bank, const char *what,
    u_char *path)
{
    size_t  needs;

    needs = ngx_bloom_zone_needs(bank);

    if (zone->size == 0 || zone->size >= needs) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                  "bloom zone \"%V\" in %s:%ui is too small for the %s that it "
                  "starts with, \"%s\": it needs %uzk; write "
                  "\"zone=%V:%uzk\", or omit the size",
                  &zone->name, zone->conf_file, zone->conf_line, what, path,
                  (needs + 1023) / 1024, &zone->name, (needs + 1023) / 1024);

    return NGX_ERROR;
}


/* Checks that an uploaded image has the key form that the zone wants.  Returns
 * NGX_OK, or NGX_ERROR, logged. */
static ngx_int_t
ngx_bloom_declare_form(ngx_bloom_zone_t *zone, bloom_image_t *image,
    u_char *path)
{
    char  error[BLOOM_IMAGE_ERROR_LEN];

    if (ngx_bloom_guard_form(zone, image, error) == NGX_OK) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                  "bloom zone \"%V\" in %s:%ui starts with the uploaded image "
                  "\"%s\", which %s, and upload it before you add \"form=\"; "
                  "or start without \"form=\", and go back to %s by POST %s",
                  &zone->name, zone->conf_file, zone->conf_line, path, error,
                  zone->file.name.len ? "the image of \"file\""
                                      : "an empty filter",
                  zone->file.name.len ? "reload" : "clear");

    return NGX_ERROR;
}


/*
 * Warns of a zone that takes additions, and has room for few of them: with all
 * layers that its image of file= has and will get, room for less than a
 * hundredth of the keys that the filter is made for.
 */
static void
ngx_bloom_declare_warn_full(ngx_conf_t *cf, ngx_bloom_zone_t *zone)
{
    uint64_t        capacity;
    bloom_image_t  *image;

    image = &zone->image;
    capacity = ngx_bloom_layers_capacity(image, zone->max_keys);

    if (!zone->adds || !zone->journal || zone->state_path.len == 0
        || zone->file.fd == NGX_INVALID_FILE || zone->has_image
        || (image->items < capacity
            && capacity - image->items >= capacity / 100))
    {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                  "bloom zone \"%V\" in %s:%ui takes additions, and its image "
                  "\"%V\" has %s room for them: it has %uL key%s and was made "
                  "for %uL; build it with \"-n\" greater than %uL",
                  &zone->name, zone->conf_file, zone->conf_line,
                  &zone->file.name,
                  image->items < capacity ? "hardly any" : "no",
                  image->items, ngx_bloom_plural(image->items),
                  capacity, ngx_max(image->items, capacity));
}
