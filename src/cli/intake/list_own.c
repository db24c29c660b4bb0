/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file remembers names with addresses of their own.  They share the set
 * with what readers of other formats cancel, so each has a prefix.
 */

#include "list_own.h"


#define PREFIX    "own address: "
#define NAME_MAX  255


/* Writes the key of a name.  Returns 0, or -1 if no such name exists. */
static int
write_key(uint8_t key[sizeof(PREFIX) + NAME_MAX], bloom_key_t *written,
    const bloom_key_t *name)
{
    size_t       i;
    bloom_key_t  text;

    text = *name;

    while (list_ends(&text, '.')) {
        text.len--;
    }

    if (text.len == 0 || text.len > NAME_MAX) {
        return -1;
    }

    memcpy(key, PREFIX, sizeof(PREFIX) - 1);

    for (i = 0; i < text.len; i++) {
        key[sizeof(PREFIX) - 1 + i] = bloom_lower(text.data[i]);
    }

    written->data = key;
    written->len = sizeof(PREFIX) - 1 + text.len;

    return 0;
}


void
list_own_add(key_set_t *set, const bloom_key_t *name)
{
    size_t       index;
    uint8_t      room[sizeof(PREFIX) + NAME_MAX];
    bloom_key_t  rest, label, key;

    for (rest = *name;
         write_key(room, &key, &rest) == 0 && key_set_add(set, &key, 0, 1,
                                                          &index);
         (void) list_until(&rest, &label, '.'))
    {
        /* void */
    }
}


int
list_own_has(const key_set_t *set, const bloom_key_t *name)
{
    uint8_t      room[sizeof(PREFIX) + NAME_MAX];
    bloom_key_t  key;

    return set != NULL && set->n != 0 && write_key(room, &key, name) == 0
           && key_set_find(set, &key) != NULL;
}
