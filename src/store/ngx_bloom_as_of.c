/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An image that is not among the last two accepted ones counts as loaded for
 * the first time now.
 */

#include "ngx_bloom_as_of.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_io.h"


static uint64_t ngx_bloom_as_of_first(ngx_bloom_state_t *state,
    const bloom_image_t *image);
static uint64_t ngx_bloom_as_of_loaded(ngx_bloom_state_t *state,
    const bloom_image_t *image);
static uint64_t ngx_bloom_as_of_until(uint64_t as_of, uint64_t loaded);
static uint64_t ngx_bloom_as_of_stated(const bloom_image_t *image);
static uint64_t ngx_bloom_as_of_covered(ngx_bloom_state_t *state,
    uint64_t complete);


/* Returns the time at which an image was first loaded: now, if it is not one of
 * the accepted images. */
static uint64_t
ngx_bloom_as_of_first(ngx_bloom_state_t *state, const bloom_image_t *image)
{
    uint64_t  loaded;

    loaded = ngx_bloom_as_of_loaded(state, image);

    return loaded != 0 ? loaded : ngx_bloom_time();
}


/* Returns the same, but 0 for an image that is not one of the accepted ones. */
static uint64_t
ngx_bloom_as_of_loaded(ngx_bloom_state_t *state, const bloom_image_t *image)
{
    ngx_uint_t    i;
    bloom_base_t  base;

    if (state == NULL) {
        return 0;
    }

    ngx_bloom_base_file_get(state, &base);

    for (i = 0; i < 2; i++) {
        if (ngx_memcmp(base.accepted[i].build_id, image->build_id,
                       BLOOM_IMAGE_BUILD_ID_LEN)
            == 0)
        {
            return base.accepted[i].loaded;
        }
    }

    return 0;
}


ngx_uint_t
ngx_bloom_as_of_ahead(ngx_bloom_state_t *state, const bloom_image_t *image)
{
    return image->as_of > ngx_bloom_time() + NGX_BLOOM_CLOCKS_DIFFER
           && ngx_bloom_as_of_loaded(state, image) == 0;
}


/* Returns the time that an image states: its as_of or when it was created. */
static uint64_t
ngx_bloom_as_of_stated(const bloom_image_t *image)
{
    return image->as_of != 0 ? image->as_of : image->created;
}


uint64_t
ngx_bloom_as_of_truth(ngx_bloom_state_t *state, const bloom_image_t *image)
{
    return ngx_min(ngx_bloom_as_of_stated(image),
                   ngx_bloom_as_of_first(state, image));
}


uint64_t
ngx_bloom_as_of_complete(ngx_bloom_state_t *state, bloom_image_t *image)
{
    return ngx_bloom_as_of_until(image->as_of,
                                 ngx_bloom_as_of_first(state, image));
}


/* Returns the time up to which an image is complete that was first loaded at
 * the time `loaded`; 0 if its as_of cannot be true. */
static uint64_t
ngx_bloom_as_of_until(uint64_t as_of, uint64_t loaded)
{
    return as_of > loaded + NGX_BLOOM_CLOCKS_DIFFER
           ? 0 : ngx_min(as_of, loaded);
}


/* Returns the time before which an image covers all records that is complete up
 * to the time `complete`.  If keys once expired, the clock that they had may
 * have been behind. */
static uint64_t
ngx_bloom_as_of_covered(ngx_bloom_state_t *state, uint64_t complete)
{
    uint64_t  differ;

    differ = NGX_BLOOM_CLOCKS_DIFFER;

    if (state != NULL) {
        differ += __atomic_load_n(&state->control->clock.behind,
                                  __ATOMIC_RELAXED);
    }

    return complete > differ ? complete - differ : 0;
}


uint64_t
ngx_bloom_as_of_cut(ngx_bloom_state_t *state, bloom_image_t *image)
{
    if (state != NULL && state->expire != 0) {
        return ngx_bloom_state_expired(state);
    }

    return ngx_bloom_as_of_covered(state,
                                   ngx_bloom_as_of_complete(state, image));
}


uint64_t
ngx_bloom_as_of_both(ngx_bloom_state_t *state, const bloom_base_t *base,
    bloom_source_t *source)
{
    uint64_t                 cut, complete;
    ngx_uint_t               i;
    const bloom_accepted_t  *accepted;

    cut = UINT64_MAX;

    for (i = 0; i < 2; i++) {
        accepted = &base->accepted[i];

        if (accepted->loaded == 0) {
            continue;                    /* there is none */
        }

        complete = ngx_bloom_as_of_until(accepted->as_of, accepted->loaded);

        if (cut == UINT64_MAX
            || bloom_position_cmp(accepted->position, source->position) < 0)
        {
            source->position = accepted->position;
        }

        cut = ngx_min(cut, ngx_bloom_as_of_covered(state, complete));
    }

    return cut == UINT64_MAX ? 0 : cut;
}


ngx_uint_t
ngx_bloom_as_of_too_old(ngx_bloom_state_t *state, bloom_image_t *image)
{
    bloom_base_t  base;

    if (state == NULL || state->expire != 0) {
        return 0;
    }

    ngx_bloom_base_file_get(state, &base);

    return base.dropped != 0
           && ngx_bloom_as_of_covered(state,
                                      ngx_bloom_as_of_complete(state, image))
              <= base.dropped;
}


void
ngx_bloom_as_of_serve(ngx_bloom_state_t *state, bloom_image_t *image)
{
    uint64_t  as_of;

    /* the image of a zone that expires has no keys; it may be ahead of the
     * zone's clock, which starts after it was made */

    as_of = state->expire != 0 ? 0 : ngx_bloom_as_of_truth(state, image);

    __atomic_store_n(&state->control->instance[state->instance].as_of, as_of,
                     __ATOMIC_SEQ_CST);
}


uint64_t
ngx_bloom_as_of_now(ngx_bloom_state_t *state, uint64_t last)
{
    uint64_t              now, time, as_of, instances;
    ngx_uint_t            i;
    ngx_bloom_control_t  *control;

    control = state->control;
    now = ngx_bloom_state_time(state);

    /* times never go back with the clock, even if it was far ahead once: a
     * record is never covered by what covers an earlier one only */

    time = ngx_max(now, last);

    instances = __atomic_load_n(&control->instances, __ATOMIC_SEQ_CST);

    for (i = 0; instances != 0; i++, instances >>= 1) {

        if (instances & 1) {
            as_of = __atomic_load_n(&control->instance[i].as_of,
                                    __ATOMIC_SEQ_CST);
            time = ngx_max(time, as_of + 1);
        }
    }

    return time;
}
