/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the ends of lines, with AVX2 if the processor has it, and
 * counts them.
 */

#include <string.h>

#include "line_ends.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif


size_t
line_ends_find_portable(const uint8_t *data, size_t *from, size_t len,
    uint8_t delimiter, uint32_t *ends, size_t room)
{
    size_t          n;
    const uint8_t  *p;

    for (n = 0; n + LINE_ENDS_MIN <= room && *from < len; n++) {
        p = memchr(data + *from, delimiter, len - *from);

        if (p == NULL) {
            *from = len;
            break;
        }

        ends[n] = (uint32_t) (p - data);
        *from = (size_t) (p - data) + 1;
    }

    return n;
}


#if defined(__x86_64__)

/*
 * Searches 64 bytes at a time.  It writes eight indices at once, whether or not
 * there are so many: a branch for each would be mispredicted too often.
 */
__attribute__((target("avx2,bmi,popcnt")))
static size_t
find_avx2(const uint8_t *data, size_t *from, size_t len, uint8_t delimiter,
    uint32_t *ends, size_t room)
{
    size_t    n, at;
    __m256i   a, b, wanted;
    uint32_t  i, found;
    uint64_t  mask;

    wanted = _mm256_set1_epi8((char) delimiter);

    for (n = 0, at = *from;
         n + LINE_ENDS_MIN <= room && len - at >= 64;
         at += 64)
    {
        a = _mm256_loadu_si256((const __m256i *) (const void *) (data + at));
        b = _mm256_loadu_si256((const __m256i *) (const void *)
                               (data + at + 32));

        mask = (uint32_t) _mm256_movemask_epi8(_mm256_cmpeq_epi8(a, wanted))
               | (uint64_t) (uint32_t)
                 _mm256_movemask_epi8(_mm256_cmpeq_epi8(b, wanted)) << 32;

        found = (uint32_t) _mm_popcnt_u64(mask);

#pragma GCC unroll 8
        for (i = 0; i < 8; i++) {
            ends[n + i] = (uint32_t) (at + _tzcnt_u64(mask));
            mask = _blsr_u64(mask);
        }

        for ( /* void */ ; i < found; i++) {
            ends[n + i] = (uint32_t) (at + _tzcnt_u64(mask));
            mask = _blsr_u64(mask);
        }

        n += found;
    }

    *from = at;

    if (len - at < 64) {
        n += line_ends_find_portable(data, from, len, delimiter, ends + n,
                                 room - n);
    }

    return n;
}


/* Counts 64 bytes at a time.  Returns how many bytes it has seen. */
__attribute__((target("avx2,popcnt")))
static size_t
count_avx2(const uint8_t *data, size_t len, int delimiter, uint64_t *count)
{
    size_t    at;
    __m256i   a, b, wanted;
    uint32_t  low, high;

    wanted = _mm256_set1_epi8((char) delimiter);

    for (at = 0; len - at >= 64; at += 64) {
        a = _mm256_loadu_si256((const __m256i *) (const void *) (data + at));
        b = _mm256_loadu_si256((const __m256i *) (const void *)
                               (data + at + 32));

        low = (uint32_t) _mm256_movemask_epi8(_mm256_cmpeq_epi8(a, wanted));
        high = (uint32_t) _mm256_movemask_epi8(_mm256_cmpeq_epi8(b, wanted));

        *count += (uint64_t) _mm_popcnt_u64((uint64_t) high << 32 | low);
    }

    return at;
}

#endif


size_t
line_ends_find(const uint8_t *data, size_t *from, size_t len, uint8_t delimiter,
    uint32_t *ends, size_t room)
{
#if defined(__x86_64__)

    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi")) {
        return find_avx2(data, from, len, delimiter, ends, room);
    }

#endif

    return line_ends_find_portable(data, from, len, delimiter, ends, room);
}


uint64_t
line_ends_count(const uint8_t *data, size_t len, int delimiter)
{
    size_t    i;
    uint64_t  n;

    n = 0;
    i = 0;

#if defined(__x86_64__)

    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt")) {
        i = count_avx2(data, len, delimiter, &n);
    }

#endif

    for ( /* void */ ; i < len; i++) {
        n += data[i] == delimiter;
    }

    return n;
}
