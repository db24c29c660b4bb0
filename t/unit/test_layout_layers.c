/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests compare filters that grow by layers with a simple implementation
 * of them.
 */

#include "slow_layout.h"

#define GROWN  (40 * (1 + BLOOM_LAYERS_MAX))


/* A filter grows by a layer after each forty keys. */
static void
check_growth(const bloom_geometry_t *whole)
{
    int                changed;
    size_t             bytes;
    uint8_t           *slow;
    uint32_t           i, j;
    uint64_t           seed, begin, bits[BLOOM_K_MAX], *plain, *atomic, *many;
    uint64_t           which, want, sum, *batch;
    places_t           places;
    bloom_hash_t       hash[GROWN];
    bloom_geometry_t   now, last;

    plain = filter_new(whole);
    atomic = filter_new(whole);
    many = filter_new(whole);
    batch = filter_new(whole);
    bytes = (size_t) bloom_geometry_bytes(whole);
    slow = unit_zeros(bytes);

    now = *whole;
    seed = whole->k;

    for (now.layers = 0; now.layers <= whole->layers; now.layers++) {

        want = 0;
        sum = 0;

        for (i = 40u * now.layers; i < 40u * (now.layers + 1u); i++) {

            /* each fifth key is there already, if only in a part before */

            hash[i] = i % 5 == 4 ? hash[unit_random(&seed) % i]
                      : random_hash(&seed);

            bloom_layout_prefetch(&now, plain, hash[i]);
            assert_int_equal(bloom_layout_test(&now, plain, hash[i]),
                             slow_test(&now, slow, hash[i]));

            changed = slow_add(&now, slow, hash[i]);
            assert_int_equal(bloom_layout_add(&now, plain, hash[i]), changed);
            begin = (uint64_t) bloom_layout_add_atomic(&now, atomic, hash[i]);
            assert_int_equal(begin != 0, changed);
            want |= (uint64_t) changed << i % 40;
            sum += begin;
            assert_int_equal(bloom_layout_test(&now, plain, hash[i]), 1);

            last = slow_part(&now, now.layers, &begin);
            places = slow_places(&last, hash[i]);
            assert_int_equal(bloom_layout_bits(&now, hash[i], bits), last.k);

            for (j = 0; j < last.k; j++) {
                assert_int_equal(bits[j], 8 * begin + places.bit[j]);
            }
        }

        bloom_layout_add_many(&now, many, hash + 40 * now.layers, 40);

        assert_int_equal(bloom_layout_add_batch(&now, batch,
                                                hash + 40 * now.layers, 40,
                                                now.layers % 2, &which), sum);
        assert_true(which == want);

        assert_memory_equal(plain, slow, bytes);
        assert_memory_equal(atomic, slow, bytes);
        assert_memory_equal(many, slow, bytes);
        assert_memory_equal(batch, slow, bytes);

        check_lookups(&now, plain, hash, i, 23, slow_has,
                      &(slow_t) { &now, slow });
    }

    free(slow);
    filter_free(whole, plain);
    filter_free(whole, atomic);
    filter_free(whole, many);
    filter_free(whole, batch);
}


/* Bases and layers of several k and numbers of lines, and one to 16 layers. */
TEST(keys_go_to_the_last_layer_and_are_found_in_any)
{
    uint32_t          i, lines, layers;
    bloom_geometry_t  g;

    static const struct {
        uint32_t  layout, k, lines;
    } bases[] = {
        { BLOOM_LAYOUT_CLASSIC, 7, 0 },
        { BLOOM_LAYOUT_BLOCKED, 8, 1 },
        { BLOOM_LAYOUT_BLOCKED, 4, 1 },
        { BLOOM_LAYOUT_BLOCKED, 16, 2 },
        { BLOOM_LAYOUT_BLOCKED, 12, 3 },
    };

    for (i = 0; i < array_len(bases); i++) {
        for (layers = 1; layers <= BLOOM_LAYERS_MAX; layers += 3) {
            memset(&g, 0, sizeof(g));
            g.layout = bases[i].layout;
            g.k = bases[i].k;
            g.lines = bases[i].lines;
            g.bits = 3 * BLOOM_LINE_BITS;

            for (g.layers = 0; g.layers < layers; g.layers++) {
                lines = 1 + (g.layers + i) % BLOOM_LINES_MAX;

                g.layer[g.layers].lines = lines;
                g.layer[g.layers].k = lines << ((g.layers + 3 - i % 2) % 4);
                g.layer[g.layers].bits = (2 + 3 * g.layers) * BLOOM_LINE_BITS;
            }

            assert_true(bloom_geometry_valid(&g));
            check_growth(&g);
        }
    }
}
