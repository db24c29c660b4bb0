/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions notice lists whose publisher wrote all URLs in lower case.
 * Keys are case-sensitive, so such a list does not find the original URLs.
 */

#ifndef LETTER_CASE_H
#define LETTER_CASE_H

#include "bloom_key.h"


/* What was seen of the URLs of a list.  All members are 0 at first. */
typedef struct {
    uint64_t  pages;                     /* URLs with more than a host */
    int       capitals;                  /* one of them has a capital letter
                                            behind its host */
} letter_case_t;


/* Looks at a canonical URL. */
void letter_case_see(letter_case_t *letters, const bloom_key_t *url);

/* Adds what another thread has seen. */
void letter_case_add(letter_case_t *letters, const letter_case_t *other);

/* Warns if there are many pages, and none has a capital letter. */
void letter_case_warn(const letter_case_t *letters);


#endif /* LETTER_CASE_H */
