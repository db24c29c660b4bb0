/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A keystore holds the hashes of all keys of a build until the filter's size is
 * known and they can be inserted.
 *
 * The first bits of h1 choose the partition of a hash.  The same bits choose a
 * key's place in a blocked filter, so each partition belongs to one stretch of
 * the filter, and inserting a partition touches memory that is close together.
 * Equal hashes are in the same partition, so distinct hashes are counted
 * partition by partition.
 *
 *     keys --> writer: 32 hashes of each partition --> partition: chunks of
 *              (one for each thread)                   hashes, and runs in the
 *                                                      spill file
 *
 * A partition that has used its share of the memory drops duplicates.  If that
 * does not free enough, it writes its hashes to the spill file, as a run.  So
 * each partition has a few long runs, which are read again at the end.
 *
 * The store takes about 16 bytes for each distinct key, and up to four times
 * that (or 256 MiB) while it has duplicates.  It never takes more than `memory`
 * and some MiB for each thread.  Two keys with the same 128-bit hash count as
 * one: with a billion keys that happens once in 10^20 builds.
 *
 * A fuse base needs no more of a hash than its partition and h2, which take half
 * the memory.  Then two keys that have both in common count as one, which
 * happens to a billion keys once in 70,000 builds.  They also have the same
 * place in the base, so both are in it.
 */

#ifndef KEYSTORE_H
#define KEYSTORE_H

#include "bloom_layout.h"


#define KEYSTORE_MEMORY_MIN  (16 * 1024 * 1024)

/* The first bits of h1, which number the partitions. */
#define KEYSTORE_BITS        11


typedef struct keystore_s  keystore_t;

/* A writer holds the hashes that one thread has not yet passed to the store. */
typedef struct keystore_writer_s  keystore_writer_t;


typedef enum {
    KEYSTORE_H2 = 1,                     /* the words that are kept of a hash */
    KEYSTORE_HASHES = 2
} keystore_keep_e;


/*
 * Creates a store with `memory` bytes.  If more are needed, it creates a spill
 * file (spill_file.h) in `directory`.
 */
keystore_t *keystore_create(keystore_keep_e keep, uint64_t memory,
    const char *directory);
void keystore_free(keystore_t *store);

/* Several threads may add hashes at once, each through a writer of its own. */
keystore_writer_t *keystore_writer(keystore_t *store);
void keystore_add(keystore_writer_t *writer, const bloom_hash_t *hash,
    size_t n);
void keystore_writer_close(keystore_writer_t *writer);

/* Returns what the store keeps of a hash: h1 may have only the bits of the
 * partition. */
bloom_hash_t keystore_kept(const keystore_t *store, bloom_hash_t hash);

/*
 * Returns the number of distinct hashes, after all writers are closed.  If
 * `words` is not NULL, *absent gets how many of them are absent from that
 * filter.
 */
uint64_t keystore_count(keystore_t *store, unsigned threads,
    const bloom_geometry_t *g, const uint64_t *words, uint64_t *absent);

/* Inserts all hashes, which are whole, into a filter. */
void keystore_insert(keystore_t *store, const bloom_geometry_t *g,
    uint64_t *words, unsigned threads);

/* Passes what is kept of all hashes to `see`, many at a time and some more than
 * once.  Threads call it at the same time. */
typedef void (*keystore_see_t)(void *data, const bloom_hash_t *hash, size_t n);

void keystore_each(keystore_t *store, unsigned threads, keystore_see_t see,
    void *data);

/*
 * A reader passes h2 of each hash in a stretch of partitions to `see`, many at a
 * time, in the calling thread.  The store keeps h2 only, and has been counted.
 * Several threads may read at once, each with a reader of its own.
 */
typedef struct keystore_reader_s  keystore_reader_t;
typedef void (*keystore_see_h2_t)(void *data, const uint64_t *h2, size_t n);

keystore_reader_t *keystore_reader(keystore_t *store);
void keystore_read(keystore_reader_t *reader, unsigned first, unsigned n,
    keystore_see_h2_t see, void *data);
void keystore_reader_close(keystore_reader_t *reader);

/* Returns how many hashes keystore_read() passes. */
uint64_t keystore_held(const keystore_t *store, unsigned first, unsigned n);

/* Returns the number of bytes in the spill file. */
uint64_t keystore_spilled(const keystore_t *store);


#endif /* KEYSTORE_H */
