/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file keeps keys in a hash table with linear probing.
 */

#include <stdlib.h>
#include <string.h>

#include "bloom_siphash.h"
#include "cli.h"
#include "key_set.h"

#define SLOTS_MIN  64


static uint64_t
hash_of(const key_set_t *set, const bloom_key_t *key)
{
    return bloom_siphash_128(key->data, key->len, set->secret, 1, 3).h1;
}


/* Returns the slot of a key, or the empty slot where it belongs. */
static size_t *
find(const key_set_t *set, const bloom_key_t *key, uint64_t hash)
{
    size_t                i, *slot;
    const key_set_key_t  *other;

    for (i = (size_t) hash; /* void */ ; i++) {
        slot = &set->slot[i & (set->slots - 1)];

        if (*slot == 0) {
            return slot;
        }

        other = &set->key[*slot - 1];

        if (other->hash == hash && other->len == key->len
            && (key->len == 0
                || memcmp(set->text + other->begin, key->data, key->len) == 0))
        {
            return slot;
        }
    }
}


/* Makes a table with so many slots, and puts the keys into it. */
static void
make_table(key_set_t *set, size_t slots)
{
    size_t                i, k;
    const key_set_key_t  *key;

    free(set->slot);

    set->slots = slots;
    set->slot = cli_alloc(slots * sizeof(size_t));
    memset(set->slot, 0, slots * sizeof(size_t));

    for (i = 0; i < set->n; i++) {
        key = &set->key[i];

        for (k = (size_t) key->hash; set->slot[k & (slots - 1)] != 0; k++) {
            /* void */
        }

        set->slot[k & (slots - 1)] = i + 1;
    }
}


void
key_set_create(key_set_t *set)
{
    memset(set, 0, sizeof(*set));
    cli_random(set->secret, sizeof(set->secret));
    make_table(set, SLOTS_MIN);
}


void
key_set_free(key_set_t *set)
{
    free(set->text);
    free(set->key);
    free(set->slot);
    memset(set, 0, sizeof(*set));
}


/* Puts a key that is not in the set behind the others. */
static key_set_key_t *
append(key_set_t *set, const bloom_key_t *key, uint64_t hash)
{
    key_set_key_t  *new;

    if (set->n == set->key_room) {
        set->key_room = 2 * (set->n + 1);
        set->key = cli_realloc(set->key,
                               set->key_room * sizeof(key_set_key_t));
    }

    if (key->len > set->text_room - set->len) {
        set->text_room = 2 * (set->len + key->len);
        set->text = cli_realloc(set->text, set->text_room);
    }

    new = &set->key[set->n++];
    memset(new, 0, sizeof(*new));
    new->begin = set->len;
    new->len = key->len;
    new->hash = hash;

    if (key->len != 0) {
        memcpy(set->text + new->begin, key->data, key->len);
        set->len += key->len;
    }

    return new;
}


int
key_set_add(key_set_t *set, const bloom_key_t *key, const place_t *place,
    size_t *index)
{
    size_t         *slot;
    uint64_t        hash;
    key_set_key_t  *one;

    if (2 * (set->n + 1) >= set->slots) {
        make_table(set, 2 * set->slots);
    }

    hash = hash_of(set, key);
    slot = find(set, key, hash);

    if (*slot != 0) {
        one = &set->key[*slot - 1];
        *index = *slot - 1;

        if (place == NULL || place_cmp(place, &one->place) >= 0) {
            return 0;
        }

    } else {
        one = append(set, key, hash);
        *slot = set->n;
        *index = *slot - 1;
    }

    if (place != NULL) {
        one->place = *place;
    }

    return 1;
}


size_t
key_set_memory(const key_set_t *set)
{
    return set->text_room + set->key_room * sizeof(key_set_key_t)
           + set->slots * sizeof(size_t);
}


key_set_key_t *
key_set_find(const key_set_t *set, const bloom_key_t *key)
{
    size_t  slot;

    slot = *find(set, key, hash_of(set, key));

    return slot != 0 ? &set->key[slot - 1] : NULL;
}


bloom_key_t
key_set_text(const key_set_t *set, const key_set_key_t *key)
{
    bloom_key_t  text;

    text.data = set->text + key->begin;
    text.len = key->len;

    return text;
}
