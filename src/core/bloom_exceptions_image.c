/* SPDX-License-Identifier: BSD-2-Clause */

#include <string.h>

#include "bloom_bytes.h"
#include "bloom_exceptions_image.h"


#define ENTRY_HEADER   9                 /* kinds and time */
#define LENGTH_MAX     3                 /* LEB128 of the longest key */


/* Writes the LEB128 form of a length, and returns its bytes. */
static size_t
write_length(size_t len, uint8_t length[LENGTH_MAX])
{
    size_t  n;

    for (n = 0; len > 0x7f; len >>= 7) {
        length[n++] = (uint8_t) (len | 0x80);
    }

    length[n++] = (uint8_t) len;

    return n;
}


size_t
bloom_exception_size(const bloom_exception_t *exception)
{
    uint8_t  length[LENGTH_MAX];

    return ENTRY_HEADER + write_length(exception->key.len, length)
           + exception->key.len;
}


uint8_t *
bloom_exception_write(const bloom_exception_t *exception, uint8_t *p)
{
    *p = (uint8_t) exception->kinds;
    bloom_put64(p + 1, exception->time);

    p += ENTRY_HEADER;
    p += write_length(exception->key.len, p);

    memcpy(p, exception->key.data, exception->key.len);

    return p + exception->key.len;
}


int
bloom_exception_read(const uint8_t **p, const uint8_t *end,
    bloom_exception_t *exception)
{
    size_t          len;
    unsigned        shift;
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

    q += ENTRY_HEADER;

    for (len = 0, shift = 0; /* void */ ; shift += 7) {

        if (q == end || shift == 7 * LENGTH_MAX) {
            return -1;
        }

        len |= (size_t) (*q & 0x7f) << shift;

        if ((*q++ & 0x80) == 0) {
            break;
        }
    }

    /* a last byte of zero is an empty key or a needlessly long length */

    if (q[-1] == 0 || len > BLOOM_KEY_MAX
        || len > (size_t) (end - q))
    {
        return -1;
    }

    exception->key.data = q;
    exception->key.len = len;

    *p = q + len;

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
