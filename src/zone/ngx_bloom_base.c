
/*
 * A base is loaded in one go, by the master: no request waits for it.
 */

#include "ngx_bloom_base.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_pending.h"
#include "ngx_bloom_repair.h"
#include "ngx_bloom_state_files.h"

#include <sys/random.h>


static ngx_int_t ngx_bloom_base_read_dropped(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_base_load_image(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load, ngx_str_t *name, bloom_image_t *image);
static ngx_int_t ngx_bloom_base_run(ngx_bloom_load_t *load);
static ngx_int_t ngx_bloom_base_random(ngx_bloom_zone_t *zone);
static void ngx_bloom_base_log(ngx_bloom_zone_t *zone, ngx_uint_t level,
    ngx_bloom_load_t *load, const char *then);


u_char *
ngx_bloom_base_state_path(ngx_bloom_zone_t *zone, ngx_pool_t *pool)
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


ngx_int_t
ngx_bloom_base_open_state(ngx_bloom_zone_t *zone)
{
    u_char               *path;
    ngx_log_t            *log;
    ngx_uint_t            existed;
    ngx_pool_t           *pool;
    ngx_core_conf_t      *ccf;
    ngx_bloom_failure_t   failure;

    log = zone->shm_zone->shm.log;
    pool = zone->pool;

    path = ngx_bloom_base_state_path(zone, pool);

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
        ngx_bloom_base_attach_state(zone);

        return ngx_bloom_base_read_dropped(zone);
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
                  "repair it and reload, or set another bloom_state_path",
                  failure.what, failure.name, &zone->name);

    zone->state_err = failure.err;
    zone->state_error = "the directory of bloom_state_path cannot be used; "
                        "the error log says why: correct that and reload nginx";

    return NGX_OK;
}


void
ngx_bloom_base_attach_state(ngx_bloom_zone_t *zone)
{
    ngx_bloom_state_t  *state;

    state = zone->state;

    zone->required = &state->control->instance[state->instance].required;
    zone->pending = &state->control->pending;
}


/* Reads which records have been removed, unless others have that in memory. */
static ngx_int_t
ngx_bloom_base_read_dropped(ngx_bloom_zone_t *zone)
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


ngx_int_t
ngx_bloom_base_load(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load)
{
    u_char                  upload[NGX_MAX_PATH], *build;
    ngx_str_t               name;
    bloom_image_t           image;
    ngx_bloom_image_file_t  file;
    ngx_bloom_shctx_t      *sh;

    sh = zone->sh;

    sh->uploaded = 0;
    sh->file = (zone->file.name.len != 0);

    if (sh->file) {
        ngx_bloom_image_file_close(&zone->file);

    } else if (zone->joins) {
        zone->image = sh->bank[sh->generation & 1].image;

    } else if (ngx_bloom_base_random(zone) != NGX_OK) {
        return NGX_ERROR;
    }

    build = sh->file ? zone->image.build_id : NULL;

    if (zone->state != NULL) {

        name.data = ngx_bloom_state_files_upload(zone->state, build, upload);
        name.len = ngx_strlen(upload);

        ngx_memzero(&file, sizeof(ngx_bloom_image_file_t));
        file.name = name;
        file.fd = NGX_INVALID_FILE;

        if (ngx_bloom_image_file_open(&file) == NGX_OK) {
            image = file.reader.image;
            ngx_bloom_image_file_close(&file);

            sh->uploaded = 1;

            if (ngx_bloom_base_load_image(zone, load, &name, &image)
                == NGX_OK)
            {
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
        sh->damaged = ngx_bloom_time();

        ngx_bloom_base_log(zone, NGX_LOG_ALERT, load,
                            "it answers \"unknown\" instead of \"absent\" "
                            "until an image is loaded");
    }

file:

    name = zone->file.name;
    image = zone->image;

    if (ngx_bloom_base_load_image(zone, load, &name, &image) != NGX_OK) {
        ngx_bloom_base_log(zone, NGX_LOG_EMERG, load, NULL);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Loads the newest checkpoint that was made from an image, or else the image in
 * the file `name`, or else, if name->len is 0, the empty filter `image`.
 */
static ngx_int_t
ngx_bloom_base_load_image(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load,
    ngx_str_t *name, bloom_image_t *image)
{
    u_char              checkpoint[NGX_MAX_PATH], *build;
    uint64_t            position;
    ngx_str_t           from;
    ngx_uint_t          empty;

    empty = (name->len == 0);
    build = empty ? NULL : image->build_id;

    if (zone->state != NULL && !zone->joins
        && ngx_bloom_state_files_find(zone->state, build, checkpoint,
                                      &position)
           == NGX_OK
        && position != 0)
    {
        from.data = checkpoint;
        from.len = ngx_strlen(checkpoint);

        if (ngx_bloom_load_begin(load, zone, &from, empty ? NULL : image,
                                 position, NULL)
            == NGX_OK)
        {
            if (empty && !ngx_bloom_base_alike(&load->image, image)) {

                /* of another "capacity" or the like: the journal has it all */

                goto without;
            }

            if (ngx_bloom_base_run(load) == NGX_OK) {
                return NGX_OK;
            }
        }

        ngx_bloom_base_log(zone, NGX_LOG_WARN, load,
                            "it starts without that checkpoint");

without:

        ngx_bloom_load_end(load);
    }

    if (ngx_bloom_load_begin(load, zone, name, empty ? image : NULL, 0, NULL)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_bloom_base_run(load);
}


static ngx_int_t
ngx_bloom_base_run(ngx_bloom_load_t *load)
{
    ngx_int_t  rc;

    do {
        rc = ngx_bloom_load_step(load);
    } while (rc == NGX_AGAIN);

    return rc;
}


/* Gives the image of a zone that starts empty its own seed and build id. */
static ngx_int_t
ngx_bloom_base_random(ngx_bloom_zone_t *zone)
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


ngx_uint_t
ngx_bloom_base_alike(bloom_image_t *one, bloom_image_t *other)
{
    return bloom_geometry_equal(&one->geometry, &other->geometry)
           && one->capacity == other->capacity
           && one->fpr == other->fpr
           && one->hasher.kind == other->hasher.kind
           && one->key_form == other->key_form;
}


ngx_int_t
ngx_bloom_base_recover(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load)
{
    uint64_t               damaged;
    ngx_err_t              err;
    ngx_int_t              rc;
    ngx_bloom_zone_bits_t  bits;
    ngx_bloom_state_t     *state;
    ngx_bloom_shctx_t     *sh;

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
                      "recovered; repair the disk, or correct the owner of "
                      "its files",
                      &state->path, &zone->name);
        return NGX_ERROR;
    }

    if (ngx_bloom_load_too_old(load)) {

        /* another instance, with a newer image, removed records meanwhile */

        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                      "the image of bloom zone \"%V\" " NGX_BLOOM_LOAD_TOO_OLD,
                      &zone->name);
        return NGX_ERROR;
    }

    /*
     * Keys that were added while the disk refused: the helper appends them.
     * Those of another instance this one follows then, if it misses them here.
     */

    ngx_bloom_zone_bits(zone, load->bank, &bits);
    (void) ngx_bloom_pending_apply(zone, &bits);

    /* not load->reader.limit: it may have moved after the last record */

    sh->applied = state->alone ? ngx_bloom_state_tail(state)
                               : load->reader.position;
    damaged = ngx_bloom_load_damage(zone, &load->reader, load->cut);
    sh->damaged = ngx_max(sh->damaged, damaged);
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


void
ngx_bloom_base_note_name(ngx_bloom_zone_t *zone)
{
    ngx_str_t  *name;

    name = &zone->file.name;

    ngx_cpystrn(zone->sh->file_name, name->len ? name->data : (u_char *) "",
                NGX_MAX_PATH);
}


void
ngx_bloom_base_note_file(ngx_bloom_zone_t *zone)
{
    ngx_bloom_base_note_name(zone);

    zone->sh->file_id = zone->file.id;

    ngx_memcpy(zone->sh->file_build, zone->image.build_id,
               BLOOM_IMAGE_BUILD_ID_LEN);
}


ngx_int_t
ngx_bloom_base_refuse(ngx_bloom_zone_t *zone)
{
    ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, zone->file.err,
                  "image \"%V\" of bloom zone \"%V\" %s",
                  &zone->file.name, &zone->name, zone->file.error);

    return NGX_ERROR;
}


char *
ngx_bloom_base_called(ngx_bloom_zone_t *zone, ngx_uint_t uploaded)
{
    return uploaded ? "an uploaded image"
           : zone->file.name.len ? (char *) zone->file.name.data
           : "a filter that starts empty";
}


/* Logs why a load has failed, and what follows from that. */
static void
ngx_bloom_base_log(ngx_bloom_zone_t *zone, ngx_uint_t level,
    ngx_bloom_load_t *load, const char *then)
{
    ngx_log_error(level, zone->shm_zone->shm.log, 0,
                  "%s%s%s", load->error, then ? "; " : "", then ? then : "");
}
