/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read JSON that a server sent.
 *
 * A document is a list of tokens: a value, and for an object or an array the
 * tokens of all that is in it.  The server is not trusted: the number of tokens
 * and the depth are bounded.
 */

#ifndef JSON_READ_H
#define JSON_READ_H

#include <stddef.h>
#include <stdint.h>


typedef enum {
    JSON_READ_NULL,
    JSON_READ_BOOL,
    JSON_READ_NUMBER,
    JSON_READ_TEXT,
    JSON_READ_OBJECT,                    /* names and values in turns */
    JSON_READ_ARRAY
} json_read_kind_t;

typedef struct {
    json_read_kind_t  kind;
    size_t            begin;             /* in the text; after the quote */
    size_t            len;               /* without quotes, not unescaped */
    uint32_t          next;              /* the token after this value */
} json_token_t;

typedef struct {
    const char    *text;
    json_token_t  *tokens;               /* the first is the whole document */
    uint32_t       n;
} json_doc_t;


/* Reads a text that has one value.  Returns 0; or -1 if it is not valid JSON.
 * json_read_free() frees the document in both cases. */
int json_read(json_doc_t *doc, const char *text, size_t len);
void json_read_free(json_doc_t *doc);

/* Returns the member of an object, by a path of names with dots: "image.as_of".
 * Returns NULL if it is missing. */
const json_token_t *json_read_member(const json_doc_t *doc,
    const json_token_t *object, const char *path);

/* Walk through the members of an object or the values of an array.  Each
 * returns NULL at the end. */
const json_token_t *json_read_first(const json_doc_t *doc,
    const json_token_t *parent);
const json_token_t *json_read_next(const json_doc_t *doc,
    const json_token_t *parent, const json_token_t *token);

/* Each copies a value and returns 0; or returns -1 if the token is NULL or has
 * another kind, or if the value does not fit.  A text gets a null byte at its
 * end and must not contain one. */
int json_read_text(const json_doc_t *doc, const json_token_t *token,
    char *text, size_t size);
int json_read_count(const json_doc_t *doc, const json_token_t *token,
    uint64_t *value);
int json_read_bool(const json_doc_t *doc, const json_token_t *token,
    int *value);


#endif /* JSON_READ_H */
