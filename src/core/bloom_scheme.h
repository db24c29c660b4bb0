/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A scheme is a layout and a hash that go together, as another system has them.
 */

#ifndef BLOOM_SCHEME_H
#define BLOOM_SCHEME_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


/* Returns the scheme's name; NULL if these two make none, or if the layout is
 * one of our own. */
const char *bloom_scheme_name(uint32_t layout, uint32_t hash);

/* Finds the pair of a name, which has the funnel "bytes"; -1 if the name is
 * unknown. */
int bloom_scheme_parse(const char *name, size_t len, uint32_t *layout,
    uint32_t *hash);

/* Returns the name of the i-th scheme that a plain bitmap can have; NULL behind
 * the last. */
const char *bloom_scheme_list(unsigned i);

/* Returns 1 if filters of this layout can have this hash. */
int bloom_scheme_valid(uint32_t layout, uint32_t hash);


#pragma GCC visibility pop

#endif /* BLOOM_SCHEME_H */
