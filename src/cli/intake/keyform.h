/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A keyform_t converts keys to a key form, with a buffer that grows as needed.
 */

#ifndef KEYFORM_H
#define KEYFORM_H

#include "bloom_form.h"
#include "list_line.h"


typedef struct {
    uint32_t  form;
    uint8_t  *buf;
    size_t    size;
} keyform_t;


void keyform_begin(keyform_t *keyform, uint32_t form);
void keyform_free(keyform_t *keyform);

/* Each works like the function of that name in bloom_form.h.  The result is
 * valid until the next call. */
const char *keyform_accept(keyform_t *keyform, bloom_key_t *canonical,
    const bloom_key_t *key);
const char *keyform_expand(keyform_t *keyform, bloom_form_t *result,
    const bloom_key_t *key);

/* Returns what the keys of a list can be in this key form. */
list_keys_e keyform_list_keys(uint32_t form);

/* Returns a key for messages: escaped (visible.h), and cut if it is long. */
#define KEYFORM_SHOWN  100

const char *keyform_show(char text[KEYFORM_SHOWN], const bloom_key_t *key);


#endif /* KEYFORM_H */
