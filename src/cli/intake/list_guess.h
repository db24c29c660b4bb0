/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function finds out which format a list has, from its beginning.
 */

#ifndef LIST_GUESS_H
#define LIST_GUESS_H

#include "list_line.h"


#define LIST_GUESS_WHY  1024


/*
 * Returns the name of the format, as --from takes it; or NULL, with the reason
 * in why[]: a phrase that follows the name of the file in a message, such as
 * `line 3: "x" fits none of the formats that --from auto knows`.
 */
const char *list_guess(const uint8_t *data, size_t len,
    char why[LIST_GUESS_WHY]);


#endif /* LIST_GUESS_H */
