/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read the value of a Redis server's key, piece by piece.
 *
 * A password may also be in the environment, REDISCLI_AUTH, where the list of
 * processes does not show it.  The server's answers are trusted no more than a
 * file: an answer of another type than requested, or a longer one, is an error,
 * and so is one that is not there in time.
 */

#ifndef REDIS_H
#define REDIS_H

#include <stdint.h>
#include <sys/types.h>


typedef struct redis_s  redis_t;


/* Connects to the server that a URL names (redis_url.h), to read its key as a
 * bitmap or, if `dump`, by BF.SCANDUMP.  The connection, TLS and each answer
 * may take `timeout` seconds.  Returns NULL after a message. */
redis_t *redis_open(const char *url, int dump, unsigned timeout);
void redis_close(redis_t *redis);

/* Returns the URL without the password. */
const char *redis_name(const redis_t *redis);

/* The length of a bitmap. */
uint64_t redis_size(const redis_t *redis);

/* What Redisson keeps beside a bitmap: 0, or -1 having said why. */
int redis_redisson(redis_t *redis, uint64_t *bits, uint64_t *k,
    uint64_t *capacity, double *fpr);

/* The next bytes, up to `size`; 0 at the end, -1 having said why. */
ssize_t redis_read(redis_t *redis, void *buf, size_t size);


#endif /* REDIS_H */
