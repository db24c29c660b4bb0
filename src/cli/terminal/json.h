/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions write JSON objects to standard output, through the writer of
 * the core.
 */

#ifndef JSON_H
#define JSON_H

#include "bloom_json_writer.h"
#include "bloom_key.h"


/* Begins an object: with a line for each of its members, or all on one line. */
void json_begin(bloom_json_writer_t *json, int compact);

/* Ends the object and its line. */
void json_end(bloom_json_writer_t *json);

/* Writes "key" and, if the key is not valid UTF-8, its bytes as "key_hex". */
void json_key(bloom_json_writer_t *json, const bloom_key_t *key);

/* Passes bytes to a FILE: the sink of a writer. */
void json_sink(void *file, const void *bytes, size_t len);


#endif /* JSON_H */
