/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file remembers names.  They share the set with what readers of other
 * formats cancel, so each has a prefix.
 */

#include "list_names.h"


#define PREFIX    "name "
#define BEGIN     (sizeof(PREFIX) + 1)   /* with the program, and what is
                                            remembered */
#define NAME_MAX  255


/* Writes the key of a name.  Returns 0, or -1 if no such name exists. */
static int
write_key(uint8_t room[BEGIN + NAME_MAX], bloom_key_t *key, list_names_of_e of,
    list_names_e what, const bloom_key_t *name)
{
    size_t       i;
    bloom_key_t  text;

    text = *name;

    if (list_ends(&text, '.')) {
        text.len--;
    }

    /* an empty label is no part of a name */

    if (text.len == 0 || text.len > NAME_MAX || list_ends(&text, '.')) {
        return -1;
    }

    memcpy(room, PREFIX, BEGIN - 2);
    room[BEGIN - 2] = (uint8_t) of;
    room[BEGIN - 1] = (uint8_t) what;

    for (i = 0; i < text.len; i++) {
        room[BEGIN + i] = bloom_lower(text.data[i]);
    }

    key->data = room;
    key->len = BEGIN + text.len;

    return 0;
}


void
list_names_add(key_set_t *set, list_names_of_e of, list_names_e what,
    const bloom_key_t *name)
{
    size_t       index;
    uint8_t      room[BEGIN + NAME_MAX];
    bloom_key_t  key;

    if (write_key(room, &key, of, what, name) == 0) {
        (void) key_set_add(set, &key, NULL, &index);
    }
}


int
list_names_has(const key_set_t *set, list_names_of_e of, list_names_e what,
    const bloom_key_t *name)
{
    uint8_t      room[BEGIN + NAME_MAX];
    bloom_key_t  key;

    return set != NULL && set->n != 0
           && write_key(room, &key, of, what, name) == 0
           && key_set_find(set, &key) != NULL;
}


void
list_names_add_own(key_set_t *set, list_names_of_e of,
    const bloom_key_t *name)
{
    bloom_key_t  rest, label;

    list_names_add(set, of, LIST_NAMES_OWN, name);

    for (rest = *name;
         rest.len != 0
         && !list_names_has(set, of, LIST_NAMES_OWN_BELOW, &rest);
         (void) list_until(&rest, &label, '.'))
    {
        list_names_add(set, of, LIST_NAMES_OWN_BELOW, &rest);
    }
}
