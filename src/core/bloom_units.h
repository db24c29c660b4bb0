/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read numbers as people write them: counts, sizes and rates.
 */

#ifndef BLOOM_UNITS_H
#define BLOOM_UNITS_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


/*
 * Each function returns 0 if all `len` bytes at `text` are such a number, or -1
 * if they are not or if the number is out of range.
 */

/* Reads a count: digits and an optional decimal k, m or g, so that "10m" is
 * 10,000,000. */
int bloom_units_count(const char *text, size_t len, uint64_t *count);

/* Reads a number of bytes: digits and an optional binary k, m or g, so that
 * "64m" is 67,108,864. */
int bloom_units_bytes(const char *text, size_t len, uint64_t *bytes);

/* Reads a rate, 0 < rate < 1, such as "0.001", "1e-3" or "0.1%". */
int bloom_units_rate(const char *text, size_t len, double *rate);

/* Reads a percentage of any size, such as "20%" or "0.5%", as 0.2 or 0.005. */
int bloom_units_percent(const char *text, size_t len, double *part);


#pragma GCC visibility pop

#endif /* BLOOM_UNITS_H */
