/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file packs entries of a stream into the bodies of requests.
 */

#include <stdio.h>
#include <string.h>

#include "bloom_utf8.h"
#include "change_batch.h"
#include "cli.h"


/* Returns the sign of a field, + or -, or 0 if it is no change. */
static char
sign_of(const redisReply *name)
{
    return name->len == 3 && memcmp(name->str, "add", 3) == 0 ? '+'
           : name->len == 6 && memcmp(name->str, "remove", 6) == 0 ? '-' : 0;
}


/* Makes room for `more` bytes.  Returns where they begin. */
static char *
room(change_batch_t *batch, size_t more)
{
    if (batch->len + more > batch->size) {
        batch->size = 2 * (batch->len + more);
        batch->body = cli_realloc(batch->body, batch->size);
    }

    return batch->body + batch->len;
}


static void
put_line(change_batch_t *batch, char sign, const redisReply *key)
{
    char  *p;

    p = room(batch, key->len + 2);

    *p++ = sign;
    memcpy(p, key->str, key->len);
    p[key->len] = '\n';

    batch->len += key->len + 2;
}


static void
put_json(change_batch_t *batch, char sign, const redisReply *key)
{
    char    *p;
    size_t   i;

    /* a character has at most 6 bytes */

    p = room(batch, 6 * key->len + 4);

    *p++ = batch->len == 0 ? '[' : ',';
    *p++ = '"';
    *p++ = sign;

    for (i = 0; i < key->len; i++) {

        if ((unsigned char) key->str[i] < 0x20) {
            p += sprintf(p, "\\u%04x", key->str[i]);
            continue;
        }

        if (key->str[i] == '"' || key->str[i] == '\\') {
            *p++ = '\\';
        }

        *p++ = key->str[i];
    }

    *p++ = '"';
    batch->len = (size_t) (p - batch->body);
}


/* Returns 1 if a key can be in a line, else 0. */
static int
fits_line(const redisReply *key)
{
    return memchr(key->str, '\n', key->len) == NULL
           && (key->len == 0 || key->str[key->len - 1] != '\r');
}


/* Adds an entry's changes in lines or in JSON.  Returns 0; or -1 if a key
 * cannot be so. */
static int
put_entry(change_batch_t *batch, const redisReply *entry, size_t max)
{
    char               sign;
    size_t             i;
    const redisReply  *fields, *key;

    fields = entry->element[1];

    for (i = 0; i < fields->elements && batch->len <= max; i += 2) {

        sign = sign_of(fields->element[i]);
        key = fields->element[i + 1];

        if (sign == 0) {
            batch->ignored++;
            continue;
        }

        batch->changes++;

        if (key->len > max) {
            batch->len = max + 1;
            return 0;
        }

        if (batch->json) {

            if (!bloom_utf8_valid((uint8_t *) key->str, key->len)) {
                return -1;
            }

            put_json(batch, sign, key);

        } else if (fits_line(key)) {
            put_line(batch, sign, key);

        } else {
            return -1;
        }
    }

    if (batch->json) {
        *room(batch, 1) = ']';
        batch->len++;
    }

    return 0;
}


int
change_batch_fill(change_batch_t *batch, redisReply **entries, size_t n,
    size_t max, const char **why)
{
    int     rc;
    size_t  i, len, changes, ignored;

    batch->len = 0;
    batch->json = 0;
    batch->entries = 0;
    batch->changes = 0;
    batch->ignored = 0;

    for (i = 0; i < n; i++) {

        len = batch->len;
        changes = batch->changes;
        ignored = batch->ignored;

        rc = put_entry(batch, entries[i], max);

        if (rc == -1 && i == 0) {
            batch->len = 0;
            batch->changes = 0;
            batch->ignored = 0;
            batch->json = 1;

            rc = put_entry(batch, entries[i], max);
        }

        if (rc == -1 || batch->len > max) {

            if (i == 0) {
                *why = rc == -1
                       ? "has a key with a line feed, or with a carriage "
                         "return at its end, and a key that is not UTF-8"
                       : "is larger than a request may be";
                return -1;
            }

            batch->len = len;
            batch->changes = changes;
            batch->ignored = ignored;
            break;
        }

        batch->entries = i + 1;
        batch->position = redis_stream_id(entries[i]);

        if (batch->json) {
            break;
        }
    }

    return 0;
}
