/* SPDX-License-Identifier: BSD-2-Clause */

/* LDLIBS: -lpthread */

/*
 * These tests compare the layouts with a simple implementation of them.
 */

#include "slow_layout.h"

#include <pthread.h>
#include <sys/mman.h>

#include "bloom_census.h"


/* Calls `check` with geometries of every k and number of lines, and of even and
 * odd sizes. */
static void
each_geometry(void (*check)(const bloom_geometry_t *g))
{
    size_t            i;
    uint32_t          r;
    bloom_geometry_t  g;

    static const uint64_t  sizes[] = { 1, 2, 3, 8, 37, 1000 };

    memset(&g, 0, sizeof(g));

    for (i = 0; i < array_len(sizes); i++) {
        g.bits = sizes[i] * BLOOM_LINE_BITS;

        g.layout = BLOOM_LAYOUT_CLASSIC;
        g.lines = 0;

        for (g.k = 1; g.k <= BLOOM_OWN_K_MAX;
             g.k += g.k < 20 ? 1 : 11) {
            assert_true(bloom_geometry_valid(&g));
            check(&g);
        }

        g.layout = BLOOM_LAYOUT_BLOCKED;

        for (g.lines = 1; g.lines <= BLOOM_LINES_MAX; g.lines++) {
            for (r = 1; r <= 8; r *= 2) {
                g.k = r * g.lines;
                assert_true(bloom_geometry_valid(&g));
                check(&g);
            }
        }
    }
}


/* ---- tests ---- */

static void
check_against_slow(const bloom_geometry_t *g)
{
    int           changed;
    size_t        i, a, b;
    uint64_t      seed, bits[BLOOM_K_MAX], *plain, *atomic, *many, *batch;
    uint64_t      sum, which, changes[6] = { 0 }, sums[6] = { 0 };
    uint8_t      *slow;
    places_t      places;
    bloom_hash_t  hash, all[300];

    static const uint64_t  edges[] = {
        0, 1, 2, 0x7fffffffffffffff, 0x8000000000000000, 0xfffffffffffffffe,
        UINT64_MAX
    };

    plain = filter_new(g);
    atomic = filter_new(g);
    many = filter_new(g);
    batch = filter_new(g);
    slow = unit_zeros(g->bits / 8);

    for (seed = g->k, i = 0; i < 300; i++) {
        hash = random_hash(&seed);

        if (i < array_len(edges) * array_len(edges)) {
            a = i / array_len(edges);
            b = i % array_len(edges);
            hash.h1 = edges[a];
            hash.h2 = edges[b];
        }

        assert_int_equal(bloom_layout_test(g, plain, hash),
                         slow_test(g, slow, hash));

        bloom_layout_prefetch(g, plain, hash);
        all[i] = hash;

        changed = slow_add(g, slow, hash);
        assert_int_equal(bloom_layout_add(g, plain, hash), changed);
        sum = (uint64_t) bloom_layout_add_atomic(g, atomic, hash);
        assert_int_equal(sum != 0, changed);
        sums[i / 50] += sum;
        changes[i / 50] |= (uint64_t) changed << i % 50;

        assert_int_equal(bloom_layout_test(g, plain, hash), 1);
        assert_int_equal(bloom_layout_add(g, plain, hash), 0);
        assert_int_equal(bloom_layout_add_atomic(g, atomic, hash), 0);
    }

    bloom_layout_add_many(g, many, all, 0);
    bloom_layout_add_many(g, many, all, 1);
    bloom_layout_add_many(g, many, all + 1, 299);

    for (i = 0; i < 6; i++) {
        assert_int_equal(bloom_layout_add_batch(g, batch, all + 50 * i, 50,
                                                i % 2, &which), sums[i]);
        assert_true(which == changes[i]);
    }

    assert_int_equal(bloom_layout_add_batch(g, batch, all, 0, 0, &which), 0);
    assert_true(which == 0);

    assert_memory_equal(plain, slow, g->bits / 8);
    assert_memory_equal(batch, slow, g->bits / 8);
    assert_memory_equal(atomic, slow, g->bits / 8);
    assert_memory_equal(many, slow, g->bits / 8);

    for (i = 0; i < 300; i++) {
        hash = random_hash(&seed);
        places = slow_places(g, hash);

        assert_int_equal(bloom_layout_bits(g, hash, bits), g->k);
        assert_memory_equal(bits, places.bit, g->k * sizeof(uint64_t));
    }

    for (i = 0; i < 300; i++) {
        hash = random_hash(&seed);
        assert_int_equal(bloom_layout_test(g, plain, hash),
                         slow_test(g, slow, hash));
    }

    free(slow);
    filter_free(g, plain);
    filter_free(g, atomic);
    filter_free(g, many);
    filter_free(g, batch);
}


TEST(bits_are_where_the_header_says)
{
    each_geometry(check_against_slow);
}


/* Filters of far more than 2^32 bits and bytes; only pages that are touched
 * take memory. */
TEST(filters_beyond_4_gigabytes_are_addressed)
{
    int           i;
    size_t        l;
    void         *map;
    uint64_t      seed;
    bloom_hash_t  hash;

    static const bloom_geometry_t  large[] = {
        { BLOOM_LAYOUT_BLOCKED, 8, 1, 0, 0, (uint64_t) 1 << 37 },
        { BLOOM_LAYOUT_BLOCKED, 24, 3, 0, 0, ((uint64_t) 1 << 37) - 512 },
        { BLOOM_LAYOUT_CLASSIC, 13, 0, 0, 0, ((uint64_t) 1 << 37) - 1024 },
    };

    for (l = 0; l < array_len(large); l++) {
        map = mmap(NULL, large[l].bits / 8, PROT_READ|PROT_WRITE,
                   MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);
        assert_true(map != MAP_FAILED);

        for (seed = 1, i = 0; i < 100; i++) {
            hash = random_hash(&seed);

            assert_int_equal(bloom_layout_test(&large[l], map, hash), 0);
            assert_int_equal(slow_test(&large[l], map, hash), 0);
            assert_int_equal(bloom_layout_add(&large[l], map, hash), 1);
            assert_int_equal(slow_test(&large[l], map, hash), 1);
        }

        munmap(map, large[l].bits / 8);
    }
}


static void
check_never_absent(const bloom_geometry_t *g)
{
    uint64_t      i, n, start, seed, *words;
    bloom_hash_t  hash;

    static uint64_t  filters;

    words = filter_new(g);
    n = g->bits / g->k + 1;
    start = ++filters << 32;

    for (seed = start, i = 0; i < n; i++) {
        hash = random_hash(&seed);
        (void) (i % 2 ? bloom_layout_add : bloom_layout_add_atomic)(g, words,
                                                               hash);
    }

    for (seed = start, i = 0; i < n; i++) {
        hash = random_hash(&seed);
        assert_int_equal(bloom_layout_test(g, words, hash), 1);
    }

    filter_free(g, words);
}


TEST(added_keys_are_never_absent)
{
    each_geometry(check_never_absent);
}


typedef struct {
    const bloom_geometry_t  *g;
    uint64_t                *words;
    uint64_t                 seed;
    uint64_t                 n;
} adder_t;


static void *
add_many(void *data)
{
    uint64_t  i;
    adder_t  *adder = data;

    for (i = 0; i < adder->n; i++) {
        (void) bloom_layout_add_atomic(adder->g, adder->words,
                                       random_hash(&adder->seed));
    }

    return NULL;
}


/* Four threads add to the same few lines: no bit is lost. */
TEST(concurrent_additions_lose_no_bit)
{
    size_t      i, l, round;
    adder_t     adder[4];
    uint64_t   *together, *alone;
    pthread_t   thread[4];

    static const bloom_geometry_t  small[] = {
        { BLOOM_LAYOUT_BLOCKED, 8, 1, 0, 0, 64 * 512 },
        { BLOOM_LAYOUT_BLOCKED, 24, 3, 0, 0, 64 * 512 },
        { BLOOM_LAYOUT_CLASSIC, 7, 0, 0, 0, 64 * 512 },
    };

    for (l = 0; l < array_len(small); l++) {
        for (round = 0; round < 50; round++) {
            together = filter_new(&small[l]);
            alone = filter_new(&small[l]);

            for (i = 0; i < 4; i++) {
                adder[i].g = &small[l];
                adder[i].words = together;
                adder[i].seed = (round * 4 + i) << 32;
                adder[i].n = 500;

                assert_int_equal(pthread_create(&thread[i], NULL, add_many,
                                                &adder[i]), 0);
            }

            for (i = 0; i < 4; i++) {
                assert_int_equal(pthread_join(thread[i], NULL), 0);

                adder[i].words = alone;
                adder[i].seed = (round * 4 + i) << 32;
                add_many(&adder[i]);
            }

            assert_memory_equal(together, alone, small[l].bits / 8);

            filter_free(&small[l], together);
            filter_free(&small[l], alone);
        }
    }
}


static void
check_merge(const bloom_geometry_t *g)
{
    uint64_t      i, seed, *a, *b, *both;
    bloom_hash_t  hash;

    a = filter_new(g);
    b = filter_new(g);
    both = filter_new(g);

    for (seed = 5, i = 0; i < 200; i++) {
        hash = random_hash(&seed);
        bloom_layout_add(g, i % 3 ? a : b, hash);
        bloom_layout_add(g, both, hash);
    }

    bloom_layout_merge(a, b, g->bits / 64);
    assert_memory_equal(a, both, g->bits / 8);

    filter_free(g, a);
    filter_free(g, b);
    filter_free(g, both);
}


TEST(merging_equals_adding_all_keys)
{
    each_geometry(check_merge);
}


/*
 * Computes the rate of given bits from their bytes: the share of bits set in
 * each sector, multiplied within a line and averaged over the lines.
 */
static double
slow_census(const bloom_geometry_t *g, const uint8_t *bytes, uint64_t *ones)
{
    double    match, sum;
    uint64_t  line, bit, at, r, s, set;

    *ones = 0;
    sum = 0;

    r = g->layout == BLOOM_LAYOUT_CLASSIC ? 1 : g->k / g->lines;
    s = 512 / r;

    for (line = 0; line < g->bits / 512; line++) {
        match = 1;

        for (set = 0, bit = 0; bit < 512; bit++) {
            at = line * 512 + bit;
            set += bytes[at / 8] >> at % 8 & 1;

            if ((bit + 1) % s == 0) {
                match *= (double) set / (double) s;
                *ones += set;
                set = 0;
            }
        }

        sum += match;
    }

    sum /= (double) (g->bits / 512);

    return g->layout == BLOOM_LAYOUT_CLASSIC ? bloom_geometry_classic_fpr(g,
                                                                          sum)
                                             : pow(sum, g->lines);
}


static void
check_census(const bloom_geometry_t *g)
{
    double          rate;
    uint64_t        i, n, seed, ones, piece, *words;
    bloom_census_t  census;

    words = filter_new(g);

    for (seed = 7, i = 0; i < g->bits / g->k; i++) {
        bloom_layout_add(g, words, random_hash(&seed));
    }

    rate = slow_census(g, (uint8_t *) words, &ones);

    /* all words at once, and in pieces of 1, 2, 3, ... lines */

    memset(&census, 0, sizeof(census));
    bloom_census(&census, g, words, g->bits / 64);

    assert_int_equal(census.bits_set, ones);
    assert_int_equal(census.words, g->bits / 64);
    assert_near(bloom_census_fpr(&census), rate, 1e-9);
    assert_near(bloom_census_fill(&census), (double) ones / (double) g->bits,
                1e-12);

    memset(&census, 0, sizeof(census));

    for (i = 0, piece = BLOOM_LINE_WORDS; i < g->bits / 64; i += n) {
        n = g->bits / 64 - i < piece ? g->bits / 64 - i : piece;
        bloom_census(&census, g, words + i, n);
        piece += BLOOM_LINE_WORDS;
    }

    assert_int_equal(census.bits_set, ones);
    assert_int_equal(census.words, g->bits / 64);
    assert_near(bloom_census_fpr(&census), rate, 1e-9);

    filter_free(g, words);
}


TEST(a_census_equals_counting_bit_by_bit)
{
    each_geometry(check_census);
}


static void
check_census_of_nothing(const bloom_geometry_t *g)
{
    uint64_t       *words;
    bloom_census_t  census;

    memset(&census, 0, sizeof(census));

    assert_true(bloom_census_fill(&census) == 0);
    assert_true(bloom_census_fpr(&census) == 0);

    words = filter_new(g);
    bloom_census(&census, g, words, g->bits / 64);

    assert_true(bloom_census_fill(&census) == 0);
    assert_true(bloom_census_fpr(&census) == 0);

    memset(words, 0xff, g->bits / 8);
    memset(&census, 0, sizeof(census));
    bloom_census(&census, g, words, g->bits / 64);

    assert_true(bloom_census_fill(&census) == 1);
    assert_true(bloom_census_fpr(&census) == 1);

    filter_free(g, words);
}


/* Tests up to 30 hashes, none or one of which is present: the result is their
 * number, or the index of that one. */
static void
check_any(const bloom_geometry_t *g)
{
    uint64_t      seed, *words;
    unsigned      i, n, in;
    bloom_hash_t  hash[30];

    seed = 13;

    for (n = 0; n <= 30; n++) {
        words = filter_new(g);
        in = n ? (unsigned) (unit_random(&seed) % n) : 0;

        for (i = 0; i < n; i++) {
            hash[i].h1 = unit_random(&seed);
            hash[i].h2 = unit_random(&seed);
        }

        assert_int_equal(bloom_layout_test_any(g, words, hash, n), n);

        if (n != 0) {
            bloom_layout_add(g, words, hash[in]);

            for (i = 0; !bloom_layout_test(g, words, hash[i]); i++) {
                /* void */
            }

            assert_int_equal(bloom_layout_test_any(g, words, hash, n), i);
            assert_true(i <= in);
        }

        filter_free(g, words);
    }
}


/* Batches of every size, with every instruction set: the bytes are those of
 * keys that are added one by one, and so are the answers. */
static void
check_batch(const bloom_geometry_t *g)
{
    uint8_t             *slow;
    uint64_t             seed, *words;
    unsigned             i, n, v;
    bloom_hash_t         hash[BLOOM_BATCH];
    const bloom_simd_t  *vector;

    for (v = 0; (vector = bloom_simd_list(v)) != NULL; v++) {
        words = filter_new(g);
        slow = unit_zeros(g->bits / 8);

        for (seed = 17, n = 0; n <= BLOOM_BATCH; n += n < 4 ? 1 : 12) {

            for (i = 0; i < n; i++) {
                hash[i] = (i % 5 == 4) ? hash[i - 2] : random_hash(&seed);
                (void) slow_add(g, slow, hash[i]);
            }

            bloom_simd_use(vector);
            bloom_layout_add_many(g, words, hash, n);
            assert_memory_equal(words, slow, g->bits / 8);
        }

        check_lookups(g, words, hash, BLOOM_BATCH, 19, slow_has,
                      &(slow_t) { g, slow });
        free(slow);
        filter_free(g, words);
    }
}


TEST(a_batch_equals_its_keys_one_by_one)
{
    each_geometry(check_batch);
}


TEST(the_first_present_key_of_several_is_found)
{
    each_geometry(check_any);
}


TEST(a_census_of_no_bits_and_of_all_bits_is_exact)
{
    each_geometry(check_census_of_nothing);
}
