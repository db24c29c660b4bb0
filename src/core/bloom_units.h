/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Numbers are read here as people write them: counts, sizes, rates.
 */

#ifndef BLOOM_UNITS_H
#define BLOOM_UNITS_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


/*
 * Each reads all of `len` bytes at `text` and returns 0, or -1 if they are not
 * such a number or it is out of its type's range.
 */

/* A count: digits and an optional decimal k, m or g: "10m" is 10,000,000. */
int bloom_units_count(const char *text, size_t len, uint64_t *count);

/* Bytes: digits and an optional binary k, m or g: "64m" is 67,108,864. */
int bloom_units_bytes(const char *text, size_t len, uint64_t *bytes);

/* A rate, 0 < rate < 1: "0.001", "1e-3" or "0.1%". */
int bloom_units_rate(const char *text, size_t len, double *rate);


#pragma GCC visibility pop

#endif /* BLOOM_UNITS_H */
