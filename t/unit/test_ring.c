/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check the dimensions of rings of slices: how many slices they
 * have, their limits, and that the rate of a full ring is as promised and as
 * computed.
 */

#include "unit.h"

#include "bloom_census.h"
#include "bloom_growth.h"
#include "bloom_layout.h"
#include "bloom_ring.h"

#define ASKED  400000


/* Returns the bits of a slice: those of a filter, rounded up to an odd number
 * of lines. */
static uint64_t
odd(const bloom_geometry_t *g)
{
    return (g->bits / 512 | 1) * 512;
}


TEST(a_ring_has_slices_for_a_life)
{
    double            rate;
    uint32_t          i, s;
    uint64_t          c, room, full;
    bloom_geometry_t  g, one;

    static const uint64_t  capacities[] = { 1, 7, 1000, 123456789 };

    for (i = 0; i < array_len(capacities); i++) {
        for (s = BLOOM_RING_SLICES_MIN; s <= BLOOM_RING_SLICES_MAX; s++) {
            c = capacities[i];
            room = (c + s - 1) / s;
            full = (c + room - 1) / room;

            /* a ring without slices in between has no more than the capacity */

            memset(&g, 0xff, sizeof(g));
            assert_int_equal(bloom_ring_size(&g, &room, c, 0.01, s, 0), 0);
            assert_int_equal(room, (c + s - 1) / s);
            assert_int_equal(g.slices, s + 1 + full);
            assert_int_equal(g.layout, BLOOM_LAYOUT_BLOCKED);
            assert_int_equal(g.layers, 0);
            assert_int_equal(g.open, 0);
            assert_true(g.live == 1);
            assert_true(bloom_geometry_valid(&g));

            assert_int_equal(bloom_geometry_size(&one, BLOOM_LAYOUT_BLOCKED,
                                                 room, 0.01 / g.slices), 0);
            assert_int_equal(g.bits, odd(&one));
            assert_int_equal(g.k, one.k);
            assert_int_equal(g.lines, one.lines);

            rate = bloom_geometry_fpr(&g, room);
            assert_true(rate * g.slices <= 0.01);
        }
    }
}


TEST(a_life_has_eight_parts_of_a_second_at_least)
{
    assert_int_equal(bloom_ring_slices(BLOOM_RING_LIFE_MIN),
                     BLOOM_RING_SLICES_MIN);
    assert_int_equal(bloom_ring_slices(2999), 2);
    assert_int_equal(bloom_ring_slices(3000), 3);
    assert_int_equal(bloom_ring_slices(7999), 7);
    assert_int_equal(bloom_ring_slices(8000), 8);
    assert_int_equal(bloom_ring_slices(86400000), 8);
    assert_int_equal(bloom_ring_slices(BLOOM_RING_LIFE_MAX), 8);
}


TEST(a_ring_has_more_slices_for_more_keys)
{
    uint32_t          s;
    uint64_t          room, most;
    bloom_geometry_t  g;

    for (s = BLOOM_RING_SLICES_MIN; s <= BLOOM_RING_SLICES_MAX; s++) {
        assert_int_equal(bloom_ring_size(&g, &room, 1000, 0.01, s, 1000), 0);

        assert_int_equal(bloom_ring_size(&g, &room, 1000, 0.01, s, 20 * room),
                         0);
        assert_int_equal(g.slices, s + 1 + 20);
        assert_int_equal(bloom_ring_size(&g, &room, 1000, 0.01, s,
                                         20 * room + 1), 0);
        assert_int_equal(g.slices, s + 1 + 21);

        most = bloom_ring_max_keys(1000, s);
        assert_int_equal(most, (BLOOM_RING_MAX - 1 - s) * room);
        assert_int_equal(bloom_ring_size(&g, &room, 1000, 0.01, s, most), 0);
        assert_int_equal(g.slices, BLOOM_RING_MAX);
        assert_int_equal(bloom_ring_size(&g, &room, 1000, 0.01, s, most + 1),
                         -1);
        assert_int_equal(bloom_ring_size(&g, &room, 1000, 0.01, s, UINT64_MAX),
                         -1);
    }
}


TEST(what_is_out_of_range_is_refused)
{
    uint64_t          room;
    bloom_geometry_t  g;

    assert_int_equal(bloom_ring_size(&g, &room, 0, 0.01, 8, 0), -1);
    assert_int_equal(bloom_ring_size(&g, &room, BLOOM_CAPACITY_MAX + 1, 0.01, 8,
                                     0), -1);
    assert_int_equal(bloom_ring_size(&g, &room, UINT64_MAX, 0.01, 8, 0), -1);
    assert_int_equal(bloom_ring_size(&g, &room, 1000, 0.01, 1, 0), -1);
    assert_int_equal(bloom_ring_size(&g, &room, 1000, 0.01,
                                     BLOOM_RING_SLICES_MAX + 1, 0), -1);
    assert_int_equal(bloom_ring_size(&g, &room, 1000, 0.01, UINT32_MAX, 0), -1);
    assert_int_equal(bloom_ring_size(&g, &room, 1000, 0.51, 8, 0), -1);
    assert_int_equal(bloom_ring_size(&g, &room, 1000, 1e-10, 8, 0), -1);
    assert_int_equal(bloom_ring_size(&g, &room, 1000, 0, 8, 0), -1);
    assert_int_equal(bloom_ring_size(&g, &room, 1000, NAN, 8, 0), -1);

    assert_int_equal(bloom_ring_max_keys(0, 8), 0);
    assert_int_equal(bloom_ring_max_keys(BLOOM_CAPACITY_MAX + 1, 8), 0);
    assert_int_equal(bloom_ring_max_keys(1000, 1), 0);
    assert_int_equal(bloom_ring_max_keys(1000, BLOOM_RING_SLICES_MAX + 1), 0);

    /* one slice is too large; one slice is not, but all together are */

    assert_int_equal(bloom_ring_size(&g, &room, BLOOM_CAPACITY_MAX, 0.01, 2, 0),
                     -1);
    assert_int_equal(bloom_ring_size(&g, &room, 400000000000, 0.01, 8, 0), -1);
    assert_int_equal(bloom_ring_size(&g, &room, 100000000000, 0.01, 8, 0), 0);
    assert_true(bloom_geometry_bytes(&g) <= BLOOM_BITS_MAX / 8);
    assert_int_equal(bloom_geometry_size(&g, BLOOM_LAYOUT_BLOCKED, 50000000000,
                                         0.01 / 17), 0);
}


/* The rate of a slice has a limit below. */
TEST(the_lowest_rates)
{
    uint64_t          room;
    bloom_geometry_t  g, one;

    assert_int_equal(bloom_ring_size(&g, &room, 1000, BLOOM_FPR_MIN, 8, 0), 0);
    assert_int_equal(bloom_geometry_size(&one, BLOOM_LAYOUT_BLOCKED, room,
                                         BLOOM_FPR_MIN), 0);
    assert_int_equal(g.bits, odd(&one));
}


TEST(slices_are_parts)
{
    uint32_t          i;
    uint64_t          room;
    bloom_geometry_t  g, slice, other;

    assert_int_equal(bloom_ring_size(&g, &room, 1000, 0.01, 8, 0), 0);
    assert_int_equal(bloom_geometry_parts(&g), 17);
    assert_int_equal(bloom_geometry_bytes(&g), 17 * g.bits / 8);
    assert_int_equal(bloom_growth_extend(&g, 1000, 1), -1);

    g.open = 3;
    g.live = 0x1f;

    for (i = 0; i < 17; i++) {
        assert_int_equal(bloom_growth_offset(&g, i), i * g.bits / 8);

        slice = bloom_geometry_part(&g, i);
        assert_int_equal(slice.slices, 0);
        assert_int_equal(slice.open, 0);
        assert_true(slice.live == 0);
        assert_int_equal(slice.layout, g.layout);
        assert_int_equal(slice.bits, g.bits);
        assert_int_equal(slice.k, g.k);
        assert_int_equal(slice.lines, g.lines);
        assert_true(bloom_geometry_valid(&slice));
    }

    assert_int_equal(bloom_growth_offset(&g, 17), bloom_geometry_bytes(&g));
    assert_true(bloom_geometry_fpr(&g, room) == bloom_geometry_fpr(&slice,
                                                                   room));

    /* state is not compared; the number of slices is */

    assert_false(bloom_geometry_equal(&g, &slice));

    other = g;
    other.open = 5;
    other.live = 0x3f;
    assert_true(bloom_geometry_equal(&g, &other));

    other.slices = 16;
    assert_false(bloom_geometry_equal(&g, &other));

    /* two slices are not a base and a layer */

    other = slice;
    other.layers = 1;
    other.layer[0].bits = other.bits;
    other.layer[0].k = other.k;
    other.layer[0].lines = other.lines;
    slice.slices = 2;
    assert_int_equal(bloom_geometry_parts(&slice),
                     bloom_geometry_parts(&other));
    assert_false(bloom_geometry_equal(&slice, &other));
    assert_false(bloom_geometry_equal(&other, &slice));

    /* any number of slices may come from memory that others write */

    g.slices = UINT16_MAX;
    assert_int_equal(bloom_geometry_bytes(&g), BLOOM_PARTS_MAX * (g.bits / 8));
}


TEST(valid_rings)
{
    uint64_t          room;
    bloom_geometry_t  g, ring;

#define with(assertion, field, value)                                        \
    g = ring;                                                                \
    g.field = value;                                                         \
    assertion(bloom_geometry_valid(&g))

    assert_int_equal(bloom_ring_size(&ring, &room, 1000, 0.01, 8, 0), 0);
    assert_true(bloom_geometry_valid(&ring));

    with(assert_true, slices, 1);
    with(assert_true, slices, 56);
    with(assert_false, slices, 57);
    with(assert_false, slices, UINT16_MAX);
    with(assert_true, open, 16);
    with(assert_false, open, 17);
    with(assert_false, open, UINT32_MAX);
    with(assert_true, live, 0);
    with(assert_true, live, 0x1ffff);
    with(assert_false, live, 0x20000);
    with(assert_false, live, UINT64_MAX);
    with(assert_false, layers, 1);
    with(assert_false, lines, 0);
    with(assert_false, lines, BLOOM_LINES_MAX + 1);
    with(assert_false, k, 3);
    with(assert_false, k, 0);
    with(assert_false, bits, 0);
    with(assert_false, bits, 513);
    with(assert_true, bits, BLOOM_BITS_MAX / 32);
    with(assert_false, bits, BLOOM_BITS_MAX / 16);
    with(assert_false, bits, (uint64_t) 1 << 63);
    with(assert_false, layout, BLOOM_LAYOUT_CLASSIC);
    with(assert_false, layout, BLOOM_LAYOUT_DOUBLE);
    with(assert_false, layout, BLOOM_LAYOUT_LINKS);

    ring.slices = 56;
    with(assert_true, live, ((uint64_t) 1 << 56) - 1);
    with(assert_false, live, (uint64_t) 1 << 56);

    /* without slices, nobody reads the state of a ring */

    ring.slices = 0;
    with(assert_true, open, 3);
    with(assert_true, live, UINT64_MAX);
}


/* Fills all slices to their room, opens them one after the other, and compares
 * the rate with the promised and the computed one. */
static void
check_full_ring(double fpr, uint32_t slices, uint64_t capacity,
    uint64_t max_keys)
{
    double            rate, computed, error;
    uint32_t          i;
    uint64_t          n, room, seed, present, *words;
    uint64_t          items[BLOOM_PARTS_MAX], bits_set[BLOOM_PARTS_MAX];
    bloom_hash_t      hash;
    bloom_census_t    census;
    bloom_geometry_t  g;

    assert_int_equal(bloom_ring_size(&g, &room, capacity, fpr, slices,
                                     max_keys), 0);
    words = unit_zeros(bloom_geometry_bytes(&g));

    memset(items, 0, sizeof(items));
    memset(bits_set, 0, sizeof(bits_set));
    seed = capacity + slices;

    for (g.open = 0; g.open < g.slices; g.open++) {
        g.live = ((uint64_t) 2 << g.open) - 1;

        while (items[g.open] < room) {
            hash.h1 = unit_random(&seed);
            hash.h2 = unit_random(&seed);
            bloom_layout_add(&g, words, hash);
            items[g.open]++;
        }

        bits_set[g.open] = bloom_layout_bits_set(
                               words + bloom_growth_offset(&g, g.open) / 8,
                               g.bits / 64);
    }

    g.open--;

    for (present = 0, i = 0; i < ASKED; i++) {
        hash.h1 = unit_random(&seed);
        hash.h2 = unit_random(&seed);
        present += (uint64_t) bloom_layout_test(&g, words, hash);
    }

    rate = (double) present / ASKED;
    computed = bloom_ring_fpr(&g, items);
    print_message("%2u slices of %llu keys: rate %.5f, computed %.5f\n",
                  (unsigned) g.slices, (unsigned long long) room, rate,
                  computed);

    assert_true(computed <= fpr);
    assert_true(computed > 0.6 * fpr || room < 500);
    assert_true(rate < fpr + 5 * sqrt(fpr / ASKED));
    assert_true(fabs(rate - computed)
                < 0.1 * computed + 5 * sqrt(computed / ASKED));

    memset(&census, 0, sizeof(census));
    bloom_census(&census, &g, words, bloom_geometry_bytes(&g) / 8);
    assert_int_equal(census.parts, g.slices);
    assert_true(fabs(rate - bloom_census_fpr(&census))
                < 5 * sqrt(computed / ASKED));

    n = bloom_ring_items(&g, bits_set);
    error = bloom_ring_items_error(&g, bits_set);
    assert_true(fabs((double) n - (double) (room * g.slices)) < 5 * error + 1);
    assert_int_equal(bloom_census_items(&census), n);
    assert_near(bloom_census_items_error(&census), error, 1e-9);

    /* half of the slices */

    g.live &= 0x5555555555555555;
    n = bloom_ring_items(&g, bits_set);
    assert_near((double) n, (double) (room * ((g.slices + 1u) / 2)), 0.1);
    assert_near(bloom_ring_fpr(&g, items), computed / 2, 0.25);
    assert_near(bloom_ring_items_error(&g, bits_set), error * sqrt(0.5), 0.2);

    g.live = 0;
    assert_int_equal(bloom_ring_items(&g, bits_set), 0);
    assert_true(bloom_ring_items_error(&g, bits_set) == 0);
    assert_true(bloom_ring_fpr(&g, items) == 0);
    assert_false(signbit(bloom_ring_fpr(&g, items)));

    free(words);
}


TEST(a_full_ring_keeps_the_rate)
{
    check_full_ring(0.01, 8, 16000, 0);
    check_full_ring(0.05, 2, 10000, 0);
    check_full_ring(0.01, BLOOM_RING_SLICES_MAX, 24000, 0);
    check_full_ring(0.02, 8, 16000, 64000);
    check_full_ring(0.3, 3, 1000, 0);
}


/* With more keys than there is room, the rate rises, but never above 1. */
TEST(a_ring_beyond_its_room)
{
    uint32_t          i;
    uint64_t          room, items[BLOOM_PARTS_MAX];
    bloom_geometry_t  g;

    assert_int_equal(bloom_ring_size(&g, &room, 1000, 0.01, 8, 0), 0);
    g.live = 0x1ffff;

    for (i = 0; i < g.slices; i++) {
        items[i] = 1000000000;
    }

    assert_near(bloom_ring_fpr(&g, items), 1, 1e-9);
}


TEST(a_slice_is_full_at_its_room)
{
    uint64_t          room, bits_set;
    bloom_geometry_t  g;

    assert_int_equal(bloom_ring_size(&g, &room, 8000, 0.01, 8, 0), 0);
    assert_int_equal(room, 1000);

    for (bits_set = 0; !bloom_ring_is_full(&g, room, bits_set); bits_set++) {
        assert_true(bloom_geometry_items(&g, bits_set) < room);
    }

    assert_int_equal(bloom_geometry_items(&g, bits_set), room);
    assert_true(bloom_ring_is_full(&g, room, g.bits));
}
