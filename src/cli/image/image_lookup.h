/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A lookup asks an image about a key by all of the key's expressions.
 */

#ifndef IMAGE_LOOKUP_H
#define IMAGE_LOOKUP_H

#include "bloom_exceptions.h"
#include "bloom_image.h"
#include "keyform.h"


typedef struct {
    const char         *why;             /* the key is invalid: the reason */
    const bloom_key_t  *expression;      /* the first that is present and no
                                            exception; NULL: the key is absent
                                            or invalid */
    bloom_form_t        form;
} image_lookup_t;


/* Looks a key up.  The result is valid until the next use of `keyform`. */
void image_lookup(image_lookup_t *lookup, const bloom_image_t *image,
    const uint64_t *words, const bloom_exceptions_t *removed,
    keyform_t *keyform, const bloom_key_t *key);


#endif /* IMAGE_LOOKUP_H */
