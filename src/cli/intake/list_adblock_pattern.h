/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The pattern of a rule in an Adblock-style list says which URLs the rule is
 * for.  Keys can stand for the pattern if it begins with a host:
 *
 *     ||bad.example^           the host and its subdomains
 *     ||bad.example/page^      the page, and what is in the directory
 *     ||bad.example/dir/       what is in the directory
 *     bad.example              like ||bad.example^
 */

#ifndef LIST_ADBLOCK_PATTERN_H
#define LIST_ADBLOCK_PATTERN_H

#include "list_adblock_options.h"


/* uBlock Origin ignores longer patterns. */
#define ADBLOCK_PATTERN_MAX   1024

/* The bytes of adblock_pattern_twin(). */
#define ADBLOCK_PATTERN_TWIN  (ADBLOCK_PATTERN_MAX + 32)

/* The parts of a pattern. */
typedef struct {
    bloom_key_t  host;
    bloom_key_t  path;                   /* with its slash and query */
    int          whole;                  /* the pattern ends with ^ */
    int          ended;                  /* the pattern ends with | */
} adblock_pattern_t;


/* Takes a pattern apart.  Returns NULL, or the reason why no key can stand for
 * it. */
const char *adblock_pattern_read(adblock_pattern_t *to, bloom_key_t pattern,
    list_keys_e keys);

/*
 * Writes what a rule has in common with the $badfilter rule that cancels a part
 * of it: ADBLOCK_PAGES or ADBLOCK_ALL.  `buf` has ADBLOCK_PATTERN_TWIN bytes.
 * Returns the key; its length is 0 if the pattern is too long.
 */
bloom_key_t adblock_pattern_twin(uint8_t *buf, bloom_key_t pattern,
    const adblock_options_t *options, int exempts, unsigned part);


#endif /* LIST_ADBLOCK_PATTERN_H */
