/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file copies the image again if the generation changes meanwhile.
 */

#include "ngx_bloom_info.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_adapt.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_remove.h"
#include "ngx_bloom_ring.h"


/* The journal of a zone with file= is too large if it has so many times as many
 * bytes as the image; but a journal of fewer bytes than the second number never
 * is. */
#define NGX_BLOOM_INFO_TIMES  10
#define NGX_BLOOM_INFO_LARGE  (64 * 1024 * 1024)


static void ngx_bloom_info_serving(ngx_bloom_zone_t *zone,
    ngx_bloom_info_t *info);
static void ngx_bloom_info_journal(ngx_bloom_zone_t *zone,
    ngx_bloom_info_t *info);
static uint64_t ngx_bloom_info_owing(ngx_bloom_zone_t *zone);
static uint64_t ngx_bloom_info_journal_bytes(ngx_bloom_state_t *state);
static ngx_bloom_condition_e ngx_bloom_info_condition_of(
    ngx_bloom_zone_t *zone, uint64_t generation, uint64_t as_of);
static void ngx_bloom_info_ring(ngx_bloom_zone_t *zone,
    ngx_bloom_info_t *info);
static uint64_t ngx_bloom_info_age(const ngx_bloom_info_t *info,
    uint32_t slice);


void
ngx_bloom_info_get(ngx_bloom_zone_t *zone, ngx_bloom_info_t *info)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    ngx_memzero(info, sizeof(ngx_bloom_info_t));

    ngx_bloom_info_serving(zone, info);

    info->planned.geometry.layers = ngx_min(info->planned.geometry.layers,
                                            BLOOM_LAYERS_MAX);

    info->max_items = bloom_image_capacity(&info->planned);
    info->promised_fpr = bloom_image_promised(&info->planned);

    if (zone->expire != 0) {
        ngx_bloom_info_ring(zone, info);
    }

    info->instance = sh->instance;
    info->file = (zone->file.name.len != 0);
    info->size = zone->shm_zone->shm.size;
    info->bank_size = zone->image_room;
    info->huge_bytes = __atomic_load_n(&sh->huge_bytes, __ATOMIC_RELAXED);
    info->owing = ngx_bloom_info_owing(zone);
    info->lost_keys = zone->control->loss.lost_keys;
    info->lost_at = ngx_bloom_zone_damaged(zone)
                    ? ngx_bloom_zone_wall(ngx_bloom_zone_lost(zone),
                                          ngx_bloom_zone_shift(zone))
                    : 0;
    info->source = ngx_bloom_zone_source(zone,
                                         ngx_bloom_zone_position(zone,
                                                                 &info->image),
                                         &info->place, &info->lag);
    info->removed = ngx_bloom_removed_count(zone, &info->removals);
    info->excepted_keys = ngx_bloom_adapt_count(zone, &info->excepts);
    info->load_done = __atomic_load_n(&sh->load_done, __ATOMIC_RELAXED);
    info->load_total = __atomic_load_n(&sh->load_total, __ATOMIC_RELAXED);
    info->heartbeat = ngx_bloom_time() - (ngx_msec_int_t) (ngx_current_msec
                      - __atomic_load_n(&sh->heartbeat, __ATOMIC_RELAXED));

    if (ngx_bloom_lock(&sh->tasks, NGX_BLOOM_TASK_WAIT) == NGX_OK) {
        info->loaded = sh->loaded;
        ngx_bloom_unlock(&sh->tasks);
    }

    ngx_bloom_info_journal(zone, info);

    ngx_bloom_counters_sums(zone->series, info->counter);
    info->wrong_at = ngx_bloom_counters_wrong_at(zone->series);

    info->condition = ngx_bloom_info_condition_of(zone, info->generation,
                                                  info->image.as_of);
}


/* Copies what serves from one whole generation. */
static void
ngx_bloom_info_serving(ngx_bloom_zone_t *zone, ngx_bloom_info_t *info)
{
    ngx_uint_t          bank;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    do {
        info->generation = __atomic_load_n(&sh->generation, __ATOMIC_ACQUIRE);

        bank = info->generation & 1;

        info->planned = sh->bank[bank].image;
        ngx_bloom_layers_image(zone, bank, &info->image);
        info->bits_set = ngx_bloom_layers_bits_set(zone, bank,
                                                   info->part_bits_set);
        info->uploaded = sh->uploaded;

        if (zone->expire != 0) {
            ngx_bloom_ring_copy(zone, bank, &info->ring);
        }

        __atomic_thread_fence(__ATOMIC_ACQUIRE);

    } while (__atomic_load_n(&sh->generation, __ATOMIC_RELAXED)
             != info->generation);
}


static void
ngx_bloom_info_journal(ngx_bloom_zone_t *zone, ngx_bloom_info_t *info)
{
    uint64_t              tail, begin;
    ngx_bloom_control_t  *control;

    if (zone->state == NULL) {

        if (zone->state_error != NULL) {
            info->journal_err = zone->state_err;
            info->journal_error = zone->state_error;
        }

        return;
    }

    control = zone->state->control;
    tail = ngx_bloom_state_tail(zone->state);
    info->journal = 1;

    begin = ngx_bloom_base_file_begin(zone->state);

    info->journal_bytes = ngx_bloom_info_journal_bytes(zone->state);
    info->journal_warning = ngx_bloom_info_journal_grows(zone);
    info->unsynced_bytes = tail - ngx_min(tail, control->synced);
    info->replay_bytes = tail - ngx_min(tail, ngx_max(begin,
                                                      zone->sh->checkpoint));
    info->journal_err = (ngx_err_t) control->err;
    info->journal_error = ngx_bloom_state_error(control->failed,
                                                info->journal_err);
}


/* Returns how many processes owe keys. */
static uint64_t
ngx_bloom_info_owing(ngx_bloom_zone_t *zone)
{
    uint64_t           n;
    ngx_uint_t         i;
    ngx_bloom_loss_t  *loss, *memory;

    loss = &zone->control->loss;
    memory = &zone->sh->control.loss;
    n = 0;

    for (i = 0; i < NGX_BLOOM_OWERS / 64; i++) {
        n += (uint64_t) __builtin_popcountll(loss->owes[i] | memory->owes[i]);
    }

    return n;
}


/* Returns the size of the journal. */
static uint64_t
ngx_bloom_info_journal_bytes(ngx_bloom_state_t *state)
{
    uint64_t  tail;

    tail = ngx_bloom_state_tail(state);

    return tail - ngx_min(tail, ngx_bloom_base_file_begin(state));
}


const char *
ngx_bloom_info_journal_grows(ngx_bloom_zone_t *zone)
{
    uint64_t            large;
    ngx_uint_t          i;
    bloom_base_t        base;
    bloom_image_t       image;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (zone->state == NULL || !sh->file || sh->generation == 0) {
        return NULL;
    }

    ngx_bloom_layers_image(zone, sh->generation & 1, &image);

    large = NGX_BLOOM_INFO_TIMES * bloom_image_file_size(&image);

    if (ngx_bloom_info_journal_bytes(zone->state)
        <= ngx_max(large, NGX_BLOOM_INFO_LARGE))
    {
        return NULL;
    }

    if (zone->source.len != 0) {
        return "the journal is more than ten times as large as the image, and "
               "keeps all changes that the last two images may lack; load "
               "images that are built with a later position of --source";
    }

    ngx_bloom_base_file_get(zone->state, &base);

    for (i = 0; i < 2; i++) {
        if (base.accepted[i].loaded != 0 && base.accepted[i].as_of == 0) {
            return "the journal is more than ten times as large as the image, "
                   "and grows without bound, because one of the last two "
                   "images states no as_of; build the next two with --as-of";
        }
    }

    return "the journal is more than ten times as large as the image, and "
           "keeps all keys that the last two images may lack; load images "
           "that are built with a later --as-of";
}


ngx_bloom_condition_e
ngx_bloom_info_condition(ngx_bloom_zone_t *zone)
{
    uint64_t  generation;

    generation = __atomic_load_n(&zone->sh->generation, __ATOMIC_ACQUIRE);

    return ngx_bloom_info_condition_of(zone, generation,
                                  zone->sh->bank[generation & 1].image.as_of);
}


/* Returns the condition of a zone in which this generation serves, from an
 * image with this time. */
static ngx_bloom_condition_e
ngx_bloom_info_condition_of(ngx_bloom_zone_t *zone, uint64_t generation,
    uint64_t as_of)
{
    if (generation == 0) {
        return NGX_BLOOM_NOT_LOADED;
    }

    if (zone->max_age != 0
        && ngx_time() >= (time_t) (as_of / 1000) + zone->max_age)
    {
        return NGX_BLOOM_STALE;
    }

    if (ngx_bloom_zone_damaged(zone)) {
        return NGX_BLOOM_DAMAGED;
    }

    if (zone->source.len != 0) {

        if (generation != zone->generation) {
            (void) ngx_bloom_zone_refresh(zone, generation);
        }

        if (ngx_bloom_zone_late(zone)) {
            return NGX_BLOOM_LATE;
        }
    }

    return ngx_bloom_zone_behind(zone) ? NGX_BLOOM_BEHIND : NGX_BLOOM_SERVING;
}


/* Fills in what is different about a zone whose keys expire. */
static void
ngx_bloom_info_ring(ngx_bloom_zone_t *zone, ngx_bloom_info_t *info)
{
    int64_t            shift;
    uint32_t           i;
    uint64_t           live, ready;
    ngx_bloom_ring_t  *ring;

    ring = &info->ring;
    shift = ngx_bloom_zone_shift(zone);

    info->expire = zone->expire;
    info->slice = zone->expire / zone->slices;
    info->slices = zone->slices;
    info->slice_capacity = zone->slice_capacity;
    info->clock_behind = ngx_max(shift, 0) / 1000;

    if (info->generation == 0) {
        ngx_memzero(ring, sizeof(ngx_bloom_ring_t));
        return;
    }

    /* the number of slices may be any, as all that others write */

    info->image.geometry.slices = ngx_min(info->image.geometry.slices,
                                          BLOOM_RING_MAX);
    info->image.created = ngx_bloom_zone_wall(info->image.created, shift);

    ready = ngx_bloom_ring_ready(ring->turn);
    live = ring->live & ~ready
           & (((uint64_t) 1 << info->image.geometry.slices) - 1);

    ring->live = live;
    info->image.geometry.live = live;
    info->live_slices = (ngx_uint_t) __builtin_popcountll(live);
    info->ready_slices = (ngx_uint_t) __builtin_popcountll(ready);
    info->max_items = ngx_max(info->image.capacity, zone->max_keys);
    info->bits_set = 0;

    for (i = 0; i < info->image.geometry.slices; i++) {
        ring->opened[i] = ngx_bloom_zone_wall(ring->opened[i], shift);
        ring->closed[i] = ngx_bloom_zone_wall(ring->closed[i], shift);

        if (live >> i & 1) {
            info->bits_set += info->part_bits_set[i];
        }
    }
}


ngx_uint_t
ngx_bloom_info_slices(const ngx_bloom_info_t *info,
    uint32_t slice[BLOOM_PARTS_MAX])
{
    uint32_t    i;
    uint64_t    live, age;
    ngx_uint_t  n, j;

    for (n = 0, live = info->ring.live; live != 0; live &= live - 1, n++) {

        i = (uint32_t) __builtin_ctzll(live);
        age = ngx_bloom_info_age(info, i);

        for (j = n; j > 0 && ngx_bloom_info_age(info, slice[j - 1]) > age; j--)
        {
            slice[j] = slice[j - 1];
        }

        slice[j] = i;
    }

    return n;
}


/* Returns a number that is greater for younger slices. */
static uint64_t
ngx_bloom_info_age(const ngx_bloom_info_t *info, uint32_t slice)
{
    if (ngx_bloom_ring_open(info->ring.turn) == slice) {
        return UINT64_MAX;
    }

    /* a slice without a time was closed just now */

    return info->ring.closed[slice] != 0 ? info->ring.closed[slice]
                                         : UINT64_MAX - 1;
}
