/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file prints keys, one per line or each with a zero byte after it.
 */

#include <stdio.h>
#include <string.h>

#include "bloom_image.h"
#include "key_print.h"
#include "visible.h"


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


/* Returns 1 if a file that begins with this key would not be read as keys, or
 * with another first key. */
static int
is_magic(const bloom_key_t *key)
{
    return bloom_key_mark(key->data, key->len) != 0
           || bloom_image_is(key->data, key->len)
           || (key->len >= 2 && key->data[0] == 0x1f && key->data[1] == 0x8b);
}


void
key_print(const bloom_key_t *key, int null, int first)
{
    int  end;

    end = null ? '\0' : '\n';

    if (first && is_magic(key)) {
        putchar(end);                    /* an empty key, which is skipped */
    }

    visible_data(key->data, key->len);
    putchar(end);
}
