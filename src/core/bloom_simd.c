/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Each instruction set has its own functions; the choice is made at run time,
 * from what the processor reports.
 */

#include <stddef.h>

#include "bloom_simd.h"
#include "bloom_bytes.h"
#include "bloom_geometry.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif


#define line_of(words, place)  ((words) + (place).line * BLOOM_LINE_WORDS)


static uint64_t
test_portable(const uint64_t *words, const bloom_place_t *place, unsigned n)
{
    unsigned         i, w;
    uint64_t         all, pattern, present;
    const uint64_t  *line;

    for (present = 0, i = 0; i < n; i++) {

        all = 1;
        line = line_of(words, place[i]);
        pattern = place[i].pattern;

#pragma GCC unroll 8
        for (w = 0; w < BLOOM_LINE_WORDS; w++) {
            all &= bloom_le64(__atomic_load_n(&line[w], __ATOMIC_RELAXED))
                   >> (pattern & 63);
            pattern >>= 6;
        }

        present |= all << i;
    }

    return present;
}


static void
add_portable(uint64_t *words, const bloom_place_t *place, unsigned n)
{
    unsigned  i, w;
    uint64_t  pattern, *line;

    for (i = 0; i < n; i++) {

        line = line_of(words, place[i]);
        pattern = place[i].pattern;

#pragma GCC unroll 8
        for (w = 0; w < BLOOM_LINE_WORDS; w++) {
            line[w] |= bloom_le64((uint64_t) 1 << (pattern & 63));
            pattern >>= 6;
        }
    }
}


static const bloom_simd_t  portable = {
    "portable", test_portable, add_portable, NULL
};


#if defined(__x86_64__)

/* A vector load is not atomic as a whole, but each of its words is: it never
 * misses a bit that was set before. */

#define AVX2  __attribute__((target("avx2")))


AVX2 static inline __m256i
mask_avx2(uint64_t pattern, __m256i shifts)
{
    __m256i  bit;

    bit = _mm256_srlv_epi64(_mm256_set1_epi64x((long long) pattern), shifts);
    bit = _mm256_and_si256(bit, _mm256_set1_epi64x(63));

    return _mm256_sllv_epi64(_mm256_set1_epi64x(1), bit);
}


AVX2 static uint64_t
test_avx2(const uint64_t *words, const bloom_place_t *place, unsigned n)
{
    __m256i         low, high;
    unsigned        i;
    uint64_t        all, present;
    const __m256i  *line;

    const __m256i  shifts_low = _mm256_setr_epi64x(0, 6, 12, 18);
    const __m256i  shifts_high = _mm256_setr_epi64x(24, 30, 36, 42);

    for (present = 0, i = 0; i < n; i++) {
        line = (const __m256i *) line_of(words, place[i]);

        low = mask_avx2(place[i].pattern, shifts_low);
        high = mask_avx2(place[i].pattern, shifts_high);

        all = (uint64_t) (_mm256_testc_si256(_mm256_loadu_si256(line), low)
                          & _mm256_testc_si256(_mm256_loadu_si256(line + 1),
                                               high));
        present |= all << i;
    }

    return present;
}


AVX2 static void
add_avx2(uint64_t *words, const bloom_place_t *place, unsigned n)
{
    __m256i   low, high;
    unsigned  i;
    __m256i  *line;

    const __m256i  shifts_low = _mm256_setr_epi64x(0, 6, 12, 18);
    const __m256i  shifts_high = _mm256_setr_epi64x(24, 30, 36, 42);

    for (i = 0; i < n; i++) {
        line = (__m256i *) line_of(words, place[i]);

        low = mask_avx2(place[i].pattern, shifts_low);
        high = mask_avx2(place[i].pattern, shifts_high);

        _mm256_storeu_si256(line,
                            _mm256_or_si256(_mm256_loadu_si256(line), low));
        _mm256_storeu_si256(line + 1,
                            _mm256_or_si256(_mm256_loadu_si256(line + 1),
                                            high));
    }
}


/* ---- fuse bases; bloom_fuse.h has the formulas ---- */

#define BATCH  64                        /* keys, at most */
#define PHI    0x9e3779b97f4a7c15

/* Where keys are looked up in a fuse base: as bloom_fuse_place_t. */
typedef struct {
    uint64_t  bit[BLOOM_FUSE_K][BATCH];
    uint64_t  print[BATCH];
    uint64_t  drop[BATCH];               /* 64 - w */
} __attribute__((aligned(32))) fuse_places_t;


static inline __m256i *
lanes(uint64_t *values)
{
    return (__m256i *) (void *) values;
}


/* Returns x n / 2^64 for n < 2^32. */
AVX2 static inline __m256i
scale_avx2(__m256i x, __m256i n)
{
    __m256i  low, high;

    low = _mm256_mul_epu32(x, n);
    high = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), n);

    return _mm256_srli_epi64(_mm256_add_epi64(high,
                                              _mm256_srli_epi64(low, 32)), 32);
}


/* Returns x y mod 2^64. */
AVX2 static inline __m256i
multiply_avx2(__m256i x, __m256i y)
{
    __m256i  middle;

    middle = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32), y),
                              _mm256_mul_epu32(x, _mm256_srli_epi64(y, 32)));

    return _mm256_add_epi64(_mm256_mul_epu32(x, y),
                            _mm256_slli_epi64(middle, 32));
}


AVX2 static inline __m256i
rotate_avx2(__m256i x, int n)
{
    return _mm256_or_si256(_mm256_slli_epi64(x, n),
                           _mm256_srli_epi64(x, 64 - n));
}


/* Returns the bits at which slots begin. */
AVX2 static inline __m256i
fuse_bit_avx2(__m256i slot, __m256i width, __m256i wide)
{
    __m256i  low, high, more;

    low = _mm256_mul_epu32(slot, width);
    high = _mm256_mul_epu32(_mm256_srli_epi64(slot, 32), width);
    more = _mm256_blendv_epi8(wide, slot, _mm256_cmpgt_epi64(wide, slot));

    return _mm256_add_epi64(_mm256_add_epi64(low, more),
                            _mm256_slli_epi64(high, 32));
}


/* Computes where four keys are looked up, as bloom_fuse_place(). */
AVX2 static inline void
fuse_places_avx2(const bloom_fuse_t *fuse, const bloom_hash_t *hash,
    fuse_places_t *at, unsigned i)
{
    unsigned  j;
    __m256i   first, last, h1, x, low, high, scaled[BLOOM_FUSE_K], slot, drop;

    const __m256i  windows = _mm256_set1_epi64x(fuse->segments - 2);
    const __m256i  length = _mm256_set1_epi64x(fuse->length);
    const __m256i  width = _mm256_set1_epi64x(fuse->width);
    const __m256i  wide = _mm256_set1_epi64x((long long) fuse->wide);
    const __m256i  slots = _mm256_set1_epi64x((long long)
                                              bloom_fuse_slots(fuse));
    const __m256i  phi = _mm256_set1_epi64x((long long) PHI);

    first = _mm256_loadu_si256((const __m256i *) (const void *) hash);
    last = _mm256_loadu_si256((const __m256i *) (const void *) (hash + 2));
    h1 = _mm256_permute4x64_epi64(_mm256_unpacklo_epi64(first, last), 0xd8);
    x = _mm256_permute4x64_epi64(_mm256_unpackhi_epi64(first, last), 0xd8);

    low = _mm256_mul_epu32(x, windows);
    high = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(x, 32),
                                             windows),
                            _mm256_srli_epi64(low, 32));

    scaled[0] = _mm256_blend_epi32(low, _mm256_slli_epi64(high, 32), 0xaa);
    scaled[1] = rotate_avx2(x, 25);
    scaled[2] = rotate_avx2(x, 43);

    h1 = _mm256_srl_epi64(h1, _mm_cvtsi64_si128(64 - fuse->shard_bits));
    slot = _mm256_add_epi64(_mm256_mul_epu32(h1, slots),
                            _mm256_mul_epu32(_mm256_srli_epi64(high, 32),
                                             length));

#pragma GCC unroll 3
    for (j = 0; j < BLOOM_FUSE_K; j++) {
        first = _mm256_add_epi64(slot, scale_avx2(scaled[j], length));
        _mm256_store_si256(lanes(&at->bit[j][i]),
                           fuse_bit_avx2(first, width, wide));
        slot = _mm256_add_epi64(slot, length);
    }

    /* `slot` is the one after the window */

    drop = _mm256_sub_epi64(_mm256_set1_epi64x(63), width);
    drop = _mm256_sub_epi64(drop, _mm256_cmpgt_epi64(slot, wide));
    _mm256_store_si256(lanes(&at->drop[i]), drop);

    x = _mm256_xor_si256(x, _mm256_srli_epi64(x, 32));
    x = _mm256_srli_epi64(multiply_avx2(x, phi), 32);
    _mm256_store_si256(lanes(&at->print[i]), x);
}


/* Compares the slots of four keys, of which `word` has the bytes, with their
 * fingerprints.  Returns a bitmap. */
AVX2 static inline uint64_t
fuse_match_avx2(fuse_places_t *at, uint64_t word[BLOOM_FUSE_K][BATCH],
    unsigned i)
{
    __m256i   rest, shift;
    unsigned  j;

    rest = _mm256_load_si256(lanes(&at->print[i]));

#pragma GCC unroll 3
    for (j = 0; j < BLOOM_FUSE_K; j++) {
        shift = _mm256_and_si256(_mm256_load_si256(lanes(&at->bit[j][i])),
                                 _mm256_set1_epi64x(7));
        rest = _mm256_xor_si256(rest,
                                _mm256_srlv_epi64(
                                    _mm256_load_si256(lanes(&word[j][i])),
                                    shift));
    }

    rest = _mm256_sllv_epi64(rest, _mm256_load_si256(lanes(&at->drop[i])));
    rest = _mm256_cmpeq_epi64(rest, _mm256_setzero_si256());

    return (uint64_t) (unsigned) _mm256_movemask_pd(_mm256_castsi256_pd(rest));
}


/*
 * Computes the places of four keys at a time, and requests their slots from
 * memory.  Then reads all slots before it compares the first one, so that the
 * processor sees many reads ahead.  Gathering is not used: on processors that
 * are protected against gather data sampling, it is slow.
 */
AVX2 static uint64_t
test_fuse_avx2(const bloom_fuse_t *fuse, const uint64_t *words,
    const bloom_hash_t *hash, unsigned n)
{
    unsigned        i, j;
    uint64_t        present;
    const uint8_t  *bytes;
    fuse_places_t   at;

    uint64_t  word[BLOOM_FUSE_K][BATCH] __attribute__((aligned(32)));

    bytes = (const uint8_t *) words;

    for (i = 0; i < n; i += BLOOM_SIMD_LANES) {
        fuse_places_avx2(fuse, hash + i, &at, i);

        for (j = i; j < i + BLOOM_SIMD_LANES; j++) {
            __builtin_prefetch(bytes + at.bit[0][j] / 8, 0);
            __builtin_prefetch(bytes + at.bit[1][j] / 8, 0);
            __builtin_prefetch(bytes + at.bit[2][j] / 8, 0);
        }
    }

    for (i = 0; i < n; i++) {
        word[0][i] = bloom_get64(bytes + at.bit[0][i] / 8);
        word[1][i] = bloom_get64(bytes + at.bit[1][i] / 8);
        word[2][i] = bloom_get64(bytes + at.bit[2][i] / 8);
    }

    for (present = 0, i = 0; i < n; i += BLOOM_SIMD_LANES) {
        present |= fuse_match_avx2(&at, word, i) << i;
    }

    return present;
}


static const bloom_simd_t  avx2 = {
    "avx2", test_avx2, add_avx2, test_fuse_avx2
};


#define AVX512  __attribute__((target("avx512f")))


AVX512 static uint64_t
test_avx512(const uint64_t *words, const bloom_place_t *place, unsigned n)
{
    __m512i          bit, mask;
    unsigned         i;
    uint64_t         missing, present;
    const uint64_t  *line;

    const __m512i  shifts = _mm512_setr_epi64(0, 6, 12, 18, 24, 30, 36, 42);

    for (present = 0, i = 0; i < n; i++) {
        line = line_of(words, place[i]);

        bit = _mm512_set1_epi64((long long) place[i].pattern);
        bit = _mm512_and_si512(_mm512_srlv_epi64(bit, shifts),
                               _mm512_set1_epi64(63));
        mask = _mm512_sllv_epi64(_mm512_set1_epi64(1), bit);

        missing = _mm512_testn_epi64_mask(_mm512_loadu_si512(line), mask);
        present |= (uint64_t) (missing == 0) << i;
    }

    return present;
}


/* One wide store was measured to be no faster than two narrower ones to the
 * same line, so additions use those of AVX2.  A batch of lookups in a fuse base
 * waits for memory, and wider vectors made a tenth of difference. */
static const bloom_simd_t  avx512 = {
    "avx512", test_avx512, add_avx2, test_fuse_avx2
};

#endif /* __x86_64__ */


const bloom_simd_t *
bloom_simd_list(unsigned i)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {

        if (__builtin_cpu_supports("avx512f") && i-- == 0) {
            return &avx512;
        }

        if (i-- == 0) {
            return &avx2;
        }
    }
#endif

    return i == 0 ? &portable : NULL;
}


/* Threads that choose at the same time all make the same choice. */
static const bloom_simd_t  *chosen;


const bloom_simd_t *
bloom_simd(void)
{
    const bloom_simd_t  *simd;

    simd = __atomic_load_n(&chosen, __ATOMIC_RELAXED);

    if (simd == NULL) {
        simd = bloom_simd_list(0);
        bloom_simd_use(simd);
    }

    return simd;
}


void
bloom_simd_use(const bloom_simd_t *simd)
{
    __atomic_store_n(&chosen, simd, __ATOMIC_RELAXED);
}
