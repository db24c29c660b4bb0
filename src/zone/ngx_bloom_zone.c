
#include "ngx_bloom_save.h"
#include "ngx_bloom_start.h"


/* As limit_req and others have it. */
#define NGX_BLOOM_ZONE_MIN    (8 * ngx_pagesize)

/* Of the files in a zone's directory. */
#define NGX_BLOOM_NAME_MAX    128

/* Keys whose lines are asked for before the first is touched. */
#define NGX_BLOOM_AHEAD       32


/* What others require of a zone that has no state directory. */
static const uint64_t  ngx_bloom_zone_never = 0;


static void ngx_bloom_zone_close(void *data);
static ngx_shm_zone_t *ngx_bloom_zone_of_old_cycle(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone, void *tag);
static ngx_int_t ngx_bloom_zone_room(ngx_conf_t *cf, ngx_bloom_zone_t *zone);
static uint64_t ngx_bloom_zone_upload(ngx_conf_t *cf, ngx_bloom_zone_t *zone,
    u_char *name);
static ngx_int_t ngx_bloom_zone_add_shm(ngx_conf_t *cf,
    ngx_bloom_zone_t *zone, size_t size, void *tag);


const char *
ngx_bloom_zone_canonical(uint32_t form, bloom_key_t *key)
{
    const char      *why;
    bloom_key_t      canonical;
    static uint8_t   buf[BLOOM_URL_ROOM(BLOOM_FORM_KEY_MAX)];

    if (form == BLOOM_FORM_RAW) {
        return NULL;
    }

    why = bloom_form_canonical(form, &canonical, key, buf);

    if (why == NULL) {
        *key = canonical;
    }

    return why;
}


ngx_int_t
ngx_bloom_zone_attend(ngx_bloom_zone_t *zone, uint64_t generation)
{
    ngx_uint_t  bank;

    bank = generation & 1;

    zone->generation = 0;
    zone->form = zone->sh->bank[bank].image.key_form;
    zone->geometry = zone->sh->bank[bank].image.geometry;
    zone->hasher = zone->sh->bank[bank].image.hasher;
    zone->words = (uint64_t *) ngx_bloom_zone_bank(zone, bank);
    zone->stale = NGX_MAX_TIME_T_VALUE;

    if (zone->max_age != 0) {
        zone->stale = (time_t) (zone->sh->bank[bank].image.as_of / 1000)
                      + zone->max_age;
    }

    __atomic_thread_fence(__ATOMIC_ACQUIRE);

    if (__atomic_load_n(&zone->sh->generation, __ATOMIC_RELAXED)
        != generation)
    {
        return NGX_AGAIN;
    }

    zone->generation = generation;

    return NGX_OK;
}


void
ngx_bloom_zone_bits(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    ngx_bloom_bits_t *bits)
{
    bits->form = zone->sh->bank[bank].image.key_form;
    bits->geometry = &zone->sh->bank[bank].image.geometry;
    bits->hasher = &zone->sh->bank[bank].image.hasher;
    bits->words = (uint64_t *) ngx_bloom_zone_bank(zone, bank);
    bits->ones = &zone->sh->bank[bank].ones;
}


uint64_t
ngx_bloom_zone_serving(ngx_bloom_zone_t *zone, ngx_bloom_bits_t *bits)
{
    uint64_t  generation;

    do {
        generation = __atomic_load_n(&zone->sh->generation, __ATOMIC_ACQUIRE);

        if (generation == 0) {
            return 0;
        }
    } while (generation != zone->generation
             && ngx_bloom_zone_attend(zone, generation) != NGX_OK);

    /* this process's own copy, which is whole */

    bits->form = zone->form;
    bits->geometry = &zone->geometry;
    bits->hasher = &zone->hasher;
    bits->words = zone->words;
    bits->ones = &zone->sh->bank[generation & 1].ones;

    return generation;
}


uint64_t
ngx_bloom_zone_set(ngx_bloom_bits_t *bits, const uint8_t *keys,
    const uint8_t *end, uint64_t *added)
{
    int              changed;
    uint64_t         ones, count;
    ngx_uint_t       i, n;
    bloom_key_t      key;
    bloom_hash_t     hash[NGX_BLOOM_AHEAD];
    bloom_record_t   record;

    record.keys = keys;
    record.end = end;

    ones = 0;
    count = 0;
    *added = 0;

    do {
        n = 0;

        while (n < NGX_BLOOM_AHEAD && bloom_record_key(&record, &key)) {
            if (ngx_bloom_zone_canonical(bits->form, &key) == NULL) {
                hash[n++] = bloom_hash(bits->hasher, key.data, key.len);
            }
        }

        /* one after another, with nothing in between: so most overlap */

        for (i = 0; i < n; i++) {
            bloom_layout_prefetch(bits->geometry, bits->words, hash[i]);
        }

        for (i = 0; i < n; i++) {
            changed = bloom_layout_add_atomic(bits->geometry, bits->words,
                                              hash[i]);

            ones += changed;
            *added += (changed != 0);
        }

        count += n;
    } while (n == NGX_BLOOM_AHEAD);

    (void) __atomic_fetch_add(bits->ones, ones, __ATOMIC_RELAXED);

    return count;
}


void
ngx_bloom_zone_info(ngx_bloom_zone_t *zone, ngx_bloom_info_t *info)
{
    uint64_t              tail;
    ngx_uint_t            bank;
    ngx_bloom_shctx_t    *sh;
    ngx_bloom_control_t  *control;

    sh = zone->sh;

    ngx_memzero(info, sizeof(ngx_bloom_info_t));

    do {
        info->generation = __atomic_load_n(&sh->generation, __ATOMIC_ACQUIRE);

        bank = info->generation & 1;

        ngx_memcpy(&info->image, &sh->bank[bank].image,
                   sizeof(bloom_image_t));
        info->ones = __atomic_load_n(&sh->bank[bank].ones, __ATOMIC_RELAXED);
        info->uploaded = sh->uploaded;

        __atomic_thread_fence(__ATOMIC_ACQUIRE);

    } while (__atomic_load_n(&sh->generation, __ATOMIC_RELAXED)
             != info->generation);

    info->instance = sh->instance;
    info->file = (zone->file.name.len != 0);
    info->size = zone->shm_zone->shm.size;
    info->bank_size = sh->bank_size;
    info->pages = zone->pages;
    info->huge = __atomic_load_n(&sh->huge, __ATOMIC_RELAXED);
    info->got = sh->pages;
    info->kept = zone->kept->count;
    info->lost = zone->kept->lost;
    info->load_done = __atomic_load_n(&sh->load_done, __ATOMIC_RELAXED);
    info->load_total = __atomic_load_n(&sh->load_total, __ATOMIC_RELAXED);
    info->heartbeat = __atomic_load_n(&sh->heartbeat, __ATOMIC_RELAXED);

    if (ngx_bloom_lock(&sh->tasks, NGX_BLOOM_TASK_WAIT) == NGX_OK) {
        info->loaded = sh->loaded;
        ngx_bloom_unlock(&sh->tasks);
    }

    if (zone->state != NULL) {
        control = zone->state->control;
        tail = ngx_bloom_state_tail(zone->state);

        info->journal = 1;
        info->journal_bytes = tail - ngx_min(tail, control->begin);
        info->unsynced_bytes = tail - ngx_min(tail, control->synced);
        info->replay_bytes = tail - ngx_min(tail, ngx_max(control->begin,
                                                          sh->checkpoint));
        info->journal_err = (ngx_err_t) control->err;
        info->journal_error = ngx_bloom_state_error(control->failed,
                                                    info->journal_err);

    } else if (zone->state_error != NULL) {
        info->journal_err = zone->state_err;
        info->journal_error = zone->state_error;
    }

    ngx_bloom_count_sums(zone->series, info->counter);

    if (info->generation == 0) {
        info->unsure = NGX_BLOOM_NOT_LOADED;

    } else if (zone->max_age != 0
               && ngx_time() >= (time_t) (info->image.as_of / 1000)
                                + zone->max_age)
    {
        info->unsure = NGX_BLOOM_STALE;

    } else if (sh->doubt != 0) {
        info->unsure = NGX_BLOOM_DAMAGED;

    } else if (ngx_bloom_zone_behind(zone)) {
        info->unsure = NGX_BLOOM_BEHIND;
    }
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
    zone->required = &ngx_bloom_zone_never;
    zone->journal = 1;
    zone->pool = cf->pool;
    zone->ccf = (ngx_core_conf_t *) ngx_get_conf(cf->cycle->conf_ctx,
                                                 ngx_core_module);

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
    ngx_bloom_start_abandon(zone);

    if (zone->state != NULL) {
        zone->required = &ngx_bloom_zone_never;
        zone->kept = &zone->sh->kept;
        ngx_bloom_state_close(zone->state);
        zone->state = NULL;
    }
}


void
ngx_bloom_zone_count_huge(ngx_bloom_zone_t *zone)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    __atomic_store_n(&sh->huge,
                     ngx_bloom_pages_huge(sh->banks, 2 * sh->bank_size),
                     __ATOMIC_RELAXED);
}


size_t
ngx_bloom_zone_needs(uint64_t bank)
{
    uint64_t  pages;

    /*
     * The slab allocator takes a descriptor for each page, and its own header;
     * the control block, the log context and rounding take some pages more.
     */

    pages = 2 * ((bank + ngx_pagesize - 1) / ngx_pagesize)
            + sizeof(ngx_bloom_shctx_t) / ngx_pagesize + 8;

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

        return ngx_bloom_zone_add_shm(cf, zone, NGX_BLOOM_ZONE_MIN, tag);
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

    zone->size = size;

    if (size == 0) {
        size = roomy;

        if (live != NULL
            && zone->file.name.len != 0
            && payload <= live->sh->bank_size)
        {
            size = old->shm.size;
        }
    }

    if (ngx_test_config) {

        /* nothing is loaded: the memory would be mapped in vain */

        size = NGX_BLOOM_ZONE_MIN;
    }

    return ngx_bloom_zone_add_shm(cf, zone, size, tag);
}


static ngx_int_t
ngx_bloom_zone_add_shm(ngx_conf_t *cf, ngx_bloom_zone_t *zone,
    size_t size, void *tag)
{
    zone->shm_zone = ngx_shared_memory_add(cf, &zone->name, size, tag);
    if (zone->shm_zone == NULL) {
        return NGX_ERROR;
    }

    zone->shm_zone->init = ngx_bloom_start_zone;
    zone->shm_zone->data = zone;

    return ngx_bloom_count_declare(cf);
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

        if (zone[i]->state_path.len + 3 * zone[i]->name.len
            > NGX_MAX_PATH - NGX_BLOOM_NAME_MAX)
        {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "bloom_state_path \"%V\" is too long for bloom "
                          "zone \"%V\"", &zone[i]->state_path,
                          &zone[i]->name);
            return NGX_ERROR;
        }

        if (ngx_process != NGX_PROCESS_SIGNALLER
            && ngx_bloom_zone_room(cf, zone[i]) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* Room for what a start would load instead of file=. */
static ngx_int_t
ngx_bloom_zone_room(ngx_conf_t *cf, ngx_bloom_zone_t *zone)
{
    u_char           name[NGX_MAX_PATH];
    size_t           needs;
    uint64_t         payload;
    ngx_shm_t       *shm;
    ngx_shm_zone_t  *old;

    shm = &zone->shm_zone->shm;
    payload = ngx_bloom_zone_upload(cf, zone, name);
    needs = payload ? ngx_bloom_zone_needs(payload) : 0;

    if (zone->size != 0 && zone->size < needs) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "bloom zone \"%V\" in %s:%ui is too small for the "
                      "uploaded image that it starts with, \"%s\": it needs "
                      "%uzk; write \"zone=%V:%uzk\", leave the size out, or "
                      "remove that file to start with %s instead",
                      &zone->name, zone->conf_file, zone->conf_line, name,
                      (needs + 1023) / 1024, &zone->name,
                      (needs + 1023) / 1024,
                      zone->file.name.len ? "the image of \"file\""
                                          : "an empty filter");
        return NGX_ERROR;
    }

    if (ngx_test_config) {
        return NGX_OK;
    }

    if (shm->size < needs) {
        shm->size = ngx_bloom_zone_needs(payload + payload / 8);
    }

    old = ngx_bloom_zone_of_old_cycle(cf, zone, zone->shm_zone->tag);

    if (old != NULL && old->shm.size != shm->size) {
        zone->resized = 1;

        ngx_log_error(NGX_LOG_NOTICE, cf->log, 0,
                      "bloom zone \"%V\" changes from %uzk to %uzk: its "
                      "memory is made anew in %s:%ui",
                      &zone->name, old->shm.size / 1024, shm->size / 1024,
                      zone->conf_file, zone->conf_line);
    }

    return NGX_OK;
}


/*
 * The size of the filter in the image that was uploaded in place of the one
 * that file= has, and its name; 0 if there is none, or it cannot be read, which
 * the start says.
 */
static uint64_t
ngx_bloom_zone_upload(ngx_conf_t *cf, ngx_bloom_zone_t *zone, u_char *name)
{
    u_char             *path;
    uint64_t            payload;
    ngx_bloom_file_t    file;
    ngx_bloom_state_t   state;

    if (zone->state_path.len == 0 || !zone->journal) {
        return 0;
    }

    path = ngx_bloom_state_path(cf->pool, &zone->state_path, &zone->name);
    if (path == NULL) {
        return 0;
    }

    ngx_memzero(&state, sizeof(ngx_bloom_state_t));
    state.path.data = path;
    state.path.len = ngx_strlen(path);

    ngx_memzero(&file, sizeof(ngx_bloom_file_t));
    file.fd = NGX_INVALID_FILE;
    file.name.data = ngx_bloom_save_upload_name(&state,
                                                zone->file.name.len
                                                ? zone->image.build_id
                                                : ngx_bloom_save_empty,
                                                name);
    file.name.len = ngx_strlen(name);

    if (ngx_bloom_file_open(&file) != NGX_OK) {
        return 0;
    }

    payload = bloom_image_payload_size(&file.reader.image);

    ngx_bloom_file_close(&file);

    return payload;
}
