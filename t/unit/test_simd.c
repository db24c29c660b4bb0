/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests compare every instruction set of this processor with code that
 * handles one bit at a time: the answers and the bytes are equal, and no other
 * byte is touched.
 */

#include "unit.h"

#include "bloom_layout.h"
#include "bloom_simd.h"

#define LINES  5
#define WORDS  (LINES * BLOOM_LINE_WORDS)
#define GUARD  0x5ca1ab1e0ddba115


typedef struct {
    uint64_t  before;
    uint64_t  words[WORDS];
    uint64_t  behind;
} lines_t;


/* Returns bit i of a pattern, in the bytes of its line. */
static unsigned
bit_of(uint64_t pattern, unsigned i)
{
    return i * 64 + (unsigned) (pattern >> 6 * i & 63);
}


static unsigned
slow_test(const uint64_t *words, bloom_place_t place)
{
    unsigned        i, bit;
    const uint8_t  *line;

    line = (const uint8_t *) words + place.line * 64;

    for (i = 0; i < 8; i++) {
        bit = bit_of(place.pattern, i);

        if ((line[bit / 8] >> bit % 8 & 1) == 0) {
            return 0;
        }
    }

    return 1;
}


static void
slow_add(uint64_t *words, bloom_place_t place)
{
    uint8_t   *line;
    unsigned   i, bit;

    line = (uint8_t *) words + place.line * 64;

    for (i = 0; i < 8; i++) {
        bit = bit_of(place.pattern, i);
        line[bit / 8] |= (uint8_t) (1 << bit % 8);
    }
}


/* Tests and adds n patterns with each instruction set, and compares. */
static void
check(const uint64_t words[WORDS], const bloom_place_t *place, unsigned n)
{
    lines_t              got;
    unsigned             i, v;
    uint64_t             present, added[WORDS];
    const bloom_simd_t  *vector;

    memcpy(added, words, sizeof(added));

    for (present = 0, i = 0; i < n; i++) {
        present |= (uint64_t) slow_test(words, place[i]) << i;
        slow_add(added, place[i]);
    }

    for (v = 0; (vector = bloom_simd_list(v)) != NULL; v++) {

        got.before = GUARD;
        got.behind = GUARD;
        memcpy(got.words, words, sizeof(got.words));

        if (vector->test(got.words, place, n) != present) {
            fail_msg("%s: other answers", vector->name);
        }

        assert_memory_equal(got.words, words, sizeof(got.words));

        vector->add(got.words, place, n);

        assert_memory_equal(got.words, added, sizeof(added));
        assert_true(got.before == GUARD && got.behind == GUARD);
    }
}


/* Fills words with about share/8 of their bits set. */
static void
fill(uint64_t words[WORDS], unsigned share, uint64_t *seed)
{
    unsigned  i, d;

    for (i = 0; i < WORDS; i++) {
        for (words[i] = 0, d = 1; d <= 4; d *= 2) {
            words[i] = share & d ? words[i] | unit_random(seed)
                                 : words[i] & unit_random(seed);
        }

        words[i] = share == 8 ? UINT64_MAX : words[i];
    }
}


TEST(every_instruction_set_equals_slow_code)
{
    unsigned       i, n, share, round;
    uint64_t       seed, words[WORDS];
    bloom_place_t  place[BLOOM_BATCH];

    for (seed = 1, round = 0; round < 20; round++) {
        for (share = 0; share <= 8; share++) {
            for (n = 0; n <= BLOOM_BATCH; n++) {
                fill(words, share, &seed);

                for (i = 0; i < n; i++) {
                    place[i].line = unit_random(&seed) % LINES;
                    place[i].pattern = unit_random(&seed);
                }

                check(words, place, n);
            }
        }
    }
}


/* One bit of a pattern is missing, or only that bit is: for every bit of every
 * word, between full lines and empty ones. */
TEST(a_single_missing_bit_makes_a_key_absent)
{
    unsigned       i, bit;
    uint64_t       words[WORDS];
    bloom_place_t  place[3];

    for (bit = 0; bit < BLOOM_LINE_BITS; bit++) {

        /* the pattern has this bit in every word */

        for (i = 0; i < 3; i++) {
            place[i].line = i + 1;
            place[i].pattern = (bit % 64) * 0x041041041041;
        }

        memset(words, 0, sizeof(words));
        memset(words + 1 * BLOOM_LINE_WORDS, 0xff, 64);
        memset(words + 3 * BLOOM_LINE_WORDS, 0xff, 64);

        slow_add(words, place[1]);
        check(words, place, 3);

        for (i = 1; i <= 3; i++) {
            ((uint8_t *) words)[i * 64 + bit / 8] &= (uint8_t)
                                                     ~(1 << bit % 8);
        }

        check(words, place, 3);
    }
}


/* In a batch on one line, each key sees the bits set before it. */
TEST(keys_of_one_batch_on_one_line_see_each_other)
{
    unsigned       i, same;
    uint64_t       words[WORDS], seed;
    bloom_place_t  place[BLOOM_BATCH];

    memset(words, 0, sizeof(words));

    for (seed = 3, same = 1; same <= BLOOM_BATCH; same *= 2) {
        for (i = 0; i < BLOOM_BATCH; i++) {
            place[i].line = 2;
            place[i].pattern = i % same == 0 ? unit_random(&seed)
                                             : place[i - 1].pattern;
        }

        check(words, place, BLOOM_BATCH);
    }
}


/* Bits above the 48 bits of a pattern are ignored. */
TEST(bits_above_a_pattern_do_not_count)
{
    unsigned       i;
    uint64_t       words[WORDS];
    bloom_place_t  place[2];

    static const uint64_t  edges[] = {
        0, 1, 63, 0x0000ffffffffffff, 0xffff000000000000, UINT64_MAX,
        0x8000000000000000, 0x0000800000000000, 0x0001000000000000
    };

    for (i = 0; i < array_len(edges); i++) {
        place[0].line = place[1].line = 4;
        place[0].pattern = edges[i];
        place[1].pattern = edges[i] ^ 0xffff000000000000;

        memset(words, 0, sizeof(words));
        check(words, place, 2);

        slow_add(words, place[0]);
        check(words, place + 1, 1);
        assert_int_equal(bloom_simd()->test(words, place + 1, 1), 1);
    }
}


TEST(the_portable_set_comes_last)
{
    unsigned             n;
    const bloom_simd_t  *vector;

    for (n = 0; bloom_simd_list(n) != NULL; n++) {
        print_message("this processor has %s\n", bloom_simd_list(n)->name);
    }

    assert_true(n >= 1);
    assert_string_equal(bloom_simd_list(n - 1)->name, "portable");
    assert_null(bloom_simd_list(n + 1));

    vector = bloom_simd_list(0);
    assert_ptr_equal(bloom_simd(), vector);

    bloom_simd_use(bloom_simd_list(n - 1));
    assert_ptr_equal(bloom_simd(), bloom_simd_list(n - 1));

    bloom_simd_use(NULL);
    assert_ptr_equal(bloom_simd(), vector);
}
