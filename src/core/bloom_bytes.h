/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read and write little-endian numbers in byte strings,
 * whatever the machine's own order.
 */

#ifndef BLOOM_BYTES_H
#define BLOOM_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>


#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define bloom_le64(x)  __builtin_bswap64(x)
#define bloom_le32(x)  __builtin_bswap32(x)
#else
#define bloom_le64(x)  (x)
#define bloom_le32(x)  (x)
#endif


static inline uint16_t
bloom_get16(const uint8_t *p)
{
    return (uint16_t) (p[0] | p[1] << 8);
}


static inline void
bloom_put16(uint8_t *p, uint16_t n)
{
    p[0] = (uint8_t) n;
    p[1] = (uint8_t) (n >> 8);
}


static inline uint64_t
bloom_get64(const void *p)
{
    uint64_t  v;

    memcpy(&v, p, sizeof(v));

    return bloom_le64(v);
}


static inline uint32_t
bloom_get32(const void *p)
{
    uint32_t  v;

    memcpy(&v, p, sizeof(v));

    return bloom_le32(v);
}


/*
 * Returns the n bytes at p, 0 to 7 of them, as a number.  It reads overlapping
 * pieces instead of looping over the bytes.
 */
static inline uint64_t
bloom_get_short(const uint8_t *p, size_t n)
{
    size_t  middle;

    if (n >= 4) {
        return bloom_get32(p)
               | (uint64_t) bloom_get32(p + n - 4) << (8 * (n - 4));
    }

    if (n == 0) {
        return 0;
    }

    middle = n / 2;

    return p[0] | (uint64_t) p[middle] << (8 * middle)
           | (uint64_t) p[n - 1] << (8 * (n - 1));
}


static inline void
bloom_put64(void *p, uint64_t v)
{
    v = bloom_le64(v);
    memcpy(p, &v, sizeof(v));
}


static inline void
bloom_put32(void *p, uint32_t v)
{
    v = bloom_le32(v);
    memcpy(p, &v, sizeof(v));
}


/* Returns 1 if all bytes are zero, else 0. */
static inline int
bloom_all_zero(const uint8_t *p, size_t len)
{
    while (len--) {
        if (*p++ != 0) {
            return 0;
        }
    }

    return 1;
}


#endif /* BLOOM_BYTES_H */
