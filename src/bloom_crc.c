
#include "bloom_crc.h"
#include "bloom_bytes.h"

#define POLYNOMIAL  0x82f63b78           /* 0x1edc6f41, bits reversed */


/* table[k][b]: the CRC register after byte b and k zero bytes. */
static uint32_t  table[8][256];


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

__attribute__((target("sse4.2")))
static uint32_t
crc32c_sse42(uint32_t crc, const void *data, size_t len)
{
    uint64_t        c;
    const uint8_t  *p;

    p = data;
    c = (uint32_t) ~crc;

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
