/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Options of rules in Adblock-style lists, read as uBlock Origin reads them.
 *
 *     ||bad.example^$document,popup
 *
 * Options with types of requests add up: a rule with `document` and other types
 * is also for pages.  Each other option but `important` narrows the rule.
 */

#ifndef LIST_ADBLOCK_OPTIONS_H
#define LIST_ADBLOCK_OPTIONS_H

#include "list_line.h"


/* What the options of a rule say.  All members are 0 for a rule without any. */
typedef struct {
    const char  *why;                    /* not NULL: the rule does not apply
                                            to every request for a page; the
                                            reason */
    uint32_t     types;                  /* of requests that it is for */
    uint32_t     not_types;              /* that it is not for */
    uint32_t     party;                  /* it is for requests of the site to
                                            itself, as a page is */
    int          important;
    int          badfilter;              /* it cancels another rule */
} adblock_options_t;

/* What a rule blocks for a page: uBlock Origin makes two rules of a rule such
 * as ||bad.example^$all, and $badfilter cancels each of them by itself. */
enum {
    ADBLOCK_PAGES = 1,                   /* `document` is among the types */
    ADBLOCK_ALL   = 2                    /* requests of every type */
};


/* Cuts the options off a rule.  Returns 1 if there are options. */
int adblock_options_cut(bloom_key_t *rule, bloom_key_t *options);

void adblock_options_read(adblock_options_t *to, bloom_key_t options,
    int exempts);

/* Returns which of ADBLOCK_PAGES and ADBLOCK_ALL the rule is. */
unsigned adblock_options_parts(const adblock_options_t *options);


#endif /* LIST_ADBLOCK_OPTIONS_H */
