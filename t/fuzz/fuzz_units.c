/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the parsers of counts, sizes and rates, which people write in
 * configurations and on command lines.
 */

#include <inttypes.h>

#include "fuzz.h"

#include "bloom_units.h"


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int          n, rc;
    char         text[32];
    size_t       zeros;
    double       rate;
    uint64_t     count, bytes, again;
    const char  *given;

    given = (const char *) data;

    /* a failure does not change the value */

    count = 1;
    bytes = 1;
    rate = 2;

    rc = bloom_units_count(given, size, &count);

    if (rc != 0) {
        expect(rc == -1 && count == 1);

    } else {
        expect(given[0] >= '0' && given[0] <= '9');

        if (given[size - 1] <= '9') {

            /* without a unit, the digits are those of the number */

            n = snprintf(text, sizeof(text), "%" PRIu64, count);

            for (zeros = 0; given[zeros] == '0' && zeros + 1 < size;
                 zeros++) { /* void */ }

            expect(size - zeros == (size_t) n
                   && memcmp(given + zeros, text, (size_t) n) == 0);
        }
    }

    if (bloom_units_bytes(given, size, &bytes) == 0) {

        /* k, m and g are greater for bytes than for counts */

        expect(rc == 0 && bytes >= count);

        n = snprintf(text, sizeof(text), "%" PRIu64, bytes);
        expect(bloom_units_bytes(text, (size_t) n, &again) == 0);
        expect(again == bytes);

    } else {
        expect(bytes == 1);
    }

    if (bloom_units_rate(given, size, &rate) == 0) {
        expect(rate > 0 && rate < 1);

        n = snprintf(text, sizeof(text), "%.17g", rate);
        expect(bloom_units_rate(text, (size_t) n, &rate) == 0);

    } else {
        expect(rate == 2);
    }

    return 0;
}
