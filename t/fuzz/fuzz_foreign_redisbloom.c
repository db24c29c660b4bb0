/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the parser of RedisBloom dumps, with all chunks in one file.
 */

#include "fuzz_foreign.h"


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_foreign_funnels(&bloom_foreign_redisbloom, data, size);

    return 0;
}
