/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the keys in files for guards, and compares numbers of keys.
 */

#include "bloom_guard.h"


/* Far below the change of one key in the largest filter. */
#define ROUNDING  1e-14


static int
is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}


/* Removes the blanks at both ends of a key. */
static void
trim(bloom_key_t *key)
{
    while (key->len != 0 && is_blank(key->data[0])) {
        key->data++;
        key->len--;
    }

    while (key->len != 0 && is_blank(key->data[key->len - 1])) {
        key->len--;
    }
}


int
bloom_guard_next(bloom_key_t *key, const uint8_t **pos, const uint8_t *end,
    uint64_t *line)
{
    size_t  i;

    if (!bloom_key_next(key, pos, end, BLOOM_SPLIT_LINES, 1)) {
        return 0;
    }

    ++*line;
    trim(key);

    if (key->len != 0 && key->data[0] == '!') {
        key->len = 0;
    }

    for (i = 0; i < key->len; i++) {
        if (key->data[i] == '#' && (i == 0 || is_blank(key->data[i - 1]))) {
            key->len = i;
            trim(key);
            break;
        }
    }

    return 1;
}


double
bloom_guard_change(uint64_t before, uint64_t now)
{
    if (before == 0) {
        return 0;
    }

    return (double) (now > before ? now - before : before - now)
           / (double) before;
}


int
bloom_guard_exceeds(double change, double allowed)
{
    return change > allowed * (1 + ROUNDING);
}
