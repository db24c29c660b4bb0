/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file looks keys up in images, as nginx does.
 */

#include "bloom_hash.h"
#include "bloom_layout.h"
#include "image_lookup.h"


void
image_lookup(image_lookup_t *lookup, const bloom_image_t *image,
    const uint64_t *words, const bloom_exceptions_t *removed,
    keyform_t *keyform, const bloom_key_t *key)
{
    unsigned       i;
    bloom_form_t  *form;
    bloom_hash_t   hash[BLOOM_FORM_EXPRESSIONS];

    form = &lookup->form;
    lookup->expression = NULL;
    lookup->why = (key->len > BLOOM_KEY_MAX)
                  ? BLOOM_KEY_TOO_LONG : keyform_expand(keyform, form, key);

    if (lookup->why != NULL) {
        return;
    }

    bloom_hash_many(hash, &image->hasher, form->expression, form->n);

    for (i = 0; i < form->n; i++) {
        i += bloom_layout_test_any(&image->geometry, words, hash + i,
                                   form->n - i);

        if (i < form->n
            && !bloom_exceptions_has(removed, form->expression[i].data,
                                     form->expression[i].len))
        {
            lookup->expression = &form->expression[i];
            return;
        }
    }
}
