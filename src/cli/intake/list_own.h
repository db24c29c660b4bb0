/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions remember which names a resolver's configuration gives
 * addresses of their own.
 *
 * A block of a whole domain, such as local=/home.example/, is no entry of a
 * block list if such a name is in the domain: nas.home.example is answered.
 * The lines may be in any order, so a reader's `pass` remembers the names, and
 * its `next` asks for them.
 */

#ifndef LIST_OWN_H
#define LIST_OWN_H

#include "key_set.h"
#include "list_line.h"


#define LIST_OWN_WHY  "has names with addresses of their own in it"

/* Remembers a name, and the domains that it is in. */
void list_own_add(key_set_t *set, const bloom_key_t *name);

/* Returns 1 if the name, or a name below it, was remembered.  A set that is
 * NULL has no names. */
int list_own_has(const key_set_t *set, const bloom_key_t *name);


#endif /* LIST_OWN_H */
