/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions list the formats of other systems, and find a format by its
 * name or by the first bytes of a source.
 */

#ifndef BLOOM_FOREIGN_FORMATS_H
#define BLOOM_FOREIGN_FORMATS_H

#include "bloom_foreign.h"

#pragma GCC visibility push(hidden)


/* Returns the i-th format, from 0; NULL after the last one. */
const bloom_foreign_format_t *bloom_foreign_formats_list(unsigned i);

/* Returns the format of a name; NULL if the name is unknown. */
const bloom_foreign_format_t *bloom_foreign_formats_find(const char *name);

/*
 * Returns the format that a source seems to have, for a hint to a user who
 * named another one; NULL if no format matches.
 */
const bloom_foreign_format_t *bloom_foreign_formats_guess(const uint8_t *head,
    size_t len, uint64_t size);


#pragma GCC visibility pop

#endif /* BLOOM_FOREIGN_FORMATS_H */
