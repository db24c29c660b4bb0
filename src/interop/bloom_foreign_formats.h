/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header lists the formats of other systems, and finds one by its name or
 * by a source's first bytes.
 */

#ifndef BLOOM_FOREIGN_FORMATS_H
#define BLOOM_FOREIGN_FORMATS_H

#include "bloom_foreign.h"

#pragma GCC visibility push(hidden)


/* Returns the i-th format, from 0; NULL behind the last. */
const bloom_foreign_format_t *bloom_foreign_formats_list(unsigned i);

/* Returns the format of a name; NULL if it is unknown. */
const bloom_foreign_format_t *bloom_foreign_formats_find(const char *name);

/*
 * Returns the format that a source seems to have, to tell someone who named
 * another one; NULL if none is sure.
 */
const bloom_foreign_format_t *bloom_foreign_formats_guess(const uint8_t *head,
    size_t len, uint64_t size);


#pragma GCC visibility pop

#endif /* BLOOM_FOREIGN_FORMATS_H */
