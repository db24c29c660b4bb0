/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function finds out which format a list has, from its beginning.
 */

#ifndef LIST_GUESS_H
#define LIST_GUESS_H

#include "list_format.h"


/*
 * Runs the readers on the first block of a file, and stores the format that
 * fits.  Returns 0; or -1 with the reason in with->why: a phrase that follows
 * the name of the file in a message, such as `line 3: "x" has none of the
 * formats that --from auto knows`.
 */
int list_guess(list_format_t *format, const list_begin_t *with);


#endif /* LIST_GUESS_H */
