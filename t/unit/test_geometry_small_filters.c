/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests measure the rate of small classic filters, in which double
 * hashing puts a floor under the rate.  The expected rate must be at least the
 * measured one, and little more.  The numbers of items are those at which the
 * floor makes up most of the rate.
 */

#include "unit.h"

#include "bloom_layout.h"

/* There are fewer lookups with sanitizers, which make each several times
 * slower. */
#ifdef __SANITIZE_ADDRESS__
#define FILTERS  500
#else
#define FILTERS  5000
#endif

#define PROBES   20000


static bloom_hash_t
random_hash(uint64_t *seed)
{
    bloom_hash_t  hash;

    hash.h1 = unit_random(seed);
    hash.h2 = unit_random(seed);

    return hash;
}


/* Measures the rate of a filter of `items` random keys with PROBES lookups. */
static double
rate_of_one(const bloom_geometry_t *g, uint64_t *words, uint64_t items,
    uint64_t *seed)
{
    int       hits, i;
    uint64_t  n;

    memset(words, 0, bloom_geometry_bytes(g));

    for (n = 0; n < items; n++) {
        bloom_layout_add(g, words, random_hash(seed));
    }

    for (hits = 0, i = 0; i < PROBES; i++) {
        hits += bloom_layout_test(g, words, random_hash(seed));
    }

    return (double) hits / PROBES;
}


static const struct {
    uint32_t  k;
    uint64_t  bits;
    uint64_t  items;
} filters[] = {
    {  5,  512, 10 },
    {  7, 1024, 19 },
    {  7, 2560, 41 },
    {  9, 1024, 38 },
    { 13,  512, 27 },
    { 20,  512, 18 },
};


TEST(the_expected_rate_covers_double_hashing)
{
    int               f;
    double            rate, sum, squares, mean, error, expected;
    size_t            i;
    uint64_t          seed, words[2560 / 64];
    bloom_geometry_t  g;

    for (i = 0; i < array_len(filters); i++) {
        memset(&g, 0, sizeof(g));
        g.layout = BLOOM_LAYOUT_CLASSIC;
        g.k = filters[i].k;
        g.lines = 0;
        g.bits = filters[i].bits;

        seed = i;
        sum = 0;
        squares = 0;

        for (f = 0; f < FILTERS; f++) {
            rate = rate_of_one(&g, words, filters[i].items, &seed);
            sum += rate;
            squares += rate * rate;
        }

        mean = sum / FILTERS;
        error = sqrt((squares / FILTERS - mean * mean) / FILTERS);
        expected = bloom_geometry_fpr(&g, filters[i].items);

        print_message("k %2u, %4.0f bits, %2.0f items: expected %.3e, measured "
                      "%.3e +- %.1e\n", g.k, (double) g.bits,
                      (double) filters[i].items, expected, mean, error);

        assert_true(mean <= expected + 3 * error);
        assert_true(mean >= 0.7 * expected - 3 * error);
    }
}
