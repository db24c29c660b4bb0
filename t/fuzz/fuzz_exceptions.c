/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes the reader of the exceptions in an image.  For any input:
 *
 *   - each exception that is read is valid, and lies in the input;
 *   - written again, it has the same bytes;
 *   - bloom_exceptions_check() accepts exactly what can be read to the end;
 *   - a set made for the exceptions has room for them.
 */

#include "fuzz.h"

#include "bloom_exceptions.h"
#include "bloom_exceptions_image.h"


/* Puts all exceptions into a set, and looks for the last one. */
static void
put_all(const uint8_t *data, const uint8_t *end, uint64_t n, uint64_t bytes)
{
    void                *memory;
    size_t               size;
    const uint8_t       *p;
    bloom_exception_t    exception;
    bloom_exceptions_t   set;
    static const uint8_t secret[BLOOM_HASH_KEY_LEN];

    size = bloom_exceptions_size(n, bytes);
    memory = aligned_alloc(64, size);
    expect(memory != NULL);
    memset(memory, 0, size);

    bloom_exceptions_attach(&set, memory, n, bytes);
    bloom_exceptions_init(&set, secret);

    p = data;

    while (bloom_exception_read(&p, end, &exception) == 1) {
        expect(bloom_exceptions_put(&set, &exception) != -1);
        expect((bloom_exceptions_has(&set, exception.key.data,
                                     exception.key.len)
                & exception.kinds) == exception.kinds);
    }

    free(memory);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int                rc;
    uint8_t           *text, *again;
    uint64_t           n, bytes;
    bloom_image_t      image;
    const uint8_t     *p, *before, *end;
    bloom_exception_t  exception;

    memset(&image, 0, sizeof(image));

    text = malloc(size + (size == 0));
    again = malloc(size + (size == 0));
    expect(text != NULL && again != NULL);

    if (size != 0) {
        memcpy(text, data, size);        /* sanitizers notice a read beyond */
    }

    p = text;
    end = text + size;
    n = 0;
    bytes = 0;

    for ( ;; ) {
        before = p;
        rc = bloom_exception_read(&p, end, &exception);

        if (rc != 1) {
            break;
        }

        expect(exception.kinds != 0
               && (exception.kinds & ~(unsigned) BLOOM_EXCEPTION_KINDS) == 0);
        expect(exception.key.len >= 1
               && exception.key.len <= BLOOM_KEY_MAX);
        expect(exception.key.data > before
               && exception.key.data + exception.key.len == p && p <= end);

        expect(bloom_exception_size(&exception) == (size_t) (p - before));
        expect(bloom_exception_write(&exception, again)
               == again + (p - before));
        expect(memcmp(again, before, (size_t) (p - before)) == 0);

        bloom_exception_count(&image, &exception);

        n++;
        bytes += exception.key.len;
    }

    expect(p == before);
    expect(rc == -1 || p == end);

    expect(image.exceptions == n && image.built <= n);
    expect(image.exceptions_size == (size_t) (p - text));

    image.exceptions_size = size;
    expect((bloom_exceptions_check(&image, text) == NULL) == (rc == 0));
    image.exceptions++;
    expect(bloom_exceptions_check(&image, text) != NULL);

    if (n != 0) {
        put_all(text, p, n, bytes);
    }

    free(text);
    free(again);

    return 0;
}
