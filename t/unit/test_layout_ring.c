/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests compare rings of slices with as many filters, one for each slice,
 * of the simple implementation.
 */

#include "slow_layout.h"

#define KEYS  700


/* A ring, and its slow implementation. */
typedef struct {
    bloom_geometry_t   g;
    uint64_t          *plain;
    uint64_t          *atomic;
    uint64_t          *many;
    uint8_t           *slow;
    bloom_hash_t       hash[KEYS];       /* those that were added */
    unsigned           n;
} ring_t;


static bloom_geometry_t
slice_of(const bloom_geometry_t *g)
{
    bloom_geometry_t  slice;

    slice = *g;
    slice.slices = 0;

    return slice;
}


/* Returns the slices that have the key. */
static uint64_t
slow_slices(const ring_t *ring, bloom_hash_t hash)
{
    uint32_t          i;
    uint64_t          slices;
    bloom_geometry_t  slice;

    slice = slice_of(&ring->g);

    for (slices = 0, i = 0; i < ring->g.slices; i++) {
        slices |= (uint64_t) slow_test(&slice,
                                       ring->slow + i * (slice.bits / 8), hash)
                  << i;
    }

    return slices & ring->g.live;
}


/* Adds a key in all ways, to the open slice.  Returns the number of bits it
 * changed. */
static int
add(ring_t *ring, bloom_hash_t hash)
{
    int               changed;
    size_t            begin;
    uint32_t          i, k;
    uint64_t          before, bits[BLOOM_K_MAX], n, which;
    places_t          places;
    bloom_geometry_t  slice;

    slice = slice_of(&ring->g);
    begin = (size_t) (ring->g.open * (slice.bits / 8));
    n = bloom_geometry_bytes(&ring->g) / 8;

    places = slow_places(&slice, hash);
    k = bloom_layout_bits(&ring->g, hash, bits);
    assert_int_equal(k, slice.k);

    for (i = 0; i < k; i++) {
        assert_int_equal(bits[i], 8 * begin + places.bit[i]);
    }

    before = bloom_layout_bits_set(ring->atomic, n);
    changed = slow_add(&slice, ring->slow + begin, hash);

    assert_int_equal(bloom_layout_add_batch(&ring->g, ring->plain, &hash, 1, 0,
                                            &which) != 0, changed);
    assert_int_equal(which, changed);
    assert_int_equal(bloom_layout_add(&ring->g, ring->plain, hash), 0);
    changed = bloom_layout_add_atomic(&ring->g, ring->atomic, hash);
    assert_int_equal(bloom_layout_bits_set(ring->atomic, n) - before, changed);

    ring->hash[ring->n++] = hash;

    return changed;
}


static int
ring_has(const void *data, bloom_hash_t hash)
{
    uint64_t       slices;
    const ring_t  *ring = data;

    slices = slow_slices(ring, hash);
    assert_true(bloom_layout_slices(&ring->g, ring->plain, hash) == slices);

    return slices != 0;
}


/* Keys go to one slice after the other, and then to any; slices are live at
 * random, and neighbours, and all, and none. */
static void
check_ring(uint32_t slices, uint32_t k, uint32_t lines, uint64_t n_lines)
{
    size_t    bytes;
    uint64_t  all, seed;
    uint32_t  i, round;
    ring_t    ring;

    memset(&ring, 0, sizeof(ring));
    ring.g.layout = BLOOM_LAYOUT_BLOCKED;
    ring.g.k = k;
    ring.g.lines = lines;
    ring.g.bits = n_lines * BLOOM_LINE_BITS;
    ring.g.slices = (uint16_t) slices;

    ring.plain = filter_new(&ring.g);
    ring.atomic = filter_new(&ring.g);
    ring.many = filter_new(&ring.g);
    bytes = (size_t) bloom_geometry_bytes(&ring.g);
    assert_int_equal(bytes, slices * n_lines * 64);
    ring.slow = unit_zeros(bytes);

    all = ((uint64_t) 1 << slices) - 1;
    seed = slices * 1000 + k * 10 + lines;

    for (round = 0; round < 20; round++) {
        ring.g.open = round < slices ? round
                                     : (uint32_t) unit_random(&seed) % slices;

        switch (round % 5) {
        case 0:
            ring.g.live = all;
            break;
        case 1:
            ring.g.live = all >> (slices / 2);
            break;
        case 2:
            ring.g.live = round < 10 ? 0 : (uint64_t) 1 << ring.g.open;
            break;
        default:
            ring.g.live = unit_random(&seed) & all;
        }

        assert_true(bloom_geometry_valid(&ring.g));

        for (i = 0; i < 30; i++) {

            /* each fifth key has been added before, mostly to other slices */

            (void) add(&ring, ring.n % 5 == 4
                              ? ring.hash[unit_random(&seed) % ring.n]
                              : random_hash(&seed));

            /* a key just added is present if the open slice is live */

            assert_int_equal(bloom_layout_slices(&ring.g, ring.plain,
                                                 ring.hash[ring.n - 1])
                             >> ring.g.open & 1,
                             ring.g.live >> ring.g.open & 1);
        }

        assert_int_equal(add(&ring, ring.hash[ring.n - 1]), 0);
        bloom_layout_add_many(&ring.g, ring.many, &ring.hash[ring.n - 31], 31);

        assert_memory_equal(ring.plain, ring.slow, bytes);
        assert_memory_equal(ring.atomic, ring.slow, bytes);
        assert_memory_equal(ring.many, ring.slow, bytes);

        check_lookups(&ring.g, ring.plain, ring.hash, ring.n, seed, ring_has,
                      &ring);
    }

    free(ring.slow);
    filter_free(&ring.g, ring.plain);
    filter_free(&ring.g, ring.atomic);
    filter_free(&ring.g, ring.many);
}


/* One to three lines, with one to eight bits in each. */
TEST(keys_go_to_the_open_slice_and_are_found_in_live_ones)
{
    uint32_t  i, lines, per_line;

    static const uint32_t  slices[] = { 1, 2, 5, 17, 33, 56 };

    for (i = 0; i < array_len(slices); i++) {
        for (lines = 1; lines <= BLOOM_LINES_MAX; lines++) {
            for (per_line = 1; per_line <= 8; per_line *= 2) {
                check_ring(slices[i], lines * per_line, lines,
                           lines + (per_line == 8 ? 4 : 20));
            }
        }
    }
}


/* A lookup of a key whose lines another slice has, but not together. */
TEST(lines_of_different_slices_are_not_taken_together)
{
    uint32_t           i, j;
    uint64_t           seed, bits[BLOOM_K_MAX], *words;
    bloom_hash_t       hash;
    bloom_geometry_t   g;

    memset(&g, 0, sizeof(g));
    g.layout = BLOOM_LAYOUT_BLOCKED;
    g.k = 16;
    g.lines = 2;
    g.bits = 10 * BLOOM_LINE_BITS;
    g.slices = 2;
    g.live = 3;

    words = filter_new(&g);
    seed = 99;

    for (i = 0; i < 100; i++) {
        memset(words, 0, (size_t) bloom_geometry_bytes(&g));

        do {
            hash = random_hash(&seed);
            bloom_layout_bits(&g, hash, bits);
        } while (bits[0] / 512 == bits[8] / 512);

        /* the first line in slice 0, the second in slice 1 */

        for (j = 0; j < 16; j++) {
            g.open = j / 8;
            bloom_layout_bits(&g, hash, bits);
            ((uint8_t *) words)[bits[j] / 8] |= (uint8_t) (1 << bits[j] % 8);
        }

        assert_int_equal(bloom_layout_test(&g, words, hash), 0);
        assert_true(bloom_layout_test_batch(&g, words, &hash, 1) == 0);

        /* and the second in slice 0, too */

        g.open = 0;
        bloom_layout_bits(&g, hash, bits);
        assert_int_equal(bloom_layout_add_atomic(&g, words, hash), 8);
        assert_true(bloom_layout_slices(&g, words, hash) == 1);
    }

    filter_free(&g, words);
}


TEST(a_filter_without_slices_has_a_key_in_none)
{
    uint64_t          seed, *words;
    bloom_hash_t      hash;
    bloom_geometry_t  g;

    memset(&g, 0, sizeof(g));
    assert_int_equal(bloom_geometry_size(&g, BLOOM_LAYOUT_BLOCKED, 100, 0.01),
                     0);
    words = filter_new(&g);
    seed = 1;
    hash = random_hash(&seed);
    bloom_layout_add(&g, words, hash);

    g.live = 1;
    assert_true(bloom_layout_slices(&g, words, hash) == 0);
    assert_int_equal(bloom_layout_test(&g, words, hash), 1);

    filter_free(&g, words);
}
