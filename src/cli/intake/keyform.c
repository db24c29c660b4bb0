/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file converts keys to a key form, in memory that grows as needed.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "keyform.h"
#include "visible.h"


void
keyform_begin(keyform_t *keyform, uint32_t form)
{
    memset(keyform, 0, sizeof(*keyform));
    keyform->form = form;
}


void
keyform_free(keyform_t *keyform)
{
    free(keyform->buf);
    keyform->buf = NULL;
    keyform->size = 0;
}


static uint8_t *
room_for(keyform_t *keyform, const bloom_key_t *key)
{
    size_t  room;

    room = bloom_form_room(keyform->form, key->len);

    if (room > keyform->size) {
        keyform->size = 2 * room;
        keyform->buf = cli_realloc(keyform->buf, keyform->size);
    }

    return keyform->buf;
}


const char *
keyform_accept(keyform_t *keyform, bloom_key_t *canonical,
    const bloom_key_t *key)
{
    return bloom_form_accept(keyform->form, canonical, key,
                             room_for(keyform, key));
}


const char *
keyform_expand(keyform_t *keyform, bloom_form_t *result,
    const bloom_key_t *key)
{
    return bloom_form_expand(keyform->form, result, key,
                             room_for(keyform, key));
}


list_keys_e
keyform_list_keys(uint32_t form)
{
    return form == BLOOM_FORM_URL ? LIST_URLS
           : form == BLOOM_FORM_HOST ? LIST_HOSTS
           : LIST_ANY;
}


const char *
keyform_show(char text[KEYFORM_SHOWN], const bloom_key_t *key)
{
    char    *p, *end;
    size_t   i, used;

    p = text;
    end = text + KEYFORM_SHOWN - VISIBLE_MAX - sizeof("...");

    for (i = 0; i < key->len && p <= end; i += used) {
        p += visible_next(p, key->data + i, key->len - i, &used);
    }

    strcpy(p, i < key->len ? "..." : "");

    return text;
}
