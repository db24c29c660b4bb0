/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This reader finds the keys that `ngx-bloom journal --keys --json` prints: an
 * object per line, with "key" first and then, if the key is not UTF-8,
 * "key_hex".  A key may contain any byte.
 */

#ifndef LIST_JSON_H
#define LIST_JSON_H

#include "list_reader.h"


extern const list_reader_t  list_json;


#endif /* LIST_JSON_H */
