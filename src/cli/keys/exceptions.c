/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file collects the exceptions of lists, and writes them to a file.
 */

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "exceptions.h"


static void
make_room(exceptions_t *exceptions, size_t n)
{
    if (exceptions->n + n > exceptions->room) {
        exceptions->room = 2 * (exceptions->n + n);
        exceptions->exception = cli_realloc(exceptions->exception,
                                            exceptions->room
                                            * sizeof(exception_t));
    }
}


void
exceptions_add(exceptions_t *exceptions, const place_t *place,
    const bloom_key_t *key)
{
    exception_t  *exception;

    make_room(exceptions, 1);

    exception = &exceptions->exception[exceptions->n];
    exception->place = *place;
    exception->order = exceptions->n++;
    exception->len = key->len;
    exception->key = cli_alloc(key->len);
    memcpy(exception->key, key->data, key->len);
}


void
exceptions_move(exceptions_t *exceptions, exceptions_t *from)
{
    if (from->n != 0) {
        make_room(exceptions, from->n);
        memcpy(exceptions->exception + exceptions->n, from->exception,
               from->n * sizeof(exception_t));
        exceptions->n += from->n;
        from->n = 0;
    }

    exceptions_free(from);
}


static int
by_place(const void *one, const void *two)
{
    int                 before;
    const exception_t  *a = one, *b = two;

    before = place_cmp(&a->place, &b->place);

    return before != 0 ? before
           : a->order < b->order ? -1 : a->order > b->order;
}


int
exceptions_write(exceptions_t *exceptions, const char *name)
{
    int                 rc;
    size_t              i;
    const exception_t  *exception;

    if (output_open(&exceptions->out, name) != 0) {
        return CLI_ERROR;
    }

    exceptions->written = 1;

    if (exceptions->n != 0) {
        qsort(exceptions->exception, exceptions->n, sizeof(exception_t),
              by_place);
    }

    for (i = 0, rc = 0; i < exceptions->n && rc == 0; i++) {
        exception = &exceptions->exception[i];
        rc = output_write(&exceptions->out, exception->key, exception->len);

        if (rc == 0) {
            rc = output_write(&exceptions->out, "\n", 1);
        }
    }

    return rc == 0 ? CLI_OK : CLI_ERROR;
}


int
exceptions_commit(exceptions_t *exceptions)
{
    return !exceptions->written || output_commit(&exceptions->out) == 0
           ? CLI_OK : CLI_ERROR;
}


void
exceptions_free(exceptions_t *exceptions)
{
    size_t  i;

    for (i = 0; i < exceptions->n; i++) {
        free(exceptions->exception[i].key);
    }

    if (exceptions->written) {
        output_discard(&exceptions->out);
    }

    free(exceptions->exception);
    memset(exceptions, 0, sizeof(*exceptions));
}
