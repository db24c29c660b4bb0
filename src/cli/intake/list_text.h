/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the keys of plain lists: a host or URL, or any other key,
 * on each line.
 *
 * A line may have blanks around its key.  Lines that begin with # or !, and the
 * rest of a line after " #", are comments.
 *
 * For hosts and URLs
 *     - lines that begin with ; are comments, too
 *     - "*." before a name is left out, and for hosts, so are the scheme and an
 *       empty path
 *     - rules of Adblock lists, and regular expressions as Pi-hole has them,
 *       are skipped
 */

#ifndef LIST_TEXT_H
#define LIST_TEXT_H

#include "list_reader.h"


extern const list_reader_t  list_text;

/* The reader of lines that are keys as they are. */
extern const list_reader_t  list_keys;

/* Reads at->key, which is not empty, as the entry of a line where keys are
 * hosts or URLs.  at->buf may have it. */
list_result_e list_text_entry(list_line_t *at);


#endif /* LIST_TEXT_H */
