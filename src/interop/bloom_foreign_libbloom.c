/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bloom_save() of libbloom 2.0 on x86-64 writes a C struct as it is in memory,
 * little-endian:
 *
 *     0   "libbloom2"           9   size of the struct, 2 bytes: 64
 *     11  the struct; offsets in it:
 *             0   entries, 4 bytes        8   bits, 8 bytes
 *             16  bytes, 8                24  k, 1 byte
 *             32  error rate, a double    41  major version, 1 byte: 2
 *     75  bytes of bits
 */

#include <inttypes.h>
#include <stdio.h>

#include "bloom_foreign.h"
#include "bloom_bytes.h"
#include "bloom_hasher.h"

#define STRUCT  11
#define HEAD    75


static int
parse(bloom_foreign_t *f, const uint8_t *head, size_t len, uint64_t size)
{
    double          fpr;
    uint64_t        bits, bytes;
    const uint8_t  *s;

    s = head + STRUCT;

    if (len < HEAD || memcmp(head, "libbloom2", 9) != 0) {
        return bloom_foreign_fail(f, "is not a libbloom file: it does not "
                                  "begin with \"libbloom2\" and a header");
    }

    if (head[9] != HEAD - STRUCT || head[10] != 0 || s[41] != 2) {
        return bloom_foreign_fail(f, "was not written by libbloom 2.x on a "
                                  "64-bit little-endian machine: its struct "
                                  "has %d bytes and version %d",
                                  head[9] | head[10] << 8, s[41]);
    }

    memcpy(&fpr, s + 32, 8);
    bits = bloom_get64(s + 8);
    bytes = bloom_get64(s + 16);

    if (bloom_foreign_geometry(f, BLOOM_LAYOUT_DOUBLE, bits, s[24]) != 0
        || bloom_foreign_hasher(f, BLOOM_HASH_MURMUR2, 0) != 0)
    {
        return -1;
    }

    if (bytes != (bits + 7) / 8) {
        return bloom_foreign_fail(f, "is not a libbloom file: it says %" PRIu64
                                  " bits in %" PRIu64 " bytes", bits, bytes);
    }

    f->payload = HEAD;
    f->bytes = bytes;
    f->link_bytes[0] = bytes;
    f->order = BLOOM_ORDER_LE;

    if (bloom_foreign_size(f, size) != 0) {
        return -1;
    }

    bloom_foreign_promise(f, bloom_get32(s), fpr);
    bloom_foreign_keep(f, BLOOM_ORIGIN_LIBBLOOM, 0);

    return 0;
}


const bloom_foreign_format_t  bloom_foreign_libbloom = {
    "libbloom", BLOOM_ORIGIN_LIBBLOOM, "a libbloom file", parse, NULL
};
