/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Slices that are not live have no keys, whatever is written of them.
 */

#include "ngx_bloom_ring_image.h"


void
ngx_bloom_ring_image_load(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    const bloom_image_ring_t *slices)
{
    size_t             size, done;
    u_char            *p;
    uint32_t           i, n;
    uint64_t           all, generation;
    ngx_bloom_ring_t  *ring;

    n = zone->sh->bank[bank].image.geometry.slices;
    size = zone->sh->bank[bank].image.geometry.bits / 8;
    all = ngx_bloom_ring_all(n);
    ring = &zone->sh->bank[bank].ring;
    generation = ngx_bloom_ring_generation(ring->turn);

    ngx_memzero(ring, sizeof(ngx_bloom_ring_t));

    ring->live = slices->live;
    ring->full = slices->full;
    ring->final = slices->live & ~ngx_bloom_ring_bit(slices->open);

    for (i = 0; i < n; i++) {
        p = ngx_bloom_zone_bank(zone, bank) + i * size;

        ring->opened[i] = slices->opened[i];
        ring->closed[i] = slices->closed[i];

        if (slices->live & ngx_bloom_ring_bit(i)) {
            zone->sh->bank[bank].bits_set[i] =
                bloom_layout_bits_set((uint64_t *) p, size / sizeof(uint64_t));
            continue;
        }

        /* it may have keys that were added while it was written */

        for (done = 0; done < size; /* void */ ) {
            done += ngx_bloom_ring_zero(p + done, size - done);
        }
    }

    ring->turn = ngx_bloom_ring_word(generation, all & ~slices->live,
                                     slices->open);
}


void
ngx_bloom_ring_image_save(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    bloom_image_ring_t *slices)
{
    uint32_t           i, n;
    uint64_t           now, bit;
    ngx_bloom_ring_t   ring;

    n = zone->sh->bank[bank].image.geometry.slices;

    ngx_memzero(slices, sizeof(bloom_image_ring_t));
    ngx_bloom_ring_copy(zone, bank, &ring);

    now = ngx_bloom_clock_now(zone->clock);

    slices->open = ngx_bloom_ring_open(ring.turn) % n;
    slices->live = (ring.live | ngx_bloom_ring_bit(slices->open))
                   & ngx_bloom_ring_all(n);
    slices->full = ring.full & slices->live
                   & ~ngx_bloom_ring_bit(slices->open);

    for (i = 0; i < n; i++) {
        bit = slices->live & ngx_bloom_ring_bit(i);

        if (bit == 0) {
            continue;
        }

        slices->opened[i] = ring.opened[i];

        /* one that is not stamped yet was closed just now */

        if (i != slices->open) {
            slices->closed[i] = (ring.final & bit)
                                ? ngx_max(ring.closed[i], ring.opened[i])
                                : ngx_max(ring.closed[i],
                                          ngx_max(now, ring.opened[i]));
        }
    }
}
