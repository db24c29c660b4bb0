/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads JSON into tokens.
 */

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json_read.h"

#define TOKENS_MAX  1000000
#define DEPTH_MAX   32


typedef struct {
    json_doc_t  *doc;
    const char  *p;
    const char  *end;
    uint32_t     room;                   /* for tokens */
    int          depth;
} reader_t;


static int read_value(reader_t *reader);


static void
skip_blanks(reader_t *reader)
{
    while (reader->p != reader->end && *reader->p != '\0'
           && strchr(" \t\r\n", *reader->p) != NULL)
    {
        reader->p++;
    }
}


/* Skips a character, after blanks.  Returns 1, or 0 if it is not there. */
static int
skip(reader_t *reader, char c)
{
    skip_blanks(reader);

    if (reader->p == reader->end || *reader->p != c) {
        return 0;
    }

    reader->p++;

    return 1;
}


/* Adds a token that begins here.  Returns its index; UINT32_MAX if there are
 * too many. */
static uint32_t
add_token(reader_t *reader, json_read_kind_t kind)
{
    json_doc_t    *doc;
    json_token_t  *token;

    doc = reader->doc;

    if (doc->n == reader->room) {

        if (reader->room == TOKENS_MAX) {
            return UINT32_MAX;
        }

        reader->room = reader->room ? reader->room * 2 : 64;
        reader->room = reader->room < TOKENS_MAX ? reader->room : TOKENS_MAX;
        doc->tokens = cli_realloc(doc->tokens,
                                  reader->room * sizeof(json_token_t));
    }

    token = &doc->tokens[doc->n];
    token->kind = kind;
    token->begin = (size_t) (reader->p - doc->text);
    token->len = 0;
    token->next = doc->n + 1;

    return doc->n++;
}


static void
end_token(reader_t *reader, uint32_t i)
{
    json_token_t  *token;

    token = &reader->doc->tokens[i];
    token->len = (size_t) (reader->p - reader->doc->text) - token->begin;
    token->next = reader->doc->n;
}


/* Returns the value of four hexadecimal digits, or -1. */
static int
hex4(const char *p)
{
    int  i, value;

    for (value = 0, i = 0; i < 4; i++) {

        if (p[i] >= '0' && p[i] <= '9') {
            value = value << 4 | (p[i] - '0');

        } else if ((p[i] | 0x20) >= 'a' && (p[i] | 0x20) <= 'f') {
            value = value << 4 | ((p[i] | 0x20) - 'a' + 10);

        } else {
            return -1;
        }
    }

    return value;
}


/* Reads a text, whose first quote is skipped already. */
static int
read_text(reader_t *reader)
{
    uint32_t  i;

    i = add_token(reader, JSON_READ_TEXT);

    if (i == UINT32_MAX) {
        return -1;
    }

    for ( /* void */ ; reader->p != reader->end; reader->p++) {

        if (*reader->p == '"') {
            end_token(reader, i);
            reader->p++;
            return 0;
        }

        if ((unsigned char) *reader->p < 0x20) {
            return -1;
        }

        if (*reader->p != '\\') {
            continue;
        }

        reader->p++;

        if (reader->p == reader->end || *reader->p == '\0'
            || strchr("\"\\/bfnrtu", *reader->p) == NULL)
        {
            return -1;
        }

        if (*reader->p == 'u') {

            if (reader->end - reader->p < 5 || hex4(reader->p + 1) == -1) {
                return -1;
            }

            reader->p += 4;
        }
    }

    return -1;
}


/* Reads a number, true, false or null. */
static int
read_word(reader_t *reader)
{
    size_t       len;
    uint32_t     i;
    const char  *word;

    i = add_token(reader, JSON_READ_NUMBER);

    if (i == UINT32_MAX) {
        return -1;
    }

    word = reader->p;

    while (reader->p != reader->end && *reader->p != '\0'
           && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *reader->p)
              != NULL)
    {
        reader->p++;
    }

    end_token(reader, i);
    len = (size_t) (reader->p - word);

    if (len == 4 && memcmp(word, "null", 4) == 0) {
        reader->doc->tokens[i].kind = JSON_READ_NULL;
        return 0;
    }

    if ((len == 4 && memcmp(word, "true", 4) == 0)
        || (len == 5 && memcmp(word, "false", 5) == 0))
    {
        reader->doc->tokens[i].kind = JSON_READ_BOOL;
        return 0;
    }

    /* which numbers are of use, their readers decide */

    return len != 0 && (*word == '-' || (*word >= '0' && *word <= '9'))
           ? 0 : -1;
}


/* Reads an object or an array, whose bracket is skipped already. */
static int
read_values(reader_t *reader, json_read_kind_t kind)
{
    char      end;
    uint32_t  i;

    i = add_token(reader, kind);
    end = kind == JSON_READ_OBJECT ? '}' : ']';

    if (i == UINT32_MAX || ++reader->depth > DEPTH_MAX) {
        return -1;
    }

    if (!skip(reader, end)) {

        do {
            if (kind == JSON_READ_OBJECT
                && (!skip(reader, '"') || read_text(reader) != 0
                    || !skip(reader, ':')))
            {
                return -1;
            }

            if (read_value(reader) != 0) {
                return -1;
            }

        } while (skip(reader, ','));

        if (!skip(reader, end)) {
            return -1;
        }
    }

    reader->depth--;
    end_token(reader, i);

    return 0;
}


static int
read_value(reader_t *reader)
{
    if (skip(reader, '{')) {
        return read_values(reader, JSON_READ_OBJECT);
    }

    if (skip(reader, '[')) {
        return read_values(reader, JSON_READ_ARRAY);
    }

    return skip(reader, '"') ? read_text(reader) : read_word(reader);
}


int
json_read(json_doc_t *doc, const char *text, size_t len)
{
    reader_t  reader;

    memset(doc, 0, sizeof(*doc));
    doc->text = text;

    memset(&reader, 0, sizeof(reader));
    reader.doc = doc;
    reader.p = text;
    reader.end = text + len;

    if (read_value(&reader) != 0) {
        return -1;
    }

    skip_blanks(&reader);

    return reader.p == reader.end ? 0 : -1;
}


void
json_read_free(json_doc_t *doc)
{
    free(doc->tokens);
    doc->tokens = NULL;
    doc->n = 0;
}


const json_token_t *
json_read_first(const json_doc_t *doc, const json_token_t *parent)
{
    const json_token_t  *token;

    token = parent + 1;

    return token == doc->tokens + parent->next ? NULL : token;
}


const json_token_t *
json_read_next(const json_doc_t *doc, const json_token_t *parent,
    const json_token_t *token)
{
    return token->next == parent->next ? NULL : doc->tokens + token->next;
}


const json_token_t *
json_read_member(const json_doc_t *doc, const json_token_t *object,
    const char *path)
{
    size_t               len;
    const json_token_t  *name, *value;

    len = strcspn(path, ".");

    if (object == NULL || object->kind != JSON_READ_OBJECT) {
        return NULL;
    }

    for (name = json_read_first(doc, object); name != NULL;
         name = json_read_next(doc, object, value))
    {
        value = name + 1;

        if (name->len == len && memcmp(doc->text + name->begin, path, len) == 0)
        {
            return path[len] == '\0' ? value
                   : json_read_member(doc, value, path + len + 1);
        }
    }

    return NULL;
}


/* Writes a character's UTF-8.  Returns its length. */
static size_t
put_utf8(char *dst, uint32_t c)
{
    size_t  i, len;

    len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    if (len == 1) {
        dst[0] = (char) c;
        return 1;
    }

    for (i = len - 1; i != 0; i--) {
        dst[i] = (char) (0x80 | (c & 0x3f));
        c >>= 6;
    }

    dst[0] = (char) (c | (uint32_t) (0xf0 << (4 - len)));

    return len;
}


int
json_read_text(const json_doc_t *doc, const json_token_t *token, char *text,
    size_t size)
{
    int          low;
    size_t       n;
    uint32_t     c;
    const char  *p, *end;

    static const char  from[] = "bfnrt", to[] = "\b\f\n\r\t";

    if (token == NULL || token->kind != JSON_READ_TEXT) {
        return -1;
    }

    p = doc->text + token->begin;
    end = p + token->len;

    for (n = 0; p != end; p++) {

        if (n + 5 > size) {
            return -1;
        }

        if (*p != '\\') {
            text[n++] = *p;
            continue;
        }

        p++;

        if (*p != 'u') {
            text[n++] = strchr(from, *p) ? to[strchr(from, *p) - from] : *p;
            continue;
        }

        c = (uint32_t) hex4(p + 1);
        p += 4;

        if (c >= 0xd800 && c < 0xe000) {
            low = c < 0xdc00 && end - p > 6 && p[1] == '\\' && p[2] == 'u'
                  ? hex4(p + 3) : -1;

            if (low < 0xdc00 || low > 0xdfff) {
                return -1;
            }

            c = 0x10000 + ((c - 0xd800) << 10) + ((uint32_t) low - 0xdc00);
            p += 6;
        }

        if (c == 0) {
            return -1;
        }

        n += put_utf8(text + n, c);
    }

    text[n] = '\0';

    return 0;
}


int
json_read_count(const json_doc_t *doc, const json_token_t *token,
    uint64_t *value)
{
    size_t       i;
    uint64_t     digit;
    const char  *p;

    if (token == NULL || token->kind != JSON_READ_NUMBER) {
        return -1;
    }

    p = doc->text + token->begin;

    for (*value = 0, i = 0; i < token->len; i++) {

        if (p[i] < '0' || p[i] > '9') {
            return -1;
        }

        digit = (uint64_t) (p[i] - '0');

        if (*value > (UINT64_MAX - digit) / 10) {
            return -1;
        }

        *value = *value * 10 + digit;
    }

    return 0;
}


int
json_read_bool(const json_doc_t *doc, const json_token_t *token, int *value)
{
    if (token == NULL || token->kind != JSON_READ_BOOL) {
        return -1;
    }

    *value = doc->text[token->begin] == 't';

    return 0;
}
