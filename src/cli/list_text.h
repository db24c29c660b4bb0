/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the keys of plain lists: a host or URL, or any other key,
 * on each line.
 *
 * A line may have blanks around its key.  Lines that begin with # or !, and the
 * rest of a line after " #", are comments.  For hosts and URLs, "*." before a
 * name is left out, and for hosts, so are the scheme and an empty path.
 */

#ifndef LIST_TEXT_H
#define LIST_TEXT_H

#include "list_line.h"


list_result_e list_text_next(list_line_t *at);


#endif /* LIST_TEXT_H */
