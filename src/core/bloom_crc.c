/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The checksum is computed by the processor's instruction for it, or by tables
 * if the processor has no such instruction.  Both take eight bytes at a time.
 */

#include <string.h>

#include "bloom_crc.h"
#include "bloom_bytes.h"

#define POLYNOMIAL  0x82f63b78           /* 0x1edc6f41, bits reversed */


/* table[k][b]: the CRC register after byte b and k zero bytes. */
static uint32_t  table[8][256];


#if defined(__x86_64__)
static void make_skip(void);
#endif


__attribute__((constructor))
static void
make_table(void)
{
    uint32_t  b, k, bit, crc;

    for (b = 0; b < 256; b++) {
        crc = b;

        for (bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) ? POLYNOMIAL : 0);
        }

        table[0][b] = crc;
    }

    for (k = 1; k < 8; k++) {
        for (b = 0; b < 256; b++) {
            crc = table[k - 1][b];
            table[k][b] = (crc >> 8) ^ table[0][crc & 0xff];
        }
    }

#if defined(__x86_64__)
    make_skip();
#endif
}


uint32_t
bloom_crc32c_portable(uint32_t crc, const void *data, size_t len)
{
    uint64_t        x;
    const uint8_t  *p;

    p = data;
    crc = ~crc;

    for ( /* void */ ; len >= 8; len -= 8, p += 8) {
        x = bloom_get64(p) ^ crc;

        crc = table[7][x & 0xff]
              ^ table[6][(x >> 8) & 0xff]
              ^ table[5][(x >> 16) & 0xff]
              ^ table[4][(x >> 24) & 0xff]
              ^ table[3][(x >> 32) & 0xff]
              ^ table[2][(x >> 40) & 0xff]
              ^ table[1][(x >> 48) & 0xff]
              ^ table[0][x >> 56];
    }

    while (len--) {
        crc = (crc >> 8) ^ table[0][(crc ^ *p++) & 0xff];
    }

    return ~crc;
}


#if defined(__x86_64__)

/*
 * The instruction takes three cycles, but the processor can start one in every
 * cycle.  So three chains run side by side, over three consecutive lanes of
 * LANE bytes.  The CRC register is linear in its previous value: the result of
 * a lane is advanced over the next one as if that were zeros, and the result of
 * the next lane is added by XOR.
 */
#define LANE_SHIFT  11
#define LANE        (1 << LANE_SHIFT)

/* skip[k][b]: the register whose byte k is b, after LANE zero bytes. */
static uint32_t  skip[4][256];


static inline uint32_t
skip_over(uint32_t by[4][256], uint32_t crc)
{
    return by[0][crc & 0xff] ^ by[1][(crc >> 8) & 0xff]
           ^ by[2][(crc >> 16) & 0xff] ^ by[3][crc >> 24];
}


/* Makes the table for one zero byte, then doubles it to 2, 4, ... LANE. */
static void
make_skip(void)
{
    uint32_t  b, k, i, half[4][256];

    for (b = 0; b < 256; b++) {
        skip[0][b] = table[0][b];

        for (k = 1; k < 4; k++) {
            skip[k][b] = b << (8 * (k - 1));
        }
    }

    for (i = 0; i < LANE_SHIFT; i++) {
        memcpy(half, skip, sizeof(half));

        for (k = 0; k < 4; k++) {
            for (b = 0; b < 256; b++) {
                skip[k][b] = skip_over(half, half[k][b]);
            }
        }
    }
}


__attribute__((target("sse4.2")))
static uint32_t
crc32c_sse42(uint32_t crc, const void *data, size_t len)
{
    size_t          i;
    uint64_t        c, d, e;
    const uint8_t  *p;

    p = data;
    c = (uint32_t) ~crc;

    for ( /* void */ ; len >= 3 * LANE; len -= 3 * LANE, p += 3 * LANE) {
        d = 0;
        e = 0;

        for (i = 0; i < LANE; i += 8) {
            c = __builtin_ia32_crc32di(c, bloom_get64(p + i));
            d = __builtin_ia32_crc32di(d, bloom_get64(p + LANE + i));
            e = __builtin_ia32_crc32di(e, bloom_get64(p + 2 * LANE + i));
        }

        c = skip_over(skip, (uint32_t) c) ^ d;
        c = skip_over(skip, (uint32_t) c) ^ e;
    }

    for ( /* void */ ; len >= 8; len -= 8, p += 8) {
        c = __builtin_ia32_crc32di(c, bloom_get64(p));
    }

    crc = (uint32_t) c;

    while (len--) {
        crc = __builtin_ia32_crc32qi(crc, *p++);
    }

    return ~crc;
}

#endif


uint32_t
bloom_crc32c(uint32_t crc, const void *data, size_t len)
{
#if defined(__x86_64__)

    if (__builtin_cpu_supports("sse4.2")) {
        return crc32c_sse42(crc, data, len);
    }

#endif

    return bloom_crc32c_portable(crc, data, len);
}
