/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions print a JSON object to standard output, one member per line
 * or all on one line.
 *
 * The output is always valid UTF-8: each byte that is not part of a valid
 * character becomes U+FFFD.  Characters that a terminal would obey (visible.h)
 * are escaped.
 */

#ifndef JSON_H
#define JSON_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_key.h"


typedef struct {
    int  members;                        /* printed so far */
    int  compact;                        /* all on one line */
} json_t;


void json_begin(json_t *json, int compact);
void json_end(json_t *json);             /* ends the line, too */

void json_text(json_t *json, const char *name, const char *text);
void json_bytes(json_t *json, const char *name, const void *data, size_t len);
void json_hex(json_t *json, const char *name, const void *data, size_t len);
void json_count(json_t *json, const char *name, uint64_t value);
void json_number(json_t *json, const char *name, double value);
void json_bool(json_t *json, const char *name, int value);
void json_null(json_t *json, const char *name);

/* Prints "key" and, if the key is not valid UTF-8, its bytes as "key_hex". */
void json_key(json_t *json, const bloom_key_t *key);

/* Prints an array of texts. */
void json_texts(json_t *json, const char *name, const bloom_key_t *texts,
    unsigned n);

/* An array of objects is json_array(), then for each object json_object(),
 * which is told whether it is the first one, its members and
 * json_object_end(), and at last json_array_end(). */
void json_array(json_t *json, const char *name);
void json_object(json_t *object, int first);
void json_object_end(void);
void json_array_end(void);


#endif /* JSON_H */
