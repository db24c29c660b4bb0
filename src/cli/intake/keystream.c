/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file divides the bytes of an input into blocks of whole keys, and
 * refuses an input that is no list of keys.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "keystream.h"


int
keystream_open(keystream_t *in, const char *path, bloom_split_e split)
{
    memset(in, 0, sizeof(*in));

    in->split = split;
    in->how = split == BLOOM_SPLIT_NUL ? BLOOM_NOT_KEYS_NUL
              : BLOOM_NOT_KEYS_LINES;

    return input_open(&in->input, path);
}


void
keystream_close(keystream_t *in)
{
    input_close(&in->input);
    free(in->tail);
    in->tail = NULL;
}


static int
too_long(const keystream_t *in)
{
    const char  *what, *advice, *format;

    format = input_format(&in->input);
    what = "line";
    advice = "put one key on each line, or use -0 if keys end with a zero byte";

    if (in->split == BLOOM_SPLIT_NUL) {
        what = "key";
        advice = "with -0, each key must end with a zero byte";
    }

    /* the line fills the block; the bytes of compressed data are counted */

    if (format != NULL) {
        cli_error("%s: byte %" PRIu64 " of the %s data: a %s reaches 1 MiB "
                  "here; %s", in->input.name, input_used(&in->input), format,
                  what, advice);

    } else {
        cli_error("%s: byte %" PRIu64 ": a %s of 1 MiB or more begins here; "
                  "%s", in->input.name, in->input.offset - KEYSTREAM_BLOCK,
                  what, advice);
    }

    return -1;
}


/* Refuses a first block that has no keys.  Returns 0, or -1 after a message. */
static int
check_first(const keystream_t *in, const keystream_block_t *block)
{
    unsigned          how;
    const char       *what;
    const input_t    *input;

    input = &in->input;
    how = in->how | (block->last ? BLOOM_NOT_KEYS_WHOLE : 0);
    what = bloom_not_keys(block->data, block->len, how);

    if (what == NULL) {
        return 0;
    }

    if (input_format(input) != NULL) {
        cli_error("%s: its %s data %s; \"%s\" decompresses the file first",
                  input->name, input_format(input), what,
                  input->decoder.format->command);

    } else {
        cli_error("%s: %s", input->name, what);
    }

    return -1;
}


/* Keeps the bytes after the block's last delimiter for the next block. */
static void
carry_over(keystream_t *in, keystream_block_t *block, size_t whole)
{
    in->tail_len = block->len - whole;

    if (in->tail_len != 0) {
        in->tail = cli_realloc(in->tail, in->tail_len);
        memcpy(in->tail, block->data + whole, in->tail_len);
    }

    block->len = whole;
}


int
keystream_next(keystream_t *in, keystream_block_t *block, int eager)
{
    int       delimiter;
    size_t    searched, skip;
    ssize_t   n;
    uint8_t  *end;

    block->len = 0;
    block->last = 0;

    if (in->ended) {
        return 0;
    }

    if (block->data == NULL) {
        block->data = cli_alloc(KEYSTREAM_BLOCK);
    }

    if (in->tail_len != 0) {
        memcpy(block->data, in->tail, in->tail_len);
        block->len = in->tail_len;
    }

    delimiter = in->split == BLOOM_SPLIT_NUL ? '\0' : '\n';
    searched = block->len;               /* the tail has no delimiter */

    for ( ;; ) {

        if (block->len == KEYSTREAM_BLOCK) {
            return !in->begun && check_first(in, block) != 0 ? -1
                   : too_long(in);
        }

        n = input_read(&in->input, block->data + block->len,
                       KEYSTREAM_BLOCK - block->len);

        if (n == -1) {
            return -1;
        }

        if (n == 0) {
            in->ended = 1;
            block->last = 1;
            break;
        }

        block->len += (size_t) n;

        if (block->len < KEYSTREAM_BLOCK && !eager) {
            continue;
        }

        end = memrchr(block->data + searched, delimiter,
                      block->len - searched);

        if (end != NULL) {
            break;
        }

        searched = block->len;
    }

    if (!in->begun && check_first(in, block) != 0) {
        return -1;
    }

    if (!in->begun && in->split == BLOOM_SPLIT_LINES) {
        skip = bloom_key_mark(block->data, block->len);
        block->len -= skip;
        memmove(block->data, block->data + skip, block->len);
    }

    in->begun = 1;

    if (in->divide(in->divide_data, block, &searched) != 0) {
        return -1;
    }

    if (!block->last) {

        if (searched == 0) {
            return too_long(in);
        }

        carry_over(in, block, searched);
    }

    return 1;
}
