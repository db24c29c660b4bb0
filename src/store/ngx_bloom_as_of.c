/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The time of an image's first load is kept in a small table in the control
 * page; a new entry replaces the oldest one.
 */

#include "ngx_bloom_as_of.h"
#include "ngx_bloom_io.h"


/* How long to wait for the lock `append`, ms. */
#define NGX_BLOOM_AS_OF_WAIT  1000


static uint64_t ngx_bloom_as_of_first(ngx_bloom_state_t *state,
    const bloom_image_t *image);
static uint64_t ngx_bloom_as_of_stated(const bloom_image_t *image);
static uint64_t ngx_bloom_as_of_covered(ngx_bloom_state_t *state,
    uint64_t complete);


/* Returns the time at which an image was first loaded; 0 if the image is not
 * remembered. */
static uint64_t
ngx_bloom_as_of_first(ngx_bloom_state_t *state, const bloom_image_t *image)
{
    uint64_t              loaded;
    ngx_uint_t            i;
    ngx_bloom_control_t  *control;

    if (state == NULL) {
        return 0;
    }

    control = state->control;

    for (i = 0; i < NGX_BLOOM_EARLY; i++) {
        loaded = __atomic_load_n(&control->early[i].loaded, __ATOMIC_ACQUIRE);

        if (loaded != 0
            && ngx_memcmp(control->early[i].build_id, image->build_id,
                          BLOOM_IMAGE_BUILD_ID_LEN)
               == 0)
        {
            return loaded;
        }
    }

    return 0;
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
    uint64_t  loaded;

    loaded = ngx_bloom_as_of_first(state, image);

    if (loaded == 0) {
        loaded = ngx_bloom_time();
    }

    return ngx_min(ngx_bloom_as_of_stated(image), loaded);
}


uint64_t
ngx_bloom_as_of_complete(ngx_bloom_state_t *state, bloom_image_t *image)
{
    uint64_t  loaded;

    loaded = ngx_bloom_as_of_first(state, image);

    return loaded != 0 ? ngx_min(image->as_of, loaded) : image->as_of;
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
    uint64_t  loaded;

    if (state != NULL && state->expire != 0) {
        return ngx_bloom_state_expired(state);
    }

    loaded = ngx_bloom_as_of_first(state, image);

    if (loaded == 0) {
        loaded = ngx_bloom_time();
    }

    if (image->as_of > loaded + NGX_BLOOM_CLOCKS_DIFFER) {
        return 0;
    }

    return ngx_bloom_as_of_covered(state, ngx_min(image->as_of, loaded));
}


ngx_uint_t
ngx_bloom_as_of_too_old(ngx_bloom_state_t *state, bloom_image_t *image)
{
    uint64_t  dropped;

    dropped = state ? __atomic_load_n(&state->control->dropped,
                                      __ATOMIC_ACQUIRE)
                    : 0;

    return dropped != 0 && state->expire == 0
           && ngx_bloom_as_of_covered(state,
                                      ngx_bloom_as_of_complete(state, image))
              <= dropped;
}


ngx_int_t
ngx_bloom_as_of_remember(ngx_bloom_state_t *state, bloom_image_t *image,
    uint64_t loaded)
{
    uint64_t              known;
    ngx_uint_t            i, oldest;
    ngx_bloom_control_t  *control;

    control = state->control;
    known = ngx_max(control->dropped, ngx_bloom_state_end(state).time);

    /* if the clock is behind the journal, it is wrong: remember nothing */

    if (ngx_bloom_as_of_stated(image) <= loaded
        || loaded + NGX_BLOOM_CLOCKS_DIFFER < known
        || ngx_bloom_as_of_first(state, image) != 0)
    {
        return NGX_OK;
    }

    if (ngx_bloom_lock(&control->append, NGX_BLOOM_AS_OF_WAIT) != NGX_OK) {
        ngx_set_errno(NGX_EBUSY);
        return NGX_ERROR;
    }

    oldest = 0;

    for (i = 1; i < NGX_BLOOM_EARLY; i++) {
        if (control->early[i].loaded < control->early[oldest].loaded) {
            oldest = i;
        }
    }

    /* a process that reads the entry now finds a complete one, or none */

    __atomic_store_n(&control->early[oldest].loaded, 0, __ATOMIC_SEQ_CST);

    ngx_memcpy(control->early[oldest].build_id, image->build_id,
               BLOOM_IMAGE_BUILD_ID_LEN);

    __atomic_store_n(&control->early[oldest].loaded, loaded, __ATOMIC_SEQ_CST);

    ngx_bloom_unlock(&control->append);

    if (ngx_bloom_io_sync(state->fd) != NGX_OK) {
        __atomic_store_n(&control->early[oldest].loaded, 0, __ATOMIC_SEQ_CST);
        return NGX_ERROR;
    }

    return NGX_OK;
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

    /* times do not go back with the clock, unless the last one was too far
     * ahead: otherwise they would stay there until the clock catches up */

    time = (last <= now + NGX_BLOOM_CLOCKS_DIFFER) ? ngx_max(now, last) : now;

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
