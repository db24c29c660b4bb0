/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_adapt.h"
#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_rate.h"


_Static_assert(NGX_BLOOM_ADAPT_AFTER + NGX_BLOOM_ADAPT_LATE
               + NGX_BLOOM_ADAPT_ADDS <= NGX_BLOOM_RECENT_MS,
               "an addition that matters is remembered");

_Static_assert((int) NGX_BLOOM_COUNTER_FEEDBACK_FAST
               - (int) NGX_BLOOM_COUNTER_FEEDBACK_EXCEPTED
               == (int) NGX_BLOOM_ADAPT_FAST,
               "each outcome has a counter");


static ngx_uint_t ngx_bloom_adapt_possible(ngx_bloom_zone_t *zone,
    const ngx_bloom_adapt_mark_t *mark, ngx_msec_t after);
static ngx_uint_t ngx_bloom_adapt_late(const ngx_bloom_adapt_mark_t *mark);
static ngx_bloom_adapt_e ngx_bloom_adapt_put(ngx_bloom_zone_t *zone,
    ngx_str_t *key, const ngx_bloom_adapt_mark_t *mark);
static ngx_uint_t ngx_bloom_adapt_fits(ngx_bloom_zone_t *zone,
    const bloom_exceptions_t *set, size_t len);
static ngx_int_t ngx_bloom_adapt_catch_up(ngx_bloom_zone_t *zone,
    uint64_t position);


void
ngx_bloom_adapt_mark(ngx_bloom_zone_t *zone, ngx_bloom_adapt_mark_t *mark)
{
    mark->generation = __atomic_load_n(&zone->sh->generation,
                                       __ATOMIC_SEQ_CST);
    mark->time = ngx_current_msec;
}


ngx_bloom_adapt_e
ngx_bloom_adapt(ngx_bloom_zone_t *zone, ngx_str_t *key,
    const ngx_bloom_adapt_mark_t *mark, ngx_uint_t interval, ngx_msec_t after)
{
    ngx_bloom_adapt_e      rc;
    ngx_bloom_zone_bits_t  bits;

    if (ngx_bloom_zone_serving(zone, &bits) != mark->generation
        || !ngx_bloom_adapt_possible(zone, mark, after))
    {
        rc = NGX_BLOOM_ADAPT_DOUBT;

    } else if (!ngx_bloom_adapt_fits(zone, &bits.exceptions, key->len)) {
        rc = NGX_BLOOM_ADAPT_FULL;

    } else if (!ngx_bloom_rate_takes(&zone->sh->adapted, interval)) {
        rc = NGX_BLOOM_ADAPT_FAST;

    } else if (ngx_bloom_zone_lock(zone, 0) != NGX_OK) {

        /* a worker never waits: the key can be excepted when it is asked for
         * again */

        rc = NGX_BLOOM_ADAPT_DOUBT;

    } else {

        rc = ngx_bloom_adapt_put(zone, key, mark);

        ngx_bloom_zone_unlock(zone);
    }

    ngx_bloom_count(zone, NGX_BLOOM_COUNTER_FEEDBACK_EXCEPTED + rc, 1);

    return rc;
}


/* Returns 1 if the additions that matter are remembered, else 0. */
static ngx_uint_t
ngx_bloom_adapt_possible(ngx_bloom_zone_t *zone,
    const ngx_bloom_adapt_mark_t *mark, ngx_msec_t after)
{
    uint64_t  since;

    since = ngx_bloom_recent_since(&zone->sh->recent, mark->generation);

    return since != 0
           && (ngx_msec_int_t) (mark->time - since - after) >= 0
           && !ngx_bloom_adapt_late(mark);
}


static ngx_uint_t
ngx_bloom_adapt_late(const ngx_bloom_adapt_mark_t *mark)
{
    return ngx_current_msec - mark->time >= NGX_BLOOM_ADAPT_LATE;
}


/* Returns 1 if a key of `len` bytes fits into the share of excepted keys. */
static ngx_uint_t
ngx_bloom_adapt_fits(ngx_bloom_zone_t *zone, const bloom_exceptions_t *set,
    size_t len)
{
    uint64_t  cells;

    cells = bloom_exceptions_cells_most(zone->removals,
                                        (uint64_t) zone->removals
                                        * BLOOM_EXCEPTION_KEY_USUAL);

    return bloom_exceptions_feedback(set)
           < zone->removals / NGX_BLOOM_ADAPT_SHARE
           && bloom_exceptions_feedback_cells(set) + bloom_exceptions_cells(len)
              <= cells / NGX_BLOOM_ADAPT_SHARE;
}


/* Makes the key an excepted one.  The caller holds the lock of the zone. */
static ngx_bloom_adapt_e
ngx_bloom_adapt_put(ngx_bloom_zone_t *zone, ngx_str_t *key,
    const ngx_bloom_adapt_mark_t *mark)
{
    int                    rc;
    bloom_hash_t           hash;
    ngx_uint_t             doubt;
    bloom_exception_t      exception;
    ngx_bloom_zone_bits_t  bits;

    exception.kinds = 0;
    exception.time = ngx_bloom_zone_time(zone);
    exception.position = 0;
    exception.key.data = key->data;
    exception.key.len = key->len;

    if (ngx_bloom_zone_serving(zone, &bits) != mark->generation
        || ngx_bloom_zone_canonical(bits.form, &exception.key) != NULL)
    {
        return NGX_BLOOM_ADAPT_DOUBT;
    }

    hash = bloom_hash(bits.hasher, exception.key.data, exception.key.len);

    if (!bloom_layout_test(bits.geometry, bits.words, hash)) {
        return NGX_BLOOM_ADAPT_DOUBT;    /* another expression was present */
    }

    /* other workers may have excepted keys just now */

    if (!ngx_bloom_adapt_fits(zone, &bits.exceptions, exception.key.len)) {
        return NGX_BLOOM_ADAPT_FULL;
    }

    rc = bloom_exceptions_put(&bits.exceptions, &exception);

    if (rc == -1) {
        return NGX_BLOOM_ADAPT_FULL;
    }

    ngx_bloom_fault("adapt");

    __atomic_thread_fence(__ATOMIC_SEQ_CST);

    doubt = ngx_bloom_recent_has(&zone->sh->recent, bits.hasher, hash);

    /* the memory has forgotten nothing that matters, even if this process was
     * stopped for long */

    ngx_time_update();

    if (doubt || ngx_bloom_adapt_late(mark)) {

        if (rc == 1) {
            (void) bloom_exceptions_drop(&bits.exceptions, exception.key.data,
                                         exception.key.len,
                                         BLOOM_EXCEPTION_KINDS, UINT64_MAX);
        }

        return NGX_BLOOM_ADAPT_DOUBT;
    }

    return bloom_exceptions_confirm(&bits.exceptions, exception.key.data,
                                    exception.key.len, BLOOM_EXCEPTION_FEEDBACK)
           ? NGX_BLOOM_ADAPT_EXCEPTED : NGX_BLOOM_ADAPT_DOUBT;
}


uint64_t
ngx_bloom_adapt_count(ngx_bloom_zone_t *zone, uint64_t *limit)
{
    ngx_bloom_zone_bits_t  bits;

    *limit = zone->removals / NGX_BLOOM_ADAPT_SHARE;

    return ngx_bloom_zone_serving(zone, &bits) == 0
           ? 0 : bloom_exceptions_feedback(&bits.exceptions);
}


void
ngx_bloom_adapt_keep(ngx_bloom_zone_t *zone, const bloom_image_t *image,
    ngx_bloom_zone_bits_t *bits, uint64_t position)
{
    uint64_t               cursor;
    ngx_uint_t             bank;
    bloom_exception_t      exception;
    ngx_bloom_zone_bits_t  serving;

    static u_char          buf[BLOOM_KEY_MAX];

    bank = zone->sh->generation & 1;

    if (zone->sh->generation == 0
        || ngx_memcmp(image->build_id, zone->sh->bank[bank].image.build_id,
                      BLOOM_IMAGE_BUILD_ID_LEN)
           != 0)
    {
        return;
    }

    ngx_bloom_zone_bits(zone, bank, &serving);

    /*
     * An addition that has been replayed already may not be in the generation
     * that serves yet, and then it has not ended its excepted key.
     */

    if (bloom_exceptions_feedback(&serving.exceptions) == 0
        || (zone->state != NULL
            && ngx_bloom_adapt_catch_up(zone, position) != NGX_OK))
    {
        return;
    }

    ngx_bloom_fault("keep");

    cursor = 0;

    while (bloom_exceptions_next(&serving.exceptions, &cursor, &exception,
                                 buf))
    {
        if (exception.kinds & BLOOM_EXCEPTION_FEEDBACK) {
            exception.kinds = BLOOM_EXCEPTION_FEEDBACK;
            exception.position = 0;

            (void) bloom_exceptions_put(&bits->exceptions, &exception);
        }
    }
}


/* Sees to it that the generation that serves has the journal up to `position`.
 * Returns NGX_OK, or NGX_ERROR if it does not get there. */
static ngx_int_t
ngx_bloom_adapt_catch_up(ngx_bloom_zone_t *zone, uint64_t position)
{
    uint64_t            applied;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (ngx_bloom_lock(&sh->applying, NGX_BLOOM_APPLYING_WAIT) != NGX_OK) {
        return NGX_ERROR;
    }

    do {
        applied = sh->applied;

        if (applied < position) {
            (void) ngx_bloom_catch_up(zone);
        }

    } while (sh->applied < position && sh->applied != applied);

    ngx_bloom_unlock(&sh->applying);

    return sh->applied >= position ? NGX_OK : NGX_ERROR;
}
