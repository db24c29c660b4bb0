
#include "bloom_layout.h"
#include "bloom_bytes.h"


#ifndef __SIZEOF_INT128__
#error "a 64-bit machine is needed, and gcc or clang: numbers of 128 bits"
#endif

#define PHI  0x9e3779b97f4a7c15


/* A key's pattern in one line: r bits, one in each sector of 2^shift bits. */
typedef struct {
    uint64_t  line;
    uint64_t  pattern;
} place_t;


/* floor(x * n / 2^64): maps a hash evenly onto 0 .. n-1 (Lemire, 2016). */
static inline uint64_t
scale(uint64_t x, uint64_t n)
{
    return (uint64_t) (((unsigned __int128) x * n) >> 64);
}


static inline place_t
place(const bloom_geometry_t *g, bloom_hash_t hash, uint32_t j)
{
    place_t  at;

    if (j != 0) {
        hash.h1 = bloom_mix64(hash.h1 + j * PHI);
        hash.h2 = bloom_mix64(hash.h2 + j * PHI);
    }

    at.line = scale(hash.h1, g->bits / BLOOM_LINE_BITS);
    at.pattern = hash.h2;

    return at;
}


/* log2 of a line's sector, for r = 1, 2, 4 or 8 bits in a line. */
static inline uint32_t
sector_shift(uint32_t r)
{
    return 9 - (uint32_t) __builtin_ctz(r);
}


/* Bit i of a pattern, counted from the line's first bit. */
static inline uint32_t
pattern_bit(uint64_t pattern, uint32_t i, uint32_t shift)
{
    return (i << shift)
           + (uint32_t) ((pattern >> (i * shift)) & ((1u << shift) - 1));
}


static inline uint64_t
classic_bit(const bloom_geometry_t *g, bloom_hash_t hash, uint32_t i)
{
    return scale(hash.h1 + i * hash.h2, g->bits);
}


static inline uint64_t
load(const uint64_t *words, uint64_t bit)
{
    uint64_t  w;

    w = __atomic_load_n(&words[bit / 64], __ATOMIC_RELAXED);

    return bloom_le64(w) >> (bit % 64);
}


static int
classic_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    uint32_t  i;

    for (i = 0; i < g->k; i++) {
        if ((load(words, classic_bit(g, hash, i)) & 1) == 0) {
            return 0;
        }
    }

    return 1;
}


/* The line is one memory access: no branch before all of it is read. */
static inline int
line_test(const uint64_t *line, uint64_t pattern, uint32_t r, uint32_t shift)
{
    uint32_t  i;
    uint64_t  all;

    for (all = 1, i = 0; i < r; i++) {
        all &= load(line, pattern_bit(pattern, i, shift));
    }

    return (int) (all & 1);
}


/* The same for a bit in each word, as it is at rates below a few percent. */
static inline int
words_test(const uint64_t *line, uint64_t pattern)
{
    uint32_t  i;
    uint64_t  all;

    all = 1;

#pragma GCC unroll 8
    for (i = 0; i < BLOOM_LINE_WORDS; i++) {
        all &= bloom_le64(__atomic_load_n(&line[i], __ATOMIC_RELAXED))
               >> (pattern & 63);
        pattern >>= 6;
    }

    return (int) all;
}


static int
blocked_test(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    int              match;
    place_t          at;
    uint32_t         j, r;
    const uint64_t  *line;

    r = (g->lines == 1) ? g->k : g->k / g->lines;

    for (j = 0; j < g->lines; j++) {
        at = place(g, hash, j);
        line = words + at.line * BLOOM_LINE_WORDS;

        match = (r == BLOOM_LINE_WORDS)
                ? words_test(line, at.pattern)
                : line_test(line, at.pattern, r, sector_shift(r));

        if (!match) {
            return 0;
        }
    }

    return 1;
}


int
bloom_test(const bloom_geometry_t *g, const uint64_t *words, bloom_hash_t hash)
{
    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        return classic_test(g, words, hash);
    }

    return blocked_test(g, words, hash);
}


static inline int
set(uint64_t *words, uint64_t bit, int atomic)
{
    uint64_t  mask, old, *word;

    word = &words[bit / 64];
    mask = bloom_le64((uint64_t) 1 << (bit % 64));

    if (!atomic) {
        old = *word;
        *word = old | mask;

    } else {
        old = __atomic_load_n(word, __ATOMIC_RELAXED);

        if ((old & mask) == 0) {
            old = __atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
        }
    }

    return (old & mask) == 0;
}


static inline int
add(const bloom_geometry_t *g, uint64_t *words, bloom_hash_t hash, int atomic)
{
    int        changed;
    place_t    at;
    uint32_t   i, j, r, shift;
    uint64_t  *line;

    changed = 0;

    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        for (i = 0; i < g->k; i++) {
            changed += set(words, classic_bit(g, hash, i), atomic);
        }

        return changed;
    }

    r = g->k / g->lines;
    shift = sector_shift(r);

    for (j = 0; j < g->lines; j++) {
        at = place(g, hash, j);
        line = words + at.line * BLOOM_LINE_WORDS;

        for (i = 0; i < r; i++) {
            changed += set(line, pattern_bit(at.pattern, i, shift), atomic);
        }
    }

    return changed;
}


uint32_t
bloom_bits(const bloom_geometry_t *g, bloom_hash_t hash,
    uint64_t bits[BLOOM_K_MAX])
{
    place_t   at;
    uint32_t  i, j, r;

    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        for (i = 0; i < g->k; i++) {
            bits[i] = classic_bit(g, hash, i);
        }

        return g->k;
    }

    r = g->k / g->lines;

    for (j = 0; j < g->lines; j++) {
        at = place(g, hash, j);

        for (i = 0; i < r; i++) {
            bits[j * r + i] = at.line * BLOOM_LINE_BITS
                              + pattern_bit(at.pattern, i, sector_shift(r));
        }
    }

    return g->k;
}


int
bloom_add(const bloom_geometry_t *g, uint64_t *words, bloom_hash_t hash)
{
    return add(g, words, hash, 0) != 0;
}


int
bloom_add_atomic(const bloom_geometry_t *g, uint64_t *words, bloom_hash_t hash)
{
    return add(g, words, hash, 1);
}


static inline const uint64_t *
first_line(const bloom_geometry_t *g, const uint64_t *words, bloom_hash_t hash)
{
    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        return words + classic_bit(g, hash, 0) / 64;
    }

    return words + place(g, hash, 0).line * BLOOM_LINE_WORDS;
}


void
bloom_prefetch(const bloom_geometry_t *g, const uint64_t *words,
    bloom_hash_t hash)
{
    __builtin_prefetch(first_line(g, words, hash), 1);
}


unsigned
bloom_test_any(const bloom_geometry_t *g, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n)
{
    unsigned  i;

    /* not through bloom_prefetch(): gcc takes a function that does nothing else
     * for one without effects, and leaves its calls out */

    for (i = 0; n > 1 && i < n; i++) {
        __builtin_prefetch(first_line(g, words, hash[i]), 0);
    }

    for (i = 0; i < n; i++) {
        if (bloom_test(g, words, hash[i])) {
            break;
        }
    }

    return i;
}


void
bloom_merge(uint64_t *dst, const uint64_t *src, uint64_t n)
{
    uint64_t  i;

    for (i = 0; i < n; i++) {
        dst[i] |= src[i];
    }
}


static uint64_t
count_portable(const uint64_t *words, uint64_t n)
{
    uint64_t  i, w, ones;

    for (i = 0, ones = 0; i < n; i++) {
        w = words[i];

        w -= (w >> 1) & 0x5555555555555555;
        w = (w & 0x3333333333333333) + ((w >> 2) & 0x3333333333333333);
        w = (w + (w >> 4)) & 0x0f0f0f0f0f0f0f0f;

        ones += (w * 0x0101010101010101) >> 56;
    }

    return ones;
}


#if defined(__x86_64__)

__attribute__((target("popcnt")))
static uint64_t
count_popcnt(const uint64_t *words, uint64_t n)
{
    uint64_t  i, ones;

    for (i = 0, ones = 0; i < n; i++) {
        ones += (uint64_t) __builtin_popcountll(words[i]);
    }

    return ones;
}

#endif


uint64_t
bloom_count_ones(const uint64_t *words, uint64_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("popcnt")) {
        return count_popcnt(words, n);
    }
#endif

    return count_portable(words, n);
}


void
bloom_census(bloom_census_t *census, const bloom_geometry_t *g,
    const uint64_t *words, uint64_t n)
{
    double    match;
    uint32_t  w, ones, sector;
    uint64_t  i;

    census->words += n;

    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        census->ones += bloom_count_ones(words, n);
        return;
    }

    sector = BLOOM_LINE_WORDS * g->lines / g->k;       /* words in a sector */

    for (i = 0; i < n; i += BLOOM_LINE_WORDS) {
        match = 1;

        for (w = 0, ones = 0; w < BLOOM_LINE_WORDS; w++) {
            ones += (uint32_t) __builtin_popcountll(words[i + w]);

            if ((w + 1) % sector == 0) {
                match *= ones / (64.0 * sector);
                census->ones += ones;
                ones = 0;
            }
        }

        census->matches += match;
    }
}


double
bloom_census_fill(const bloom_census_t *census)
{
    return census->words ? (double) census->ones / (64.0 * census->words) : 0;
}


double
bloom_census_fpr(const bloom_census_t *census, const bloom_geometry_t *g)
{
    double    rate, one;
    uint32_t  j;

    if (g->layout == BLOOM_LAYOUT_CLASSIC) {
        return bloom_classic_fpr(g, bloom_census_fill(census));
    }

    one = census->words ? census->matches * BLOOM_LINE_WORDS / census->words
                        : 0;

    for (rate = 1, j = 0; j < g->lines; j++) {
        rate *= one;
    }

    return rate;
}
