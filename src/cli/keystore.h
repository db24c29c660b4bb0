/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A keystore holds the hashes of all keys of a build until the filter's size is
 * known and they can be inserted.
 *
 * They are kept in partitions by the first bits of h1.  As a key's place in a
 * blocked filter follows from the same bits, a partition is a stretch of the
 * filter: inserting it touches memory that is near.  Equal hashes are in one
 * partition, too, so how many are distinct is found for each by itself.
 *
 *     keys --> writer: 32 hashes of each partition --> partition: chunks of
 *              (one for each thread)                   hashes, and runs in the
 *                                                      spill file
 *
 * A partition that has its share of the memory drops what it has twice, and if
 * that does not help writes what it has to the spill file, as a run: so a
 * partition is read again from a few long runs.
 *
 * About 16 bytes a distinct key, up to four times that (or 256 MiB) while there
 * are duplicates that have not been dropped yet, and never more than `memory`
 * but for some MiB a thread.  Two keys with the same 128-bit hash count as one:
 * with a billion keys that happens once in 10^20 builds.
 */

#ifndef KEYSTORE_H
#define KEYSTORE_H

#include "bloom_layout.h"


#define KEYSTORE_MEMORY_MIN  (16 * 1024 * 1024)


typedef struct keystore_s  keystore_t;

/* What one thread has collected and not yet handed over. */
typedef struct keystore_writer_s  keystore_writer_t;


/*
 * Creates a store with so many bytes of memory, and a spill file (spill_file.h)
 * in `directory` should one be needed.
 */
keystore_t *keystore_create(uint64_t memory, const char *directory);
void keystore_free(keystore_t *store);

/* Several threads may add at once, each through a writer of its own. */
keystore_writer_t *keystore_writer(keystore_t *store);
void keystore_add(keystore_writer_t *writer, const bloom_hash_t *hash,
    size_t n);
void keystore_writer_close(keystore_writer_t *writer);

/*
 * After all writers are closed: the number of distinct hashes.  If words are
 * not NULL, *absent is how many of them are absent from that filter.
 */
uint64_t keystore_count(keystore_t *store, unsigned threads,
    const bloom_geometry_t *g, const uint64_t *words, uint64_t *absent);

/* Inserts them all. */
void keystore_insert(keystore_t *store, const bloom_geometry_t *g,
    uint64_t *words, unsigned threads);

/* Bytes in the spill file. */
uint64_t keystore_spilled(const keystore_t *store);


#endif /* KEYSTORE_H */
