/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the parser of Spark filters of both versions, with every funnel.
 */

#include "fuzz_foreign.h"


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_foreign_funnels(&bloom_foreign_spark, data, size);

    return 0;
}
