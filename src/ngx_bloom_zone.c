
#include "ngx_bloom_zone.h"

#include <sys/mman.h>
#include <sys/random.h>


/* As limit_req and others have it. */
#define NGX_BLOOM_ZONE_MIN    (8 * ngx_pagesize)

/* Attempts of a lookup: only as many loads in its few nanoseconds make it
 * give up, and a load takes longer than that. */
#define NGX_BLOOM_ATTEMPTS    8


static size_t ngx_bloom_zone_needs(uint64_t bank);
static void ngx_bloom_zone_close(void *data);
static ngx_shm_zone_t *ngx_bloom_zone_of_old_cycle(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone, void *tag);
static ngx_int_t ngx_bloom_zone_add(ngx_conf_t *cf, ngx_bloom_zone_t *zone,
    size_t size, void *tag);
static ngx_int_t ngx_bloom_zone_init(ngx_shm_zone_t *shm_zone, void *data);
static ngx_int_t ngx_bloom_zone_create(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_zone_renew(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_zone_keep(ngx_bloom_zone_t *zone, ngx_uint_t bank);
static ngx_int_t ngx_bloom_zone_fill(ngx_bloom_zone_t *zone, ngx_uint_t bank);
static void ngx_bloom_zone_release(ngx_bloom_zone_t *zone, ngx_uint_t bank);
static ngx_int_t ngx_bloom_zone_refuse(ngx_bloom_zone_t *zone);
static ngx_inline u_char *ngx_bloom_zone_bank(ngx_bloom_zone_t *zone,
    ngx_uint_t bank);


static ngx_inline u_char *
ngx_bloom_zone_bank(ngx_bloom_zone_t *zone, ngx_uint_t bank)
{
    return zone->sh->banks + bank * zone->sh->bank_size;
}


/*
 * Copies what lookups need of a new generation.  NGX_AGAIN if the generation
 * changed meanwhile: then the copy may be torn, and is not used.
 */
static ngx_int_t
ngx_bloom_zone_attend(ngx_bloom_zone_t *zone, uint64_t generation)
{
    ngx_uint_t  bank;

    bank = generation & 1;

    zone->generation = 0;
    zone->geometry = zone->sh->bank[bank].image.geometry;
    zone->hasher = zone->sh->bank[bank].image.hasher;
    zone->words = (uint64_t *) ngx_bloom_zone_bank(zone, bank);

    __atomic_thread_fence(__ATOMIC_ACQUIRE);

    if (__atomic_load_n(&zone->sh->generation, __ATOMIC_RELAXED)
        != generation)
    {
        return NGX_AGAIN;
    }

    zone->generation = generation;

    return NGX_OK;
}


ngx_uint_t
ngx_bloom_zone_test(ngx_bloom_zone_t *zone, ngx_str_t *key)
{
    int                 present;
    uint64_t            generation;
    ngx_uint_t          i;
    bloom_hash_t        hash;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    for (i = 0; i < NGX_BLOOM_ATTEMPTS; i++) {

        generation = __atomic_load_n(&sh->generation, __ATOMIC_ACQUIRE);

        if (generation == 0) {
            break;
        }

        if (generation != zone->generation
            && ngx_bloom_zone_attend(zone, generation) != NGX_OK)
        {
            continue;
        }

        hash = bloom_hash(&zone->hasher, key->data, key->len);
        present = bloom_test(&zone->geometry, zone->words, hash);

        __atomic_thread_fence(__ATOMIC_ACQUIRE);

        if (__atomic_load_n(&sh->generation, __ATOMIC_RELAXED) == generation) {
            return present ? NGX_BLOOM_PRESENT : NGX_BLOOM_ABSENT;
        }
    }

    return NGX_BLOOM_UNKNOWN;
}


ngx_bloom_zone_t *
ngx_bloom_zone_get(ngx_conf_t *cf, ngx_array_t *zones, ngx_str_t *name)
{
    ngx_uint_t          i;
    ngx_bloom_zone_t   *zone, **zonep;
    ngx_pool_cleanup_t *cln;

    zonep = zones->elts;

    for (i = 0; i < zones->nelts; i++) {
        zone = zonep[i];

        if (zone->name.len == name->len
            && ngx_strncmp(zone->name.data, name->data, name->len) == 0)
        {
            return zone;
        }
    }

    zonep = ngx_array_push(zones);
    zone = ngx_pcalloc(cf->pool, sizeof(ngx_bloom_zone_t));
    cln = ngx_pool_cleanup_add(cf->pool, 0);

    if (zonep == NULL || zone == NULL || cln == NULL) {
        return NULL;
    }

    zone->name = *name;
    zone->conf_file = cf->conf_file->file.name.data;
    zone->conf_line = cf->conf_file->line;
    zone->file.fd = NGX_INVALID_FILE;

    cln->handler = ngx_bloom_zone_close;
    cln->data = zone;

    *zonep = zone;

    return zone;
}


static void
ngx_bloom_zone_close(void *data)
{
    ngx_bloom_zone_t *zone = data;

    ngx_bloom_file_close(&zone->file);
}


/* The size of a zone whose banks have room for at least `bank` bytes each. */
static size_t
ngx_bloom_zone_needs(uint64_t bank)
{
    uint64_t  pages;

    /*
     * The slab allocator takes a descriptor for each page, and its own header;
     * the control block, the log context and rounding take some pages more.
     */

    pages = 2 * ((bank + ngx_pagesize - 1) / ngx_pagesize) + 8;

    return (size_t) (pages * (ngx_pagesize + sizeof(ngx_slab_page_t))
                     + NGX_BLOOM_ZONE_MIN);
}


static ngx_shm_zone_t *
ngx_bloom_zone_of_old_cycle(ngx_conf_t *cf, ngx_bloom_zone_t *zone, void *tag)
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
ngx_bloom_zone_declare(ngx_conf_t *cf, ngx_bloom_zone_t *zone, size_t size,
    void *tag)
{
    size_t             needs, roomy;
    uint64_t           payload;
    ngx_shm_zone_t    *old;
    ngx_bloom_zone_t  *live;

    if (zone->shm_zone != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" is already declared in %s:%ui",
                           &zone->name, zone->conf_file, zone->conf_line);
        return NGX_ERROR;
    }

    zone->conf_file = cf->conf_file->file.name.data;
    zone->conf_line = cf->conf_file->line;

    if (ngx_process == NGX_PROCESS_SIGNALLER) {

        /* "nginx -s stop" must not depend on the state of an image */

        return ngx_bloom_zone_add(cf, zone, NGX_BLOOM_ZONE_MIN, tag);
    }

    if (zone->file.name.len != 0) {

        if (ngx_bloom_file_open(&zone->file) != NGX_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, zone->file.err,
                               "image \"%V\" of bloom zone \"%V\" %s",
                               &zone->file.name, &zone->name,
                               zone->file.error);
            return NGX_ERROR;
        }

        ngx_memcpy(&zone->image, &zone->file.reader.image,
                   sizeof(bloom_image_t));
    }

    payload = bloom_image_payload_size(&zone->image);
    needs = ngx_bloom_zone_needs(payload);
    roomy = zone->file.name.len ? ngx_bloom_zone_needs(payload + payload / 8)
                                : needs;

    if (size != 0 && size < needs) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "bloom zone \"%V\" is too small: it needs %uzk "
                           "for two images of %uLk, one that serves and one "
                           "that is loaded; write \"zone=%V:%uzk\" or leave "
                           "the size out",
                           &zone->name, (needs + 1023) / 1024,
                           (payload + 1023) / 1024,
                           &zone->name, (needs + 1023) / 1024);
        return NGX_ERROR;
    }

    old = ngx_bloom_zone_of_old_cycle(cf, zone, tag);
    live = old ? old->data : NULL;

    if (size == 0) {
        size = roomy;

        if (live != NULL
            && zone->file.name.len != 0
            && payload <= live->sh->bank_size)
        {
            size = old->shm.size;
        }
    }

    if (live != NULL && old->shm.size != size) {
        ngx_conf_log_error(zone->file.name.len ? NGX_LOG_NOTICE : NGX_LOG_WARN,
                           cf, 0,
                           "bloom zone \"%V\" changes from %uzk to %uzk: its "
                           "memory is made anew%s",
                           &zone->name, old->shm.size / 1024, size / 1024,
                           zone->file.name.len ? "" : ", and starts empty");
    }

    if (ngx_test_config) {

        /* nothing is loaded: the memory would be mapped in vain */

        size = NGX_BLOOM_ZONE_MIN;
    }

    return ngx_bloom_zone_add(cf, zone, size, tag);
}


static ngx_int_t
ngx_bloom_zone_add(ngx_conf_t *cf, ngx_bloom_zone_t *zone, size_t size,
    void *tag)
{
    zone->shm_zone = ngx_shared_memory_add(cf, &zone->name, size, tag);
    if (zone->shm_zone == NULL) {
        return NGX_ERROR;
    }

    zone->shm_zone->init = ngx_bloom_zone_init;
    zone->shm_zone->data = zone;

    return NGX_OK;
}


ngx_int_t
ngx_bloom_zones_check(ngx_conf_t *cf, ngx_array_t *zones)
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
    }

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_zone_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_bloom_zone_t  *old = data;

    ngx_int_t          rc;
    ngx_bloom_zone_t  *zone;

    zone = shm_zone->data;

    if (ngx_test_config) {
        rc = NGX_OK;

        if (zone->file.name.len != 0
            && ngx_bloom_file_load(&zone->file, NULL) != NGX_OK)
        {
            rc = ngx_bloom_zone_refuse(zone);
        }

    } else if (old != NULL) {
        zone->sh = old->sh;
        rc = ngx_bloom_zone_renew(zone);

    } else {
        rc = ngx_bloom_zone_create(zone);
    }

    ngx_bloom_file_close(&zone->file);

    return rc;
}


#if (NGX_BLOOM_FAULTS)

/* A zone that has nothing to serve, as a test wants it. */
static ngx_uint_t
ngx_bloom_zone_stays_unloaded(ngx_bloom_zone_t *zone)
{
    char  *name;

    name = getenv("NGX_BLOOM_FAULT_UNLOADED");

    return name != NULL && ngx_strlen(name) == zone->name.len
           && ngx_strncmp(name, zone->name.data, zone->name.len) == 0;
}

#endif


static ngx_int_t
ngx_bloom_zone_create(ngx_bloom_zone_t *zone)
{
    size_t              len;
    ngx_slab_pool_t    *shpool;
    ngx_bloom_shctx_t  *sh;

    shpool = (ngx_slab_pool_t *) zone->shm_zone->shm.addr;

    len = sizeof(" in bloom zone \"\"") + zone->name.len;

    sh = ngx_slab_calloc(shpool, sizeof(ngx_bloom_shctx_t));
    shpool->log_ctx = ngx_slab_alloc(shpool, len);

    if (sh == NULL || shpool->log_ctx == NULL) {
        return NGX_ERROR;
    }

    ngx_sprintf(shpool->log_ctx, " in bloom zone \"%V\"%Z", &zone->name);

    /* all the rest, in one piece: no page of it is touched here */

    sh->bank_size = shpool->pfree / 2 * ngx_pagesize;
    sh->banks = ngx_slab_alloc(shpool, 2 * sh->bank_size);

    if (sh->banks == NULL) {
        return NGX_ERROR;
    }

    shpool->data = sh;
    zone->sh = sh;

    if (ngx_bloom_zone_fill(zone, 1) != NGX_OK) {
        return NGX_ERROR;
    }

#if (NGX_BLOOM_FAULTS)
    if (ngx_bloom_zone_stays_unloaded(zone)) {
        return NGX_OK;
    }
#endif

    /* no process has seen this memory: there is no need to wait for commit */

    sh->generation = 1;

    return NGX_OK;
}


/* Shared memory that is kept: its workers serve on, whatever becomes of this
 * configuration. */
static ngx_int_t
ngx_bloom_zone_renew(ngx_bloom_zone_t *zone)
{
    ngx_uint_t      bank, file;
    bloom_image_t  *live;

    bank = zone->sh->generation & 1;
    live = &zone->sh->bank[bank].image;
    file = (zone->file.name.len != 0);

    /* what was loaded for a configuration that was refused in the end */

    ngx_bloom_zone_release(zone, !bank);

    if (zone->sh->generation != 0 && zone->sh->bank[bank].file == file) {

        if (file) {
            if (ngx_memcmp(live, &zone->image, sizeof(bloom_image_t)) == 0) {
                return ngx_bloom_zone_keep(zone, bank);
            }

        } else if (bloom_geometry_equal(&live->geometry, &zone->image.geometry)
                   && live->capacity == zone->image.capacity
                   && live->fpr == zone->image.fpr
                   && live->hasher.kind == zone->image.hasher.kind)
        {
            return NGX_OK;
        }
    }

    if (!file) {
        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" starts empty again: its capacity, "
                      "rate, layout or hash changed", &zone->name);
    }

    bank = !bank;

    if (ngx_bloom_zone_fill(zone, bank) != NGX_OK) {
        ngx_bloom_zone_release(zone, bank);
        return NGX_ERROR;
    }

    zone->pending = 1;

    return NGX_OK;
}


/* The image that serves is the file's: is the file still whole? */
static ngx_int_t
ngx_bloom_zone_keep(ngx_bloom_zone_t *zone, ngx_uint_t bank)
{
    if (ngx_bloom_file_same(&zone->sh->bank[bank].id, &zone->file.id)) {
        return NGX_OK;
    }

    if (ngx_bloom_file_load(&zone->file, NULL) != NGX_OK) {
        return ngx_bloom_zone_refuse(zone);
    }

    zone->sh->bank[bank].id = zone->file.id;

    return NGX_OK;
}


/* Loads the image, or an empty filter, into a bank that does not serve and
 * holds nothing. */
static ngx_int_t
ngx_bloom_zone_fill(ngx_bloom_zone_t *zone, ngx_uint_t bank)
{
    u_char    *p;
    uint64_t   size;

    p = ngx_bloom_zone_bank(zone, bank);
    size = bloom_image_payload_size(&zone->image);

    if (size > zone->sh->bank_size) {
        ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" is too small: it has room for images "
                      "of %uzk and needs %uLk", &zone->name,
                      zone->sh->bank_size / 1024, (size + 1023) / 1024);
        return NGX_ERROR;
    }

    zone->sh->bank[bank].filled = 1;

    if (zone->file.name.len != 0) {

        if (ngx_bloom_file_load(&zone->file, p) != NGX_OK) {
            return ngx_bloom_zone_refuse(zone);
        }

    } else {

#if (NGX_DEBUG_MALLOC)
        ngx_memzero(p, size);            /* the slab allocator fills it */
#endif

        if (getrandom(zone->image.hasher.key,
                      zone->image.hasher.kind == BLOOM_HASH_MURMUR3
                      ? sizeof(uint32_t) : BLOOM_HASH_KEY_LEN, 0) == -1
            || getrandom(zone->image.build_id, BLOOM_IMAGE_BUILD_ID_LEN, 0)
               == -1)
        {
            ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, ngx_errno,
                          "getrandom() failed for bloom zone \"%V\"",
                          &zone->name);
            return NGX_ERROR;
        }
    }

    ngx_memcpy(&zone->sh->bank[bank].image, &zone->image,
               sizeof(bloom_image_t));

    zone->sh->bank[bank].file = (zone->file.name.len != 0);
    zone->sh->bank[bank].id = zone->file.id;

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_zone_refuse(ngx_bloom_zone_t *zone)
{
    ngx_log_error(NGX_LOG_EMERG, zone->shm_zone->shm.log, zone->file.err,
                  "image \"%V\" of bloom zone \"%V\" %s",
                  &zone->file.name, &zone->name, zone->file.error);

    return NGX_ERROR;
}


/*
 * Gives a bank's pages back to the system: they read as zeros after it.  Costs
 * nothing if there are none.
 */
static void
ngx_bloom_zone_release(ngx_bloom_zone_t *zone, ngx_uint_t bank)
{
    u_char  *p;

    if (!zone->sh->bank[bank].filled) {
        return;
    }

    zone->sh->bank[bank].filled = 0;

    p = ngx_bloom_zone_bank(zone, bank);

#ifdef MADV_REMOVE
    if (madvise(p, zone->sh->bank_size, MADV_REMOVE) == 0) {
        return;
    }
#endif

    ngx_memzero(p, zone->sh->bank_size);
}


void
ngx_bloom_zones_commit(ngx_cycle_t *cycle, ngx_array_t *zones)
{
    u_char              path[NGX_MAX_PATH], *what;
    ngx_uint_t          i, old;
    ngx_core_conf_t    *ccf;
    ngx_bloom_zone_t  **zone;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    zone = zones->elts;

    for (i = 0; i < zones->nelts; i++) {

        if (zone[i]->file.name.len != 0
            && !ngx_bloom_file_readable(&zone[i]->file.name, ccf, path, &what))
        {
            ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                          "image \"%V\" of bloom zone \"%V\" could not be "
                          "loaded again while nginx runs: \"%s\" does not let "
                          "user \"%s\" in; mend its owner or mode",
                          &zone[i]->file.name, &zone[i]->name, what,
                          ccf->username);
        }

        if (!zone[i]->pending) {
            continue;
        }

        zone[i]->pending = 0;
        old = zone[i]->sh->generation & 1;

        __atomic_fetch_add(&zone[i]->sh->generation, 1, __ATOMIC_SEQ_CST);

        /* who reads in the old bank what is written from here on must find
         * that the generation has changed */

        __atomic_thread_fence(__ATOMIC_SEQ_CST);

        ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                      "bloom zone \"%V\" serves generation %uL",
                      &zone[i]->name, zone[i]->sh->generation);

        ngx_bloom_zone_release(zone[i], old);
    }
}
