/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This program prints the expressions by which keys are looked up.  browser.mjs
 * uses it because it needs keys of any bytes and fast answers.
 *
 * It reads keys from standard input, each as the number of its form (one byte),
 * its length (two bytes, little-endian) and its bytes, and prints a line for
 * each: the expressions, each with a blank behind it; which of them, counted
 * from 0, is the whole key of the second reading; a blank; and "+" if the key
 * can be added or "-" if it can only be looked up.  For an invalid key, the line
 * is "! " and the reason.
 */

#include <stdio.h>
#include <stdlib.h>

#include "bloom_form.h"


static void
print_expressions(uint32_t form, const bloom_key_t *key)
{
    uint8_t       *buf;
    unsigned       i;
    const char    *why;
    bloom_key_t    canonical;
    bloom_form_t   result;

    buf = malloc(bloom_form_room(form, key->len) + 1);

    if (buf == NULL) {
        abort();
    }

    why = key->len == 0 ? "is empty"
          : bloom_form_expand(form, &result, key, buf);

    if (why != NULL) {
        printf("! %s\n", why);
        free(buf);
        return;
    }

    for (i = 0; i < result.n; i++) {
        fwrite(result.expression[i].data, 1, result.expression[i].len, stdout);
        putchar(' ');
    }

    why = bloom_form_accept(form, &canonical, key, buf);
    printf("%u %s\n", result.second, why == NULL ? "+" : "-");

    free(buf);
}


int
main(void)
{
    uint8_t      head[3], *data;
    bloom_key_t  key;

    while (fread(head, 1, sizeof(head), stdin) == sizeof(head)) {
        key.len = (size_t) head[1] | (size_t) head[2] << 8;
        data = malloc(key.len + 1);

        if (data == NULL || fread(data, 1, key.len, stdin) != key.len) {
            fprintf(stderr, "a key ends too early\n");
            return 1;
        }

        key.data = data;
        print_expressions(head[0], &key);
        free(data);
    }

    return 0;
}
