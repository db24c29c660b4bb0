/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads the keys that are left out of an image, and looks them up.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "keyform.h"
#include "keystream.h"
#include "left_out.h"
#include "list_no_key.h"
#include "list_text.h"

#define EXAMPLES  3


/* Adds the key of a line, if it has one.  Returns NULL, or why the line is
 * invalid. */
static const char *
add_line(left_out_t *left_out, keyform_t *keyform, const bloom_key_t *line,
    uint64_t number)
{
    size_t          index;
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

    while (why == NULL && (result = list_text.next(&at)) != LIST_END) {

        if (result == LIST_KEY) {
            why = list_no_key(at.keys, &at.key);

            if (why == NULL) {
                why = keyform_accept(keyform, &canonical, &at.key);
            }

            if (why == NULL) {
                (void) key_set_add(&left_out->keys, &canonical, 0, number,
                                   &index);
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
    key_set_create(&left_out->keys);

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
    key_set_free(&left_out->keys);
    memset(left_out, 0, sizeof(*left_out));
}


int
left_out_has(left_out_t *left_out, const bloom_key_t *canonical)
{
    key_set_key_t  *key;

    key = key_set_find(&left_out->keys, canonical);

    if (key == NULL) {
        return 0;
    }

    if (!__atomic_load_n(&key->found, __ATOMIC_RELAXED)) {
        __atomic_store_n(&key->found, 1, __ATOMIC_RELAXED);
    }

    return 1;
}


size_t
left_out_unmatched(const left_out_t *left_out)
{
    size_t  i, n;

    for (i = 0, n = 0; i < left_out->keys.n; i++) {
        n += !left_out->keys.key[i].found;
    }

    return n;
}


void
left_out_warn(const left_out_t *left_out)
{
    char                  shown[KEYFORM_SHOWN];
    size_t                i, n, unmatched;
    bloom_key_t           text;
    const key_set_key_t  *key;

    unmatched = left_out_unmatched(left_out);

    if (unmatched == 0) {
        return;
    }

    cli_warn("%s: no list has %zu of its %zu key%s; correct or remove %s",
             left_out->name, unmatched, left_out->keys.n,
             CLI_S(left_out->keys.n),
             unmatched == 1 ? "it" : "them");

    for (i = 0, n = 0; i < left_out->keys.n && n < EXAMPLES; i++) {
        key = &left_out->keys.key[i];

        if (!key->found) {
            text = key_set_text(&left_out->keys, key);
            n++;

            cli_warn("%s: line %" PRIu64 ": no list has \"%s\"",
                     left_out->name, key->line, keyform_show(shown, &text));
        }
    }
}
