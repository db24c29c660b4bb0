/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A key form says how a key is rewritten before it is hashed, and under which
 * expressions it is looked up.  An image records its form, so the program that
 * adds keys and the program that looks them up cannot disagree.
 *
 *     raw    the key's bytes as they are
 *     lower  A to Z become a to z; other bytes stay as they are
 *     host   a name or an address without its port (bloom_host.h).  A lookup
 *            tries the host and its parent domains
 *     url    Safe Browsing's canonical form without the scheme (bloom_url.h).
 *            A lookup tries combinations of host and path
 *
 * An addition stores one expression, the canonical key.  A lookup tries up to
 * BLOOM_FORM_EXPRESSIONS of them, and the key is present if any one is.  The
 * canonical form of a canonical key is the key itself, which is also the first
 * of its expressions.
 *
 * A URL with escapes may have two readings.  A caller for whom "present" opens a
 * door demands that there be one.
 *
 * New keys must pass bloom_form_accept(), which refuses hosts that no browser
 * asks for: such a line in a list is junk.  A lookup accepts them, because a
 * parent domain may be listed.  Keys that were added before, in a journal or a
 * control page, go through bloom_form_canonical(), which accepts all that a
 * lookup accepts: an acknowledged key must never become absent.
 *
 * Nothing is allocated: results point into the caller's memory, or are the
 * caller's key itself.  Time is linear in the key's length.
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

/* At most 64: the expressions of a key are bits of a number. */
#define BLOOM_FORM_EXPRESSIONS  BLOOM_URL_EXPRESSIONS


/*
 * A key in canonical form, and the expressions under which it is looked up, in
 * an order in which bloom_hash_many() can hash them.
 */
typedef struct {
    bloom_key_t  canonical;              /* for display; url: with its scheme */
    unsigned     n;                      /* at least 1 */
    unsigned     second;                 /* the expression that is the whole key
                                            of a URL's second reading; 0: it has
                                            one reading (bloom_url.h) */
    bloom_key_t  expression[BLOOM_FORM_EXPRESSIONS];
} bloom_form_t;


/* Returns the name of a form, such as "raw"; NULL if the form is unknown. */
const char *bloom_form_name(uint32_t form);

/* Returns the form of a name; -1 if the name is unknown. */
int bloom_form_parse(const char *name, size_t len);

/* Returns the bytes of `buf` that the functions below need for a key of
 * `len` bytes; 0 for raw. */
size_t bloom_form_room(uint32_t form, size_t len);

/*
 * The next three functions take a known form, a key that is not empty, and
 * bloom_form_room() bytes at `buf`.  If the key is valid, they store the result
 * through their second parameter and return NULL; the stored keys point into
 * `buf`, or to the key if the form is raw.  If the key is invalid, they return
 * the reason: a phrase to follow the key, such as "has no host".  No key is
 * invalid in the forms raw and lower.
 */

/* Computes all expressions under which the key is looked up. */
const char *bloom_form_expand(uint32_t form, bloom_form_t *result,
    const bloom_key_t *key, uint8_t *buf);

/* Stores as the expressions of `whole` only the whole key of each reading, the
 * first one first. */
void bloom_form_whole(bloom_form_t *whole, const bloom_form_t *keys);

/* Computes the canonical key, which is the first of these expressions. */
const char *bloom_form_canonical(uint32_t form, bloom_key_t *canonical,
    const bloom_key_t *key, uint8_t *buf);

/*
 * Computes the canonical key of a new key.  Only this function refuses
 *
 *     url    a host that the URL Standard refuses because of a byte in it, and
 *            "://" after what is no scheme
 *     host   a host with bytes that DNS does not allow, or with userinfo
 *     both   a tab or a line end within the key, and a canonical key of more
 *            than BLOOM_KEY_MAX bytes
 *     raw    and lower: a key of more than BLOOM_KEY_MAX bytes, which the other
 *            forms refuse everywhere
 */
const char *bloom_form_accept(uint32_t form, bloom_key_t *canonical,
    const bloom_key_t *key, uint8_t *buf);


#pragma GCC visibility pop

#endif /* BLOOM_FORM_H */
