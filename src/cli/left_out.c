/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads the keys that are left out of an image, and looks them up.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bloom_siphash.h"
#include "cli.h"
#include "keyform.h"
#include "keystream.h"
#include "left_out.h"
#include "list_text.h"

#define SLOTS_MIN  64
#define EXAMPLES   3


static uint64_t
hash_of(const left_out_t *left_out, const bloom_key_t *key)
{
    return bloom_siphash_128(key->data, key->len, left_out->secret, 1, 3).h1;
}


/* Returns the slot of a key, or the empty slot where it belongs. */
static size_t *
find(const left_out_t *left_out, const bloom_key_t *key, uint64_t hash)
{
    size_t                 i, *slot;
    const left_out_key_t  *other;

    for (i = (size_t) hash; /* void */ ; i++) {
        slot = &left_out->slot[i & (left_out->slots - 1)];

        if (*slot == 0) {
            return slot;
        }

        other = &left_out->key[*slot - 1];

        if (other->hash == hash && other->len == key->len
            && (key->len == 0
                || memcmp(left_out->text + other->begin, key->data, key->len)
                   == 0))
        {
            return slot;
        }
    }
}


/* Makes a table with so many slots, and puts the keys into it. */
static void
make_table(left_out_t *left_out, size_t slots)
{
    size_t                 i, k;
    const left_out_key_t  *key;

    free(left_out->slot);

    left_out->slots = slots;
    left_out->slot = cli_alloc(slots * sizeof(size_t));
    memset(left_out->slot, 0, slots * sizeof(size_t));

    for (i = 0; i < left_out->n; i++) {
        key = &left_out->key[i];

        for (k = (size_t) key->hash; left_out->slot[k & (slots - 1)] != 0;
             k++)
        {
            /* void */
        }

        left_out->slot[k & (slots - 1)] = i + 1;
    }
}


static void
add(left_out_t *left_out, const bloom_key_t *canonical, uint64_t line)
{
    size_t          *slot;
    uint64_t         hash;
    left_out_key_t  *key;

    if (2 * (left_out->n + 1) >= left_out->slots) {
        make_table(left_out, 2 * left_out->slots);
    }

    hash = hash_of(left_out, canonical);
    slot = find(left_out, canonical, hash);

    if (*slot != 0) {
        return;
    }

    if (left_out->n == left_out->key_room) {
        left_out->key_room = 2 * (left_out->n + 1);
        left_out->key = cli_realloc(left_out->key, left_out->key_room
                                                   * sizeof(left_out_key_t));
    }

    if (canonical->len > left_out->text_room - left_out->len) {
        left_out->text_room = 2 * (left_out->len + canonical->len);
        left_out->text = cli_realloc(left_out->text, left_out->text_room);
    }

    key = &left_out->key[left_out->n++];
    key->begin = left_out->len;
    key->len = canonical->len;
    key->hash = hash;
    key->line = line;
    key->found = 0;

    memcpy(left_out->text + key->begin, canonical->data, key->len);
    left_out->len += key->len;
    *slot = left_out->n;
}


/* Adds the key of a line, if it has one.  Returns NULL, or why the line is
 * invalid. */
static const char *
add_line(left_out_t *left_out, keyform_t *keyform, const bloom_key_t *line,
    uint64_t number)
{
    uint8_t        *buf;
    const char     *why;
    list_line_t     at;
    bloom_key_t     canonical;
    list_result_e   result;

    memset(&at, 0, sizeof(at));
    buf = cli_alloc(line->len + LIST_ROOM);

    at.line = *line;
    at.keys = keyform_list_keys(keyform->form);
    at.buf = buf;
    why = NULL;

    while (why == NULL && (result = list_text_next(&at)) != LIST_END) {

        if (result == LIST_KEY) {
            why = keyform_accept(keyform, &canonical, &at.key);

            if (why == NULL) {
                add(left_out, &canonical, number);
            }

        } else if (result != LIST_EMPTY && result != LIST_COMMENT) {
            why = at.why;
        }
    }

    free(buf);

    return why;
}


/* Adds the keys of a block.  Returns 0, or -1 after a message. */
static int
add_block(left_out_t *left_out, keyform_t *keyform,
    const keystream_block_t *block, uint64_t *number)
{
    char            shown[KEYFORM_SHOWN];
    const char     *why;
    bloom_key_t     line;
    const uint8_t  *pos;

    pos = block->data;

    while (bloom_key_next(&line, &pos, block->data + block->len,
                          BLOOM_SPLIT_LINES, block->last)
           == 1)
    {
        ++*number;
        why = add_line(left_out, keyform, &line, *number);

        if (why != NULL) {
            cli_error("%s: line %" PRIu64 ": \"%s\" %s; correct the file of "
                      "--without", left_out->name, *number,
                      keyform_show(shown, &line), why);
            return -1;
        }
    }

    return 0;
}


int
left_out_read(left_out_t *left_out, const char *name, uint32_t form)
{
    int                 rc;
    uint64_t            number;
    keyform_t           keyform;
    keystream_t         stream;
    keystream_block_t   block;

    left_out->name = name;
    cli_random(left_out->secret, sizeof(left_out->secret));
    make_table(left_out, SLOTS_MIN);

    if (keystream_open(&stream, name, BLOOM_SPLIT_LINES) != 0) {
        return CLI_ERROR;
    }

    memset(&block, 0, sizeof(block));
    keyform_begin(&keyform, form);
    number = 0;

    do {
        rc = keystream_next(&stream, &block, 0);

        if (rc == 1 && add_block(left_out, &keyform, &block, &number) != 0) {
            rc = -1;
        }
    } while (rc == 1);

    keyform_free(&keyform);
    free(block.data);
    keystream_close(&stream);

    return rc == -1 ? CLI_ERROR : CLI_OK;
}


void
left_out_free(left_out_t *left_out)
{
    free(left_out->text);
    free(left_out->key);
    free(left_out->slot);
    memset(left_out, 0, sizeof(*left_out));
}


int
left_out_has(left_out_t *left_out, const bloom_key_t *canonical)
{
    size_t           slot;
    left_out_key_t  *key;

    slot = *find(left_out, canonical, hash_of(left_out, canonical));

    if (slot == 0) {
        return 0;
    }

    key = &left_out->key[slot - 1];

    if (!__atomic_load_n(&key->found, __ATOMIC_RELAXED)) {
        __atomic_store_n(&key->found, 1, __ATOMIC_RELAXED);
    }

    return 1;
}


size_t
left_out_unmatched(const left_out_t *left_out)
{
    size_t  i, n;

    for (i = 0, n = 0; i < left_out->n; i++) {
        n += !left_out->key[i].found;
    }

    return n;
}


void
left_out_warn(const left_out_t *left_out)
{
    char                   shown[KEYFORM_SHOWN];
    size_t                 i, n, unmatched;
    bloom_key_t            text;
    const left_out_key_t  *key;

    unmatched = left_out_unmatched(left_out);

    if (unmatched == 0) {
        return;
    }

    cli_warn("%s: no list has %zu of its %zu key%s; correct or remove %s",
             left_out->name, unmatched, left_out->n, CLI_S(left_out->n),
             unmatched == 1 ? "it" : "them");

    for (i = 0, n = 0; i < left_out->n && n < EXAMPLES; i++) {
        key = &left_out->key[i];

        if (!key->found) {
            text.data = left_out->text + key->begin;
            text.len = key->len;
            n++;

            cli_warn("%s: line %" PRIu64 ": no list has \"%s\"",
                     left_out->name, key->line, keyform_show(shown, &text));
        }
    }
}
