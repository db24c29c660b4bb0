/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function finds out which format a list has, from its beginning.
 */

#ifndef LIST_GUESS_H
#define LIST_GUESS_H

#include "list_line.h"


/*
 * Returns the name of the format, as --from takes it; or NULL, with the reason
 * in *why: a phrase that follows the name of the file in a message.
 */
const char *list_guess(const uint8_t *data, size_t len, const char **why);


#endif /* LIST_GUESS_H */
