/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the recognition of files that are no lists of keys.  The first byte
 * says how the file is read.
 */

#include "fuzz.h"

#include "bloom_not_keys.h"


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t      *copy;
    const char   *what, *again;
    unsigned      how;
    bloom_key_t   key;

    if (size == 0) {
        return 0;
    }

    how = data[0] & 0x7;
    size--;

    copy = malloc(size + 2);
    memcpy(copy, data + 1, size);
    copy = realloc(copy, size != 0 ? size : 1);

    what = bloom_not_keys(copy, size, how);
    expect(what == NULL || what[0] != '\0');

    key.data = copy;
    key.len = size;
    expect(bloom_not_key(&key) == NULL || size == 2);

    /* magic bytes count however the file is read */

    again = bloom_not_keys(copy, size, BLOOM_NOT_KEYS_NUL);
    expect(again == NULL || again == what);

    /* an empty key before the others hides magic bytes */

    copy = realloc(copy, size + 2);
    memmove(copy + 1, copy, size);
    copy[0] = '\0';

    if (size == 0 || copy[1] != '\0') {
        expect(bloom_not_keys(copy, size + 1, BLOOM_NOT_KEYS_NUL) == NULL);
    }

    free(copy);

    return 0;
}
