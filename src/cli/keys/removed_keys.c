/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file keeps exceptions in a set with a random secret, so that no choice
 * of keys makes the set slow.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bloom_exceptions_image.h"
#include "cli.h"
#include "removed_keys.h"


void
removed_keys_create(removed_keys_t *removed, uint64_t n, uint64_t bytes)
{
    uint8_t  secret[BLOOM_HASH_KEY_LEN];

    memset(removed, 0, sizeof(*removed));

    if (n == 0) {
        return;
    }

    removed->size = bloom_exceptions_size(n, bytes);
    removed->memory = mmap(NULL, removed->size, PROT_READ|PROT_WRITE,
                           MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

    if (removed->memory == MAP_FAILED) {
        cli_no_memory(removed->size);
    }

    cli_random(secret, sizeof(secret));

    bloom_exceptions_attach(&removed->set, removed->memory, n, bytes);
    bloom_exceptions_init(&removed->set, secret);
}


void
removed_keys_free(removed_keys_t *removed)
{
    if (removed->memory != NULL) {
        (void) munmap(removed->memory, removed->size);
    }

    memset(removed, 0, sizeof(*removed));
}


const char *
removed_keys_take(removed_keys_t *removed, const bloom_image_t *image,
    const uint8_t *data)
{
    const uint8_t      *p;
    bloom_exception_t   exception;

    removed_keys_create(removed, image->exceptions, image->exceptions_size);

    for (p = data; bloom_exception_read(&p, data + image->exceptions_size,
                                        &exception) == 1; /* void */ )
    {
        exception.position = 0;

        if (bloom_exceptions_put(&removed->set, &exception) != 1) {
            return "is invalid: it has a removed key twice; build it again";
        }
    }

    return NULL;
}


void
removed_keys_count_kinds(exception_kinds_t *counts, unsigned kinds)
{
    counts->excepted += (kinds & BLOOM_EXCEPTION_BUILT) != 0;
    counts->removed += (kinds & BLOOM_EXCEPTION_REMOVED) != 0;
    counts->feedback += (kinds & BLOOM_EXCEPTION_FEEDBACK) != 0;
}


exception_kinds_t
removed_keys_kinds(const removed_keys_t *removed)
{
    uint8_t            key[BLOOM_KEY_MAX];
    uint64_t           cursor;
    exception_kinds_t  counts;
    bloom_exception_t  exception;

    memset(&counts, 0, sizeof(counts));

    for (cursor = 0; bloom_exceptions_next(&removed->set, &cursor, &exception,
                                           key) == 1; /* void */ )
    {
        removed_keys_count_kinds(&counts, exception.kinds);
    }

    return counts;
}


void
removed_keys_merge(removed_keys_t *removed, const removed_keys_t *other)
{
    uint8_t            key[BLOOM_KEY_MAX];
    uint64_t           cursor;
    bloom_exception_t  exception;

    for (cursor = 0; bloom_exceptions_next(&other->set, &cursor, &exception,
                                           key) == 1; /* void */ )
    {
        (void) bloom_exceptions_put(&removed->set, &exception);
    }
}


uint8_t *
removed_keys_data(const removed_keys_t *removed, bloom_image_t *image)
{
    uint8_t            *data, *p, key[BLOOM_KEY_MAX];
    uint64_t            cursor;
    bloom_exception_t   exception;

    image->exceptions = 0;
    image->exceptions_size = 0;
    image->built = 0;
    image->built_size = 0;

    if (removed == NULL || bloom_exceptions_count(&removed->set) == 0) {
        return NULL;
    }

    for (cursor = 0; bloom_exceptions_next(&removed->set, &cursor, &exception,
                                           key) == 1; /* void */ )
    {
        bloom_exception_count(image, &exception);
    }

    data = cli_alloc(bloom_image_exceptions_padded(image));

    for (p = data, cursor = 0;
         bloom_exceptions_next(&removed->set, &cursor, &exception, key) == 1;
         /* void */ )
    {
        p = bloom_exception_write(&exception, p);
    }

    memset(p, 0, bloom_image_exceptions_padded(image) - image->exceptions_size);

    return data;
}
