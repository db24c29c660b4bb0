/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the conversion of bits-and-blooms' JSON: the binary form is the same
 * whether it is made in place or not, and never longer than the JSON.  It is
 * then tested as a file.
 */

#include "fuzz_foreign.h"

#include "bloom_foreign_json.h"


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char      error[BLOOM_FOREIGN_ERROR_LEN];
    int64_t   n, again;
    uint8_t  *copy, *dst;

    /* memory of exactly that size: sanitizers notice a read beyond */

    copy = malloc(size);
    dst = malloc(size);
    memcpy(copy, data, size);

    n = bloom_foreign_json(dst, copy, size, error);
    again = bloom_foreign_json(copy, copy, size, error);

    expect(n == again);

    if (n != -1) {
        expect(n >= 16 && n <= (int64_t) size);
        expect(memcmp(dst, copy, (size_t) n) == 0);

        fuzz_foreign_funnels(&bloom_foreign_bits_and_blooms, dst, (size_t) n);

    } else {
        expect(memchr(error, '\0', sizeof(error)) != NULL);
    }

    free(copy);
    free(dst);

    return 0;
}
