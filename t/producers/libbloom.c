/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This program writes and checks filters with libbloom 2.0 itself, for
 * t/golden/foreign:
 *
 *   libbloom write ENTRIES ERROR FILE < keys   writes a filter
 *   libbloom check FILE < keys                 prints 0 or 1 for each key
 *
 * Keys are lines.
 */

#include <bloom.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
main(int argc, char **argv)
{
    int           write, len;
    char          key[256];
    struct bloom  filter;

    write = argc == 5 && strcmp(argv[1], "write") == 0;

    if (write) {
        if (bloom_init2(&filter, (unsigned) atoi(argv[2]), atof(argv[3])) != 0)
        {
            return 1;
        }

    } else if (argc != 3 || bloom_load(&filter, argv[2]) != 0) {
        return 1;
    }

    while (fgets(key, sizeof(key), stdin) != NULL) {
        len = (int) strcspn(key, "\n");

        if (write) {
            bloom_add(&filter, key, len);
        } else {
            putchar(bloom_check(&filter, key, len) == 1 ? '1' : '0');
        }
    }

    if (!write) {
        putchar('\n');
        return 0;
    }

    return bloom_save(&filter, argv[4]);
}
