/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file tests and adds keys in the layouts blocked and classic, singly and
 * in batches.  It calls bloom_layout_fuse.c for lookups in fuse bases, to which
 * no key can be added, bloom_layout_ring.c for lookups in slices, and
 * bloom_layout_foreign.c for all other layouts.
 *
 * If the filter has layers, the first lines of a key in all parts are requested
 * from memory before the first of them is read.
 */

#include <stddef.h>
#include <string.h>

#include "bloom_layout.h"
#include "bloom_bits.h"
#include "bloom_fuse.h"
#include "bloom_layout_foreign.h"
#include "bloom_layout_fuse.h"
#include "bloom_layout_ring.h"
#include "bloom_line.h"
#include "bloom_simd.h"


/* Below this number, testing keys one by one is faster than a batch. */
#define FEW  4


static inline uint64_t
classic_bit(const bloom_geometry_t *g, bloom_hash_t hash, uint32_t i)
{
    return bloom_line_scale(hash.h1 + i * hash.h2, g->bits);
}


static int
classic_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    uint32_t  i;

    for (i = 0; i < g->k; i++) {
        if ((bloom_bit_load(words, classic_bit(g, hash, i)) & 1) == 0) {
            return 0;
        }
    }

    return 1;
}


static inline int
blocked_test(bloom_layer_t part, const uint64_t *words, bloom_hash_t hash)
{
    int              match;
    bloom_place_t    at;
    uint32_t         j, r;
    const uint64_t  *line;

    r = (part.lines == 1) ? part.k : part.k / part.lines;

    for (j = 0; j < part.lines; j++) {
        at = bloom_line_place(part, hash, j);
        line = words + at.line * BLOOM_LINE_WORDS;

        match = (r == BLOOM_LINE_WORDS)
                ? bloom_line_words_test(line, at.pattern)
                : bloom_line_test(line, at.pattern, r, bloom_line_shift(r));

        if (!match) {
            return 0;
        }
    }

    return 1;
}


/* Tests the base alone. */
static inline int
base_test(const bloom_geometry_t *g, const uint64_t *words, bloom_hash_t hash)
{
    if (g->layout == BLOOM_LAYOUT_BLOCKED) {
        return blocked_test(bloom_line_base(g), words, hash);
    }

    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        return classic_test(g, words, hash);
    }

    if (g->layout == BLOOM_LAYOUT_FUSE) {
        return bloom_layout_fuse_test(g, words, hash);
    }

    return bloom_layout_foreign_test(g, words, hash);
}


/* Returns the first line that a test of a blocked base reads. */
static inline const uint64_t *
blocked_line(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    return words + bloom_line_place(bloom_line_base(g), hash, 0).line
                   * BLOOM_LINE_WORDS;
}


/* Returns the first line that a test of a blocked or classic base reads. */
static inline const uint64_t *
first_line(const bloom_geometry_t *g, const uint64_t *words, bloom_hash_t hash)
{
    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        return words + classic_bit(g, hash, 0) / 64;
    }

    return blocked_line(g, words, hash);
}


/* Requests what a test of the base reads first, for writing if it is blocked or
 * classic; nothing if it is imported. */
static inline void
prefetch_base(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    if (g->layout == BLOOM_LAYOUT_FUSE) {
        bloom_layout_fuse_prefetch(g, words, hash);

    } else if (!bloom_geometry_is_foreign(g->layout)) {
        __builtin_prefetch(first_line(g, words, hash), 1);
    }
}


/* Requests the first line of a key in each layer. */
static inline void
prefetch_layers(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    uint32_t  i;

    words += g->bits / 64;

    for (i = 0; i < g->layers; i++) {
        __builtin_prefetch(words + bloom_line_place(g->layer[i], hash, 0).line
                                   * BLOOM_LINE_WORDS, 0);

        words += g->layer[i].bits / 64;
    }
}


/* Tests the layers, the last one first: it is the largest. */
static int
layers_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    uint32_t  i;

    words += bloom_geometry_bytes(g) / sizeof(uint64_t);

    for (i = g->layers; i > 0; i--) {
        words -= g->layer[i - 1].bits / 64;

        if (blocked_test(g->layer[i - 1], words, hash)) {
            return 1;
        }
    }

    return 0;
}


/* Tests a fuse base and the layers. */
static int __attribute__((noinline))
fuse_layers_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    bloom_fuse_place_t  at;

    at = bloom_fuse_place(g, words, hash);

    bloom_fuse_prefetch(words, &at);
    prefetch_layers(g, words, hash);

    return bloom_fuse_match(g, words, &at) || layers_test(g, words, hash);
}


/* Returns 1 if there are layers or slices: both fields are read at once. */
static inline int
has_parts(const bloom_geometry_t *g)
{
    uint32_t  both;

    memcpy(&both, &g->layers, sizeof(both));

    return both != 0;
}


/*
 * Each kind of test is a function of its own, and the last thing that its
 * caller does.  So no test saves registers for another one.
 */

static int __attribute__((noinline))
base_only_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    return base_test(g, words, hash);
}


static int __attribute__((noinline))
ring_test(const bloom_geometry_t *g, const uint64_t *words, bloom_hash_t hash)
{
    return bloom_layout_ring_slices(g, words, hash) != 0;
}


static int __attribute__((noinline))
layered_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    __builtin_prefetch(first_line(g, words, hash), 0);
    prefetch_layers(g, words, hash);

    return base_test(g, words, hash) || layers_test(g, words, hash);
}


static int __attribute__((noinline))
other_test(const bloom_geometry_t *g, const uint64_t *words, bloom_hash_t hash)
{
    if (!has_parts(g)) {
        return g->layout == BLOOM_LAYOUT_FUSE
               ? bloom_layout_fuse_test(g, words, hash)
               : base_only_test(g, words, hash);
    }

    if (g->slices != 0) {
        return ring_test(g, words, hash);
    }

    return g->layout == BLOOM_LAYOUT_FUSE ? fuse_layers_test(g, words, hash)
                                          : layered_test(g, words, hash);
}


/* Returns 1 if a key has one line, and there are neither layers nor slices: the
 * three fields are read at once, as a number that has the first one in its
 * lower or upper half. */
static inline int
has_one_line(const bloom_geometry_t *g)
{
    uint64_t  all;

    _Static_assert(offsetof(bloom_geometry_t, layers)
                   == offsetof(bloom_geometry_t, lines) + sizeof(uint32_t)
                   && offsetof(bloom_geometry_t, slices)
                      == offsetof(bloom_geometry_t, layers) + sizeof(uint16_t),
                   "the fields are neighbours");

    memcpy(&all, &g->lines, sizeof(all));

    return all == bloom_le64(1);
}


int
bloom_layout_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    uint64_t  line;

    if (g->layout != BLOOM_LAYOUT_BLOCKED || g->k != BLOOM_LINE_WORDS
        || !has_one_line(g))
    {
        return other_test(g, words, hash);
    }

    line = bloom_line_place(bloom_line_base(g), hash, 0).line;

    return bloom_line_words_test(words + line * BLOOM_LINE_WORDS, hash.h2);
}


/* Sets the bits of a pattern with one bit in each word, the usual case.
 * Returns how many were not set before. */
static inline int
line_words_add(uint64_t *line, uint64_t pattern, int atomic)
{
    int       changed;
    uint32_t  i;

    changed = 0;

#pragma GCC unroll 8
    for (i = 0; i < BLOOM_LINE_WORDS; i++) {
        changed += bloom_word_set(&line[i], pattern & 63, atomic);
        pattern >>= 6;
    }

    return changed;
}


static inline int
blocked_add(bloom_layer_t part, uint64_t *words, bloom_hash_t hash, int atomic)
{
    int            changed;
    uint32_t       i, j, r, shift;
    uint64_t      *line;
    bloom_place_t  at;

    r = part.k / part.lines;
    shift = bloom_line_shift(r);
    changed = 0;

    for (j = 0; j < part.lines; j++) {
        at = bloom_line_place(part, hash, j);
        line = words + at.line * BLOOM_LINE_WORDS;

        if (r == BLOOM_LINE_WORDS) {
            changed += line_words_add(line, at.pattern, atomic);
            continue;
        }

        for (i = 0; i < r; i++) {
            changed += bloom_bit_set(line, bloom_line_bit(at.pattern, i, shift),
                                     atomic);
        }
    }

    return changed;
}


/* Returns the number of words before the last layer. */
static inline uint64_t
last_layer(const bloom_geometry_t *g)
{
    return bloom_geometry_bytes(g) / sizeof(uint64_t)
           - g->layer[g->layers - 1].bits / 64;
}


/* Returns the number of words before the open slice. */
static inline uint64_t
open_slice(const bloom_geometry_t *g)
{
    return g->open * (g->bits / 64);
}


static inline int
add(const bloom_geometry_t *g, uint64_t *words, bloom_hash_t hash, int atomic)
{
    int       changed;
    uint32_t  i;

    if (g->layers != 0) {
        return base_test(g, words, hash) || layers_test(g, words, hash)
               ? 0 : blocked_add(g->layer[g->layers - 1], words + last_layer(g),
                                 hash, atomic);
    }

    if (g->slices != 0) {
        return blocked_add(bloom_line_base(g), words + open_slice(g), hash,
                           atomic);
    }

    if (g->layout == BLOOM_LAYOUT_BLOCKED) {
        return blocked_add(bloom_line_base(g), words, hash, atomic);
    }

    if (g->layout != BLOOM_LAYOUT_CLASSIC) {
        return g->layout == BLOOM_LAYOUT_FUSE
               ? 0 : bloom_layout_foreign_add(g, words, hash, atomic);
    }

    changed = 0;

    for (i = 0; i < g->k; i++) {
        changed += bloom_bit_set(words, classic_bit(g, hash, i), atomic);
    }

    return changed;
}


uint32_t
bloom_layout_bits(const bloom_geometry_t *g, bloom_hash_t hash,
    uint64_t bits[BLOOM_K_MAX])
{
    uint32_t       i, j, r;
    uint64_t       from;
    bloom_layer_t  part;
    bloom_place_t  at;

    if (bloom_geometry_is_foreign(g->layout)) {
        return bloom_layout_foreign_bits(g, hash, bits);
    }

    from = 0;
    part = bloom_line_base(g);

    if (g->layers != 0) {
        from = last_layer(g) * 64;
        part = g->layer[g->layers - 1];

    } else if (g->slices != 0) {
        from = open_slice(g) * 64;

    } else if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        for (i = 0; i < g->k; i++) {
            bits[i] = classic_bit(g, hash, i);
        }

        return g->k;

    } else if (g->layout == BLOOM_LAYOUT_FUSE) {
        return 0;
    }

    r = part.k / part.lines;

    for (j = 0; j < part.lines; j++) {
        at = bloom_line_place(part, hash, j);

        for (i = 0; i < r; i++) {
            bits[j * r + i] = from + at.line * BLOOM_LINE_BITS
                              + bloom_line_bit(at.pattern, i,
                                               bloom_line_shift(r));
        }
    }

    return part.k;
}


int
bloom_layout_add(const bloom_geometry_t *g, uint64_t *words, bloom_hash_t hash)
{
    return add(g, words, hash, 0) != 0;
}


int
bloom_layout_add_atomic(const bloom_geometry_t *g, uint64_t *words,
    bloom_hash_t hash)
{
    return add(g, words, hash, 1);
}


void
bloom_layout_prefetch(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    if (g->slices != 0) {
        bloom_layout_ring_prefetch(g, words, hash);

    } else {
        prefetch_base(g, words, hash);
        prefetch_layers(g, words, hash);
    }
}


void
bloom_layout_prefetch_add(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    uint32_t       j;
    bloom_layer_t  part;

    if (g->layers != 0) {
        part = g->layer[g->layers - 1];
        words += last_layer(g);

    } else {
        part = bloom_line_base(g);
        words += g->slices != 0 ? open_slice(g) : 0;
    }

    /* there are no lines in other layouts than blocked */

    for (j = 1; j < part.lines; j++) {
        __builtin_prefetch(words + bloom_line_place(part, hash, j).line
                                   * BLOOM_LINE_WORDS, 1);
    }
}


/*
 * A batch is tested line by line, or bit by bit.  For every key that may still
 * be present, the next line or bit is prefetched before the first one is read,
 * so that memory serves all of them in parallel.
 *
 * The code does not call bloom_layout_prefetch(): gcc takes a function that
 * does nothing but prefetch for one without effects, and drops the calls.
 */


/* Computes and prefetches the j-th places of the keys in the bitmap `of`.
 * Returns their number. */
static inline unsigned
places(bloom_layer_t part, const uint64_t *words, const bloom_hash_t *hash,
    uint64_t of, uint32_t j, bloom_place_t at[BLOOM_BATCH])
{
    unsigned  n, all;

    all = of != UINT64_MAX && (of & (of + 1)) == 0
          ? (unsigned) __builtin_ctzll(of + 1) : 0;

    for (n = 0; n < all; n++) {
        at[n] = bloom_line_place(part, hash[n], j);
        __builtin_prefetch(words + at[n].line * BLOOM_LINE_WORDS, 0);
    }

    for (of = all != 0 ? 0 : of; of != 0; of &= of - 1, n++) {
        at[n] = bloom_line_place(part, hash[__builtin_ctzll(of)], j);
        __builtin_prefetch(words + at[n].line * BLOOM_LINE_WORDS, 0);
    }

    return n;
}


/* Tests the keys of the bitmap `present`. */
static uint64_t
blocked_test_batch(bloom_layer_t part, const uint64_t *words,
    const bloom_hash_t *hash, uint64_t present)
{
    uint32_t       j, r;
    unsigned       n;
    uint64_t       answers;
    bloom_place_t  at[BLOOM_BATCH];

    r = part.k / part.lines;

    for (j = 0; j < part.lines && present != 0; j++) {
        n = places(part, words, hash, present, j, at);

        answers = bloom_line_test_many(words, at, n, r);
        present = bloom_spread(answers, present);
    }

    return present;
}


/* Tests the keys of the bitmap `present`. */
static uint64_t
classic_test_batch(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, uint64_t present)
{
    uint32_t  i;
    unsigned  key;
    uint64_t  bit[BLOOM_BATCH], of;

    for (i = 0; i < g->k && present != 0; i++) {

        for (of = present; of != 0; of &= of - 1) {
            key = (unsigned) __builtin_ctzll(of);
            bit[key] = classic_bit(g, hash[key], i);
            __builtin_prefetch(&words[bit[key] / 64], 0);
        }

        for (of = present; of != 0; of &= of - 1) {
            key = (unsigned) __builtin_ctzll(of);
            present ^= (~bloom_bit_load(words, bit[key]) & 1) << key;
        }
    }

    return present;
}


/* Tests the keys of the bitmap `absent` in the layers.  Returns a bitmap of
 * those that any layer has. */
static uint64_t
layers_test_batch(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, uint64_t absent)
{
    uint32_t  i;
    uint64_t  present, found;

    words += bloom_geometry_bytes(g) / sizeof(uint64_t);
    present = 0;

    for (i = g->layers; i > 0 && absent != 0; i--) {
        words -= g->layer[i - 1].bits / 64;

        found = blocked_test_batch(g->layer[i - 1], words, hash, absent);

        present |= found;
        absent ^= found;
    }

    return present;
}


/* Tests the base alone. */
static inline uint64_t
base_test_batch(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n)
{
    unsigned  i;
    uint64_t  present;

    if (g->layout == BLOOM_LAYOUT_BLOCKED) {
        return blocked_test_batch(bloom_line_base(g), words, hash,
                                  bloom_low_bits(n));
    }

    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        return classic_test_batch(g, words, hash, bloom_low_bits(n));
    }

    if (g->layout == BLOOM_LAYOUT_FUSE) {
        return bloom_layout_fuse_test_batch(g, words, hash, n);
    }

    for (present = 0, i = 0; i < n; i++) {
        present |= (uint64_t) bloom_layout_foreign_test(g, words, hash[i]) << i;
    }

    return present;
}


/* Tests the slices, or the base and the layers.  A function of its own, so that
 * the usual test need not save registers. */
static uint64_t __attribute__((noinline))
parts_test_batch(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n)
{
    unsigned  i;
    uint64_t  present;

    if (g->slices != 0) {
        return bloom_layout_ring_test_batch(g, words, hash, n);
    }

    for (i = 0; i < n; i++) {
        prefetch_layers(g, words, hash[i]);
    }

    present = base_test_batch(g, words, hash, n);

    return present
           | layers_test_batch(g, words, hash, bloom_low_bits(n) ^ present);
}


uint64_t
bloom_layout_test_batch(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n)
{
    return has_parts(g) ? parts_test_batch(g, words, hash, n)
                        : base_test_batch(g, words, hash, n);
}


/* Adds the keys of the bitmap `of` to a blocked part. */
static inline uint64_t
part_add_batch(bloom_layer_t part, uint64_t *words,
    const bloom_hash_t *hash, uint64_t of, int atomic, uint64_t *changed)
{
    int       set;
    unsigned  i;
    uint64_t  sum;

    for (sum = 0; of != 0; of &= of - 1) {
        i = (unsigned) __builtin_ctzll(of);
        set = blocked_add(part, words, hash[i], atomic);
        sum += (uint64_t) set;
        *changed |= (uint64_t) (set != 0) << i;
    }

    return sum;
}


uint64_t
bloom_layout_add_batch(const bloom_geometry_t *g, uint64_t *words,
    const bloom_hash_t *hash, unsigned n, int atomic, uint64_t *changed)
{
    int            set;
    unsigned       i;
    uint64_t       of, sum;
    bloom_layer_t  part;

    *changed = 0;
    of = bloom_low_bits(n);

    if (g->layers == 0 && g->layout != BLOOM_LAYOUT_BLOCKED) {

        for (sum = 0, i = 0; i < n; i++) {
            set = add(g, words, hash[i], atomic);
            sum += (uint64_t) set;
            *changed |= (uint64_t) (set != 0) << i;
        }

        return sum;
    }

    part = bloom_line_base(g);

    if (g->layers != 0) {
        of ^= parts_test_batch(g, words, hash, n);
        part = g->layer[g->layers - 1];
        words += last_layer(g);

    } else if (g->slices != 0) {
        words += open_slice(g);
    }

    return atomic ? part_add_batch(part, words, hash, of, 1, changed)
                  : part_add_batch(part, words, hash, of, 0, changed);
}


/* Adds at most BLOOM_BATCH keys with eight bits in each line. */
static void
blocked_add_batch(const bloom_geometry_t *g, uint64_t *words,
    const bloom_hash_t *hash, unsigned n)
{
    uint32_t       j;
    unsigned       i;
    bloom_place_t  at[BLOOM_LINES_MAX][BLOOM_BATCH];

    for (j = 0; j < g->lines; j++) {
        for (i = 0; i < n; i++) {
            at[j][i] = bloom_line_place(bloom_line_base(g), hash[i], j);
            __builtin_prefetch(words + at[j][i].line * BLOOM_LINE_WORDS, 1);
        }
    }

    for (j = 0; j < g->lines; j++) {
        bloom_simd()->add(words, at[j], n);
    }
}


void
bloom_layout_add_many(const bloom_geometry_t *g, uint64_t *words,
    const bloom_hash_t *hash, size_t n)
{
    size_t     i;
    unsigned   part;
    uint64_t  *open;

    open = words + (g->slices != 0 ? open_slice(g) : 0);

    for ( /* void */ ; n != 0; hash += part, n -= part) {
        part = (n < BLOOM_BATCH) ? (unsigned) n : BLOOM_BATCH;

        if (g->layout == BLOOM_LAYOUT_BLOCKED && g->layers == 0
            && g->k == g->lines * BLOOM_LINE_WORDS)
        {
            blocked_add_batch(g, open, hash, part);
            continue;
        }

        for (i = 0; i < part; i++) {
            prefetch_base(g, open, hash[i]);
            prefetch_layers(g, words, hash[i]);
        }

        for (i = 0; i < part; i++) {
            (void) bloom_layout_add(g, words, hash[i]);
        }
    }
}


unsigned
bloom_layout_test_any(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n)
{
    unsigned  i, part;
    uint64_t  present;

    if (n < FEW && g->slices == 0) {

        if (g->layout == BLOOM_LAYOUT_BLOCKED) {
            for (i = 1; i < n; i++) {
                __builtin_prefetch(blocked_line(g, words, hash[i]), 0);
            }

        } else if (g->layout == BLOOM_LAYOUT_CLASSIC) {
            for (i = 1; i < n; i++) {
                __builtin_prefetch(first_line(g, words, hash[i]), 0);
            }

        } else if (g->layout == BLOOM_LAYOUT_FUSE) {
            for (i = 1; i < n; i++) {
                bloom_layout_fuse_prefetch(g, words, hash[i]);
            }
        }

        for (i = 1; g->layers != 0 && i < n; i++) {
            prefetch_layers(g, words, hash[i]);
        }

        for (i = 0; i < n && !bloom_layout_test(g, words, hash[i]); i++) {
            /* void */
        }

        return i;
    }

    for (i = 0; i < n; i += part) {
        part = (n - i < BLOOM_BATCH) ? n - i : BLOOM_BATCH;
        present = bloom_layout_test_batch(g, words, hash + i, part);

        if (present != 0) {
            return i + (unsigned) __builtin_ctzll(present);
        }
    }

    return n;
}


uint64_t
bloom_layout_slices(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    return g->slices != 0 ? bloom_layout_ring_slices(g, words, hash) : 0;
}


void
bloom_layout_merge(uint64_t *dst, const uint64_t *src, uint64_t n)
{
    uint64_t  i;

    for (i = 0; i < n; i++) {
        dst[i] |= src[i];
    }
}


static uint64_t
count_portable(const uint64_t *words, uint64_t n)
{
    uint64_t  i, w, bits_set;

    for (i = 0, bits_set = 0; i < n; i++) {
        w = words[i];

        w -= (w >> 1) & 0x5555555555555555;
        w = (w & 0x3333333333333333) + ((w >> 2) & 0x3333333333333333);
        w = (w + (w >> 4)) & 0x0f0f0f0f0f0f0f0f;

        bits_set += (w * 0x0101010101010101) >> 56;
    }

    return bits_set;
}


#if defined(__x86_64__)

__attribute__((target("popcnt")))
static uint64_t
count_popcnt(const uint64_t *words, uint64_t n)
{
    uint64_t  i, bits_set;

    for (i = 0, bits_set = 0; i < n; i++) {
        bits_set += (uint64_t) __builtin_popcountll(words[i]);
    }

    return bits_set;
}

#endif


uint64_t
bloom_layout_bits_set(const uint64_t *words, uint64_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("popcnt")) {
        return count_popcnt(words, n);
    }
#endif

    return count_portable(words, n);
}
