/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A document is JSON that a server sent, as Jansson parses it.  The server is
 * not trusted: the memory of a document is bounded.
 *
 * A path names a member of an object in an object: "image.as_of".
 */

#ifndef DOCUMENT_H
#define DOCUMENT_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>


/* Parses a text that is one value.  Returns NULL if it is not valid JSON, or
 * has more than a million values; else json_decref() frees the document. */
json_t *document_parse(const char *text, size_t len);

/* Returns a member, which may be null; NULL if it is missing. */
json_t *document_member(const json_t *object, const char *path);

/* Returns a text, which lives as long as the document; NULL if the member is no
 * text. */
const char *document_text(const json_t *object, const char *path);

/* Stores a number and returns 0; or returns -1 if the member is no integer, or
 * less than 0. */
int document_count(const json_t *object, const char *path, uint64_t *count);

/* Returns 1 if the member is true, 0 if it is false, else -1. */
int document_flag(const json_t *object, const char *path);


#endif /* DOCUMENT_H */
