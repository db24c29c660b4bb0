/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions remember names that decide what other lines of a resolver's
 * configuration mean.
 *
 * local=/home.example/ is the domain of a network, and no entry of a block
 * list, if names in it have addresses: nas.home.example is answered.  The lines
 * may be in any order, so a reader's `pass` remembers the names, and its `next`
 * asks for them.
 */

#ifndef LIST_NAMES_H
#define LIST_NAMES_H

#include "key_set.h"
#include "list_line.h"


/* The program whose lists have the name: it reads no lists of the others. */
typedef enum {
    LIST_NAMES_DNSMASQ = 'd',
    LIST_NAMES_UNBOUND = 'u'
} list_names_of_e;

/* What is remembered about a name. */
typedef enum {
    LIST_NAMES_OWN = 'o',                /* it has an address of its own */
    LIST_NAMES_OWN_BELOW = 'b',          /* so does it, or a name below it */
    LIST_NAMES_ZONE = 'z',               /* unbound: it is a transparent zone */
    LIST_NAMES_BLOCKED_BELOW = 's'       /* unbound: such a zone has blocked
                                            names */
} list_names_e;

#define LIST_NAMES_WHY  "has names with addresses of their own in it"

void list_names_add(key_set_t *set, list_names_of_e of, list_names_e what,
    const bloom_key_t *name);

/* Returns 1 if this was remembered about the name.  A set that is NULL has no
 * names. */
int list_names_has(const key_set_t *set, list_names_of_e of,
    list_names_e what, const bloom_key_t *name);

/* Remembers that a name has an address of its own. */
void list_names_add_own(key_set_t *set, list_names_of_e of,
    const bloom_key_t *name);


#endif /* LIST_NAMES_H */
