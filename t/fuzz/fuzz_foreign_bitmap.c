/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the import of bitmaps.  The input's first byte is the scheme and the
 * funnel that the user states.  The second byte is k, and the number by which
 * the bits that the user states are fewer than those of the file.  The rest is
 * the file.
 */

#include "fuzz_foreign.h"

#include "bloom_scheme.h"


static unsigned
schemes(void)
{
    unsigned  n;

    for (n = 0; bloom_scheme_list(n) != NULL; n++) { /* void */ }

    return n;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char       *name;
    bloom_foreign_t   said;

    if (size < 2) {
        return 0;
    }

    memset(&said, 0, sizeof(said));

    name = bloom_scheme_list((data[0] >> 2) % schemes());
    expect(bloom_scheme_parse(name, strlen(name), &said.layout, &said.hash)
           == 0);

    said.funnel = data[0] & 3;
    said.k = data[1] & 15;
    said.bits = (size - 2) * 8 - (data[1] >> 4);

    fuzz_foreign(&bloom_foreign_bitmap, &said, data + 2, size - 2);

    return 0;
}
