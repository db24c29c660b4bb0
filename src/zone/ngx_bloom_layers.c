/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Planning layers takes milliseconds, so it is done when an image is loaded.
 * To begin one is a single atomic operation.
 */

#include "ngx_bloom_layers.h"
#include "bloom_growth.h"
#include "bloom_ring.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_ring.h"


static uint64_t ngx_bloom_layers_beside(const bloom_image_t *image,
    ngx_uint_t removals);
static uint32_t ngx_bloom_layers_wanted(const bloom_image_t *image,
    uint64_t max_keys);
static bloom_image_t ngx_bloom_layers_grown(const bloom_image_t *image,
    uint64_t max_keys);
static ngx_int_t ngx_bloom_layers_extend(bloom_image_t *image,
    uint32_t layers);
static void ngx_bloom_layers_choose(ngx_bloom_zone_t *zone,
    const bloom_image_t *image, bloom_image_t *planned);
static void ngx_bloom_layers_grow(ngx_bloom_zone_bits_t *bits, uint32_t layers);


/* Returns the bytes that a bank needs for an image, beside the room for removed
 * keys that it has for any image. */
static uint64_t
ngx_bloom_layers_beside(const bloom_image_t *image, ngx_uint_t removals)
{
    return ngx_bloom_zone_bank_needs(image, removals)
           - ngx_bloom_zone_removals_size(removals);
}


uint64_t
ngx_bloom_layers_need(const bloom_image_t *image, uint64_t max_keys,
    ngx_uint_t removals)
{
    bloom_image_t  grown;

    grown = ngx_bloom_layers_grown(image, max_keys);

    return ngx_bloom_layers_beside(&grown, removals);
}


uint64_t
ngx_bloom_layers_need_any(const bloom_image_t *image, uint64_t max_keys,
    ngx_uint_t removals)
{
    uint64_t  base, layers;

    base = ngx_bloom_layers_beside(image, removals);
    layers = ngx_bloom_layers_need(image, max_keys, removals) - base;

    /*
     * The sum of what the parts have room for is at least max_keys, and less
     * than twice as much.  Fewer layers have higher rates and take less.
     */

    return base + base / 8 + layers * 2 + layers / 4;
}


uint64_t
ngx_bloom_layers_need_fuse(uint64_t size)
{
    /* the layer has room for an eighth of the keys, and takes less than a fifth
     * of the base; that of a small base may take more, but less than the header
     * and the table of the file */

    return size + size / 5;
}


ngx_uint_t
ngx_bloom_layers_extensible(const bloom_image_t *image)
{
    bloom_image_t  grown;

    grown = ngx_bloom_layers_grown(image, 0);

    return image->geometry.layout != BLOOM_LAYOUT_FUSE
           || grown.geometry.layers != 0;
}


uint64_t
ngx_bloom_layers_capacity(const bloom_image_t *image, uint64_t max_keys)
{
    bloom_image_t  grown;

    grown = ngx_bloom_layers_grown(image, max_keys);

    return bloom_image_capacity(&grown);
}


/* Returns an image with all layers that max_keys wants; with fewer if the
 * filter would be too large: see ngx_bloom_layers_choose(). */
static bloom_image_t
ngx_bloom_layers_grown(const bloom_image_t *image, uint64_t max_keys)
{
    bloom_image_t  grown;

    grown = *image;

    (void) ngx_bloom_layers_extend(&grown,
                                   ngx_bloom_layers_wanted(image, max_keys));

    return grown;
}


/* Returns how many layers an image has when it has room for max_keys; 1 at
 * least if no key can be added to its base. */
static uint32_t
ngx_bloom_layers_wanted(const bloom_image_t *image, uint64_t max_keys)
{
    uint32_t  layers;

    layers = bloom_growth_layers(&image->geometry, image->capacity,
                                 max_keys);
    layers = ngx_min(layers, BLOOM_LAYERS_MAX);

    return bloom_geometry_is_foreign(image->geometry.layout)
           || image->geometry.slices != 0
           ? 0 : ngx_max(layers, image->geometry.layers);
}


static ngx_int_t
ngx_bloom_layers_extend(bloom_image_t *image, uint32_t layers)
{
    return bloom_growth_extend(&image->geometry, image->capacity, layers) == 0
           ? NGX_OK : NGX_ERROR;
}


/* Describes an image with as many layers as "max_keys" wants and a bank has
 * room for. */
static void
ngx_bloom_layers_choose(ngx_bloom_zone_t *zone, const bloom_image_t *image,
    bloom_image_t *planned)
{
    uint32_t  layers;

    for (layers = ngx_bloom_layers_wanted(image, zone->max_keys);
         layers >= image->geometry.layers;
         layers--)
    {
        *planned = *image;

        if (layers == image->geometry.layers
            || (ngx_bloom_layers_extend(planned, layers) == NGX_OK
                && ngx_bloom_layers_beside(planned, zone->removals_room)
                   <= zone->image_room))
        {
            break;
        }
    }
}


ngx_uint_t
ngx_bloom_layers_fit(ngx_bloom_zone_t *zone, const bloom_image_t *base,
    const bloom_image_t *saved)
{
    bloom_image_t  planned;

    ngx_bloom_layers_choose(zone, base, &planned);

    if (saved->geometry.layers > planned.geometry.layers) {
        return 0;
    }

    planned.geometry.layers = saved->geometry.layers;

    return bloom_geometry_equal(&planned.geometry, &saved->geometry);
}


void
ngx_bloom_layers_plan(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    const bloom_image_t *image, uint64_t generation)
{
    bloom_image_t      *planned;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    planned = &sh->bank[bank].image;

    ngx_bloom_layers_choose(zone, image, planned);

    ngx_memzero(sh->bank[bank].bits_set, sizeof(sh->bank[bank].bits_set));

    __atomic_store_n(&sh->bank[bank].grown,
                     ngx_bloom_zone_grown(generation, image->geometry.layers),
                     __ATOMIC_SEQ_CST);

    if (image->geometry.slices != 0) {
        ngx_bloom_ring_plan(zone, bank, generation);
        return;
    }

    if (bloom_image_capacity(planned) < zone->max_keys) {
        ngx_log_error(NGX_LOG_WARN, zone->shm_zone->shm.log, 0,
                      "bloom zone \"%V\" can grow to %uL keys only, and "
                      "\"max_keys\" wants %uL: %s", &zone->name,
                      bloom_image_capacity(planned), zone->max_keys,
                      bloom_geometry_is_foreign(image->geometry.layout)
                      ? "imported images do not grow"
                      : "make the zone larger, or build its image with a "
                        "greater \"-n\"");
    }
}


void
ngx_bloom_layers_count_words(const bloom_geometry_t *g, const uint64_t *words,
    uint64_t from, uint64_t n, uint64_t bits_set[BLOOM_PARTS_MAX])
{
    uint32_t  part;
    uint64_t  end, some;

    for (part = 0; n != 0; part++) {

        end = (part >= ngx_min(g->layers, BLOOM_LAYERS_MAX))
              ? from + n
              : bloom_growth_offset(g, part + 1) / sizeof(uint64_t);

        if (end <= from) {
            continue;
        }

        some = ngx_min(end - from, n);

        bits_set[part] += bloom_layout_bits_set(words, some);
        words += some;
        from += some;
        n -= some;
    }
}


void
ngx_bloom_layers_image(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    bloom_image_t *image)
{
    uint64_t  grown;

    *image = zone->sh->bank[bank].image;

    grown = __atomic_load_n(&zone->sh->bank[bank].grown, __ATOMIC_SEQ_CST);

    image->geometry.layers = ngx_min(ngx_bloom_zone_layers(grown),
                                     image->geometry.layers);
    image->geometry.layers = ngx_min(image->geometry.layers,
                                     BLOOM_LAYERS_MAX);

    ngx_bloom_zone_follow(&image->geometry, &grown,
                          image->geometry.slices != 0
                          ? &zone->sh->bank[bank].ring : NULL,
                          0, ngx_min(image->geometry.slices, BLOOM_PARTS_MAX));
}


uint64_t
ngx_bloom_layers_bits_set(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    uint64_t bits_set[BLOOM_PARTS_MAX])
{
    uint64_t    sum;
    ngx_uint_t  i;

    for (sum = 0, i = 0; i < BLOOM_PARTS_MAX; i++) {
        bits_set[i] = __atomic_load_n(&zone->sh->bank[bank].bits_set[i],
                                      __ATOMIC_RELAXED);
        sum += bits_set[i];
    }

    return sum;
}


void
ngx_bloom_layers_put(ngx_bloom_zone_bits_t *bits, const bloom_hash_t *hash,
    ngx_uint_t n, u_char *changed)
{
    uint32_t    part;
    uint64_t    bits_set, which;
    ngx_uint_t  i;

    if (bits->ring != NULL) {
        ngx_bloom_ring_put(bits, hash, n, changed);
        return;
    }

    ngx_bloom_zone_follow(bits->geometry, bits->grown, NULL, bits->generation,
                          bits->room);

    if (bits->geometry->layout == BLOOM_LAYOUT_FUSE
        && bits->geometry->layers == 0)
    {
        /* the base takes no keys; if this generation serves no longer, no layer
         * begins, no key is added, and the caller starts again */

        ngx_bloom_layers_grow(bits, 0);
    }

    part = bits->geometry->layers;
    bits_set = bloom_layout_add_batch(bits->geometry, bits->words, hash, n,
                                      !bits->alone, &which);

    for (i = 0; i < n; i++) {
        changed[i] = (which >> i) & 1;
    }

    if (bits_set == 0) {
        return;
    }

    bits_set += __atomic_fetch_add(&bits->bits_set[part], bits_set,
                                   __ATOMIC_RELAXED);

    if (part < bits->room
        && bloom_growth_is_full(bits->geometry, bits->capacity, bits_set))
    {
        ngx_bloom_layers_grow(bits, part);
    }
}


/* Begins the next layer of a filter with `layers` layers, unless another
 * process has begun it or another generation serves. */
static void
ngx_bloom_layers_grow(ngx_bloom_zone_bits_t *bits, uint32_t layers)
{
    uint64_t  grown;

    if (layers >= bits->room) {
        return;
    }

    grown = ngx_bloom_zone_grown(bits->generation, layers);

    ngx_bloom_fault("grow");

    (void) __atomic_compare_exchange_n(bits->grown, &grown, grown + 1, 0,
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);

    ngx_bloom_fault("grown");

    ngx_bloom_zone_follow(bits->geometry, bits->grown, NULL, bits->generation,
                          bits->room);
}


uint64_t
ngx_bloom_layers_items(const bloom_image_t *image,
    const uint64_t bits_set[BLOOM_PARTS_MAX])
{
    return image->geometry.slices != 0
           ? bloom_ring_items(&image->geometry, bits_set)
           : bloom_growth_items(&image->geometry, bits_set);
}


double
ngx_bloom_layers_fpr(const bloom_image_t *image,
    const uint64_t bits_set[BLOOM_PARTS_MAX])
{
    uint32_t          i;
    uint64_t          items[BLOOM_PARTS_MAX];
    bloom_geometry_t  slice;

    if (image->geometry.slices == 0) {
        return bloom_image_fpr(image, ngx_bloom_layers_items(image, bits_set));
    }

    slice = bloom_geometry_part(&image->geometry, 0);

    for (i = 0; i < BLOOM_PARTS_MAX; i++) {
        items[i] = bloom_geometry_items(&slice, bits_set[i]);
    }

    return bloom_ring_fpr(&image->geometry, items);
}


ngx_uint_t
ngx_bloom_layers_overfull(ngx_bloom_zone_t *zone, uint64_t *items)
{
    double              error;
    uint64_t            generation, capacity;
    uint64_t            bits_set[BLOOM_PARTS_MAX];
    ngx_uint_t          bank;
    bloom_image_t       image;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;
    *items = 0;

    do {
        generation = __atomic_load_n(&sh->generation, __ATOMIC_ACQUIRE);

        if (generation == 0) {
            return 0;
        }

        bank = generation & 1;
        capacity = bloom_image_capacity(&sh->bank[bank].image);
        ngx_bloom_layers_image(zone, bank, &image);
        (void) ngx_bloom_layers_bits_set(zone, bank, bits_set);

        __atomic_thread_fence(__ATOMIC_ACQUIRE);

    } while (__atomic_load_n(&sh->generation, __ATOMIC_RELAXED) != generation);

    *items = ngx_bloom_layers_items(&image, bits_set);

    if (image.geometry.slices != 0) {
        capacity = ngx_max(capacity, zone->max_keys);
        error = bloom_ring_items_error(&image.geometry, bits_set);

    } else {
        error = bloom_growth_items_error(&image.geometry, bits_set);
    }

    return *items > capacity + (uint64_t) (3 * error)
           && ngx_bloom_layers_fpr(&image, bits_set)
              > bloom_image_promised(&image);
}
