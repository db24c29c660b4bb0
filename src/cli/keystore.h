
/*
 * The hashes of all keys of a build, each once, until the filter's size is
 * known and they can be inserted.
 *
 * They are kept in partitions by the first bits of h1.  As a key's place in a
 * blocked filter follows from the same bits, a partition is a stretch of the
 * filter, and inserting it touches memory that is near.
 *
 * About 16 bytes a distinct key, and up to four times that (or 128 MiB) while
 * there are duplicates that have not been dropped yet.  Two keys with the same 128-bit hash count as
 * one: with a billion keys that happens once in 10^20 builds.
 */

#ifndef KEYSTORE_H
#define KEYSTORE_H

#include "bloom_layout.h"


typedef struct keystore_s  keystore_t;

/* What one thread has collected and not yet handed over. */
typedef struct keystore_writer_s  keystore_writer_t;


keystore_t *keystore_create(void);
void keystore_free(keystore_t *store);

/* Several threads may add at once, each through a writer of its own. */
keystore_writer_t *keystore_writer(keystore_t *store);
void keystore_add(keystore_writer_t *writer, bloom_hash_t hash);
void keystore_writer_close(keystore_writer_t *writer);

/* After all writers are closed: the number of distinct hashes. */
uint64_t keystore_count(keystore_t *store, unsigned threads);

/* Inserts them all into words, which are zeros at first. */
void keystore_insert(keystore_t *store, const bloom_geometry_t *g,
    uint64_t *words, unsigned threads);


#endif /* KEYSTORE_H */
