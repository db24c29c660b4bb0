/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file builds a fuse base with several threads, which take shards, in
 * order, until all are built or one fails.
 */

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bloom_fuse_build.h"
#include "cli.h"
#include "fuse_build.h"


typedef struct {
    keystore_t              *store;
    const bloom_geometry_t  *geometry;
    uint64_t                *words;
    uint64_t                 most;       /* keys in a shard */
    unsigned                 shards;
    unsigned                 partitions; /* in a shard */
    unsigned                 next;       /* atomic: shard */
    unsigned                 failed;     /* atomic: number of a shard, counted
                                            from 1; or 0 */
} work_t;

/* What a thread reads the keys of a shard with. */
typedef struct {
    const work_t            *work;
    keystore_reader_t       *reader;
    unsigned                 shard;
} shard_t;


uint64_t *
fuse_build_map(uint64_t size)
{
    void  *words;

    words = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS,
                 -1, 0);

    if (words == MAP_FAILED) {
        cli_no_memory(size);
    }

    (void) madvise(words, size, MADV_HUGEPAGE);

    return words;
}


static void
read_shard(void *data, bloom_fuse_take_t take, void *take_data)
{
    shard_t  *shard = data;

    keystore_read(shard->reader, shard->shard * shard->work->partitions,
                  shard->work->partitions, take, take_data);
}


/* The work of a thread: builds shards until all are built or one failed. */
static void *
build_shards(void *data)
{
    size_t    size;
    work_t   *work = data;
    shard_t   shard;
    uint64_t  keys, *scratch;

    size = bloom_fuse_scratch(work->geometry, work->most);
    scratch = fuse_build_map(size);

    shard.work = work;
    shard.reader = keystore_reader(work->store);

    for ( ;; ) {
        shard.shard = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED);

        if (shard.shard >= work->shards
            || __atomic_load_n(&work->failed, __ATOMIC_RELAXED))
        {
            break;
        }

        keys = keystore_held(work->store, shard.shard * work->partitions,
                             work->partitions);

        if (bloom_fuse_build(work->geometry, shard.shard, keys, read_shard,
                             &shard, scratch,
                             work->words
                             + bloom_fuse_shard_begin(work->geometry,
                                                      shard.shard),
                             (uint8_t *) work->words
                             + work->geometry->bits / 8 - 1 - shard.shard)
            != 0)
        {
            __atomic_store_n(&work->failed, shard.shard + 1, __ATOMIC_RELAXED);
        }
    }

    (void) munmap(scratch, size);
    keystore_reader_close(shard.reader);

    return NULL;
}


/* Builds all shards.  Returns 0, or -1 if one failed. */
static int
build_all(work_t *work, unsigned threads, uint64_t memory)
{
    unsigned    i;
    uint64_t    held, each;
    pthread_t  *thread;

    for (work->most = 0, i = 0; i < work->shards; i++) {
        held = keystore_held(work->store, i * work->partitions,
                             work->partitions);
        work->most = held > work->most ? held : work->most;
    }

    each = bloom_fuse_scratch(work->geometry, work->most);
    threads = threads < work->shards ? threads : work->shards;

    while (threads > 1 && threads * each > memory) {
        threads--;
    }

    work->next = 0;
    work->failed = 0;

    thread = cli_alloc(threads * sizeof(*thread));

    for (i = 1; i < threads; i++) {
        cli_thread(&thread[i], build_shards, work);
    }

    (void) build_shards(work);

    for (i = 1; i < threads; i++) {
        pthread_join(thread[i], NULL);
    }

    free(thread);

    return work->failed ? -1 : 0;
}


int
fuse_build(bloom_geometry_t *g, uint64_t **words, keystore_t *store,
    uint64_t keys, double fpr, unsigned threads, uint64_t memory)
{
    work_t    work;
    uint64_t  held;

    memset(&work, 0, sizeof(work));

    work.store = store;
    work.geometry = g;

    if (keys > FUSE_BUILD_KEYS_MAX) {
        cli_error("%" PRIu64 " keys are too many for --layout fuse, which "
                  "takes at most 34g; use --layout blocked", keys);
        return CLI_ERROR;
    }

    if (bloom_geometry_size_fuse(g, keys, fpr) != 0) {
        cli_error("a filter for %" PRIu64 " key%s at a rate of %g needs more "
                  "than 1 TiB; use a larger -p", keys, CLI_S(keys), fpr);
        return CLI_ERROR;
    }

    work.shards = 1u << g->fuse.shard_bits;
    work.partitions = (1u << KEYSTORE_BITS) / work.shards;
    work.words = fuse_build_map(bloom_geometry_bytes(g));

    if (build_all(&work, threads, memory) == 0) {
        *words = work.words;
        return CLI_OK;
    }

    (void) munmap(work.words, bloom_geometry_bytes(g));

    held = keystore_held(store, (work.failed - 1) * work.partitions,
                         work.partitions);

    cli_error("no filter in layout fuse was found: the hashes of the %" PRIu64
              " key%s in shard %u of %u collide with each of %d salts, which "
              "only happens to keys that were chosen for this seed; use "
              "another --seed, --hash siphash with a secret one, or --layout "
              "blocked", held, CLI_S(held), work.failed, work.shards,
              BLOOM_FUSE_SALTS);

    return CLI_ERROR;
}
