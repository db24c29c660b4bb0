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
    "portable", test_portable, add_portable
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


static const bloom_simd_t  avx2 = { "avx2", test_avx2, add_avx2 };


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
 * same line, so additions use those of AVX2. */
static const bloom_simd_t  avx512 = { "avx512", test_avx512, add_avx2 };

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
