/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file prints keys, one per line or each with a zero byte after it.
 */

#include <stdio.h>
#include <string.h>

#include "bloom_not_keys.h"
#include "key_print.h"
#include "visible.h"


#define MAGIC_MAX  1024


const char *
key_print_refused(const bloom_key_t *key, int null)
{
    if (null) {
        return memchr(key->data, '\0', key->len) == NULL ? NULL
               : "contains a zero byte, which would end it; use --json instead "
                 "of -0";
    }

    return memchr(key->data, '\n', key->len) == NULL
           && key->data[key->len - 1] != '\r' ? NULL
           : "contains a line end, which would make it another key; use -0 "
             "or --json";
}


/* Returns 1 if a file that begins with this key and its end would not be read
 * as keys, or with another first key.  A long key is cut: no magic is so
 * long. */
static int
is_magic(const bloom_key_t *key, int end)
{
    size_t    len;
    uint8_t   first[MAGIC_MAX];

    len = key->len < MAGIC_MAX ? key->len : MAGIC_MAX - 1;
    memcpy(first, key->data, len);
    first[len++] = (uint8_t) end;

    return bloom_key_mark(first, len) != 0
           || bloom_not_keys(first, len, BLOOM_NOT_KEYS_NUL) != NULL
           || (end == '\n'
               && bloom_not_keys(first, len, BLOOM_NOT_KEYS_LINES) != NULL);
}


void
key_print(const bloom_key_t *key, int null, int first)
{
    int  end;

    end = null ? '\0' : '\n';

    if (first && is_magic(key, end)) {
        putchar(end);                    /* an empty key, which is skipped */
    }

    visible_data(key->data, key->len);
    putchar(end);
}
