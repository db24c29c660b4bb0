/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file lists the formats.  A new format needs a line here and a file of
 * its own.
 */

#include <string.h>

#include "bloom_foreign_formats.h"


static const bloom_foreign_format_t *const  formats[] = {
    &bloom_foreign_guava, &bloom_foreign_redisbloom, &bloom_foreign_bitmap,
    &bloom_foreign_dcso, &bloom_foreign_bits_and_blooms, &bloom_foreign_spark,
    &bloom_foreign_libbloom
};

#define FORMATS  (sizeof(formats) / sizeof(formats[0]))


const bloom_foreign_format_t *
bloom_foreign_formats_list(unsigned i)
{
    return i < FORMATS ? formats[i] : NULL;
}


const bloom_foreign_format_t *
bloom_foreign_formats_find(const char *name)
{
    size_t  i;

    for (i = 0; i < FORMATS; i++) {
        if (strcmp(formats[i]->name, name) == 0) {
            return formats[i];
        }
    }

    return NULL;
}


const bloom_foreign_format_t *
bloom_foreign_formats_guess(const uint8_t *head, size_t len, uint64_t size)
{
    size_t           i;
    bloom_foreign_t  f;

    for (i = 0; i < FORMATS; i++) {

        memset(&f, 0, sizeof(f));

        /* any bytes are a bitmap */

        if (formats[i] != &bloom_foreign_bitmap
            && formats[i]->parse(&f, head, len, size) == 0)
        {
            return formats[i];
        }
    }

    return NULL;
}
