/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file packs entries of a stream into the bodies of requests.
 */

#include <string.h>

#include "bloom_escape.h"
#include "bloom_key.h"
#include "change_batch.h"
#include "cli.h"


/* Returns the sign of a field, + or -, or 0 if it is no change. */
static char
sign_of(const redisReply *name)
{
    return name->len == 3 && memcmp(name->str, "add", 3) == 0 ? '+'
           : name->len == 6 && memcmp(name->str, "remove", 6) == 0 ? '-' : 0;
}


/* Adds the line of a change.  Of a key that is too long, nginx needs no more
 * bytes than tell so. */
static void
put_change(change_batch_t *batch, char sign, const redisReply *key)
{
    size_t    i, len, room;
    uint8_t  *p;

    len = key->len <= BLOOM_KEY_MAX ? key->len : BLOOM_KEY_MAX + 1;
    room = batch->len + 3 * len + 2;

    if (room > batch->size) {
        batch->size = 2 * room;
        batch->body = cli_realloc(batch->body, batch->size);
    }

    p = (uint8_t *) batch->body + batch->len;
    *p++ = (uint8_t) sign;

    for (i = 0; i < len; i++) {

        if (key->str[i] == '%' || key->str[i] == '\n' || key->str[i] == '\r') {
            p = bloom_put_escape(p, (uint8_t) key->str[i]);

        } else {
            *p++ = (uint8_t) key->str[i];
        }
    }

    *p++ = '\n';

    batch->len = (size_t) ((char *) p - batch->body);
    batch->changes++;
}


/* Adds the changes of an entry after the first `skip` of them.  Returns 1; or 0
 * if the batch has no room for all of them. */
static int
put_entry(change_batch_t *batch, const redisReply *entry, uint64_t skip,
    size_t max)
{
    char               sign;
    size_t             i, len;
    const redisReply  *fields;

    fields = entry->element[1];

    for (i = 0; i < fields->elements; i += 2) {

        sign = sign_of(fields->element[i]);

        if (sign == 0) {

            if (batch->other == NULL) {
                batch->other = fields->element[i];
                batch->other_entry = redis_stream_id(entry);
            }

            continue;
        }

        if (skip != 0) {
            skip--;
            continue;
        }

        len = batch->len;
        put_change(batch, sign, fields->element[i + 1]);

        if (batch->len > max && batch->changes > 1) {
            batch->len = len;
            batch->changes--;
            return 0;
        }
    }

    return 1;
}


void
change_batch_fill(change_batch_t *batch, redisReply **entries, size_t n,
    uint64_t offset, size_t max)
{
    size_t  i, len, changes;

    batch->len = 0;
    batch->changes = 0;
    batch->other = NULL;
    batch->offset = offset;
    batch->more = !put_entry(batch, entries[0], offset, max);

    /* the parts of an entry have their own positions */

    if (batch->more || offset != 0) {
        n = 1;
    }

    for (i = 1; i < n; i++) {

        len = batch->len;
        changes = batch->changes;

        if (!put_entry(batch, entries[i], 0, max) || batch->len > max) {
            batch->len = len;
            batch->changes = changes;
            break;
        }
    }

    batch->entries = i;
    batch->position = redis_stream_id(entries[i - 1]);
}


bloom_position_t
change_batch_find(const change_batch_t *batch, redisReply **entries,
    uint64_t *number)
{
    size_t             i, j;
    uint64_t           left;
    const redisReply  *fields;

    left = *number + batch->offset;

    for (i = 0; i < batch->entries; i++) {

        fields = entries[i]->element[1];
        *number = left;

        for (j = 0; j < fields->elements; j += 2) {

            if (sign_of(fields->element[j]) != 0 && --left == 0) {
                return redis_stream_id(entries[i]);
            }
        }
    }

    return batch->position;
}
