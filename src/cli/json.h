/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions print a JSON object to standard output, one member a line or
 * all on one line.
 *
 * Text that is not valid UTF-8 becomes valid: each byte that fits nowhere
 * turns into U+FFFD.  Characters that a terminal would obey (visible.h) are
 * escaped.
 */

#ifndef JSON_H
#define JSON_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_key.h"


typedef struct {
    int  members;                        /* so far */
    int  compact;                        /* all on one line */
} json_t;


void json_begin(json_t *json, int compact);
void json_end(json_t *json);             /* and a line's end */

void json_text(json_t *json, const char *name, const char *text);
void json_bytes(json_t *json, const char *name, const void *data, size_t len);
void json_hex(json_t *json, const char *name, const void *data, size_t len);
void json_count(json_t *json, const char *name, uint64_t value);
void json_number(json_t *json, const char *name, double value);
void json_bool(json_t *json, const char *name, int value);
void json_null(json_t *json, const char *name);

/* A key, and if it is not valid UTF-8 its bytes as "key_hex", too. */
void json_key(json_t *json, const bloom_key_t *key);

/* An array of texts. */
void json_texts(json_t *json, const char *name, const bloom_key_t *texts,
    unsigned n);


#endif /* JSON_H */
