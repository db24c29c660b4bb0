/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests compare sizes and rates with the bounds that are promised, and
 * with sums and searches without short cuts.
 */

#include "unit.h"

#include "bloom_geometry.h"


static const uint32_t  layouts[] = {
    BLOOM_LAYOUT_BLOCKED, BLOOM_LAYOUT_CLASSIC
};

static const double  rates[] = {
    0.5, 0.25, 0.1, 1e-2, 1e-3, 9.6e-4, 1e-4, 1e-5, 1e-6, 9.6e-7, 1e-7, 1e-8,
    1e-9
};

static const uint64_t  counts[] = {
    1, 3, 99, 1000, 12345, 1000000, 3000000000
};


/* Returns a geometry that must exist. */
static bloom_geometry_t
sized(uint32_t layout, uint64_t capacity, double fpr)
{
    bloom_geometry_t  g;

    if (bloom_geometry_size(&g, layout, capacity, fpr) != 0) {
        fail_msg("no %s geometry for %g items at %g",
                 bloom_geometry_layout_name(layout), (double) capacity, fpr);
    }

    return g;
}


/* Returns bits in units of n log2(1/p), the minimum for any filter. */
TEST(sizes_stay_near_the_theoretical_minimum)
{
    size_t            i, j;
    double            least, classic, blocked;
    bloom_geometry_t  g;

    static const struct {
        double  fpr;
        double  classic;
        double  blocked;                 /* 0: not promised */
    } bounds[] = {
        { 1e-1, 1.45, 0 },
        { 1e-2, 1.45, 1.53 },
        { 1e-3, 1.45, 1.59 },
        { 1e-4, 1.45, 1.53 },
        { 1e-5, 1.45, 1.56 },
        { 1e-6, 1.45, 1.60 },
    };

    static const uint64_t  n[] = { 1000000, 100000000 };

    for (i = 0; i < array_len(bounds); i++) {
        for (j = 0; j < array_len(n); j++) {
            least = (double) n[j] * -log2(bounds[i].fpr);

            g = sized(BLOOM_LAYOUT_CLASSIC, n[j], bounds[i].fpr);
            classic = (double) g.bits / least;

            g = sized(BLOOM_LAYOUT_BLOCKED, n[j], bounds[i].fpr);
            blocked = (double) g.bits / least;

            print_message("%9.0f items at %g: classic %.4f, blocked %.4f\n",
                          (double) n[j], bounds[i].fpr, classic, blocked);

            /* a classic filter needs log2(e), or more as k is an integer */

            assert_true(classic > 1.4426);
            assert_true(classic <= bounds[i].classic);
            assert_true(blocked > classic);

            if (bounds[i].blocked != 0) {
                assert_true(blocked <= bounds[i].blocked);
            }
        }
    }
}


/*
 * With one line less, no allowed k keeps the rate.  A filter has at least as
 * many lines as a key.
 */
static void
assert_no_smaller(const bloom_geometry_t *g, uint64_t capacity, double fpr)
{
    uint32_t          last;
    bloom_geometry_t  try;

    try = *g;
    try.bits -= BLOOM_LINE_BITS;

    assert_true(g->bits >= g->lines * BLOOM_LINE_BITS);

    if (try.bits < g->lines * BLOOM_LINE_BITS) {
        return;
    }

    last = try.lines != 0 ? try.lines * BLOOM_LINE_WORDS
                          : (uint32_t) -log2(fpr) + 1;

    for (try.k = 1; try.k <= last; try.k++) {
        if (bloom_geometry_valid(&try)) {
            assert_true(bloom_geometry_fpr(&try, capacity) > fpr);
        }
    }
}


TEST(the_size_is_the_smallest_that_keeps_the_rate)
{
    size_t            l, i, j;
    bloom_geometry_t  g;

    for (l = 0; l < array_len(layouts); l++) {
        for (i = 0; i < array_len(rates); i++) {
            for (j = 0; j < array_len(counts); j++) {
                g = sized(layouts[l], counts[j], rates[i]);

                assert_int_equal(g.layout, layouts[l]);
                assert_true(bloom_geometry_valid(&g));
                assert_true(bloom_geometry_fpr(&g, counts[j]) <= rates[i]);
                assert_int_equal(bloom_geometry_bytes(&g) * 8, g.bits);

                assert_no_smaller(&g, counts[j], rates[i]);
            }
        }
    }
}


TEST(the_number_of_lines_follows_the_rate)
{
    assert_int_equal(sized(BLOOM_LAYOUT_BLOCKED, 1000, 0.5).lines, 1);
    assert_int_equal(sized(BLOOM_LAYOUT_BLOCKED, 1000, 1e-3).lines, 1);
    assert_int_equal(sized(BLOOM_LAYOUT_BLOCKED, 1000, 9.9e-4).lines, 2);
    assert_int_equal(sized(BLOOM_LAYOUT_BLOCKED, 1000, 1e-6).lines, 2);
    assert_int_equal(sized(BLOOM_LAYOUT_BLOCKED, 1000, 9.9e-7).lines, 3);
    assert_int_equal(sized(BLOOM_LAYOUT_BLOCKED, 1000, 1e-9).lines, 3);
    assert_int_equal(sized(BLOOM_LAYOUT_CLASSIC, 1000, 1e-9).lines, 0);
}


TEST(values_out_of_range_are_refused)
{
    size_t            l;
    uint32_t          x;
    bloom_geometry_t  g;

    for (l = 0; l < array_len(layouts); l++) {
        x = layouts[l];

        assert_int_equal(bloom_geometry_size(&g, x, 0, 0.01), -1);
        assert_int_equal(bloom_geometry_size(&g, x, BLOOM_CAPACITY_MAX + 1,
                                             0.5), -1);
        assert_int_equal(bloom_geometry_size(&g, x, UINT64_MAX, 0.5), -1);
        assert_int_equal(bloom_geometry_size(&g, x, 10, 0), -1);
        assert_int_equal(bloom_geometry_size(&g, x, 10, -0.1), -1);
        assert_int_equal(bloom_geometry_size(&g, x, 10, NAN), -1);
        assert_int_equal(bloom_geometry_size(&g, x, 10, INFINITY), -1);
        assert_int_equal(bloom_geometry_size(&g, x, 10, 1), -1);
        assert_int_equal(bloom_geometry_size(&g, x, 10,
                                             nextafter(BLOOM_FPR_MAX, 1)),
                         -1);
        assert_int_equal(bloom_geometry_size(&g, x, 10,
                                             nextafter(BLOOM_FPR_MIN, 0)),
                         -1);

        /* each value is in range, but the filter would be too large */

        assert_int_equal(bloom_geometry_size(&g, x, BLOOM_CAPACITY_MAX, 1e-9),
                         -1);

        assert_int_equal(bloom_geometry_size_capacity(&g, x, 0, 0.01), 0);
        assert_int_equal(bloom_geometry_size_capacity(&g, x, 63, 0.01), 0);
        assert_int_equal(bloom_geometry_size_capacity(&g, x, 1 << 20, 0), 0);
        assert_int_equal(bloom_geometry_size_capacity(&g, x, 1 << 20, NAN), 0);

        assert_true(bloom_geometry_size_fpr(&g, x, 1 << 20, 0) == 0);
        assert_true(bloom_geometry_size_fpr(&g, x, 63, 1) == 0);
        assert_true(bloom_geometry_size_fpr(&g, x, 64, 1000000) == 0);

        /* the bounds themselves are in range */

        assert_int_equal(bloom_geometry_size(&g, x, 1, BLOOM_FPR_MAX), 0);
        assert_int_equal(bloom_geometry_size(&g, x, 1, BLOOM_FPR_MIN), 0);
        assert_int_equal(bloom_geometry_size(&g, x, BLOOM_CAPACITY_MAX,
                                             BLOOM_FPR_MAX),
                         0);
    }
}


TEST(invalid_geometries_are_refused)
{
    size_t                  i;
    const bloom_geometry_t  good[] = {
        { BLOOM_LAYOUT_BLOCKED, 1, 1, 0, 0, 512 },
        { BLOOM_LAYOUT_BLOCKED, 8, 1, 0, 0, BLOOM_BITS_MAX },
        { BLOOM_LAYOUT_BLOCKED, 8, 2, 0, 0, 1024 },
        { BLOOM_LAYOUT_BLOCKED, 24, 3, 0, 0, 512 },
        { BLOOM_LAYOUT_CLASSIC, 1, 0, 0, 0, 512 },
        { BLOOM_LAYOUT_CLASSIC, 64, 0, 0, 0, BLOOM_BITS_MAX },
    };
    const bloom_geometry_t  bad[] = {
        { 0, 8, 1, 0, 0, 512 },
        { 3, 8, 1, 0, 0, 512 },
        { BLOOM_LAYOUT_BLOCKED, 0, 1, 0, 0, 512 },
        { BLOOM_LAYOUT_BLOCKED, 3, 1, 0, 0, 512 },
        { BLOOM_LAYOUT_BLOCKED, 16, 1, 0, 0, 512 },
        { BLOOM_LAYOUT_BLOCKED, 8, 0, 0, 0, 512 },
        { BLOOM_LAYOUT_BLOCKED, 32, 4, 0, 0, 512 },
        { BLOOM_LAYOUT_BLOCKED, 9, 2, 0, 0, 512 },
        { BLOOM_LAYOUT_BLOCKED, 8, 3, 0, 0, 512 },
        { BLOOM_LAYOUT_BLOCKED, 8, 1, 0, 0, 0 },
        { BLOOM_LAYOUT_BLOCKED, 8, 1, 0, 0, 513 },
        { BLOOM_LAYOUT_BLOCKED, 8, 1, 0, 0, BLOOM_BITS_MAX + 512 },
        { BLOOM_LAYOUT_BLOCKED, 8, 1, 0, 0, (uint64_t) 1 << 63 },
        { BLOOM_LAYOUT_CLASSIC, 0, 0, 0, 0, 512 },
        { BLOOM_LAYOUT_CLASSIC, 65, 0, 0, 0, 512 },
        { BLOOM_LAYOUT_CLASSIC, 7, 1, 0, 0, 512 },
        { BLOOM_LAYOUT_CLASSIC, 7, 0, 0, 0, 256 },
    };

    for (i = 0; i < array_len(good); i++) {
        assert_int_equal(bloom_geometry_valid(&good[i]), 1);
    }

    for (i = 0; i < array_len(bad); i++) {
        assert_int_equal(bloom_geometry_valid(&bad[i]), 0);
    }
}


/* More items, or a lower rate with the same number of lines, never take less
 * space. */
TEST(more_items_never_take_less_space)
{
    size_t            l, i;
    double            fpr;
    uint64_t          n;
    bloom_geometry_t  g, last;

    for (l = 0; l < array_len(layouts); l++) {
        for (i = 0; i < array_len(rates); i++) {
            last = sized(layouts[l], 1, rates[i]);

            for (n = 2; n < 4000000000; n += 1 + n / 3) {
                g = sized(layouts[l], n, rates[i]);
                assert_true(g.bits >= last.bits);
                last = g;
            }
        }

        for (n = 1; n < 4000000000; n = 1 + n * 50) {
            last = sized(layouts[l], n, BLOOM_FPR_MAX);

            for (fpr = 0.48; fpr >= BLOOM_FPR_MIN; fpr *= 0.8) {
                g = sized(layouts[l], n, fpr);
                assert_true(g.bits >= last.bits || g.lines > last.lines);
                last = g;
            }
        }
    }
}


/* The rate grows with the items, unless it is within rounding errors. */
TEST(the_rate_grows_with_the_items)
{
    size_t            l, i;
    double            rate, last;
    uint64_t          n;
    bloom_geometry_t  g;

    for (l = 0; l < array_len(layouts); l++) {
        for (i = 0; i < array_len(rates); i++) {
            g = sized(layouts[l], 10000, rates[i]);

            assert_true(bloom_geometry_fpr(&g, 0) == 0);

            for (last = 0, n = 100; n < 10000000; n += 1 + n / 9) {
                rate = bloom_geometry_fpr(&g, n);
                assert_true(rate > last * (1 - 1e-9) - 1e-17 && rate <= 1);
                last = rate;
            }

            assert_true(last > 0.99);
        }
    }
}


/* Any two of capacity, rate and memory give the third. */
TEST(memory_and_rate_give_the_capacity)
{
    size_t            l, i, j;
    uint64_t          bytes, n;
    bloom_geometry_t  g, h;

    for (l = 0; l < array_len(layouts); l++) {
        for (i = 0; i < array_len(rates); i++) {
            for (j = 0; j < array_len(counts); j++) {
                g = sized(layouts[l], counts[j], rates[i]);
                bytes = bloom_geometry_bytes(&g);

                n = bloom_geometry_size_capacity(&h, layouts[l], bytes,
                                                 rates[i]);

                assert_true(n >= counts[j]);
                assert_true(bloom_geometry_bytes(&h) <= bytes);
                assert_true(bloom_geometry_fpr(&h, n) <= rates[i]);

                g = sized(layouts[l], n, rates[i]);
                assert_true(bloom_geometry_equal(&g, &h));

                g = sized(layouts[l], n + 1, rates[i]);
                assert_true(bloom_geometry_bytes(&g) > bytes);
            }
        }
    }
}


TEST(memory_and_capacity_give_the_rate)
{
    size_t            l, i, j;
    double            fpr, less;
    uint64_t          bytes;
    bloom_geometry_t  g, h;

    for (l = 0; l < array_len(layouts); l++) {
        for (i = 0; i < array_len(rates); i++) {
            for (j = 0; j < array_len(counts); j++) {
                g = sized(layouts[l], counts[j], rates[i]);
                bytes = bloom_geometry_bytes(&g);

                fpr = bloom_geometry_size_fpr(&h, layouts[l], bytes, counts[j]);

                assert_true(fpr <= rates[i]);
                assert_true(fpr >= BLOOM_FPR_MIN);
                assert_true(bloom_geometry_bytes(&h) <= bytes);
                assert_true(bloom_geometry_fpr(&h, counts[j]) <= fpr);

                g = sized(layouts[l], counts[j], fpr);
                assert_true(bloom_geometry_equal(&g, &h));

                /* no lower rate fits, though another line may need less */

                for (less = fpr * 0.999; less >= BLOOM_FPR_MIN; less *= 0.9) {
                    g = sized(layouts[l], counts[j], less);
                    assert_true(bloom_geometry_bytes(&g) > bytes);
                }
            }
        }
    }
}


static double
log_choose(double n, double k)
{
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}


/* Returns the probability that `r` sectors all match in a line with `load`
 * keys. */
static double
line_matches(unsigned r, unsigned load)
{
    return pow(1 - pow(1 - r / 512.0, load), r);
}


/*
 * Returns the rate of a blocked filter as a sum over the loads of a key's
 * lines.  The joint load of two distinct lines is multinomial.
 */
static double
summed_rate(const bloom_geometry_t *g, unsigned items)
{
    double    q, sum, same, p;
    unsigned  r, a, b, n;

    n = items * g->lines;
    q = 512.0 / (double) g->bits;
    r = g->k / g->lines;

    for (sum = 0, same = 0, a = 0; a <= n; a++) {
        p = exp(log_choose(n, a) + a * log(q) + (n - a) * log1p(-q));

        sum += p * line_matches(r, a);
        same += p * line_matches(r, a) * line_matches(r, a);
    }

    if (g->lines == 1) {
        return sum;
    }

    for (sum = 0, a = 0; a <= n; a++) {
        for (b = 0; a + b <= n; b++) {
            p = exp(log_choose(n, a) + log_choose(n - a, b)
                    + (a + b) * log(q) + (n - a - b) * log1p(-2 * q));

            sum += p * line_matches(r, a) * line_matches(r, b);
        }
    }

    return (1 - q) * sum + q * same;
}


/*
 * For one line, the closed form equals that sum.  For two lines, it takes their
 * loads as independent.  This errs on the safe side, because a key in one line
 * is not in the other.  With a mean load of L in each of m lines, the error is
 * at most r^2 / (L m).
 */
TEST(the_blocked_rate_is_the_binomial_sum)
{
    double            closed, summed;
    uint32_t          r;
    uint64_t          lines, filled;
    bloom_geometry_t  g;

    g.layout = BLOOM_LAYOUT_BLOCKED;

    for (r = 1; r <= 8; r *= 2) {
        for (lines = 2; lines <= 10000; lines *= 3) {
            for (filled = 1; filled <= 4; filled++) {
                g.bits = lines * 512;

                g.lines = 1;
                g.k = r;
                closed = bloom_geometry_fpr(&g, lines * filled * 12);
                summed = summed_rate(&g, (unsigned) (lines * filled * 12));
                assert_near(closed, summed, 1e-8);

                if (lines < 3 || lines > 20) {
                    continue;
                }

                g.lines = 2;
                g.k = 2 * r;
                closed = bloom_geometry_fpr(&g, lines * filled * 8);
                summed = summed_rate(&g, (unsigned) (lines * filled * 8));
                assert_true(closed >= summed * (1 - 1e-9));
                assert_near(closed, summed, r * r / (16.0 * filled * lines));
            }
        }
    }
}


/* All keys are in the one line of a filter of 512 bits. */
TEST(the_rate_of_a_single_line_is_exact)
{
    unsigned          n;
    bloom_geometry_t  g = { BLOOM_LAYOUT_BLOCKED, 8, 1, 0, 0, 512 };

    for (n = 1; n <= 200; n++) {
        assert_near(bloom_geometry_fpr(&g, n), line_matches(8, n), 1e-9);
    }

    g.lines = 3;
    g.k = 24;

    for (n = 1; n <= 200; n++) {
        assert_near(bloom_geometry_fpr(&g, n),
                    pow(line_matches(8, 3 * n), 3), 1e-9);
    }
}


/* Large classic filters follow the textbook: double hashing adds little. */
TEST(the_classic_rate_follows_the_textbook)
{
    size_t            i;
    double            fpr, textbook;
    bloom_geometry_t  g;

    for (i = 0; i < array_len(rates) && rates[i] > 1e-7; i++) {
        g = sized(BLOOM_LAYOUT_CLASSIC, 100000000, rates[i]);

        fpr = bloom_geometry_fpr(&g, 100000000);
        textbook = pow(1 - exp(-1e8 * g.k / (double) g.bits), g.k);

        assert_true(fpr >= textbook * (1 - 1e-7));
        assert_near(fpr, textbook, 1e-3);

        /* k = ln 2 m/n, rounded up or down */

        assert_true(fabs(g.k - log(2) * (double) g.bits / 1e8) < 1);
    }
}


TEST(bits_set_give_the_number_of_items)
{
    size_t            l, i;
    double            n, ones, error;
    bloom_geometry_t  g;

    for (l = 0; l < array_len(layouts); l++) {
        g = sized(layouts[l], 100000, 0.01);

        assert_int_equal(bloom_geometry_items(&g, 0), 0);
        assert_true(bloom_geometry_items_error(&g, 0) == 0);

        for (i = 1; i <= 30; i++) {
            n = 10000 * (double) i;
            ones = (double) g.bits * (1 - exp(-n * g.k / (double) g.bits));

            assert_near((double) bloom_geometry_items(&g, (uint64_t) ones), n,
                        1e-3);

            error = bloom_geometry_items_error(&g, (uint64_t) n);
            assert_true(error > 0 && error < 0.003 * n);
        }

        /* without zeros, the estimate is that for one zero */

        n = (double) g.bits / g.k * log((double) g.bits);

        assert_near((double) bloom_geometry_items(&g, g.bits - 1), n, 1e-6);
        assert_int_equal(bloom_geometry_items(&g, g.bits),
                         bloom_geometry_items(&g, g.bits - 1));
        assert_int_equal(bloom_geometry_items(&g, g.bits + 5),
                         bloom_geometry_items(&g, g.bits));
    }
}


TEST(different_geometries_are_not_equal)
{
    bloom_geometry_t  a, b;

    a = sized(BLOOM_LAYOUT_BLOCKED, 1000, 1e-5);
    b = a;
    assert_int_equal(bloom_geometry_equal(&a, &b), 1);

#define differs(change)                                                      \
    b = a;                                                                   \
    b.change;                                                                \
    assert_int_equal(bloom_geometry_equal(&a, &b), 0)

    differs(bits += 512);
    differs(k /= 2);
    differs(lines = 1);
    differs(layout = BLOOM_LAYOUT_CLASSIC);
}


TEST(layout_names_go_both_ways)
{
    assert_string_equal(bloom_geometry_layout_name(BLOOM_LAYOUT_BLOCKED),
                        "blocked");
    assert_string_equal(bloom_geometry_layout_name(BLOOM_LAYOUT_CLASSIC),
                        "classic");
    assert_null(bloom_geometry_layout_name(0));
    assert_null(bloom_geometry_layout_name(3));

    assert_int_equal(bloom_geometry_layout_parse("blocked", 7),
                     BLOOM_LAYOUT_BLOCKED);
    assert_int_equal(bloom_geometry_layout_parse("classic;", 7),
                     BLOOM_LAYOUT_CLASSIC);
    assert_int_equal(bloom_geometry_layout_parse("classi", 6), 0);
    assert_int_equal(bloom_geometry_layout_parse("classic;", 8), 0);
    assert_int_equal(bloom_geometry_layout_parse("", 0), 0);
}
