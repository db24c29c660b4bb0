/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions pass keys to a command one by one: keys on its command line,
 * or in a file or standard input.
 */

#ifndef GIVEN_KEYS_H
#define GIVEN_KEYS_H

#include "bloom_key.h"
#include "options.h"


typedef struct {
    const char     *file;
    bloom_split_e   split;
} given_keys_t;

/* The options for a group whose values are a given_keys_t. */
extern const option_t  given_keys_options[];


/* Checks the options of a command with `n` keys on its command line.  Returns
 * CLI_OK; or CLI_ERROR after a message, if -f is used as well. */
int given_keys_check(const given_keys_t *given, int n);

/*
 * Calls `answer` for each of the `n` keys, or, if n is 0, for each key in the
 * file or standard input, also for empty ones.  Returns CLI_OK; or CLI_ERROR
 * after a message, if keys cannot be read.
 */
int given_keys_each(const given_keys_t *given, char **keys, int n,
    void (*answer)(const bloom_key_t *key, void *data), void *data);


#endif /* GIVEN_KEYS_H */
