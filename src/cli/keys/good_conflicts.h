/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Conflicts are expressions of good keys that the finished filter takes for
 * present because a list has them (good_keys.h).  These functions tell them
 * from false positives.
 */

#ifndef GOOD_CONFLICTS_H
#define GOOD_CONFLICTS_H

#include "good_search.h"


/* Keeps the state of the n lists, before they are read. */
void good_conflicts_begin(good_keys_t *good, char **lists, int n);

/* Finds the conflicts among the candidates: good->conflicts and good->example.
 * Returns CLI_OK; or CLI_ERROR after a message, if a list cannot be read
 * again. */
int good_conflicts_find(good_search_t *search, char **lists, int n);

/* Names the conflicts.  Returns CLI_ERROR. */
int good_conflicts_refuse(const good_search_t *search, const char *output);

/* Prints the conflicts that became exceptions. */
void good_conflicts_report(const good_keys_t *good,
    const key_options_t *from);

void good_conflicts_free(good_search_t *search);


#endif /* GOOD_CONFLICTS_H */
