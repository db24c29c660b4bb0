/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A partition holds the hashes of a keystore that begin with the same bits: in
 * chunks of memory, and in runs of the spill file.  A hash is one word, h2, or
 * two words, h1 and h2, as the pool says.
 */

#ifndef KEYSTORE_PARTITION_H
#define KEYSTORE_PARTITION_H

#include <pthread.h>

#include "hash_table.h"
#include "spill_file.h"


/* A part of the spill file. */
typedef struct {
    uint64_t       offset;
    size_t         count;                /* hashes */
} partition_run_t;

typedef struct {
    pthread_mutex_t            lock;
    struct partition_chunk_s  *chunks;   /* all except the first are full */
    size_t                     fill;     /* words in the first chunk */
    struct partition_chunk_s  *spare;
    size_t                     count;    /* hashes in all chunks */
    size_t                     compact_at;
    unsigned                   trusted;  /* runs still to write unsearched */
    partition_run_t           *run;
    size_t                     runs;
    size_t                     spilled;  /* hashes in runs */
    size_t                     distinct; /* hashes, once they are counted */
} partition_t;

/* What all partitions of a keystore share. */
typedef struct {
    unsigned         width;              /* words of a hash, 1 or 2 */
    unsigned         shared;             /* first bits of h1 that all hashes of
                                            a partition have */
    size_t           limit;              /* hashes in memory per partition */
    spill_file_t     file;

    pthread_mutex_t  lock;               /* protects the slabs */
    uint8_t         *slabs;              /* the first chunk of each holds the
                                            address of the next slab */
    size_t           used;               /* bytes of the first slab */
} partition_pool_t;

/* Buffers of a thread.  They grow as needed, and are all zeros at first. */
typedef struct {
    uint64_t        *runs;               /* read from the spill file */
    size_t           runs_room;
    uint64_t        *hashes;
    size_t           hashes_room;
    hash_table_t     table;              /* of the hashes of a bucket */
} partition_scratch_t;

/* What partition_each() passes n words of hashes to. */
typedef void (*partition_see_t)(void *data, const uint64_t *words, size_t n);


/* Prepares a pool for 2^shared partitions that hold `limit` hashes of `width`
 * words each in memory, and spill what exceeds them to a file in `directory`. */
void partition_pool_init(partition_pool_t *pool, unsigned width,
    unsigned shared, size_t limit, const char *directory);
void partition_pool_free(partition_pool_t *pool);

void partition_init(partition_t *p, const partition_pool_t *pool);
void partition_free(partition_t *p);

/* Adds n words of hashes to a partition, and makes room in it if it has become
 * large.  Several threads may call it at once. */
void partition_add(partition_pool_t *pool, partition_t *p,
    partition_scratch_t *scratch, const uint64_t *words, size_t n);

/* Puts the distinct hashes of a partition into scratch->hashes, and drops
 * duplicates that are in memory.  Returns how many there are; later, p->distinct
 * has that number. */
size_t partition_distinct(partition_pool_t *pool, partition_t *p,
    partition_scratch_t *scratch);

/* Pass all hashes to `see`, many at a time: some more than once; or each once,
 * after partition_distinct(). */
void partition_each(const partition_pool_t *pool, const partition_t *p,
    partition_scratch_t *scratch, partition_see_t see, void *data);
void partition_each_once(const partition_pool_t *pool, const partition_t *p,
    partition_scratch_t *scratch, partition_see_t see, void *data);

void partition_scratch_free(partition_scratch_t *scratch);


#endif /* KEYSTORE_PARTITION_H */
