/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Threads take shards, in order, until all are built or one fails.  Then the
 * filter is built again with another salt and a few more slots.
 */

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bloom_fuse_build.h"
#include "cli.h"
#include "fuse_build.h"


/* A unit of work is a shard, or all shards of a partition. */
typedef struct {
    keystore_t              *store;
    const bloom_geometry_t  *geometry;
    uint64_t                *words;
    uint64_t                 most;       /* hashes in a unit */
    unsigned                 units;
    unsigned                 partitions; /* in a unit */
    unsigned                 shard_bits; /* 2^n shards in a unit */
    unsigned                 next;       /* atomic: unit */
    int                      failed;     /* atomic */
} work_t;

/* What a thread collects the signatures of a unit in. */
typedef struct {
    const bloom_geometry_t  *geometry;
    uint64_t                *x;
    uint64_t                *end;        /* of each shard in x; NULL: there is
                                            one shard */
    uint64_t                 first;      /* the first shard */
    uint64_t                 n;
} unit_t;


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
count_hashes(void *data, const bloom_hash_t *hash, size_t n)
{
    size_t   i;
    unit_t  *unit = data;

    for (i = 0; i < n; i++) {
        unit->end[bloom_fuse_shard(unit->geometry, hash[i]) - unit->first]++;
    }
}


static void
see_hashes(void *data, const bloom_hash_t *hash, size_t n)
{
    size_t    i;
    unit_t   *unit = data;
    uint64_t  to;

    if (unit->end == NULL) {
        for (i = 0; i < n; i++) {
            unit->x[unit->n++] = bloom_fuse_signature(unit->geometry, hash[i]);
        }

        return;
    }

    for (i = 0; i < n; i++) {
        to = bloom_fuse_shard(unit->geometry, hash[i]) - unit->first;
        unit->x[unit->end[to]++] = bloom_fuse_signature(unit->geometry,
                                                        hash[i]);
    }
}


/* Collects the signatures of a unit, sorted by shard. */
static void
collect_unit(const work_t *work, keystore_reader_t *reader, unit_t *unit,
    unsigned number)
{
    unsigned  i;
    uint64_t  begin, next;

    unit->n = 0;
    unit->first = (uint64_t) number << work->shard_bits;

    if (unit->end != NULL) {
        memset(unit->end, 0, sizeof(*unit->end) << work->shard_bits);

        keystore_read(reader, number, 1, count_hashes, unit);

        for (begin = 0, i = 0; i < 1u << work->shard_bits; i++, begin = next) {
            next = begin + unit->end[i];
            unit->end[i] = begin;
        }
    }

    keystore_read(reader, number * work->partitions, work->partitions,
                  see_hashes, unit);
}


/* The work of a thread: builds the shards of units until all are built. */
static void *
build_units(void *data)
{
    work_t             *work = data;
    size_t              size;
    unit_t              unit;
    uint8_t            *scratch;
    unsigned            number, i;
    uint64_t            shard, begin, end;
    keystore_reader_t  *reader;

    memset(&unit, 0, sizeof(unit));

    unit.geometry = work->geometry;
    size = work->most * sizeof(*unit.x) + 64;
    unit.x = fuse_build_map(size);
    scratch = NULL;
    reader = keystore_reader(work->store);

    if (work->shard_bits != 0) {
        unit.end = cli_alloc(sizeof(*unit.end) << work->shard_bits);

    } else {
        scratch = (uint8_t *) fuse_build_map(bloom_fuse_scratch(work->geometry,
                                                                work->most));
    }

    for ( ;; ) {
        number = __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED);

        if (number >= work->units
            || __atomic_load_n(&work->failed, __ATOMIC_RELAXED))
        {
            break;
        }

        collect_unit(work, reader, &unit, number);

        for (begin = 0, i = 0; i < 1u << work->shard_bits; i++, begin = end) {
            shard = unit.first + i;
            end = unit.end != NULL ? unit.end[i] : unit.n;

            if (unit.end != NULL) {
                scratch = (uint8_t *) fuse_build_map(
                              bloom_fuse_scratch(work->geometry, end - begin));
            }

            if (bloom_fuse_build(work->geometry, shard, unit.x + begin,
                                 end - begin, scratch,
                                 work->words
                                 + bloom_fuse_shard_begin(work->geometry,
                                                          shard))
                != 0)
            {
                __atomic_store_n(&work->failed, 1, __ATOMIC_RELAXED);
            }

            if (unit.end != NULL) {
                (void) munmap(scratch, bloom_fuse_scratch(work->geometry,
                                                          end - begin));
            }
        }
    }

    if (work->shard_bits == 0) {
        (void) munmap(scratch, bloom_fuse_scratch(work->geometry, work->most));
    }

    (void) munmap(unit.x, size);
    free(unit.end);
    keystore_reader_close(reader);

    return NULL;
}


/* Builds all units.  Returns 0, or -1 if a shard failed. */
static int
build_all(work_t *work, unsigned threads, uint64_t memory)
{
    unsigned    i;
    uint64_t    held, each;
    pthread_t  *thread;

    for (work->most = 0, i = 0; i < work->units; i++) {
        held = keystore_held(work->store, i * work->partitions,
                             work->partitions);
        work->most = held > work->most ? held : work->most;
    }

    each = work->most * sizeof(uint64_t)
           + bloom_fuse_scratch(work->geometry,
                                work->most >> work->shard_bits);

    threads = threads < work->units ? threads : work->units;

    while (threads > 1 && threads * each > memory) {
        threads--;
    }

    work->next = 0;
    work->failed = 0;

    thread = cli_alloc(threads * sizeof(*thread));

    for (i = 1; i < threads; i++) {
        cli_thread(&thread[i], build_units, work);
    }

    (void) build_units(work);

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
    uint32_t  attempt;

    memset(&work, 0, sizeof(work));

    work.store = store;
    work.geometry = g;

    if (keystore_held(store, 0, 1 << KEYSTORE_BITS) > keys + keys / 16) {
        keystore_distinct(store, threads);
    }

    for (attempt = 0; attempt < BLOOM_FUSE_ATTEMPTS; attempt++) {

        if (bloom_geometry_size_fuse(g, keys, fpr, attempt) != 0) {
            cli_error("a filter for %" PRIu64 " key%s at a rate of %g needs "
                      "more than 1 TiB; use a larger -p", keys, CLI_S(keys),
                      fpr);
            return CLI_ERROR;
        }

        work.shard_bits = g->fuse.shard_bits > KEYSTORE_BITS
                          ? g->fuse.shard_bits - KEYSTORE_BITS : 0;
        work.units = 1u << (g->fuse.shard_bits - work.shard_bits);
        work.partitions = (1u << KEYSTORE_BITS) / work.units;
        work.words = fuse_build_map(bloom_geometry_bytes(g));

        if (build_all(&work, threads, memory) == 0) {
            *words = work.words;
            return CLI_OK;
        }

        (void) munmap(work.words, bloom_geometry_bytes(g));
    }

    cli_error("no filter in layout fuse was found for these keys after %d "
              "attempts: keys were made to have equal hashes; use --hash "
              "siphash or --layout blocked", BLOOM_FUSE_ATTEMPTS);

    return CLI_ERROR;
}
