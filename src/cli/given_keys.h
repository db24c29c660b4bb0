/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Given keys are those that a command looks at one by one: they are named on
 * its command line, or read from a file or standard input.
 */

#ifndef GIVEN_KEYS_H
#define GIVEN_KEYS_H

#include "bloom_key.h"
#include "options.h"


typedef struct {
    const char     *file;
    bloom_split_e   split;
} given_keys_t;

/* The options, whose values go to a given_keys_t. */
extern const option_t  given_keys_options[];


/* Returns CLI_OK; or CLI_ERROR having said that keys come from two places. */
int given_keys_check(const given_keys_t *given, int n);

/*
 * Calls `answer` for each of the keys, or, if n is 0, for each key that is
 * read.  Returns CLI_OK; or CLI_ERROR having said what cannot be read.
 */
int given_keys_each(const given_keys_t *given, char **keys, int n,
    void (*answer)(const bloom_key_t *key, void *data), void *data);


#endif /* GIVEN_KEYS_H */
