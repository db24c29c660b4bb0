
/*
 * A key of a Redis server is read here, piece by piece.
 *
 *     redis://[[user:]password@]host[:port]/db/key        rediss:// with TLS
 *
 * A password may also be in the environment, REDISCLI_AUTH, where it is not
 * seen in the list of processes.  What the server answers is believed no more
 * than a file: an answer of another form than was asked for, or longer, is an
 * error, and so is silence.
 */

#ifndef REDIS_H
#define REDIS_H

#include <stdint.h>
#include <sys/types.h>


typedef struct redis_s  redis_t;


/* Connects, and begins to read; NULL having said why. */
redis_t *redis_open(const char *url, int dump);
void redis_close(redis_t *redis);

/* The address without the password: of a URL, to be freed; and of what is
 * open. */
char *redis_shown(const char *url);
const char *redis_name(const redis_t *redis);

/* The length of a bitmap. */
uint64_t redis_size(const redis_t *redis);

/* What Redisson keeps beside a bitmap: 0, or -1 having said why. */
int redis_redisson(redis_t *redis, uint64_t *bits, uint64_t *k,
    uint64_t *capacity, double *fpr);

/* The next bytes, up to `size`; 0 at the end, -1 having said why. */
ssize_t redis_read(redis_t *redis, void *buf, size_t size);


#endif /* REDIS_H */
