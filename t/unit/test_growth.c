/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check how a filter grows by layers: their room and their rates,
 * and that the computed rate and number of keys are those of a filter that
 * grows.
 */

#include "unit.h"

#include "bloom_census.h"
#include "bloom_growth.h"
#include "bloom_layout.h"

#define CAPACITY  2000
#define RATE      0.01
#define LAYERS    4
#define ASKED     400000


static bloom_geometry_t
base_of(uint32_t layout, uint64_t capacity, double fpr)
{
    bloom_geometry_t  g;

    memset(&g, 0, sizeof(g));
    assert_int_equal(bloom_geometry_size(&g, layout, capacity, fpr), 0);

    return g;
}


TEST(each_layer_has_twice_the_room)
{
    uint32_t          layers;
    uint64_t          sum;
    bloom_geometry_t  g;

    memset(&g, 0, sizeof(g));
    g.layout = BLOOM_LAYOUT_BLOCKED;

    for (sum = 0, layers = 0; layers <= BLOOM_LAYERS_MAX; layers++) {
        sum += (uint64_t) 7 << layers;
        assert_int_equal(bloom_growth_capacity(&g, 7, layers), sum);
        assert_int_equal(bloom_growth_layers(&g, 7, sum), layers);
        assert_int_equal(bloom_growth_layers(&g, 7, sum + 1), layers + 1);
    }

    assert_int_equal(sum, 7 * BLOOM_GROWTH_MAX);
    assert_int_equal(bloom_growth_layers(&g, 7, 1), 0);

    /* out of range */

    assert_true(bloom_growth_capacity(&g, BLOOM_CAPACITY_MAX,
                                      BLOOM_LAYERS_MAX)
                == BLOOM_CAPACITY_MAX * BLOOM_GROWTH_MAX);
    assert_true(bloom_growth_capacity(&g, BLOOM_CAPACITY_MAX + 1, 0)
                == UINT64_MAX);
    assert_true(bloom_growth_capacity(&g, 7, BLOOM_LAYERS_MAX + 1)
                == UINT64_MAX);
    assert_int_equal(bloom_growth_layers(&g, 7, UINT64_MAX),
                     BLOOM_LAYERS_MAX + 1);
}


/* All layers together have the base's rate, and each a share in proportion to
 * its keys. */
TEST(layers_have_the_rate_of_the_base_together)
{
    size_t            c, p;
    double            fpr, rate, sum, share;
    uint32_t          i, layers, layout;
    bloom_geometry_t  g, part, alone, before;

    static const uint64_t  capacities[] = { 1000, 123456, 10000000 };
    static const double    rates[] = { 0.1, 0.001, 1e-6 };

    for (c = 0; c < array_len(capacities); c++) {
        for (p = 0; p < array_len(rates); p++) {
            memset(&alone, 0, sizeof(alone));
            layout = c == 0 ? BLOOM_LAYOUT_CLASSIC : BLOOM_LAYOUT_BLOCKED;

            for (layers = 1; layers <= 8; layers++) {
                g = base_of(layout, capacities[c], rates[p]);
                before = g;
                fpr = bloom_geometry_fpr(&g, capacities[c]);

                assert_int_equal(bloom_growth_extend(&g, capacities[c],
                                                     layers), 0);
                assert_int_equal(g.layers, layers);
                assert_true(bloom_geometry_valid(&g));
                assert_int_equal(bloom_geometry_parts(&g), layers + 1);

                part = bloom_geometry_part(&g, 0);
                assert_true(bloom_geometry_equal(&part, &before));

                for (sum = 0, i = 1; i <= layers; i++) {
                    part = bloom_geometry_part(&g, i);
                    rate = bloom_geometry_fpr(&part, capacities[c] << i);
                    share = fmax(fpr * pow(2, i) / (pow(2, layers + 1) - 2),
                                 BLOOM_FPR_MIN);

                    assert_int_equal(part.layout, BLOOM_LAYOUT_BLOCKED);
                    assert_true(rate <= share);
                    assert_int_equal(bloom_geometry_size(&alone,
                                                         BLOOM_LAYOUT_BLOCKED,
                                                         capacities[c] << i,
                                                         share), 0);
                    assert_true(bloom_geometry_equal(&part, &alone));
                    sum += rate;
                }

                assert_true(sum <= fpr * (1 + 1e-9)
                            || fpr * 2 / (pow(2, layers + 1) - 2)
                               < BLOOM_FPR_MIN);

                /* nothing is left to add */

                before = g;
                assert_int_equal(bloom_growth_extend(&g, capacities[c],
                                                     layers), 0);
                assert_int_equal(bloom_growth_extend(&g, capacities[c], 0), 0);
                assert_memory_equal(&g, &before, sizeof(g));

                /* a further layer changes none before it */

                assert_int_equal(bloom_growth_extend(&g, capacities[c],
                                                     layers + 1), 0);
                assert_int_equal(g.layers, layers + 1);
                g.layers = layers;
                assert_true(bloom_geometry_equal(&g, &before));
            }
        }
    }
}


TEST(what_cannot_grow_is_refused)
{
    bloom_geometry_t  g;

    g = base_of(BLOOM_LAYOUT_BLOCKED, 1000, 0.01);
    assert_int_equal(bloom_growth_extend(&g, BLOOM_CAPACITY_MAX + 1, 1), -1);
    assert_int_equal(bloom_growth_extend(&g, UINT64_MAX, 1), -1);

    g.layout = BLOOM_LAYOUT_DOUBLE;
    assert_int_equal(bloom_growth_extend(&g, 1000, 1), -1);

    /* one layer is too large; the sum of two layers is */

    g = base_of(BLOOM_LAYOUT_BLOCKED, 500000000000, 0.01);
    assert_int_equal(bloom_growth_extend(&g, 500000000000, 1), -1);

    g = base_of(BLOOM_LAYOUT_BLOCKED, 150000000000, 0.01);
    assert_int_equal(bloom_growth_extend(&g, 150000000000, 1), 0);
    g = base_of(BLOOM_LAYOUT_BLOCKED, 150000000000, 0.01);
    assert_int_equal(bloom_growth_extend(&g, 150000000000, 2), -1);
}


TEST(a_part_begins_where_the_one_before_ends)
{
    uint32_t          i;
    uint64_t          at;
    bloom_geometry_t  g, part;

    g = base_of(BLOOM_LAYOUT_CLASSIC, 1000, 0.01);
    assert_int_equal(bloom_growth_offset(&g, 0), 0);
    assert_int_equal(bloom_growth_offset(&g, 1), g.bits / 8);
    assert_int_equal(bloom_growth_extend(&g, 1000, 5), 0);

    for (at = 0, i = 0; i <= g.layers; i++) {
        assert_int_equal(bloom_growth_offset(&g, i), at);
        part = bloom_geometry_part(&g, i);
        at += part.bits / 8;
    }

    assert_int_equal(bloom_growth_offset(&g, i), at);
    assert_int_equal(bloom_geometry_bytes(&g), at);
}


/* Fills a filter to 1, 2, 4, 8 and 16 times its capacity. */
static void
check_growing_filter(uint32_t layout)
{
    double            fpr, rate, error, items;
    uint32_t          i, times;
    uint64_t          n, in_part, present, seed, asked, *words;
    uint64_t          bits_set[1 + LAYERS];
    bloom_hash_t      hash;
    bloom_census_t    census;
    bloom_geometry_t  g, now, part;

    g = base_of(layout, CAPACITY, RATE / 2);
    assert_int_equal(bloom_growth_extend(&g, CAPACITY, LAYERS), 0);

    words = unit_zeros(bloom_geometry_bytes(&g));

    now = g;
    now.layers = 0;
    n = 0;
    in_part = 0;
    seed = 4711;

    for (times = 1; times <= 16; times *= 2) {

        while (n < (uint64_t) times * CAPACITY) {

            if (in_part == (uint64_t) CAPACITY << now.layers) {
                now.layers++;
                in_part = 0;
            }

            hash.h1 = unit_random(&seed);
            hash.h2 = unit_random(&seed);

            if (bloom_layout_add(&now, words, hash)) {
                in_part++;
                n++;
            }
        }

        assert_true(bloom_growth_capacity(&now, CAPACITY, now.layers) >= n);

        for (asked = times, present = 0, i = 0; i < ASKED; i++) {
            hash.h1 = unit_random(&asked);
            hash.h2 = unit_random(&asked);
            present += (uint64_t) bloom_layout_test(&now, words, hash);
        }

        fpr = bloom_growth_fpr(&now, CAPACITY, n);
        rate = (double) present / ASKED;
        print_message("%2u times the capacity: rate %.5f, computed %.5f\n",
                      (unsigned) times, rate, fpr);

        assert_true(fpr <= RATE);
        assert_true(rate < RATE + 5 * sqrt(RATE / ASKED));

        /* the rates of single filters of that size differ by some per cent */

        assert_true(fabs(rate - fpr) < 0.1 * fpr + 5 * sqrt(fpr / ASKED));

        memset(&census, 0, sizeof(census));
        bloom_census(&census, &now, words, bloom_geometry_bytes(&now) / 8);
        rate = bloom_census_fpr(&census);
        assert_int_equal(census.parts, now.layers + 1);
        assert_true(fabs((double) present / ASKED - rate)
                    < 5 * sqrt(rate / ASKED));

        for (i = 0; i <= now.layers; i++) {
            part = bloom_geometry_part(&now, i);
            bits_set[i] = bloom_layout_bits_set(
                              words + bloom_growth_offset(&now, i) / 8,
                              part.bits / 64);
        }

        items = (double) bloom_growth_items(&now, bits_set);
        error = bloom_growth_items_error(&now, bits_set);
        assert_true(fabs(items - (double) n) < 5 * error + 1);
        assert_int_equal(bloom_census_items(&census), (uint64_t) items);
        assert_near(bloom_growth_items_error_at(&now, CAPACITY, n), error, 0.1);
    }

    assert_int_equal(now.layers, LAYERS);

    free(words);
}


TEST(a_growing_filter_has_the_computed_rate)
{
    check_growing_filter(BLOOM_LAYOUT_BLOCKED);
    check_growing_filter(BLOOM_LAYOUT_CLASSIC);
}


/* The union of the parts' rates, with all keys beyond the room in the last
 * part; without layers, the base's own rate. */
TEST(rates_of_parts_add_up)
{
    double            none;
    uint32_t          i;
    bloom_geometry_t  g, part;

    g = base_of(BLOOM_LAYOUT_BLOCKED, 1000, 0.01);
    assert_true(bloom_growth_fpr(&g, 1000, 5000)
                == bloom_geometry_fpr(&g, 5000));
    assert_true(bloom_growth_items_error_at(&g, 1000, 5000)
                == bloom_geometry_items_error(&g, 5000));

    assert_int_equal(bloom_growth_extend(&g, 1000, 2), 0);

    part = bloom_geometry_part(&g, 0);
    assert_near(bloom_growth_fpr(&g, 1000, 700), bloom_geometry_fpr(&part, 700),
                1e-9);

    for (none = 1, i = 0; i <= 2; i++) {
        part = bloom_geometry_part(&g, i);
        none *= 1 - bloom_geometry_fpr(&part, i < 2 ? (uint64_t) 1000 << i
                                                    : 9000 - 3000);
    }

    assert_near(bloom_growth_fpr(&g, 1000, 9000), 1 - none, 1e-9);

    /* without keys, the rate is 0, and not -0, which would be printed */

    assert_false(signbit(bloom_growth_fpr(&g, 1000, 0)));

    /* all are present, and it is no rate above 1 */

    assert_near(bloom_growth_fpr(&g, 1000, 1000000000), 1, 1e-9);
}


TEST(the_last_part_is_full_at_its_room)
{
    uint32_t          layers;
    uint64_t          bits_set;
    bloom_geometry_t  g, last;

    g = base_of(BLOOM_LAYOUT_BLOCKED, 1000, 0.01);

    for (layers = 0; layers <= 3; layers++) {
        assert_int_equal(bloom_growth_extend(&g, 1000, layers), 0);
        last = bloom_geometry_part(&g, layers);

        for (bits_set = 0; !bloom_growth_is_full(&g, 1000, bits_set);
             bits_set++)
        {
            assert_true(bits_set < last.bits);
            assert_true(bloom_geometry_items(&last, bits_set)
                        < (uint64_t) 1000 << layers);
        }

        assert_int_equal(bloom_geometry_items(&last, bits_set),
                         (uint64_t) 1000 << layers);
        assert_true(bloom_growth_is_full(&g, 1000, last.bits));
    }
}
