/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file puts the hashes of all keys into partitions, and divides the
 * partitions among threads that count or insert the hashes.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "keystore.h"
#include "keystore_partition.h"

#define PARTITIONS       (1 << KEYSTORE_BITS)

#define WRITER_ROOM      64              /* words of a partition in a writer */

/* Hashes that are put together from what is kept of them. */
#define KEPT_BATCH       64

/* Memory is prefetched for the hash that is this far ahead. */
#define PREFETCH         16


struct keystore_s {
    partition_pool_t     pool;
    partition_t          partition[PARTITIONS];
};

struct keystore_writer_s {
    keystore_t          *store;
    partition_scratch_t  scratch;
    uint8_t              count[PARTITIONS];  /* words */
    uint64_t             words[PARTITIONS][WRITER_ROOM];
};

/* A thread's share of the partitions: first .. last-1. */
typedef struct {
    keystore_t               *store;
    unsigned                  first;
    unsigned                  last;
    const bloom_geometry_t   *geometry;
    uint64_t                 *words;
    int                       atomic;
    uint64_t                  distinct;
    const uint64_t           *filter;    /* NULL: absent is not counted */
    uint64_t                  absent;
    keystore_see_t            see;
    void                     *see_data;
    unsigned                  at;        /* the partition that is read */
} share_t;


_Static_assert(sizeof(bloom_hash_t) == 2 * sizeof(uint64_t)
               && offsetof(bloom_hash_t, h2) == sizeof(uint64_t),
               "a hash is two words, h1 and h2");


keystore_t *
keystore_create(keystore_keep_e keep, uint64_t memory, const char *directory)
{
    unsigned     i;
    keystore_t  *store;

    store = cli_alloc(sizeof(*store));

    /* one eighth is for threads, and for chunks that are not full */

    partition_pool_init(&store->pool, keep, KEYSTORE_BITS,
                        (size_t) ((memory - memory / 8)
                                  / (PARTITIONS * keep * sizeof(uint64_t))),
                        directory);

    for (i = 0; i < PARTITIONS; i++) {
        partition_init(&store->partition[i], &store->pool);
    }

    return store;
}


void
keystore_free(keystore_t *store)
{
    unsigned  i;

    for (i = 0; i < PARTITIONS; i++) {
        partition_free(&store->partition[i]);
    }

    partition_pool_free(&store->pool);
    free(store);
}


uint64_t
keystore_spilled(const keystore_t *store)
{
    return store->pool.file.size;
}


static void
hand_over(keystore_writer_t *writer, unsigned at)
{
    partition_add(&writer->store->pool, &writer->store->partition[at],
                  &writer->scratch, writer->words[at], writer->count[at]);

    writer->count[at] = 0;
}


keystore_writer_t *
keystore_writer(keystore_t *store)
{
    void               *p;
    keystore_writer_t  *writer;

    if (posix_memalign(&p, 64, sizeof(*writer)) != 0) {
        cli_no_memory(sizeof(*writer));
    }

    writer = p;
    memset(writer->count, 0, sizeof(writer->count));
    memset(&writer->scratch, 0, sizeof(writer->scratch));
    writer->store = store;

    return writer;
}


void
keystore_add(keystore_writer_t *writer, const bloom_hash_t *hash, size_t n)
{
    size_t     i;
    unsigned   at, width;
    uint64_t  *to;

    width = writer->store->pool.width;

    for (i = 0; i < n; i++) {
        at = (unsigned) (hash[i].h1 >> (64 - KEYSTORE_BITS));
        to = &writer->words[at][writer->count[at]];

        to[0] = hash[i].h1;
        to[width - 1] = hash[i].h2;
        writer->count[at] = (uint8_t) (writer->count[at] + width);

        if (writer->count[at] == WRITER_ROOM) {
            hand_over(writer, at);
        }
    }
}


void
keystore_writer_close(keystore_writer_t *writer)
{
    unsigned  i;

    for (i = 0; i < PARTITIONS; i++) {
        if (writer->count[i] != 0) {
            hand_over(writer, i);
        }
    }

    partition_scratch_free(&writer->scratch);
    free(writer);
}


/* Returns how many of these hashes are absent from the filter. */
static uint64_t
count_absent(const share_t *share, const bloom_hash_t *hash, size_t n)
{
    size_t    i;
    uint64_t  absent;

    for (i = 0, absent = 0; i < n; i++) {

        if (i + PREFETCH < n) {
            bloom_layout_prefetch(share->geometry, share->filter,
                                  hash[i + PREFETCH]);
        }

        absent += !bloom_layout_test(share->geometry, share->filter, hash[i]);
    }

    return absent;
}


static void *
count_share(void *data)
{
    size_t                n;
    unsigned              i;
    share_t              *share = data;
    partition_scratch_t   scratch;

    memset(&scratch, 0, sizeof(scratch));

    for (i = share->first; i < share->last; i++) {
        n = partition_distinct(&share->store->pool, &share->store->partition[i],
                               &scratch);

        share->distinct += n;

        if (share->filter != NULL) {
            share->absent += count_absent(share, (bloom_hash_t *) (void *)
                                                 scratch.hashes, n);
        }
    }

    partition_scratch_free(&scratch);

    return NULL;
}


/* Inserts n hashes into a share's filter. */
static void
insert_hashes(void *data, const bloom_hash_t *hash, size_t n)
{
    size_t          i;
    const share_t  *share = data;

    if (!share->atomic) {
        bloom_layout_add_many(share->geometry, share->words, hash, n);
        return;
    }

    for (i = 0; i < n; i++) {

        if (i + PREFETCH < n) {
            bloom_layout_prefetch(share->geometry, share->words,
                                  hash[i + PREFETCH]);
        }

        (void) bloom_layout_add_atomic(share->geometry, share->words, hash[i]);
    }
}


/* Passes n words of hashes on. */
static void
see_words(void *data, const uint64_t *words, size_t n)
{
    size_t          i, some;
    share_t        *share = data;
    bloom_hash_t    hash[KEPT_BATCH];

    if (share->store->pool.width == KEYSTORE_HASHES) {
        share->see(share->see_data,
                   (const bloom_hash_t *) (const void *) words,
                   n / KEYSTORE_HASHES);
        return;
    }

    for ( /* void */ ; n != 0; n -= some, words += some) {
        some = n < KEPT_BATCH ? n : KEPT_BATCH;

        for (i = 0; i < some; i++) {
            hash[i].h1 = (uint64_t) share->at << (64 - KEYSTORE_BITS);
            hash[i].h2 = words[i];
        }

        share->see(share->see_data, hash, some);
    }
}


static void *
see_share(void *data)
{
    share_t              *share = data;
    partition_scratch_t   scratch;

    memset(&scratch, 0, sizeof(scratch));

    for (share->at = share->first; share->at < share->last; share->at++) {
        partition_each(&share->store->pool,
                       &share->store->partition[share->at], &scratch,
                       see_words, share);
    }

    partition_scratch_free(&scratch);

    return NULL;
}


/* Inserts all hashes of a share. */
static void *
insert_share(void *data)
{
    share_t  *share = data;

    share->see = insert_hashes;
    share->see_data = share;

    return see_share(share);
}


/* Runs `work` for each of `n` shares, the first in the calling thread. */
static void
run_shares(void *(*work)(void *), share_t *share, unsigned n)
{
    unsigned    i;
    pthread_t  *thread;

    thread = cli_alloc(n * sizeof(*thread));

    for (i = 1; i < n; i++) {
        cli_thread(&thread[i], work, &share[i]);
    }

    work(&share[0]);

    for (i = 1; i < n; i++) {
        pthread_join(thread[i], NULL);
    }

    free(thread);
}


static share_t *
make_shares(keystore_t *store, unsigned n)
{
    unsigned   i;
    share_t   *share;

    share = cli_alloc(n * sizeof(*share));
    memset(share, 0, n * sizeof(*share));

    for (i = 0; i < n; i++) {
        share[i].store = store;
        share[i].first = i * PARTITIONS / n;
        share[i].last = (i + 1) * PARTITIONS / n;
    }

    return share;
}


uint64_t
keystore_count(keystore_t *store, unsigned threads,
    const bloom_geometry_t *g, const uint64_t *words, uint64_t *absent)
{
    share_t   *share;
    unsigned   i;
    uint64_t   distinct;

    share = make_shares(store, threads);

    for (i = 0; i < threads; i++) {
        share[i].geometry = g;
        share[i].filter = words;
    }

    run_shares(count_share, share, threads);

    for (distinct = 0, i = 0; i < threads; i++) {
        distinct += share[i].distinct;
    }

    if (words != NULL) {
        for (*absent = 0, i = 0; i < threads; i++) {
            *absent += share[i].absent;
        }
    }

    free(share);

    return distinct;
}


void
keystore_insert(keystore_t *store, const bloom_geometry_t *g,
    uint64_t *words, unsigned threads)
{
    int                near;
    share_t           *share, seam;
    unsigned           i;
    bloom_geometry_t   last;

    /* keys go to the last part; with one line per key, only adjacent partitions
     * share a line */

    last = bloom_geometry_part(g, bloom_geometry_parts(g) - 1);
    near = last.layout == BLOOM_LAYOUT_BLOCKED && last.lines == 1;

    if (near && last.bits / BLOOM_LINE_BITS < 2 * PARTITIONS) {
        threads = 1;
    }

    share = make_shares(store, threads);

    for (i = 0; i < threads; i++) {
        share[i].geometry = g;
        share[i].words = words;
        share[i].atomic = !near && threads != 1;

        if (near && threads != 1) {
            share[i].last--;             /* inserted below: it shares a line
                                            with the next share */
        }
    }

    run_shares(insert_share, share, threads);

    for (i = 0; near && threads != 1 && i < threads; i++) {
        seam = share[i];
        seam.first = share[i].last;
        seam.last = share[i].last + 1;

        insert_share(&seam);
    }

    free(share);
}


void
keystore_each(keystore_t *store, unsigned threads, keystore_see_t see,
    void *data)
{
    share_t   *share;
    unsigned   i;

    share = make_shares(store, threads);

    for (i = 0; i < threads; i++) {
        share[i].see = see;
        share[i].see_data = data;
    }

    run_shares(see_share, share, threads);

    free(share);
}


bloom_hash_t
keystore_kept(const keystore_t *store, bloom_hash_t hash)
{
    if (store->pool.width == KEYSTORE_H2) {
        hash.h1 = hash.h1 >> (64 - KEYSTORE_BITS) << (64 - KEYSTORE_BITS);
    }

    return hash;
}


struct keystore_reader_s {
    keystore_t          *store;
    partition_scratch_t  scratch;
};


keystore_reader_t *
keystore_reader(keystore_t *store)
{
    keystore_reader_t  *reader;

    reader = cli_alloc(sizeof(*reader));
    memset(reader, 0, sizeof(*reader));
    reader->store = store;

    return reader;
}


void
keystore_read(keystore_reader_t *reader, unsigned first, unsigned n,
    keystore_see_h2_t see, void *data)
{
    for ( /* void */ ; n != 0; n--, first++) {
        partition_each_once(&reader->store->pool,
                            &reader->store->partition[first],
                            &reader->scratch, see, data);
    }
}


void
keystore_reader_close(keystore_reader_t *reader)
{
    partition_scratch_free(&reader->scratch);
    free(reader);
}


uint64_t
keystore_held(const keystore_t *store, unsigned first, unsigned n)
{
    uint64_t  held;

    for (held = 0; n != 0; n--, first++) {
        held += store->partition[first].distinct;
    }

    return held;
}
