/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The filter of a zone with "max_keys" grows: when its last part is full, the
 * next layer begins, and further keys are added to it (bloom_growth.h).
 *
 * No key can be added to a fuse base.  So such a filter always has room for one
 * layer, with "max_keys" for more, and the first layer begins when the first
 * key is added: until then a lookup reads the base alone.
 *
 * When an image is loaded, all layers that the bank has room for are planned:
 * the geometry in sh->bank[].image describes them, and it does not change while
 * the generation serves.  How many of them are in use says sh->bank[].grown,
 * together with the generation: a process that was stopped for long cannot
 * begin a layer of a later generation.  The memory of a layer is not touched
 * before it is in use.
 */

#ifndef _NGX_BLOOM_LAYERS_H_INCLUDED_
#define _NGX_BLOOM_LAYERS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Returns the bytes that a bank needs for an image and for the layers with
 * which it has room for `max_keys` keys, or for its own layers if max_keys is
 * 0; for one layer at least if its base is fuse.  The image may be imported: it
 * gets no layers.  The room for `removals` removed keys does not count, and
 * neither do the removed keys of the image that fit there.
 */
uint64_t ngx_bloom_layers_need(const bloom_image_t *image, uint64_t max_keys,
    ngx_uint_t removals);

/* Returns 0 if the image has a fuse base and would be too large with a layer:
 * then no key could be added.  Returns 1 for any other image. */
ngx_uint_t ngx_bloom_layers_extensible(const bloom_image_t *image);

/* Returns how many keys an image has room for, with its own layers and those
 * that it gets in a zone with `max_keys`, if the zone has room for them. */
uint64_t ngx_bloom_layers_capacity(const bloom_image_t *image,
    uint64_t max_keys);

/* Returns the bytes that suffice for any image of the same rate and size whose
 * capacity is another one. */
uint64_t ngx_bloom_layers_need_any(const bloom_image_t *image,
    uint64_t max_keys, ngx_uint_t removals);

/* Returns the bytes that a bank needs at most for a fuse image whose file has
 * `size` bytes, and for one layer, if the image has the usual room and no
 * exceptions. */
uint64_t ngx_bloom_layers_need_fuse(uint64_t size);

/*
 * Returns 1 if a checkpoint has the layers, or the first layers, with which its
 * base would grow now; 0 if "max_keys" or the room in a bank were different
 * when it was written: its layers and those that follow would have more than
 * the promised rate.
 */
ngx_uint_t ngx_bloom_layers_fit(ngx_bloom_zone_t *zone,
    const bloom_image_t *base, const bloom_image_t *saved);

/*
 * Describes the image that a load puts into a bank, and plans its layers, as
 * many as "max_keys" wants and the bank has room for.  `generation` is the one
 * in which the bank is going to serve.
 */
void ngx_bloom_layers_plan(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    const bloom_image_t *image, uint64_t generation);

/* Adds to bits_set the bits of n words of a filter, for each part; the first is
 * word `from` of the filter. */
void ngx_bloom_layers_count_words(const bloom_geometry_t *g,
    const uint64_t *words, uint64_t from, uint64_t n,
    uint64_t bits_set[BLOOM_PARTS_MAX]);

/* Copies the image of a bank, with the layers that are in use.  The caller
 * ensures that the bank's image does not change, or checks the generation
 * afterwards. */
void ngx_bloom_layers_image(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    bloom_image_t *image);

/* Copies how many bits are set in each part of a bank.  Returns their sum. */
uint64_t ngx_bloom_layers_bits_set(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    uint64_t bits_set[BLOOM_PARTS_MAX]);

/* Returns the estimated number of keys of a filter whose parts have so many
 * bits set, and the false-positive rate that it has with them.  If keys
 * expire, a key counts once in each live slice that has it. */
uint64_t ngx_bloom_layers_items(const bloom_image_t *image,
    const uint64_t bits_set[BLOOM_PARTS_MAX]);
double ngx_bloom_layers_fpr(const bloom_image_t *image,
    const uint64_t bits_set[BLOOM_PARTS_MAX]);

/*
 * Adds n keys, NGX_BLOOM_ZONE_GROUP at most, whose lines have been requested
 * from memory.  changed[i] becomes 1 if key i was absent, else 0.  Begins the
 * first layer of a fuse base before, and the next layer if the last one is
 * full.
 */
void ngx_bloom_layers_put(ngx_bloom_zone_bits_t *bits, const bloom_hash_t *hash,
    ngx_uint_t n, u_char *changed);

/*
 * Returns 1 if the filter that serves is over-full: its estimated number of
 * keys exceeds what it has room for (if keys expire: what may be added within a
 * life) by more than three standard errors of the estimate, and its
 * false-positive rate exceeds the promised one.  Stores the estimate in *items,
 * or 0 if nothing serves.
 */
ngx_uint_t ngx_bloom_layers_overfull(ngx_bloom_zone_t *zone, uint64_t *items);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_LAYERS_H_INCLUDED_ */
