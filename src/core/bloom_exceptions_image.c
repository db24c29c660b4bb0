/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "bloom_bytes.h"
#include "bloom_exceptions_image.h"
#include "bloom_packed_key.h"


#define ENTRY_HEADER  9                  /* kinds and time */


size_t
bloom_exception_size(const bloom_exception_t *exception)
{
    return ENTRY_HEADER + bloom_packed_key_size(exception->key.len);
}


void
bloom_exception_count(bloom_image_t *image,
    const bloom_exception_t *exception)
{
    size_t  size;

    size = bloom_exception_size(exception);

    image->exceptions++;
    image->exceptions_size += size;

    if (exception->kinds & BLOOM_EXCEPTION_BUILT) {
        image->built++;
        image->built_size += size;
    }
}


uint8_t *
bloom_exception_write(const bloom_exception_t *exception, uint8_t *p)
{
    *p = (uint8_t) exception->kinds;
    bloom_put64(p + 1, exception->time);

    return bloom_packed_key_write(p + ENTRY_HEADER, &exception->key);
}


int
bloom_exception_read(const uint8_t **p, const uint8_t *end,
    bloom_exception_t *exception)
{
    const uint8_t  *q;

    q = *p;

    if (q == end) {
        return 0;
    }

    if (end - q < ENTRY_HEADER || *q == 0 || *q > BLOOM_EXCEPTION_KINDS) {
        return -1;
    }

    exception->kinds = *q;
    exception->time = bloom_get64(q + 1);
    exception->position = 0;

    q = bloom_packed_key_read(&exception->key, q + ENTRY_HEADER, end);

    if (q == NULL) {
        return -1;
    }

    *p = q;

    return 1;
}


const char *
bloom_exceptions_check(const bloom_image_t *image, const uint8_t *data)
{
    int                rc;
    bloom_image_t      counted;
    const uint8_t     *p, *end;
    bloom_exception_t  exception;

    memset(&counted, 0, sizeof(counted));

    p = data;
    end = data + image->exceptions_size;

    while ((rc = bloom_exception_read(&p, end, &exception)) == 1) {
        bloom_exception_count(&counted, &exception);
    }

    if (rc == -1) {
        return "is invalid: one of its removed keys is not valid; build it "
               "again";
    }

    return counted.exceptions == image->exceptions
           && counted.built == image->built
           && counted.built_size == image->built_size
           ? NULL : "is invalid: it has more or fewer removed keys than its "
                    "header says; build it again";
}
