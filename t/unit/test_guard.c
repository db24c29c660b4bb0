/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests find the keys in files for guards, and compare numbers of keys
 * with each other and with the bits of filters in all layouts.
 */

#include <inttypes.h>

#include "fuse_filter.h"

#include "bloom_growth.h"
#include "bloom_guard.h"


TEST(lines_have_keys)
{
    size_t          i;
    uint64_t        line;
    bloom_key_t     key;
    const uint8_t  *pos, *end;

    static const char  text[] =
        "first\n"
        "\n"
        " \t a key # a comment \r\n"
        "# a comment\n"
        " ! a comment\n"
        "a#key!\n"
        "#\n"
        "\xef\xbb\xbf\n"
        "\0\n"
        "last";

    static const struct {
        const char  *data;
        size_t       len;
    } keys[] = {
        { "first", 5 }, { "", 0 }, { "a key", 5 }, { "", 0 }, { "", 0 },
        { "a#key!", 6 }, { "", 0 }, { "\xef\xbb\xbf", 3 }, { "\0", 1 },
        { "last", 4 },
    };

    pos = (const uint8_t *) text;
    end = pos + sizeof(text) - 1;
    line = 0;

    for (i = 0; i < array_len(keys); i++) {
        assert_int_equal(bloom_guard_next(&key, &pos, end, &line), 1);
        assert_int_equal(line, i + 1);
        assert_int_equal(key.len, keys[i].len);
        assert_memory_equal(key.data, keys[i].data, keys[i].len);
    }

    assert_int_equal(bloom_guard_next(&key, &pos, end, &line), 0);
    assert_int_equal(line, array_len(keys));
}


TEST(changes_are_compared)
{
    size_t                i;
    bloom_guard_limits_t  limits;
    bloom_guard_excess_t  excess;

    static const struct {
        const char  *loss;
        const char  *growth;
        uint64_t     before;
        uint64_t     now;
        const char  *change;             /* NULL: it is allowed */
        const char  *allowed;
    } cases[] = {
        { "20%", "20%", 5, 5, NULL, NULL },
        { "20%", NULL, 1000, 5000, NULL, NULL },
        { NULL, "20%", 1000, 0, NULL, NULL },

        /* exactly the allowed part passes, though 0.2 is no binary fraction */

        { "20%", "20%", 1000, 1200, NULL, NULL },
        { "20%", "20%", 1000, 800, NULL, NULL },
        { "1%", "20%", 1000, 1201, "201 more (20.1 %) than the 1000", "20 %" },
        { "20%", "1%", 1000, 799, "201 fewer (20.1 %) than the 1000", "20 %" },
        { "100%", "300%", 10, 0, NULL, NULL },
        { "100%", "300%", 10, 40, NULL, NULL },
        { "0%", "0", 3, 2, "1 fewer (33.3 %) than the 3", "0 %" },
        { "0%", "0", 2, 3, "1 more (50 %) than the 2", "0 keys" },
        { "2", "1k", 10, 8, NULL, NULL },
        { "2", "1k", 10, 1010, NULL, NULL },
        { "1", "1k", 10, 8, "2 fewer (20 %) than the 10", "1 key" },
        { "1", "1k", 10, 1011, "1001 more (10010 %) than the 10",
          "1000 keys" },

        /* nothing is no percentage of nothing */

        { NULL, "1%", 0, 5, NULL, NULL },
        { NULL, "4", 0, 5, "5 more than the 0", "4 keys" },
        { NULL, "0.000000001%", UINT64_C(1) << 42, (UINT64_C(1) << 42) + 44,
          "44 more (1e-09 %) than the 4398046511104", "1e-09 %" },
    };

    for (i = 0; i < array_len(cases); i++) {
        memset(&limits, 0, sizeof(limits));
        assert_int_equal(bloom_guard_limited(&limits), 0);

        if (cases[i].loss != NULL) {
            assert_int_equal(bloom_guard_limit_parse(&limits.loss,
                                                     cases[i].loss,
                                                     strlen(cases[i].loss),
                                                     BLOOM_GUARD_LOSS_MAX), 0);
        }

        if (cases[i].growth != NULL) {
            assert_int_equal(bloom_guard_limit_parse(&limits.growth,
                                                     cases[i].growth,
                                                     strlen(cases[i].growth),
                                                     BLOOM_GUARD_GROWTH_MAX),
                             0);
        }

        assert_int_equal(bloom_guard_limited(&limits), 1);
        assert_int_equal(bloom_guard_exceeds(&limits, cases[i].before,
                                             cases[i].now, &excess),
                         cases[i].change != NULL);

        if (cases[i].change != NULL) {
            assert_int_equal(excess.loss, cases[i].now < cases[i].before);
            assert_string_equal(excess.change, cases[i].change);
            assert_string_equal(excess.allowed, cases[i].allowed);
        }
    }
}


TEST(wrong_limits_are_refused)
{
    size_t               i;
    bloom_guard_limit_t  limit;

    static const char  *const texts[] = {
        "", "%", "-1", "-1%", "1.5", "1e3%", ".5%", "5%%", "1x", "off",
        "100.1%", "4399g",
    };

    for (i = 0; i < array_len(texts); i++) {
        assert_int_equal(bloom_guard_limit_parse(&limit, texts[i],
                                                 strlen(texts[i]),
                                                 BLOOM_GUARD_LOSS_MAX), -1);
    }

    assert_int_equal(bloom_guard_limit_parse(&limit, "1000001%", 8,
                                             BLOOM_GUARD_GROWTH_MAX), -1);
}


/* Asserts what a guard says of an image that states its keys, and others. */
static void
check_image(bloom_image_t *image, const uint64_t *bits_set, uint64_t keys)
{
    uint64_t  items;

    image->items = keys;
    assert_int_equal(bloom_guard_contradicts(image, bits_set, &items), 0);

    /* an estimate that is off by a tenth */

    image->items = keys - keys / 10;
    assert_int_equal(bloom_guard_contradicts(image, bits_set, &items), 0);

    image->items = keys + keys / 10;
    assert_int_equal(bloom_guard_contradicts(image, bits_set, &items), 0);
}


/* Asserts that a guard notices lies about a filter that is not over-full, and
 * bits that are all zeros, or all ones. */
static void
check_lies(bloom_image_t *image, const uint64_t *bits_set, uint64_t keys)
{
    uint32_t  i;
    uint64_t  items, none[BLOOM_PARTS_MAX], all[BLOOM_PARTS_MAX];

    image->items = 2 * keys;
    assert_int_equal(bloom_guard_contradicts(image, bits_set, &items), -1);
    assert_near((double) items, (double) keys, 0.25);

    image->items = keys / 2;
    assert_int_equal(bloom_guard_contradicts(image, bits_set, &items), 1);

    memset(none, 0, sizeof(none));

    for (i = 0; i <= image->geometry.layers; i++) {
        all[i] = bloom_geometry_part(&image->geometry, i).bits;
    }

    image->items = keys;
    assert_int_equal(bloom_guard_contradicts(image, none, &items), -1);
    assert_int_equal(items, 0);
    assert_int_equal(bloom_guard_contradicts(image, all, &items), 1);
    assert_true(items > keys);

    image->items = UINT64_C(1) << 42;
    assert_int_equal(bloom_guard_contradicts(image, none, &items), -1);
}


TEST(bits_of_honest_filters_agree)
{
    size_t         i, j, l;
    uint32_t       k;
    uint64_t       n, done, seed, bits_set, *words;
    bloom_image_t  image;

    /* parts of the capacity, up to a filter that is full of ones */

    static const double    fills[] = { 0.001, 0.01, 0.1, 0.5, 1, 2, 5, 20, 60 };
    static const double    rates[] = { 0.5, 1e-2, 1e-4, 1e-9 };
    static const uint64_t  capacities[] = { 1, 5, 50, 1000, 20000 };
    static const uint32_t  layouts[] = {
        BLOOM_LAYOUT_BLOCKED, BLOOM_LAYOUT_CLASSIC
    };

    for (seed = 5, l = 0; l < array_len(layouts); l++) {
        for (i = 0; i < array_len(rates) * array_len(capacities); i++) {
            memset(&image, 0, sizeof(image));
            assert_int_equal(bloom_geometry_size(&image.geometry, layouts[l],
                                                 capacities[i / 4],
                                                 rates[i % 4]), 0);
            words = filter_new(&image.geometry);
            k = image.geometry.k;

            for (done = 0, j = 0; j < array_len(fills); j++) {
                n = (uint64_t) ceil((double) capacities[i / 4] * fills[j]);

                for ( /* void */ ; done < n; done++) {
                    (void) bloom_layout_add(&image.geometry, words,
                                            random_hash(&seed));
                }

                bits_set = bloom_layout_bits_set(words,
                               bloom_geometry_bytes(&image.geometry) / 8);
                check_image(&image, &bits_set, n);

                if (fills[j] <= 1 && n * k > 5000) {
                    check_lies(&image, &bits_set, n);
                }
            }

            filter_free(&image.geometry, words);
        }
    }
}


/* Keys that a part has as false positives set no bits in the last one. */
static void
check_layers(double fpr, int lies)
{
    uint32_t          i, part;
    uint64_t          n, all, seed, from, *words;
    uint64_t          bits_set[BLOOM_PARTS_MAX];
    bloom_image_t     image;
    bloom_geometry_t  whole, now;

    memset(&image, 0, sizeof(image));
    assert_int_equal(bloom_geometry_size(&whole, BLOOM_LAYOUT_BLOCKED, 5000,
                                         fpr), 0);
    now = whole;
    assert_int_equal(bloom_growth_extend(&whole, 5000, 3), 0);
    words = filter_new(&whole);
    image.geometry = whole;
    image.capacity = 5000;

    for (seed = 9, all = 0, i = 0; i <= 3; i++) {
        now.layers = (uint16_t) i;
        memcpy(now.layer, whole.layer, sizeof(now.layer));

        for (n = 0; n < UINT64_C(5000) << i; n++, all++) {
            (void) bloom_layout_add(&now, words, random_hash(&seed));
        }

        for (part = 0; part <= 3; part++) {
            from = bloom_growth_offset(&whole, part) / 8;
            bits_set[part] = bloom_layout_bits_set(words + from,
                                 bloom_growth_offset(&whole, part + 1) / 8
                                 - from);
        }

        check_image(&image, bits_set, all);

        if (lies) {
            check_lies(&image, bits_set, all);
        }
    }

    filter_free(&whole, words);
}


TEST(bits_of_layers_agree)
{
    check_layers(0.5, 0);
    check_layers(0.1, 1);
    check_layers(0.01, 1);
    check_layers(1e-6, 1);
}


TEST(bits_of_fuse_filters_agree)
{
    size_t         i, j;
    uint64_t       n, bits_set, *words;
    uint32_t       tried = 0;
    bloom_hash_t  *hash;
    bloom_image_t  image;

    static const double    rates[] = { 0.3, 1e-2, 3e-3, 1e-6, 1e-9 };
    static const uint64_t  keys[] = { 1, 2, 10, 100, 3000, 100000 };

    for (i = 0; i < array_len(keys); i++) {
        n = keys[i];
        hash = random_hashes(n, n);

        for (j = 0; j < array_len(rates); j++) {
            memset(&image, 0, sizeof(image));
            words = fuse_make(&image.geometry, hash, n, rates[j], &tried);
            bits_set = bloom_layout_bits_set(words,
                           bloom_geometry_bytes(&image.geometry) / 8);
            check_image(&image, &bits_set, n);

            if (n * image.geometry.fuse.width > 5000) {
                check_lies(&image, &bits_set, n);
            }

            free(words);
        }

        free(hash);
    }
}


/* Of links only the sum is known. */
TEST(bits_of_links_and_rings)
{
    uint64_t       items, bits_set[BLOOM_PARTS_MAX];
    bloom_image_t  image;

    memset(&image, 0, sizeof(image));
    memset(bits_set, 0, sizeof(bits_set));
    image.geometry.layout = BLOOM_LAYOUT_LINKS;
    image.geometry.links = 2;
    image.geometry.link[0].bits = 10240;
    image.geometry.link[0].k = 5;
    image.geometry.link[1].bits = 20480;
    image.geometry.link[1].k = 10;
    image.geometry.bits = 30720;
    image.geometry.k = 10;
    image.items = 1000;

    assert_int_equal(bloom_guard_contradicts(&image, bits_set, &items), -1);

    bits_set[0] = 6000;
    assert_int_equal(bloom_guard_contradicts(&image, bits_set, &items), 0);

    bits_set[0] = 12000;
    assert_int_equal(bloom_guard_contradicts(&image, bits_set, &items), 1);
    assert_int_equal(items, 1200);

    memset(&image, 0, sizeof(image));
    image.geometry.slices = 3;
    image.items = 1000;
    bits_set[0] = 0;
    assert_int_equal(bloom_guard_contradicts(&image, bits_set, &items), 0);
}
