/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check lookups in fuse bases, alone and with layers, their sizes
 * and rates, and which geometries are valid.  FUSE_QUESTIONS=100000000 in the
 * environment asks each filter for as many absent keys.
 */

#include <inttypes.h>

#include "fuse_filter.h"

#include "bloom_census.h"
#include "bloom_growth.h"
#include "bloom_simd.h"


static bloom_geometry_t
sized(uint64_t keys, double fpr)
{
    bloom_geometry_t  g;

    assert_int_equal(bloom_geometry_size(&g, BLOOM_LAYOUT_FUSE, keys, fpr), 0);
    assert_true(bloom_geometry_valid(&g));

    return g;
}


TEST(lookups_agree_with_a_simple_implementation)
{
    size_t               i, j;
    unsigned             v;
    uint64_t             seed, k, *words, batch, answers;
    bloom_hash_t         hash[BLOOM_BATCH];
    bloom_geometry_t     g;
    const bloom_simd_t  *vector;

    static const struct {
        uint32_t  length, segments, shard_bits, width;
        uint64_t  wide;                  /* segments */
    } shapes[] = {
        { 1, 3, 0, 1, 0 },               { 1, 3, 0, 31, 0 },
        { 1, 3, 0, 31, 3 },              { 5, 4, 0, 6, 3 },
        { 5, 4, 0, 6, 2 },               { 13, 9, 0, 9, 4 },
        { 64, 3, 1, 3, 3 },              { 64, 5, 3, 7, 17 },
        { 128, 12, 2, 30, 48 },          { 7, 100, 0, 2, 99 },
        { 262144, 3, 0, 8, 0 },          { 83, 100000, 0, 4, 77 },
        { 64, 3, 9, 5, 100 },
    };

    for (i = 0; i < array_len(shapes); i++) {
        memset(&g, 0, sizeof(g));
        g.layout = BLOOM_LAYOUT_FUSE;
        g.k = 3;
        g.fuse.keys = 1;
        g.fuse.room = 1;
        g.fuse.length = shapes[i].length;
        g.fuse.segments = shapes[i].segments;
        g.fuse.shard_bits = shapes[i].shard_bits;
        g.fuse.width = shapes[i].width;
        g.fuse.wide = shapes[i].wide * shapes[i].length;
        g.bits = bloom_geometry_whole_lines(bloom_fuse_bits(&g.fuse));

        assert_true(bloom_geometry_valid(&g));

        words = fuse_words(&g);

        /* the salts are any bytes, too */

        for (seed = i, k = 0; k < g.bits / 64; k++) {
            words[k] = unit_random(&seed);
        }

        for (j = 0; j < 300; j++) {
            for (k = 0; k < BLOOM_BATCH; k++) {
                hash[k] = random_hash(&seed);

                if (k < 9) {
                    hash[k].h1 = k % 3 == 0 ? 0 : k % 3 == 1 ? UINT64_MAX
                                                             : hash[k].h1;
                    hash[k].h2 = k / 3 == 0 ? 0 : k / 3 == 1 ? UINT64_MAX
                                                             : hash[k].h2;
                }
            }

            for (answers = 0, k = 0; k < BLOOM_BATCH; k++) {
                answers |= (uint64_t) slow_fuse_test(&g, words, hash[k]) << k;

                assert_int_equal(bloom_layout_test(&g, words, hash[k]),
                                 answers >> k & 1);
                bloom_layout_prefetch(&g, words, hash[k]);
                bloom_layout_prefetch_add(&g, words, hash[k]);
            }

            for (v = 0; (vector = bloom_simd_list(v)) != NULL; v++) {
                bloom_simd_use(vector);

                batch = bloom_layout_test_batch(&g, words, hash, BLOOM_BATCH);
                assert_true(batch == answers);

                for (k = 0; k < BLOOM_BATCH; k += k < 10 ? 1 : 9) {
                    batch = bloom_layout_test_batch(&g, words, hash,
                                                    (unsigned) k);
                    assert_true(batch == (answers & (((uint64_t) 1 << k) - 1)));
                }
            }

            bloom_simd_use(NULL);

            for (k = 0; k < 7; k++) {
                assert_int_equal(bloom_layout_test_any(&g, words, hash,
                                                       (unsigned) k),
                                 answers & (((uint64_t) 1 << k) - 1)
                                 ? (uint64_t) __builtin_ctzll(answers) : k);
            }
        }

        /* without keys, nothing is present */

        g.fuse.keys = 0;

        for (k = 0; k < BLOOM_BATCH; k++) {
            assert_false(bloom_layout_test(&g, words, hash[k]));
        }

        assert_int_equal(bloom_layout_test_batch(&g, words, hash, BLOOM_BATCH),
                         0);
        assert_true(bloom_geometry_fpr(&g, 1) == 0);

        free(words);
    }
}


TEST(keys_are_added_to_layers_only)
{
    uint32_t           tried, i;
    uint64_t           bits[BLOOM_K_MAX], seed, *base, *words, bytes, found;
    bloom_hash_t      *hash, *more, absent;
    bloom_geometry_t   g;

    hash = random_hashes(500, 1);
    more = random_hashes(500, 2);
    tried = 0;
    base = fuse_make(&g, hash, 500, 0.001, &tried);
    bytes = bloom_geometry_bytes(&g);

    words = fuse_words(&g);
    memcpy(words, base, bytes);

    for (i = 0; i < 500; i++) {
        assert_int_equal(bloom_layout_add(&g, words, more[i]), 0);
        assert_int_equal(bloom_layout_add_atomic(&g, words, more[i]), 0);
        assert_int_equal(bloom_layout_bits(&g, more[i], bits), 0);
    }

    bloom_layout_add_many(&g, words, more, 500);
    assert_memory_equal(words, base, bytes);
    free(words);

    /* two layers */

    assert_int_equal(bloom_growth_extend(&g, g.fuse.keys + g.fuse.room, 2), 0);
    assert_true(bloom_geometry_valid(&g));
    assert_int_equal(bloom_growth_offset(&g, 1), bytes);

    words = unit_zeros(bloom_geometry_bytes(&g));
    memcpy(words, base, bytes);

    for (i = 0; i < 500; i++) {
        assert_int_equal(bloom_layout_add(&g, words, hash[i]), 0);
    }

    for (i = 0; i < 250; i++) {
        (void) bloom_layout_add_atomic(&g, words, more[i]);
    }

    bloom_layout_add_many(&g, words, more + 250, 250);

    assert_memory_equal(words, base, bytes);

    for (i = 0; i < 500; i++) {
        assert_true(bloom_layout_test(&g, words, hash[i]));
        assert_true(bloom_layout_test(&g, words, more[i]));
        assert_true(bloom_layout_bits(&g, more[i], bits)
                    == g.layer[1].k);
        assert_true(bits[0] >= bloom_growth_offset(&g, 2) * 8);
    }

    for (i = 0; i + BLOOM_BATCH <= 500; i += BLOOM_BATCH) {
        assert_true(bloom_layout_test_batch(&g, words, hash + i, BLOOM_BATCH)
                    == UINT64_MAX);
        assert_true(bloom_layout_test_batch(&g, words, more + i, BLOOM_BATCH)
                    == UINT64_MAX);
    }

    for (seed = 3, found = 0, i = 0; i < 100000; i++) {
        absent = random_hash(&seed);
        found += (uint64_t) bloom_layout_test(&g, words, absent);
    }

    assert_true(fabs(unit_sigmas(found, 100000,
                                 bloom_growth_fpr(&g, 0, 1000))) < 4.5);

    free(words);
    free(base);
    free(hash);
    free(more);
}


TEST(layers_have_the_room_that_the_base_states)
{
    uint32_t          i;
    double            sum;
    uint64_t          bits_set[4];
    bloom_geometry_t  g, part, base;

    base = g = sized(1000000, 0.001);
    assert_int_equal(g.fuse.room, 125000);
    assert_int_equal(sized(100, 0.001).fuse.room, 1000);

    assert_int_equal(bloom_growth_layers(&g, 1125000, 1), 1);
    assert_int_equal(bloom_growth_layers(&g, 1125000, 1125000), 1);
    assert_int_equal(bloom_growth_layers(&g, 1125000, 1125001), 2);
    assert_int_equal(bloom_growth_layers(&g, 1125000, UINT64_MAX),
                     BLOOM_LAYERS_MAX + 1);
    assert_int_equal(bloom_growth_capacity(&g, 1125000, 0), 1000000);
    assert_int_equal(bloom_growth_capacity(&g, 1125000, 1), 1125000);
    assert_int_equal(bloom_growth_capacity(&g, 1125000, 3), 1875000);
    assert_true(bloom_growth_capacity(&g, 1125000, BLOOM_LAYERS_MAX + 1)
                == UINT64_MAX);

    assert_int_equal(bloom_growth_extend(&g, 1125000, 3), 0);
    assert_int_equal(g.layers, 3);

    for (sum = 0, i = 1; i <= 3; i++) {
        part = bloom_geometry_part(&g, i);
        sum += bloom_geometry_fpr(&part, (uint64_t) 125000 << (i - 1));
    }

    part = bloom_geometry_part(&g, 0);
    assert_near(sum, bloom_geometry_fpr(&part, 1), 0.02);
    assert_near(bloom_growth_fpr(&g, 1125000, 1875000), 0.002, 0.03);
    assert_near(bloom_growth_fpr(&g, 1125000, 1000000), 0.001, 0.03);

    memset(bits_set, 0, sizeof(bits_set));
    bits_set[0] = 12345;                 /* does not matter */
    assert_int_equal(bloom_growth_items(&g, bits_set), 1000000);
    assert_true(bloom_growth_items_error(&g, bits_set) == 0);
    assert_true(bloom_growth_is_full(&base, 1125000, 0));
    assert_false(bloom_growth_is_full(&g, 1125000, 0));
}


TEST(sizes_are_near_the_bound)
{
    double            p, ratio, bound, worst[2];
    uint64_t          n;
    bloom_geometry_t  g;

    worst[0] = 0;
    worst[1] = 0;

    for (n = 1000; n < (uint64_t) 1 << 36; n += n / 7) {
        for (p = 1e-2; p > 1e-9; p *= 0.93) {
            g = sized(n, p);

            /* a small filter may have up to 512 bits more, for whole lines, and
             * 128 for padding and a salt; one of a single window has some slots
             * more */

            bound = n >= 1000000 ? 1.14 : n > 32768 ? 1.25 : 1.45;
            ratio = ((double) g.bits - (n < 1000000 ? 640 : 0))
                    / ((double) n * -log2(p));
            worst[n >= 1000000] = fmax(worst[n >= 1000000], ratio);

            if (ratio > bound) {
                fail_msg("%" PRIu64 " keys at %g take %.4f times the bound", n,
                         p, ratio);
            }

            assert_true(bloom_geometry_fpr(&g, n) <= p * (1 + 1e-12));
        }
    }

    print_message("at most %.4f times the bound, %.4f from 1 million keys on\n",
                  worst[0], worst[1]);

    assert_true(bloom_geometry_size(&g, BLOOM_LAYOUT_FUSE, 0, 0.01) == -1);
    assert_true(bloom_geometry_size(&g, BLOOM_LAYOUT_FUSE,
                                    BLOOM_CAPACITY_MAX, 1e-9)
                == -1);
    assert_true(bloom_geometry_size(&g, BLOOM_LAYOUT_FUSE, 1, 0.6) == -1);
    assert_true(sized(1, 0.5).fuse.width == 1);
    assert_true(sized(1000, 1e-9).fuse.width == 30);
}


TEST(sizes_follow_from_bytes)
{
    double            fpr;
    uint64_t          n;
    bloom_geometry_t  g;

    n = bloom_geometry_size_capacity(&g, BLOOM_LAYOUT_FUSE, 1 << 20, 0.001);
    assert_true(bloom_geometry_bytes(&g) <= 1 << 20);
    assert_near((double) n, 8388608 / 9.966 / 1.13, 0.04);

    fpr = bloom_geometry_size_fpr(&g, BLOOM_LAYOUT_FUSE, 1 << 20, n);
    assert_true(bloom_geometry_bytes(&g) <= 1 << 20);
    assert_near(fpr, 0.001, 0.05);
}


TEST(rates_are_those_of_the_geometry)
{
    size_t             i;
    uint32_t           tried;
    double             sigmas, expected;
    uint64_t           seed, j, found, asked, n, *words;
    bloom_hash_t      *hash;
    bloom_census_t     census;
    bloom_geometry_t   g;

    static const struct {
        uint64_t  keys;
        double    fpr;
        uint32_t  shard_bits;
    } filters[] = {
        { 1, 0.01, 0 },       { 7, 0.3, 0 },        { 999, 0.01, 0 },
        { 1000, 0.0079, 0 },  { 20000, 0.001, 0 },  { 20000, 0.4, 0 },
        { 60000, 0.0115, 0 }, { 60000, 0.0081, 0 }, { 150000, 0.001, 0 },
        { 150000, 3e-5, 0 },  { 100000, 0.02, 2 },  { 100000, 0.003, 1 },
        { 150000, 0.01, 0 },  { 150000, 1e-4, 0 },  { 150000, 1e-5, 0 },
        { 150000, 1e-6, 0 },
    };

    asked = getenv("FUSE_QUESTIONS")
            ? strtoull(getenv("FUSE_QUESTIONS"), NULL, 10) : 2000000;

    for (i = 0; i < array_len(filters); i++) {
        n = filters[i].keys;
        hash = random_hashes(n << filters[i].shard_bits, i);
        tried = 0;

        if (filters[i].shard_bits == 0) {
            words = fuse_make(&g, hash, n, filters[i].fpr, &tried);

        } else {
            g = sized(n + n / 50, filters[i].fpr);
            fuse_divide(&g, filters[i].shard_bits);
            n <<= filters[i].shard_bits;
            g.fuse.keys = n;
            words = fuse_build(&g, hash, n, &tried);
            assert_non_null(words);
        }

        for (j = 0; j < n; j++) {
            assert_true(bloom_layout_test(&g, words, hash[j]));
        }

        for (seed = 1000 + i, found = 0, j = 0; j < asked; j++) {
            found += (uint64_t) bloom_layout_test(&g, words,
                                                  random_hash(&seed));
        }

        expected = bloom_geometry_fpr(&g, n);
        sigmas = unit_sigmas(found, asked, expected);

        print_message("%" PRIu64 " keys at %g: measured %g, expected %g, %.1f "
                      "standard errors\n", n, filters[i].fpr,
                      (double) found / (double) asked, expected, sigmas);
        assert_true(fabs(sigmas) <= 4.5);

        memset(&census, 0, sizeof(census));
        bloom_census(&census, &g, words, g.bits / 64);
        assert_int_equal(bloom_census_items(&census), n);
        assert_true(bloom_census_items_error(&census) == 0);
        assert_near(bloom_census_fpr(&census), expected, 1e-9);

        free(words);
        free(hash);
    }
}


/* Changes one field at random. */
static void
disturb(bloom_geometry_t *g, uint64_t *seed)
{
    uint64_t  value;

    value = unit_random(seed);
    value = unit_random(seed) % 3 == 0 ? value >> unit_random(seed) % 64
            : value % 2 ? value % 200 : (uint64_t) 1 << value % 64;

    switch (unit_random(seed) % 9) {
    case 0: g->fuse.keys = value; break;
    case 1: g->fuse.room = value; break;
    case 2: g->fuse.wide = value; break;
    case 3: g->fuse.length = (uint32_t) value; break;
    case 4: g->fuse.segments = (uint32_t) value; break;
    case 5: g->fuse.shard_bits = (uint32_t) value; break;
    case 6: g->fuse.width = (uint32_t) value; break;
    case 7: g->k = (uint32_t) value % 5; break;
    case 8: g->bits = value; break;
    }
}


TEST(valid_geometries_are_never_read_beyond)
{
    uint8_t             end[1];
    uint32_t            i, j, valid;
    uint64_t            seed, salts;
    bloom_hash_t        hash;
    bloom_geometry_t    g;
    bloom_fuse_place_t  at;

    for (seed = 5, valid = 0, i = 0; i < 300000; i++) {
        g = sized(1 + unit_random(&seed) % 5000000,
                  0.5 * pow(10, -8 * (double) (unit_random(&seed) % 1000)
                                / 1000));

        do {
            disturb(&g, &seed);
        } while (unit_random(&seed) % 2);

        if (unit_random(&seed) % 2 && g.fuse.shard_bits < 23) {
            g.bits = bloom_geometry_whole_lines(bloom_fuse_bits(&g.fuse));
        }

        if (!bloom_geometry_valid(&g)) {
            continue;
        }

        valid++;

        assert_int_equal(g.k, 3);
        assert_true(g.bits % 512 == 0 && g.bits <= BLOOM_BITS_MAX);

        for (j = 0; j < 12; j++) {
            hash = random_hash(&seed);
            hash.h1 = j & 1 ? hash.h1 : UINT64_MAX;
            hash.h2 = j & 2 ? hash.h2 : UINT64_MAX;

            salts = 1 + bloom_fuse_shard(&g, hash);
            assert_true(salts <= bloom_fuse_salt_words(&g.fuse) * 8);

            /* its salt is the last byte of a base that begins so far before */

            end[0] = (uint8_t) unit_random(&seed);
            at = bloom_fuse_place(&g, (const uint64_t *) (const void *)
                                      (end - (g.bits / 8 - salts)), hash);

            assert_true(at.bit[0] / 8 + 8 <= g.bits / 8 - salts);
            assert_true(at.bit[1] / 8 + 8 <= g.bits / 8 - salts);
            assert_true(at.bit[2] / 8 + 8 <= g.bits / 8 - salts);
            assert_true(at.drop < 32);
        }

        assert_true(bloom_geometry_fpr(&g, 1) <= 0.5);
        assert_true(bloom_geometry_fpr(&g, 1) >= 0);
    }

    assert_true(valid > 10000);
}
