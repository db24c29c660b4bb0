/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests build fuse bases of many sizes, and with keys that were made to
 * be a problem.  FUSE_SETS=100000 in the environment builds as many sets of 1
 * to 50,000 keys.
 */

#include <inttypes.h>

#include "fuse_filter.h"


/* Builds a filter and looks all keys up.  Returns how many salts were tried. */
static uint32_t
check_set(uint64_t n, double fpr, uint64_t seed)
{
    uint32_t           tried;
    uint64_t           i, *words;
    bloom_hash_t      *hash;
    bloom_geometry_t   g;

    hash = random_hashes(n, seed);
    tried = 0;
    words = fuse_make(&g, hash, n, fpr, &tried);

    for (i = 0; i < n; i++) {
        if (!bloom_layout_test(&g, words, hash[i])) {
            fail_msg("%" PRIu64 " keys at %g: key %" PRIu64 " is absent", n,
                     fpr, i);
        }
    }

    free(words);
    free(hash);

    return tried;
}


TEST(sets_of_any_size_have_all_keys)
{
    double    tried;
    uint32_t  salts, most;
    uint64_t  n, i, sets, seed;

    static const double  fpr[] = { 0.01, 0.5, 0.0078, 1e-3, 1e-9, 0.013 };

    sets = getenv("FUSE_SETS") ? strtoull(getenv("FUSE_SETS"), NULL, 10) : 150;

    for (most = 0, tried = 0, n = 0; n <= 300; n++) {
        salts = check_set(n, fpr[n % array_len(fpr)], n);
        most = salts > most ? salts : most;
        tried += salts;
    }

    print_message("0 to 300 keys: %.2f salts, at most %u\n", tried / 301,
                  most);

    for (seed = 9, most = 0, tried = 0, i = 0; i < sets; i++) {
        n = 1 + unit_random(&seed) % 50000;
        salts = check_set(n, fpr[i % array_len(fpr)], seed);
        most = salts > most ? salts : most;
        tried += salts;
    }

    print_message("%" PRIu64 " sets of 1 to 50000 keys: %.2f salts, at most "
                  "%u\n", sets, tried / (double) sets, most);
    assert_true(most < BLOOM_FUSE_SALTS / 2);
}


TEST(a_filter_may_have_a_million_keys)
{
    (void) check_set(200000, 0.01, 1);
    (void) check_set(1000000, 0.001, 2);
}


/* A caller passes each key once.  If it does not, building fails. */
TEST(equal_keys_do_no_harm)
{
    size_t             i;
    uint32_t           tried;
    uint64_t           n, j;
    bloom_hash_t      *hash;
    bloom_geometry_t   g;

    static const struct {
        uint64_t  distinct;
        uint64_t  times;
    } sets[] = {
        { 1, 2 }, { 1, 10000 }, { 2, 63 }, { 2, 64 }, { 3, 255 }, { 3, 256 },
        { 100, 100 }, { 1000, 3 }, { 10000, 2 }, { 60000, 5 },
    };

    for (i = 0; i < array_len(sets); i++) {
        n = sets[i].distinct * sets[i].times;
        hash = random_hashes(n, i);

        for (j = sets[i].distinct; j < n; j++) {
            hash[j] = hash[j % sets[i].distinct];
        }

        assert_int_equal(bloom_geometry_size_fuse(&g, n, 0.001), 0);

        tried = 0;
        assert_null(fuse_build(&g, hash, n, &tried));
        assert_int_equal(tried, BLOOM_FUSE_SALTS);
        free(hash);
    }

    /* one key in fifty twice */

    hash = random_hashes(102000, 77);
    memcpy(hash + 100000, hash + 50, 2000 * sizeof(*hash));
    assert_int_equal(bloom_geometry_size_fuse(&g, 100000, 0.01), 0);
    assert_null(fuse_build(&g, hash, 102000, &tried));
    free(hash);
}


TEST(more_keys_than_slots_fail)
{
    uint32_t           tried;
    bloom_hash_t      *hash;
    bloom_geometry_t   g;

    hash = random_hashes(100000, 3);
    tried = 0;

    assert_int_equal(bloom_geometry_size_fuse(&g, 10000, 0.01), 0);
    assert_null(fuse_build(&g, hash, 12000, &tried));
    assert_int_equal(tried, BLOOM_FUSE_SALTS);

    /* it is seen at once that there are too few slots */

    assert_null(fuse_build(&g, hash, 100000, &tried));
    assert_int_equal(bloom_geometry_size_fuse(&g, 70000, 0.01), 0);
    assert_null(fuse_build(&g, hash, 100000, &tried));
    assert_int_equal(tried, BLOOM_FUSE_SALTS);

    free(hash);
}


TEST(scratch_memory_has_a_bound)
{
    double            per_key;
    uint64_t          n;
    bloom_geometry_t  g;

    for (n = 100000; n <= (uint64_t) 1 << 22; n *= 2) {
        assert_int_equal(bloom_geometry_size_fuse(&g, n, 0.001), 0);

        per_key = (double) bloom_fuse_scratch(&g, n) / (double) n;
        assert_true(per_key < 18.5 + 1e6 / (double) n);
    }
}
