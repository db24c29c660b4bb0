/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read the value of a Redis server's key, piece by piece.
 *
 * The password may be in the environment variable REDISCLI_AUTH, which the list
 * of processes does not show.  The server is not trusted: an answer is an error
 * if it has another type than requested, is too long or comes too late.
 */

#ifndef REDIS_H
#define REDIS_H

#include <stdint.h>
#include <sys/types.h>

#include "tls.h"


typedef struct redis_s  redis_t;

typedef struct {
    unsigned        timeout;             /* seconds for each of these: the
                                            connection, the TLS handshake, an
                                            answer */
    tls_settings_t  tls;
} redis_settings_t;


/* Connects to the server of a URL (redis_url.h), to read its key as a bitmap
 * or, if `dump`, by BF.SCANDUMP.  Returns NULL after a message. */
redis_t *redis_open(const char *url, int dump,
    const redis_settings_t *settings);
void redis_close(redis_t *redis);

/* Returns the URL without the password. */
const char *redis_name(const redis_t *redis);

/* Returns the length of a bitmap in bytes. */
uint64_t redis_size(const redis_t *redis);

/* Reads the configuration that Redisson stores for a bitmap.  Returns 0, or
 * -1 after a message. */
int redis_redisson(redis_t *redis, uint64_t *bits, uint64_t *k,
    uint64_t *capacity, double *fpr);

/* Reads the next bytes, up to `size`.  Returns how many; 0 at the end; or -1
 * after a message. */
ssize_t redis_read(redis_t *redis, void *buf, size_t size);


#endif /* REDIS_H */
