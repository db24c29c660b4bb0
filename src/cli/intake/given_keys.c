/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file passes keys to a command one by one, from its command line, a file
 * or standard input.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "given_keys.h"
#include "cli.h"
#include "keystream.h"


const option_t  given_keys_options[] = {
    { 'f', "file", "FILE", offsetof(given_keys_t, file), options_take_text,
      "read keys from a file; \"-\" is standard input" },
    { '0', "null", NULL, offsetof(given_keys_t, split), options_take_flag,
      "keys in the file end with a zero byte instead of a line end" },
    { 0 }
};


int
given_keys_check(const given_keys_t *given, int n)
{
    if (given->file != NULL && n != 0) {
        return cli_misuse("-f %s cannot be used together with keys on the "
                          "command line", given->file);
    }

    return CLI_OK;
}


static int
read_keys(const given_keys_t *given,
    void (*answer)(const bloom_key_t *key, void *data), void *data)
{
    int                 rc;
    keystream_t         stream;
    bloom_key_t         key;
    const uint8_t      *pos;
    keystream_block_t   block;

    if (keystream_open(&stream, given->file ? given->file : "-", given->split)
        != 0)
    {
        return CLI_ERROR;
    }

    memset(&block, 0, sizeof(block));

    /* answer each key as soon as it is read, and stop if the answers cannot be
     * written */

    while ((rc = keystream_next(&stream, &block, 1)) == 1) {

        pos = block.data;

        while (bloom_key_next(&key, &pos, block.data + block.len, given->split,
                              block.last)
               == 1)
        {
            answer(&key, data);
        }

        if (fflush(stdout) != 0) {
            break;
        }
    }

    free(block.data);
    keystream_close(&stream);

    return rc == -1 ? CLI_ERROR : CLI_OK;
}


int
given_keys_each(const given_keys_t *given, char **keys, int n,
    void (*answer)(const bloom_key_t *key, void *data), void *data)
{
    bloom_key_t  key;

    if (n == 0) {
        return read_keys(given, answer, data);
    }

    for ( /* void */ ; n != 0; n--, keys++) {
        key.data = (const uint8_t *) *keys;
        key.len = strlen(*keys);

        answer(&key, data);
    }

    return CLI_OK;
}
