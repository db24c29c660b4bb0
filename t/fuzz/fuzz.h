/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header has what every fuzzer needs: its entry point, and a macro that
 * aborts if a condition does not hold, which libFuzzer reports.
 */

#ifndef BLOOM_FUZZ_H
#define BLOOM_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define expect(what)                                                         \
    do {                                                                     \
        if (!(what)) {                                                       \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__,       \
                    #what);                                                  \
            abort();                                                         \
        }                                                                    \
    } while (0)


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


#endif /* BLOOM_FUZZ_H */
