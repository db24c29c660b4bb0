/* SPDX-License-Identifier: BSD-2-Clause */

#include "bloom_bytes.h"
#include "bloom_exceptions_image.h"
#include "bloom_packed_key.h"


#define ENTRY_HEADER  9                  /* kinds and time */


size_t
bloom_exception_size(const bloom_exception_t *exception)
{
    return ENTRY_HEADER + bloom_packed_key_size(exception->key.len);
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
bloom_exceptions_check(const uint8_t *data, size_t size, uint64_t n)
{
    int                rc;
    uint64_t           count;
    const uint8_t     *p;
    bloom_exception_t  exception;

    p = data;
    count = 0;

    while ((rc = bloom_exception_read(&p, data + size, &exception)) == 1) {
        count++;
    }

    if (rc == -1) {
        return "is invalid: one of its removed keys is not valid; build it "
               "again";
    }

    return count == n ? NULL : "is invalid: it has more or fewer removed keys "
                               "than its header says; build it again";
}
