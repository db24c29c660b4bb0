/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A key form says how a key is written before it is hashed, and what a key is
 * looked up by.  An image records its form, so that whoever fills it and
 * whoever asks it cannot disagree.
 *
 *     raw    byte for byte
 *     lower  A to Z become a to z, other bytes stay
 *     host   a name or an address without a port (bloom_host.h); found by
 *            itself or by one of its parent domains.  What is asked for may
 *            have bytes that no host has; what is stored may not
 *     url    Safe Browsing's canonical form without the scheme
 *            (bloom_url.h); found by any of its expressions
 *
 * What is stored is one key for one; what is looked up are up to
 * BLOOM_FORM_EXPRESSIONS, of which any one is a match.  A canonical key has
 * itself for its canonical form, and is the first of its expressions.
 *
 * Nothing is allocated: results lie in the caller's memory, or are the caller's
 * key itself.  Time is linear in the key's length.
 */

#ifndef BLOOM_FORM_H
#define BLOOM_FORM_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_host.h"
#include "bloom_key.h"
#include "bloom_url.h"

#pragma GCC visibility push(hidden)


/* Values recorded in image files: never renumbered. */
#define BLOOM_FORM_RAW          0
#define BLOOM_FORM_LOWER        1
#define BLOOM_FORM_HOST         2
#define BLOOM_FORM_URL          3

/* Of host and url: longer keys have no canonical form. */
#define BLOOM_FORM_KEY_MAX      65535

#define BLOOM_FORM_EXPRESSIONS  30


typedef struct {
    bloom_key_t  canonical;              /* url: with its scheme, to be shown */
    unsigned     n;                      /* at least 1 */
    bloom_key_t  expression[BLOOM_FORM_EXPRESSIONS];
} bloom_form_t;


/* "raw", NULL if unknown; and back: -1 if unknown. */
const char *bloom_form_name(uint32_t form);
int bloom_form_parse(const char *name, size_t len);

/* Bytes of memory that a key of `len` bytes needs below; 0 for raw. */
size_t bloom_form_room(uint32_t form, size_t len);

/*
 * Both take a key that is not empty, and bloom_form_room() bytes at `buf`,
 * which their results point into, or into the key where the form is raw.  They
 * return NULL, or why the key cannot be read: a phrase to follow it ("has no
 * host").  With raw and lower every key can be.  The form is a known one.
 *
 * The canonical key, to be added.  A host that DNS could not have, or that came
 * with userinfo, is refused here alone.
 */
const char *bloom_form_canonical(uint32_t form, bloom_key_t *canonical,
    const bloom_key_t *key, uint8_t *buf);

/* All that a key is looked up by. */
const char *bloom_form_expand(uint32_t form, bloom_form_t *result,
    const bloom_key_t *key, uint8_t *buf);


#pragma GCC visibility pop

#endif /* BLOOM_FORM_H */
