/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A scheme is the pair of a layout and a hash that another system uses.
 */

#ifndef BLOOM_SCHEME_H
#define BLOOM_SCHEME_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


/* Returns the name of the scheme with this layout and hash; NULL if there is
 * none. */
const char *bloom_scheme_name(uint32_t layout, uint32_t hash);

/* Finds the layout and the hash of a scheme for plain bitmaps; its funnel is
 * "bytes".  Returns 0, or -1 if the name is unknown. */
int bloom_scheme_parse(const char *name, size_t len, uint32_t *layout,
    uint32_t *hash);

/* Returns the name of the i-th scheme for plain bitmaps, from 0; NULL after the
 * last one. */
const char *bloom_scheme_list(unsigned i);

/* Returns 1 if a filter of this layout can have this hash, else 0. */
int bloom_scheme_valid(uint32_t layout, uint32_t hash);


#pragma GCC visibility pop

#endif /* BLOOM_SCHEME_H */
