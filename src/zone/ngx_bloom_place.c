/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file keeps the place of a zone in its source when images are loaded and
 * saved.
 */

#include "ngx_bloom_place.h"
#include "ngx_bloom_lock.h"


/* Forgets a gap that only instances with an older image have: no such instance
 * lives. */
static void
ngx_bloom_place_alone(bloom_reached_t *place)
{
    if (!place->lost) {
        place->gap.high = 0;
        place->gap.low = 0;
    }
}


void
ngx_bloom_place_serve(ngx_bloom_zone_t *zone, bloom_reached_t *place,
    bloom_position_t start)
{
    uint64_t              others;
    bloom_reached_t       before;
    ngx_bloom_control_t  *control;

    if (zone->source.len == 0) {
        return;
    }

    control = zone->state->control;

    ngx_bloom_source_read(control, zone->source_id, &before);

    /* a gap may have been stored without a record since the replay began */

    if (bloom_position_cmp(before.gap, place->gap) > 0) {
        place->gap = before.gap;
        place->lost = before.lost;
    }

    /* or the source may have said that nothing is due */

    place->due = before.due;

    others = __atomic_load_n(&control->instances, __ATOMIC_SEQ_CST)
             & ~((uint64_t) 1 << zone->state->instance);

    if (others == 0) {
        ngx_bloom_place_alone(place);

    } else if (bloom_position_cmp(start, before.position) > 0
               && bloom_position_cmp(start, place->gap) > 0)
    {
        place->gap = start;
        place->lost = 0;
    }

    ngx_bloom_source_store(control, place);
}


ngx_int_t
ngx_bloom_place_start(ngx_bloom_zone_t *zone, bloom_reached_t *place,
    bloom_position_t start)
{
    bloom_reached_t       before;
    ngx_bloom_control_t  *control;

    if (zone->source.len == 0) {
        return NGX_OK;
    }

    control = zone->state->control;

    if (zone->state->alone) {

        ngx_bloom_place_alone(place);
        ngx_bloom_source_store(control, place);
        return NGX_OK;
    }

    if (ngx_bloom_zone_lock(zone, 1000) != NGX_OK) {
        ngx_set_errno(NGX_EBUSY);
        return NGX_ERROR;
    }

    ngx_bloom_source_read(control, zone->source_id, &before);

    if (bloom_position_cmp(start, before.position) > 0) {
        before.position = start;
        bloom_digest_restart(&before.digest, start);

        if (bloom_position_cmp(start, before.gap) > 0) {
            before.gap = start;
            before.lost = 0;
        }

        ngx_bloom_source_store(control, &before);
    }

    ngx_bloom_zone_unlock(zone);

    return NGX_OK;
}


void
ngx_bloom_place_clear(ngx_bloom_zone_t *zone, bloom_position_t start)
{
    bloom_reached_t       place, before;
    ngx_bloom_control_t  *control;

    if (zone->source.len == 0) {
        return;
    }

    control = zone->state->control;

    ngx_bloom_source_read(control, zone->source_id, &before);
    ngx_memzero(&place, sizeof(bloom_reached_t));

    place.source = zone->source_id;
    place.position = start;
    place.due = ngx_bloom_source_due(&before) ? before.due : before.position;
    bloom_digest_restart(&place.digest, start);

    ngx_bloom_source_store(control, &place);
    ngx_bloom_source_unsign(control);
}


ngx_int_t
ngx_bloom_place_save(ngx_bloom_zone_t *zone, ngx_uint_t checkpoint,
    bloom_source_t *source)
{
    uint64_t              required;
    bloom_image_t        *image;
    bloom_position_t      based;
    bloom_reached_t       place;
    ngx_bloom_control_t  *control;

    if (zone->source.len == 0) {
        return NGX_OK;
    }

    control = zone->state->control;

    if (ngx_bloom_zone_lock(zone, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        return NGX_AGAIN;
    }

    required = __atomic_load_n(zone->required, __ATOMIC_SEQ_CST);
    ngx_bloom_source_read(control, zone->source_id, &place);

    ngx_bloom_zone_unlock(zone);

    /* another instance may have applied changes that this one has not */

    if (required > __atomic_load_n(&zone->sh->applied, __ATOMIC_SEQ_CST)) {
        return NGX_AGAIN;
    }

    image = &zone->sh->bank[zone->sh->generation & 1].image;
    based = ngx_bloom_zone_position(zone, image);

    ngx_memzero(source, sizeof(bloom_source_t));

    source->len = (uint32_t) zone->source.len;
    ngx_memcpy(source->name, zone->source.data, zone->source.len);

    source->position = checkpoint || bloom_position_cmp(place.gap, based) <= 0
                       ? place.position : based;
    return NGX_OK;
}
