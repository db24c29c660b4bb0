/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file copies what lookups need of a generation, and changes its
 * exceptions.
 */

#include "ngx_bloom_zone.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_source.h"

#include <sys/random.h>


/* The highest number of small-size slots in nginx's slab allocator. */
#define NGX_BLOOM_ZONE_SLOTS          64

/* How many slots of the exceptions are searched while their lock is held. */
#define NGX_BLOOM_ZONE_RESTORE        8192


/* bloom_form_accept() or bloom_form_canonical(). */
typedef const char *(*ngx_bloom_zone_convert_pt)(uint32_t form,
    bloom_key_t *canonical, const bloom_key_t *key, uint8_t *buf);


static const char *ngx_bloom_zone_convert(ngx_bloom_zone_convert_pt convert,
    uint32_t form, bloom_key_t *key);
static uint32_t ngx_bloom_zone_bound(bloom_geometry_t *geometry);
static ngx_bloom_ring_t *ngx_bloom_zone_ring(ngx_bloom_zone_t *zone,
    ngx_uint_t bank, const bloom_geometry_t *geometry);
static void ngx_bloom_zone_bits_ring(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_bits_t *bits, ngx_uint_t bank, ngx_bloom_ring_t *ring);
static void ngx_bloom_zone_room(const bloom_image_t *image, uint64_t removals,
    uint64_t *n, uint64_t *bytes);
static uint64_t ngx_bloom_zone_pages(uint64_t bytes);
static size_t ngx_bloom_zone_pages_need(uint64_t pages);


const char *
ngx_bloom_zone_accept(uint32_t form, bloom_key_t *key)
{
    return ngx_bloom_zone_convert(bloom_form_accept, form, key);
}


const char *
ngx_bloom_zone_canonical(uint32_t form, bloom_key_t *key)
{
    return ngx_bloom_zone_convert(bloom_form_canonical, form, key);
}


static const char *
ngx_bloom_zone_convert(ngx_bloom_zone_convert_pt convert, uint32_t form,
    bloom_key_t *key)
{
    const char      *why;
    bloom_key_t      canonical;
    static uint8_t   buf[BLOOM_URL_ROOM(BLOOM_KEY_MAX)];

    if (key->len == 0) {
        return "is empty";
    }

    /* the buffer has no room for more */

    if (key->len > BLOOM_KEY_MAX) {
        return BLOOM_KEY_TOO_LONG;
    }

    if (form == BLOOM_FORM_RAW) {
        return NULL;
    }

    why = convert(form, &canonical, key, buf);

    if (why == NULL) {
        *key = canonical;
    }

    return why;
}


/* Returns how many layers or slices a geometry from shared memory has, and
 * bounds both: the workers' user may have written there. */
static uint32_t
ngx_bloom_zone_bound(bloom_geometry_t *geometry)
{
    geometry->layers = ngx_min(geometry->layers, BLOOM_LAYERS_MAX);
    geometry->slices = ngx_min(geometry->slices, BLOOM_PARTS_MAX);

    return geometry->slices != 0 ? geometry->slices : geometry->layers;
}


/* Returns the ring of a bank, or NULL if it has none. */
static ngx_bloom_ring_t *
ngx_bloom_zone_ring(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    const bloom_geometry_t *geometry)
{
    return geometry->slices != 0 && zone->expire != 0
           ? &zone->sh->bank[bank].ring : NULL;
}


static void
ngx_bloom_zone_bits_ring(ngx_bloom_zone_t *zone, ngx_bloom_zone_bits_t *bits,
    ngx_uint_t bank, ngx_bloom_ring_t *ring)
{
    uint64_t  capacity;

    /* a checkpoint may have another capacity than the configuration */

    capacity = zone->sh->bank[bank].image.capacity;

    bits->ring = ring;
    bits->expire = zone->expire;
    bits->slice = zone->slices != 0 ? zone->expire / zone->slices : 0;
    bits->slice_capacity = zone->slices != 0
                           ? (capacity + zone->slices - 1) / zone->slices : 0;
    bits->clock = zone->clock;
    bits->time = 0;
    bits->alone = 0;
}


uint64_t
ngx_bloom_zone_time(ngx_bloom_zone_t *zone)
{
    uint64_t  now;

    now = zone->expire != 0 ? ngx_bloom_clock_now(zone->clock) : 0;

    return now != 0 ? now : ngx_bloom_time();
}


int64_t
ngx_bloom_zone_shift(ngx_bloom_zone_t *zone)
{
    uint64_t  now;

    now = zone->expire != 0 ? ngx_bloom_clock_now(zone->clock) : 0;

    return now != 0 ? (int64_t) (ngx_bloom_time() - now) : 0;
}


ngx_int_t
ngx_bloom_zone_refresh(ngx_bloom_zone_t *zone, uint64_t generation)
{
    ngx_uint_t  bank;

    bank = generation & 1;

    zone->generation = 0;
    zone->form = zone->sh->bank[bank].image.key_form;
    zone->geometry = zone->sh->bank[bank].image.geometry;
    zone->room = ngx_bloom_zone_bound(&zone->geometry);
    zone->capacity = zone->sh->bank[bank].image.capacity;
    zone->grown = &zone->sh->bank[bank].grown;
    zone->seen = 0;
    zone->ring = ngx_bloom_zone_ring(zone, bank, &zone->geometry);
    zone->hasher = zone->sh->bank[bank].image.hasher;
    zone->words = (uint64_t *) ngx_bloom_zone_bank(zone, bank);
    ngx_bloom_zone_exceptions(zone, bank, &zone->exceptions);
    zone->based = ngx_bloom_zone_position(zone, &zone->sh->bank[bank].image);
    zone->stale = NGX_MAX_TIME_T_VALUE;

    if (zone->max_age != 0) {
        zone->stale = (time_t) (zone->sh->bank[bank].image.as_of / 1000)
                      + zone->max_age;
    }

    zone->raw = (zone->form == BLOOM_FORM_RAW && zone->ring == NULL
                 && zone->source.len == 0);
    zone->plain = (zone->raw && zone->room == 0);

    if (zone->ring != NULL) {
        zone->stale = 0;
    }

    ngx_bloom_zone_follow(&zone->geometry, zone->grown, zone->ring, generation,
                          zone->room);

    __atomic_thread_fence(__ATOMIC_ACQUIRE);

    if (__atomic_load_n(&zone->sh->generation, __ATOMIC_RELAXED)
        != generation)
    {
        return NGX_AGAIN;
    }

    zone->generation = generation;

    return NGX_OK;
}


bloom_position_t
ngx_bloom_zone_position(ngx_bloom_zone_t *zone, const bloom_image_t *image)
{
    static const bloom_position_t  unknown;

    return zone->source.len != 0
           && bloom_source_is(&image->source, zone->source.data,
                              zone->source.len)
           ? image->source.position : unknown;
}


ngx_bloom_source_e
ngx_bloom_zone_source(ngx_bloom_zone_t *zone, bloom_position_t based,
    bloom_reached_t *place, uint64_t *lag)
{
    ngx_bloom_control_t  *control;

    *lag = UINT64_MAX;

    if (zone->state == NULL) {
        ngx_memzero(place, sizeof(bloom_reached_t));
        return NGX_BLOOM_SOURCE_GAP;
    }

    control = zone->state->control;

    ngx_bloom_source_read(control, zone->source_id, place);
    *lag = ngx_bloom_source_lag(control, place, ngx_current_msec);

    if (bloom_position_cmp(place->gap, based) > 0) {
        return NGX_BLOOM_SOURCE_GAP;
    }

    if (*lag == UINT64_MAX || ngx_bloom_source_due(place)) {
        return NGX_BLOOM_SOURCE_WAITING;
    }

    return zone->max_lag != 0 && *lag > zone->max_lag
           ? NGX_BLOOM_SOURCE_LATE : NGX_BLOOM_SOURCE_CURRENT;
}


ngx_uint_t
ngx_bloom_zone_late(ngx_bloom_zone_t *zone)
{
    uint64_t           lag;
    bloom_reached_t  place;

    switch (ngx_bloom_zone_source(zone, zone->based, &place, &lag)) {

    case NGX_BLOOM_SOURCE_CURRENT:
        return 0;

    case NGX_BLOOM_SOURCE_WAITING:
        return zone->max_lag != 0 || ngx_bloom_source_due(&place);

    default: /* NGX_BLOOM_SOURCE_LATE, NGX_BLOOM_SOURCE_GAP */
        return 1;
    }
}


void
ngx_bloom_zone_follow_room(ngx_bloom_zone_t *zone)
{
    if (zone->ring != NULL) {
        zone->drops = __atomic_load_n(&zone->ring->drops, __ATOMIC_ACQUIRE);
    }

    /* `seen` is read first: it may be older than the layers, and not newer */

    zone->seen = __atomic_load_n(zone->grown, __ATOMIC_ACQUIRE);

    ngx_bloom_zone_follow(&zone->geometry, zone->grown, zone->ring,
                          zone->generation, zone->room);

    if (zone->ring != NULL) {
        ngx_bloom_fault("followed");
    }
}


ngx_int_t
ngx_bloom_zone_ended(ngx_bloom_zone_t *zone)
{
    if (zone->ring == NULL) {
        return NGX_DECLINED;
    }

    return __atomic_load_n(&zone->ring->drops, __ATOMIC_RELAXED) == zone->drops
           ? NGX_OK : NGX_AGAIN;
}


/* Returns the zone's memory of added keys, or NULL if it is not in use. */
static ngx_inline ngx_bloom_recent_t *
ngx_bloom_zone_recent(ngx_bloom_zone_t *zone)
{
    return __atomic_load_n(&zone->sh->recent.on, __ATOMIC_SEQ_CST)
           ? &zone->sh->recent : NULL;
}


void
ngx_bloom_zone_bits(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    ngx_bloom_zone_bits_t *bits)
{
    uint64_t        generation;
    bloom_image_t  *image;

    generation = zone->sh->generation;

    if (generation != 0 && (generation & 1) == bank) {

        /* the caller sees to it that this generation serves on */

        (void) ngx_bloom_zone_serving(zone, bits);
        return;
    }

    image = &zone->sh->bank[bank].image;
    zone->idle = image->geometry;

    bits->form = image->key_form;
    bits->geometry = &zone->idle;
    bits->room = ngx_bloom_zone_bound(&zone->idle);
    bits->capacity = image->capacity;
    bits->generation = generation + 1;
    bits->hasher = &image->hasher;
    bits->words = (uint64_t *) ngx_bloom_zone_bank(zone, bank);
    bits->grown = &zone->sh->bank[bank].grown;
    bits->bits_set = zone->sh->bank[bank].bits_set;
    bits->recent = NULL;
    ngx_bloom_zone_exceptions(zone, bank, &bits->exceptions);
    ngx_bloom_zone_bits_ring(zone, bits, bank,
                             ngx_bloom_zone_ring(zone, bank, &zone->idle));

    ngx_bloom_zone_follow(bits->geometry, bits->grown, bits->ring,
                          bits->generation, bits->room);
}


uint64_t
ngx_bloom_zone_serving(ngx_bloom_zone_t *zone, ngx_bloom_zone_bits_t *bits)
{
    uint64_t  generation;

    do {
        generation = __atomic_load_n(&zone->sh->generation, __ATOMIC_ACQUIRE);

        if (generation == 0) {
            return 0;
        }
    } while (generation != zone->generation
             && ngx_bloom_zone_refresh(zone, generation) != NGX_OK);

    /* this process's own copy, which is not torn */

    bits->form = zone->form;
    bits->geometry = &zone->geometry;
    bits->room = zone->room;
    bits->capacity = zone->capacity;
    bits->generation = generation;
    bits->hasher = &zone->hasher;
    bits->words = zone->words;
    bits->exceptions = zone->exceptions;
    bits->grown = &zone->sh->bank[generation & 1].grown;
    bits->bits_set = zone->sh->bank[generation & 1].bits_set;
    bits->recent = ngx_bloom_zone_recent(zone);
    ngx_bloom_zone_bits_ring(zone, bits, generation & 1, zone->ring);

    ngx_bloom_zone_follow(bits->geometry, bits->grown, bits->ring, generation,
                          bits->room);

    return generation;
}


ngx_uint_t
ngx_bloom_zone_keys(bloom_record_t *record, bloom_key_t *keys, ngx_uint_t most)
{
    ngx_uint_t  n;

    for (n = 0; n < most && bloom_record_key(record, &keys[n]); n++) {
        /* void */
    }

    return n;
}


void
ngx_bloom_zone_prefetch(const ngx_bloom_zone_bits_t *bits,
    const bloom_key_t *keys, ngx_uint_t n)
{
    ngx_uint_t    i;
    bloom_hash_t  hash[NGX_BLOOM_ZONE_GROUP];

    if (bits->exceptions.head == NULL) {
        return;
    }

    for (i = 0; i < n; i++) {
        hash[i] = bloom_exceptions_hash(&bits->exceptions, keys[i].data,
                                        keys[i].len);
    }

    for (i = 0; i < n; i++) {
        bloom_exceptions_prefetch(&bits->exceptions, hash[i]);
    }
}


uint64_t
ngx_bloom_zone_puts(const ngx_bloom_zone_bits_t *bits)
{
    return bits->exceptions.head == NULL
           ? 0 : __atomic_load_n(&bits->exceptions.head->puts,
                                 __ATOMIC_SEQ_CST);
}


void
ngx_bloom_zone_lift(ngx_bloom_zone_bits_t *bits, const uint8_t *keys,
    const uint8_t *end, uint64_t position)
{
    ngx_uint_t      i, n;
    bloom_key_t     key[NGX_BLOOM_ZONE_GROUP];
    bloom_record_t  record;

    if (bloom_exceptions_count(&bits->exceptions) == 0) {
        return;
    }

    record.keys = keys;
    record.end = end;

    do {
        n = ngx_bloom_zone_keys(&record, key, NGX_BLOOM_ZONE_GROUP);
        ngx_bloom_zone_prefetch(bits, key, n);

        for (i = 0; i < n; i++) {
            if (ngx_bloom_zone_canonical(bits->form, &key[i]) == NULL) {
                (void) bloom_exceptions_drop(&bits->exceptions, key[i].data,
                                             key[i].len,
                                             BLOOM_EXCEPTION_KINDS, position);
            }
        }
    } while (n == NGX_BLOOM_ZONE_GROUP);
}


ngx_int_t
ngx_bloom_zone_restore(ngx_bloom_zone_bits_t *bits, unsigned kinds,
    uint64_t from, uint64_t before, uint64_t *cursor, uint64_t *keys)
{
    int                rc;
    uint64_t           end;
    bloom_exception_t  exception;

    static u_char      buf[BLOOM_KEY_MAX];

    end = *cursor + NGX_BLOOM_ZONE_RESTORE;

    do {
        rc = bloom_exceptions_next_within(&bits->exceptions, cursor,
                                          NGX_BLOOM_ZONE_RESTORE, &exception,
                                          buf);

        if (rc == 1 && (exception.kinds & kinds) != 0
            && exception.position >= from)
        {
            *keys += bloom_exceptions_drop(&bits->exceptions,
                                           exception.key.data,
                                           exception.key.len, kinds, before);
        }
    } while (rc == 1 && *cursor < end);

    ngx_bloom_fault("restored");

    return rc == 0 ? NGX_OK : NGX_AGAIN;
}


ngx_int_t
ngx_bloom_zone_except(ngx_bloom_zone_bits_t *bits, const bloom_record_t *record,
    uint64_t position)
{
    ngx_int_t          rc;
    bloom_record_t     keys;
    bloom_exception_t  exception;

    rc = NGX_OK;
    keys = *record;
    exception.kinds = BLOOM_EXCEPTION_REMOVED;
    exception.time = record->stamp.time;
    exception.position = position;

    while (bloom_record_key(&keys, &exception.key)) {

        if (ngx_bloom_zone_canonical(bits->form, &exception.key) == NULL
            && ngx_bloom_zone_except_key(bits, &exception) == -1)
        {
            rc = NGX_DECLINED;
        }
    }

    return rc;
}


int
ngx_bloom_zone_except_key(ngx_bloom_zone_bits_t *bits,
    const bloom_exception_t *exception)
{
    int  rc;

    rc = bloom_exceptions_put(&bits->exceptions, exception);

    if (rc == -1 && bloom_exceptions_feedback(&bits->exceptions) != 0) {
        ngx_bloom_zone_drop_all(&bits->exceptions, BLOOM_EXCEPTION_FEEDBACK, 0,
                                UINT64_MAX);

        rc = bloom_exceptions_put(&bits->exceptions, exception);
    }

    return rc;
}


void
ngx_bloom_zone_drop_all(bloom_exceptions_t *set, unsigned kinds,
    uint64_t from, uint64_t until)
{
    uint64_t           cursor;
    bloom_exception_t  exception;

    static u_char      buf[BLOOM_KEY_MAX];

    cursor = 0;

    while (bloom_exceptions_next(set, &cursor, &exception, buf)) {
        if ((exception.kinds & kinds)
            && exception.position >= from
            && exception.time <= until)
        {
            (void) bloom_exceptions_drop(set, exception.key.data,
                                         exception.key.len, kinds, UINT64_MAX);
        }
    }
}


ngx_uint_t
ngx_bloom_zone_has(const ngx_bloom_zone_bits_t *bits, const bloom_key_t *key)
{
    return bloom_layout_test(bits->geometry, bits->words,
                             bloom_hash(bits->hasher, key->data, key->len))
           && !bloom_exceptions_has(&bits->exceptions, key->data, key->len);
}


void
ngx_bloom_zone_exceptions(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    bloom_exceptions_t *set)
{
    uint64_t        n, bytes, payload;
    bloom_image_t  *image;

    image = &zone->sh->bank[bank].image;
    payload = bloom_image_payload_size(image);

    ngx_bloom_zone_room(image, zone->sh->bank[bank].removals, &n, &bytes);

    /* the numbers may be torn while another generation begins to serve */

    if (n > UINT32_MAX || payload > zone->bank_size
        || bloom_exceptions_size(n, bytes) > zone->bank_size - payload)
    {
        n = 0;
    }

    bloom_exceptions_attach(set, ngx_bloom_zone_bank(zone, bank) + payload, n,
                            bytes);
}


/*
 * Computes for how many keys, and of how many bytes in all, the exceptions of a
 * bank have room.  An image that a zone with the same "removals" has written
 * fits, however long its keys are: the zone had this room as well.
 */
static void
ngx_bloom_zone_room(const bloom_image_t *image, uint64_t removals, uint64_t *n,
    uint64_t *bytes)
{
    uint64_t  removed, removed_size;

    removed = image->exceptions - image->built;
    removed_size = image->exceptions_size - image->built_size;

    *n = image->built + ngx_max(removed, removals);
    *bytes = removals * BLOOM_EXCEPTION_KEY_USUAL;

    if (removed > removals) {
        *bytes = ngx_max(*bytes, removed_size);
    }

    *bytes += image->built_size;
}


uint64_t
ngx_bloom_zone_bank_needs(const bloom_image_t *image, ngx_uint_t removals)
{
    uint64_t  n, bytes;

    ngx_bloom_zone_room(image, removals, &n, &bytes);

    return bloom_image_payload_size(image) + bloom_exceptions_size(n, bytes);
}


size_t
ngx_bloom_zone_removals_size(ngx_uint_t removals)
{
    return bloom_exceptions_size(removals, (uint64_t) removals
                                           * BLOOM_EXCEPTION_KEY_USUAL);
}


size_t
ngx_bloom_zone_beside(ngx_uint_t removals)
{
    size_t  size;

    size = ngx_bloom_zone_removals_size(removals);

    return ngx_bloom_zone_pages_need(2 * ngx_bloom_zone_pages(size)
                                     + ngx_bloom_zone_pages(
                                           sizeof(ngx_bloom_recent_t)));
}


void
ngx_bloom_zone_release(ngx_bloom_zone_t *zone, ngx_uint_t bank)
{
    if (zone->sh->bank[bank].filled) {
        ngx_bloom_hugepages_clear(ngx_bloom_zone_bank(zone, bank),
                                  zone->bank_size);
        zone->sh->bank[bank].filled = 0;
    }
}


void
ngx_bloom_zone_measure_hugepages(ngx_bloom_zone_t *zone)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    __atomic_store_n(&sh->huge_bytes,
                     ngx_bloom_hugepages_measure(zone->banks,
                                                 2 * zone->bank_size),
                     __ATOMIC_RELAXED);
}


/*
 * Returns where a zone's own data begins.  nginx's slab allocator, which is
 * never used, has its header and a descriptor for each page before that.
 */
static size_t
ngx_bloom_zone_offset(size_t size)
{
    size_t  offset;

    offset = sizeof(ngx_slab_pool_t)
             + NGX_BLOOM_ZONE_SLOTS
               * (sizeof(ngx_slab_page_t) + sizeof(ngx_slab_stat_t))
             + size / (ngx_pagesize + sizeof(ngx_slab_page_t))
               * sizeof(ngx_slab_page_t);

    return ngx_align(offset, ngx_pagesize);
}


ngx_int_t
ngx_bloom_zone_empty(ngx_bloom_zone_t *zone, bloom_image_t *image)
{
    *image = zone->image;

    if (getrandom(image->hasher.key,
                  image->hasher.kind == BLOOM_HASH_MURMUR3
                  ? sizeof(uint32_t) : BLOOM_HASH_KEY_LEN, 0) == -1
        || getrandom(image->build_id, BLOOM_IMAGE_BUILD_ID_LEN, 0) == -1)
    {
        return NGX_ERROR;
    }

    image->created = ngx_bloom_zone_time(zone);

    return NGX_OK;
}


size_t
ngx_bloom_zone_needs(uint64_t bank)
{
    size_t  control;

    control = sizeof(ngx_bloom_shctx_t) - sizeof(ngx_bloom_recent_t);

    /* the pages of the offset above, and room for rounding */

    return ngx_bloom_zone_pages_need(2 * ngx_bloom_zone_pages(bank)
                                     + ngx_bloom_zone_pages(control) + 8)
           + NGX_BLOOM_ZONE_MIN;
}


static uint64_t
ngx_bloom_zone_pages(uint64_t bytes)
{
    return (bytes + ngx_pagesize - 1) / ngx_pagesize;
}


/* Returns the size of memory with so many pages; each has a descriptor of
 * nginx's slab allocator. */
static size_t
ngx_bloom_zone_pages_need(uint64_t pages)
{
    return (size_t) (pages * (ngx_pagesize + sizeof(ngx_slab_page_t)));
}


void
ngx_bloom_zone_attach(ngx_bloom_zone_t *zone)
{
    size_t      offset, removals;
    ngx_shm_t  *shm;

    shm = &zone->shm_zone->shm;

    offset = ngx_bloom_zone_offset(shm->size);

    zone->sh = (ngx_bloom_shctx_t *) (shm->addr + offset);
    ngx_bloom_zone_use(zone);

    offset += ngx_align(sizeof(ngx_bloom_shctx_t), ngx_pagesize);

    zone->banks = shm->addr + offset;
    zone->bank_size = (shm->size - offset) / 2 / ngx_pagesize * ngx_pagesize;

    removals = ngx_bloom_zone_removals_size(zone->removals_room);
    zone->image_room = zone->bank_size - ngx_min(removals, zone->bank_size);
}


void
ngx_bloom_zone_attach_state(ngx_bloom_zone_t *zone)
{
    ngx_bloom_state_t    *state;
    ngx_bloom_failure_t   failure;

    static const uint64_t  always = UINT64_MAX;

    state = zone->state;

    if (state == NULL) {
        zone->applied = __atomic_load_n(&zone->sh->applied, __ATOMIC_SEQ_CST);
        return;
    }

    if (ngx_bloom_state_attach(state, &failure) == NGX_OK) {
        ngx_bloom_zone_use(zone);

        state->expire = zone->expire;

        ngx_bloom_zone_may_remove(zone);
        return;
    }

    ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, failure.err,
                  "cannot %s \"%V/%s\": bloom zone \"%V\" answers "
                  "\"unknown\" instead of \"absent\" and takes no additions; "
                  "find out what has changed that file, and restart nginx",
                  failure.what, &state->path, failure.name, &zone->name);

    zone->state_err = failure.err;
    zone->state_error = "the control page in the directory of "
                        "bloom_state_path cannot be used; see the error log, "
                        "and restart nginx";
    zone->state = NULL;
    ngx_bloom_zone_use(zone);
    zone->required = &always;
}


void
ngx_bloom_zone_use(ngx_bloom_zone_t *zone)
{
    ngx_bloom_state_t  *state;

    state = zone->state;

    zone->control = (state != NULL && state->control != NULL)
                    ? state->control : &zone->sh->control;
    zone->clock = &zone->control->clock;
    zone->lost = (zone->control != &zone->sh->control)
                 ? &zone->control->loss.lost : &zone->sh->lost;
    zone->required = &zone->control->instance[state != NULL ? state->instance
                                                            : 0].required;
}


ngx_int_t
ngx_bloom_zone_lock(ngx_bloom_zone_t *zone, ngx_msec_t wait)
{
    if (ngx_bloom_lock(&zone->sh->control.append, wait) != NGX_OK) {
        return NGX_BUSY;
    }

    if (zone->state != NULL
        && ngx_bloom_state_lock(zone->state, wait) != NGX_OK)
    {
        ngx_bloom_unlock(&zone->sh->control.append);
        return NGX_BUSY;
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_zone_lock_unowed(ngx_bloom_zone_t *zone, ngx_msec_t wait)
{
    if (ngx_bloom_zone_lock(zone, wait) != NGX_OK) {
        return NGX_BUSY;
    }

    if (ngx_bloom_zone_owing(zone)) {
        ngx_bloom_zone_unlock(zone);
        return NGX_BUSY;
    }

    return NGX_OK;
}


void
ngx_bloom_zone_unlock(ngx_bloom_zone_t *zone)
{
    if (zone->state != NULL) {
        ngx_bloom_unlock(&zone->state->control->append);
    }

    ngx_bloom_unlock(&zone->sh->control.append);
}


void
ngx_bloom_zone_may_remove(ngx_bloom_zone_t *zone)
{
    uint64_t   limit;
    uint64_t  *removals;

    removals = &zone->state->control->instance[zone->state->instance].removals;

    limit = 1 + (__atomic_load_n(&zone->sh->generation, __ATOMIC_SEQ_CST) != 0
                 ? zone->removals : zone->removals_room);

    /* a store would stop a process that starts while the file system is
     * frozen */

    if (__atomic_load_n(removals, __ATOMIC_SEQ_CST) != limit) {
        __atomic_store_n(removals, limit, __ATOMIC_SEQ_CST);
    }
}


void
ngx_bloom_zone_attach_states(ngx_array_t *zones)
{
    ngx_uint_t          i;
    ngx_bloom_zone_t  **zone;

    zone = zones->elts;

    for (i = 0; i < zones->nelts; i++) {
        ngx_bloom_zone_attach_state(zone[i]);
    }
}
