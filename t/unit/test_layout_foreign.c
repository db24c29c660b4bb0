/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests compare the bits of keys in imported layouts with those of the
 * source systems or their documents, and add, test and count in each layout.
 */

#include "unit.h"

#include "bloom_bytes.h"
#include "bloom_census.h"
#include "bloom_layout.h"
#include "bloom_scheme.h"

#define WORDS  64


static bloom_geometry_t
geometry(uint32_t layout, uint32_t k, uint64_t bits)
{
    bloom_geometry_t  g;

    memset(&g, 0, sizeof(g));
    g.layout = layout;
    g.k = k;
    g.bits = bits;

    return g;
}


static bloom_geometry_t
three_links(void)
{
    bloom_geometry_t  g;

    g = geometry(BLOOM_LAYOUT_LINKS, 7, 512 + 512 + 1024);
    g.links = 3;
    g.link[0].bits = 64;
    g.link[0].k = 5;
    g.link[1].bits = 512;
    g.link[1].k = 6;
    g.link[2].bits = 1000;
    g.link[2].k = 7;

    return g;
}


/* Returns the filter's bytes after one or two keys have been added. */
static void
assert_filter(const bloom_geometry_t *g, uint32_t kind, uint32_t funnel,
    const char *one, const char *two, const char *hex)
{
    char            text[2 * 8 * WORDS + 1];
    uint8_t        *p;
    uint64_t        i, words[WORDS] = { 0 };
    bloom_hasher_t  hasher;

    bloom_hasher_foreign(&hasher, kind, funnel, 0);

    assert_true(bloom_geometry_valid(g));
    assert_true(bloom_hasher_valid(&hasher));
    assert_true(bloom_scheme_valid(g->layout, kind));

    bloom_layout_add(g, words, bloom_hash(&hasher, one, strlen(one)));

    if (two != NULL) {
        bloom_layout_add(g, words, bloom_hash(&hasher, two, strlen(two)));
    }

    p = (uint8_t *) words;

    for (i = 0; i < (g->bits + 7) / 8; i++) {
        sprintf(text + 2 * i, "%02x", p[i]);
    }

    assert_string_equal(text, hex);
}


/* Returns a bitmap of the bits given, in hexadecimal. */
static void
assert_bits(const bloom_geometry_t *g, uint32_t kind, const char *key,
    const uint32_t *bit, size_t n)
{
    char      hex[2 * 8 * WORDS + 1];
    size_t    i;
    uint8_t   bytes[8 * WORDS] = { 0 };

    for (i = 0; i < n; i++) {
        bytes[bit[i] / 8] |= (uint8_t) (1 << bit[i] % 8);
    }

    for (i = 0; i < (g->bits + 7) / 8; i++) {
        sprintf(hex + 2 * i, "%02x", bytes[i]);
    }

    assert_filter(g, kind, BLOOM_FUNNEL_BYTES, key, NULL, hex);
}


/* Filters of two keys that Guava 31.1 wrote with create(funnel, 10, 0.01); the
 * words in them are big-endian. */
TEST(bits_match_filters_of_guava)
{
    bloom_geometry_t  g;

    g = geometry(BLOOM_LAYOUT_DOUBLE63, 7, 128);

    assert_filter(&g, BLOOM_HASH_MURMUR3, 0, "item1", "/products/42",
                  "080020000001a0ae" "0210004000000200");
    assert_filter(&g, BLOOM_HASH_FUNNEL, BLOOM_FUNNEL_UTF16, "item1",
                  "/products/42", "1108400008040620" "0000810210000020");
    assert_filter(&g, BLOOM_HASH_FUNNEL, BLOOM_FUNNEL_LONG, "42", "-7",
                  "1001000088000000" "4400000020000001");
    assert_filter(&g, BLOOM_HASH_FUNNEL, BLOOM_FUNNEL_INT, "42", "-7",
                  "0000020080000020" "e08f080020000008");

    g.layout = BLOOM_LAYOUT_DOUBLE31;

    assert_filter(&g, BLOOM_HASH_MURMUR3, 0, "item1", "/products/42",
                  "040a40200000000b" "0090200001280000");
}


/* The example of redis.io for BF.SCANDUMP. */
TEST(bits_match_the_filter_of_redisbloom)
{
    bloom_geometry_t  g;

    g = geometry(BLOOM_LAYOUT_DOUBLE, 5, 64);

    assert_filter(&g, BLOOM_HASH_MURMUR64A, 0, "item1", NULL,
                  "0108008000042000");
}


TEST(bits_match_filters_of_go)
{
    bloom_geometry_t  g;

    static const uint32_t  love[] = { 235, 846, 747, 866 };
    static const uint32_t  item1[] = { 523, 312, 116, 554, 237, 175, 951, 545,
                                       340, 45, 902, 279, 531, 768 };

    g = geometry(BLOOM_LAYOUT_FOUR, 4, 1000);
    assert_bits(&g, BLOOM_HASH_MURMUR3_TWICE, "Love", love, array_len(love));

    g = geometry(BLOOM_LAYOUT_EACH, 14, 1024);
    assert_bits(&g, BLOOM_HASH_MURMUR3_EACH, "item1", item1,
                array_len(item1));
}


/*
 * The 7 bits of "/products/42" in a filter of 999 bits, computed by
 * t/lib/BloomTest/Schemes.pm, which agrees with the source systems.
 */
TEST(bits_match_the_producers_in_each_scheme)
{
    size_t            i, j;
    uint32_t          layout, hash;
    uint64_t          bits[BLOOM_K_MAX];
    bloom_hasher_t    hasher;
    bloom_geometry_t  g;

    static const struct {
        const char  *scheme;
        uint64_t     bits[7];
    } known[] = {
        { "redisson", { 530, 254, 784, 508, 958, 682, 213 } },
        { "dcso", { 767, 277, 336, 911, 749, 320, 891 } },
        { "guava64", { 188, 616, 125, 553, 981, 410, 838 } },
        { "guava32", { 446, 255, 497, 688, 879, 71, 262 } },
        { "spark1", { 872, 548, 224, 661, 985, 310, 634 } },
        { "spark2", { 587, 333, 79, 824, 570, 316, 62 } },
        { "double", { 188, 616, 205, 633, 62, 490, 918 } },
        { "libbloom", { 685, 529, 373, 217, 61, 904, 748 } },
    };

    for (i = 0; i < array_len(known); i++) {
        assert_int_equal(bloom_scheme_parse(known[i].scheme,
                                            strlen(known[i].scheme), &layout,
                                            &hash), 0);

        g = geometry(layout, 7, 999);
        bloom_hasher_foreign(&hasher, hash, 0,
                             layout == BLOOM_LAYOUT_SPARK2 ? 6 : 0);

        assert_int_equal(bloom_layout_bits(&g,
                                           bloom_hash(&hasher, "/products/42",
                                                          12), bits), 7);

        for (j = 0; j < 7; j++) {
            if (bits[j] != known[i].bits[j]) {
                print_error("%s: bit %zu is %d\n", known[i].scheme, j,
                            (int) bits[j]);
                fail();
            }
        }
    }
}


/* In every scheme, added keys are present, and the rate is the counted one. */
TEST(every_scheme_finds_its_keys_at_the_counted_rate)
{
    char              key[32];
    size_t            len, n;
    double            rate;
    uint32_t          layout, kind, k;
    uint64_t          i, present, words[512];
    bloom_census_t    census;
    bloom_hasher_t    hasher;
    bloom_geometry_t  g;

    n = 0;
    k = 0;

    for (layout = BLOOM_LAYOUT_DOUBLE; layout <= BLOOM_LAYOUT_EACH; layout++) {
        for (kind = 1; kind <= BLOOM_HASH_MURMUR3_EACH; kind++) {

            if (!bloom_scheme_valid(layout, kind)) {
                continue;
            }

            n++;
            k = 3 + n % 5;
            g = geometry(layout, k, 512 * 64 - 77);
            bloom_hasher_foreign(&hasher, kind, kind == BLOOM_HASH_FUNNEL, 0);

            assert_true(bloom_geometry_valid(&g));
            assert_int_equal(bloom_geometry_bytes(&g), 8 * 512);

            memset(words, 0, sizeof(words));

            for (i = 0; i < 5000; i++) {
                len = (size_t) sprintf(key, "key %d", (int) i);
                (void) bloom_layout_add_atomic(&g, words,
                                               bloom_hash(&hasher, key, len));
                assert_int_equal(bloom_layout_add(&g, words,
                                                  bloom_hash(&hasher, key,
                                                             len)), 0);
            }

            for (i = 0; i < 5000; i++) {
                len = (size_t) sprintf(key, "key %d", (int) i);
                assert_true(bloom_layout_test(&g, words,
                                              bloom_hash(&hasher, key, len)));
            }

            assert_int_equal(words[511], 0);
            assert_int_equal(words[510] >> (64 - 13), 0);

            memset(&census, 0, sizeof(census));
            bloom_census(&census, &g, words, 512);
            rate = bloom_census_fpr(&census);

            assert_near((double) bloom_census_items(&census), 5000, 0.04);
            assert_near(bloom_census_fill(&census),
                        1 - exp(-(double) k * 5000 / (double) g.bits), 0.03);

            for (present = 0, i = 0; i < 200000; i++) {
                len = (size_t) sprintf(key, "absent %d", (int) i);
                present += (uint64_t) bloom_layout_test(&g, words,
                                                        bloom_hash(&hasher, key,
                                                                   len));
            }

            /* the rate of small filters is slightly above fill^k */

            assert_near((double) present / 200000, rate, 0.15);
        }
    }

    assert_int_equal(n, 14);
}


TEST(a_key_is_present_if_any_link_has_it)
{
    char              key[32];
    size_t            len;
    uint64_t          i, n, items, words[32], before[32];
    bloom_census_t    census;
    bloom_hasher_t    hasher;
    bloom_geometry_t  g, one;

    g = three_links();
    assert_true(bloom_geometry_valid(&g));
    assert_int_equal(bloom_geometry_bytes(&g), 256);

    bloom_hasher_foreign(&hasher, BLOOM_HASH_MURMUR64A, 0, 0);
    memset(words, 0, sizeof(words));

    /* a key in any link is present, and is not added again */

    for (i = 0; i < 3; i++) {
        len = (size_t) sprintf(key, "in link %d", (int) i);
        one = geometry(BLOOM_LAYOUT_DOUBLE, g.link[i].k, g.link[i].bits);

        assert_false(bloom_layout_test(&g, words,
                                       bloom_hash(&hasher, key, len)));
        bloom_layout_add(&one, words + 8 * i, bloom_hash(&hasher, key, len));
        assert_true(bloom_layout_test(&g, words,
                                      bloom_hash(&hasher, key, len)));
        assert_int_equal(bloom_layout_add(&g, words,
                                          bloom_hash(&hasher, key, len)),
                         0);
    }

    /* additions go to the last link */

    memcpy(before, words, sizeof(words));

    for (n = 0, i = 0; i < 20; i++) {
        len = (size_t) sprintf(key, "new %d", (int) i);
        n += (uint64_t) bloom_layout_add(&g, words,
                                         bloom_hash(&hasher, key, len));
        assert_true(bloom_layout_test(&g, words,
                                      bloom_hash(&hasher, key, len)));
    }

    assert_true(n >= 18);
    assert_memory_equal(before, words, 128);
    assert_int_equal(words[31] >> 40, 0);
    assert_true(memcmp(before + 16, words + 16, 128) != 0);

    memset(&census, 0, sizeof(census));

    for (i = 0; i < 32; i += 8) {
        bloom_census(&census, &g, words + i, 8);
    }

    items = bloom_census_items(&census);
    assert_in_range(items, n + 2, n + 4);
    assert_near(bloom_census_fill(&census),
                (double) census.bits_set / (64 + 512 + 1000), 1e-12);
    assert_true(bloom_census_fpr(&census) < 1e-4);
    assert_true(bloom_geometry_fpr(&g, items) < 1e-4);

    /* invalid geometries */

    g.links = 2;
    assert_false(bloom_geometry_valid(&g));
    g = three_links();
    g.link[1].k = 0;
    assert_false(bloom_geometry_valid(&g));
    g = three_links();
    g.link[0].bits = 0;
    assert_false(bloom_geometry_valid(&g));
    g = three_links();
    g.link[2].bits = 1025;
    assert_false(bloom_geometry_valid(&g));
    g = three_links();
    g.link[1].bits = UINT64_MAX;         /* 0 if rounded up */
    g.bits -= 512;
    assert_false(bloom_geometry_valid(&g));
    g = three_links();
    g.k = 6;
    assert_false(bloom_geometry_valid(&g));
    g = three_links();
    g.links = BLOOM_LINKS_MAX + 1;
    assert_false(bloom_geometry_valid(&g));

    one = three_links();
    g = three_links();
    assert_true(bloom_geometry_equal(&g, &one));
    g.link[1].k++;
    assert_false(bloom_geometry_equal(&g, &one));
}


TEST(scheme_names_go_both_ways)
{
    unsigned  i;
    uint32_t  layout, hash;

    for (i = 0; bloom_scheme_list(i) != NULL; i++) {
        assert_int_equal(bloom_scheme_parse(bloom_scheme_list(i),
                                            strlen(bloom_scheme_list(i)),
                                            &layout, &hash), 0);
        assert_string_equal(bloom_scheme_name(layout, hash),
                            bloom_scheme_list(i));
        assert_true(bloom_geometry_is_foreign(layout));
        assert_non_null(bloom_geometry_layout_name(layout));
    }

    assert_int_equal(i, 11);
    assert_int_equal(bloom_scheme_parse("guava", 5, &layout, &hash), -1);
    assert_null(bloom_scheme_name(BLOOM_LAYOUT_CLASSIC, BLOOM_HASH_MURMUR3));
    assert_true(bloom_scheme_valid(BLOOM_LAYOUT_CLASSIC, BLOOM_HASH_SIPHASH));
    assert_false(bloom_scheme_valid(BLOOM_LAYOUT_CLASSIC, BLOOM_HASH_FNV1));
    assert_false(bloom_scheme_valid(BLOOM_LAYOUT_EACH, BLOOM_HASH_MURMUR3));
}
