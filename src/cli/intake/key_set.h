/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A key_set_t is a set of keys in a hash table, each with the place where it
 * is.
 *
 * Keys are compared byte by byte.  The set has a secret of its own, so no
 * choice of keys makes it slow.  It takes about 100 bytes for each key, and the
 * key.  Any thread may look keys up while no thread adds any.
 */

#ifndef KEY_SET_H
#define KEY_SET_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_hasher.h"
#include "bloom_key.h"
#include "place.h"


typedef struct {
    size_t      begin;                   /* in the text */
    size_t      len;
    uint64_t    hash;
    place_t     place;                   /* where it is first */
    int         found;                   /* for the owner of the set; atomic */
} key_set_key_t;

/* All members are 0 at first. */
typedef struct key_set_s {
    uint8_t        *text;                /* the keys */
    size_t          len;
    size_t          text_room;
    key_set_key_t  *key;                 /* distinct, in order */
    size_t          n;
    size_t          key_room;
    size_t         *slot;                /* 0, or 1 + the index of a key */
    size_t          slots;               /* a power of two above 2 * n */
    uint8_t         secret[BLOOM_HASH_KEY_LEN];
} key_set_t;


/* Makes an empty set. */
void key_set_create(key_set_t *set);
void key_set_free(key_set_t *set);

/* Adds a key, whose index is then in *index.  A key that is in the set already
 * gets the place if that is before its own.  `place` is NULL if the owner does
 * not ask for places.  Returns 1 if the key is new or got the place, else 0. */
int key_set_add(key_set_t *set, const bloom_key_t *key, const place_t *place,
    size_t *index);

/* Returns how many bytes of memory the set takes. */
size_t key_set_memory(const key_set_t *set);

/* Returns the key of the set that equals a key, or NULL. */
key_set_key_t *key_set_find(const key_set_t *set, const bloom_key_t *key);

/* Returns the bytes of a key of the set, which are valid until the next
 * addition. */
bloom_key_t key_set_text(const key_set_t *set, const key_set_key_t *key);


#endif /* KEY_SET_H */
