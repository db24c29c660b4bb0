/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions print keys so that another command reads the same keys.
 */

#ifndef KEY_PRINT_H
#define KEY_PRINT_H

#include "bloom_key.h"


/* Returns why a reader would not get this key unchanged if the key ends with a
 * line end or, with `null`, with a zero byte; NULL if it would. */
const char *key_print_refused(const bloom_key_t *key, int null);

/* Prints a key and its end.  `first` tells that it is the first key of the
 * output. */
void key_print(const bloom_key_t *key, int null, int first);


#endif /* KEY_PRINT_H */
