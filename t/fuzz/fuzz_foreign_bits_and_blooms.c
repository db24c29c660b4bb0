/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the parser of bits-and-blooms in its binary form.
 */

#include "fuzz_foreign.h"


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_foreign_funnels(&bloom_foreign_bits_and_blooms, data, size);

    return 0;
}
