/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file gives tables of hashes their slots and their secret numbers.
 */

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "hash_table.h"

#define BITS_MIN  6


void
hash_table_clear(hash_table_t *table, size_t slots)
{
    size_t  room;

    for (table->bits = BITS_MIN; (size_t) 1 << table->bits < slots;
         table->bits++)
    {
        /* void */
    }

    room = (size_t) 1 << table->bits;

    if (room > table->room) {

        if (table->room == 0) {
            cli_random(table->secret, sizeof(table->secret));
        }

        free(table->slot);
        table->slot = cli_alloc(room * sizeof(uint32_t));
        table->room = room;
    }

    memset(table->slot, 0, room * sizeof(uint32_t));
}


void
hash_table_free(hash_table_t *table)
{
    free(table->slot);
    memset(table, 0, sizeof(*table));
}
