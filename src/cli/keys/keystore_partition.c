/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A partition that has used its share of the memory drops duplicates.  If that
 * does not free enough, it writes its hashes to the spill file, as a run.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "cli.h"
#include "keystore_partition.h"

#define CHUNK            1016            /* words; with `next`, 8 KiB */
#define SLAB             (4 * 1024 * 1024)

/* A partition drops duplicates when it has this many hashes, and then when it
 * has doubled. */
#define COMPACT_MIN      8192

/* After a run with few duplicates, this many runs are written without looking
 * for duplicates. */
#define RUNS_TRUSTED     7

/* Duplicates are searched in buckets of about this many hashes, which fit into
 * the processor's first cache; there are at most 2^BUCKET_BITS buckets. */
#define BUCKET           512
#define BUCKET_BITS      12


typedef struct partition_chunk_s  chunk_t;

struct partition_chunk_s {
    chunk_t         *next;
    uint64_t         words[CHUNK] __attribute__((aligned(64)));
};


void
partition_pool_init(partition_pool_t *pool, unsigned width, unsigned shared,
    size_t limit, const char *directory)
{
    memset(pool, 0, sizeof(*pool));

    pool->width = width;
    pool->shared = shared;
    pool->limit = limit;

    spill_file_init(&pool->file, directory);
    pthread_mutex_init(&pool->lock, NULL);
}


void
partition_pool_free(partition_pool_t *pool)
{
    uint8_t  *slab, *next;

    for (slab = pool->slabs; slab != NULL; slab = next) {
        next = *(uint8_t **) (void *) slab;
        (void) munmap(slab, SLAB);
    }

    spill_file_close(&pool->file);
    pthread_mutex_destroy(&pool->lock);
}


void
partition_init(partition_t *p, const partition_pool_t *pool)
{
    memset(p, 0, sizeof(*p));

    pthread_mutex_init(&p->lock, NULL);
    p->compact_at = pool->limit < COMPACT_MIN ? pool->limit : COMPACT_MIN;
}


void
partition_free(partition_t *p)
{
    free(p->run);
    pthread_mutex_destroy(&p->lock);
}


/* Maps a slab, on huge pages if the system has them: the first access to all of
 * it then takes a third of the time. */
static uint8_t *
map_slab(void)
{
    void      *p;
    size_t     before;
    uint8_t   *slab;

    p = mmap(NULL, 2 * SLAB, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS,
             -1, 0);

    if (p == MAP_FAILED) {
        cli_no_memory(2 * SLAB);
    }

    slab = p;
    before = (SLAB - ((uintptr_t) p & (SLAB - 1))) & (SLAB - 1);

    if (before != 0) {
        (void) munmap(slab, before);
    }

    slab += before;
    (void) munmap(slab + SLAB, SLAB - before);
    (void) madvise(slab, SLAB, MADV_HUGEPAGE);

    return slab;
}


static chunk_t *
new_chunk(partition_pool_t *pool, partition_t *p)
{
    chunk_t  *chunk;
    uint8_t  *slab;

    if (p->spare != NULL) {
        chunk = p->spare;
        p->spare = chunk->next;

    } else {
        pthread_mutex_lock(&pool->lock);

        if (pool->slabs == NULL || pool->used + sizeof(chunk_t) > SLAB) {
            slab = map_slab();
            *(uint8_t **) (void *) slab = pool->slabs;
            pool->slabs = slab;
            pool->used = sizeof(chunk_t);
        }

        chunk = (chunk_t *) (void *) (pool->slabs + pool->used);
        pool->used += sizeof(chunk_t);

        pthread_mutex_unlock(&pool->lock);
    }

    chunk->next = p->chunks;
    p->chunks = chunk;
    p->fill = 0;

    return chunk;
}


/* Returns the words in a chunk. */
static inline size_t
chunk_fill(const partition_t *p, const chunk_t *chunk)
{
    return chunk == p->chunks ? p->fill : CHUNK;
}


/* Prefetches the next chunk: chunks are anywhere in memory, so the processor
 * does not predict which one is next. */
static inline void
prefetch_next(const chunk_t *chunk, size_t i)
{
    if (i % 8 == 0 && chunk->next != NULL) {
        __builtin_prefetch(&chunk->next->words[i]);
    }
}


/* Copies words past the caches, as they are not read soon. */
static void
copy_words(uint64_t *dst, const uint64_t *src, size_t n)
{
#if defined(__SSE2__)

    size_t  i;

    for (i = 0; i < n; i++) {
        _mm_stream_si64((long long *) &dst[i], (long long) src[i]);
    }

#else

    memcpy(dst, src, n * sizeof(*dst));

#endif
}


/* Appends n words to the chunks. */
static void
append(partition_pool_t *pool, partition_t *p, const uint64_t *words, size_t n)
{
    size_t    part;
    chunk_t  *chunk;

    p->count += n / pool->width;

    for ( /* void */ ; n != 0; n -= part, words += part) {
        chunk = p->chunks;

        if (chunk == NULL || p->fill == CHUNK) {
            chunk = new_chunk(pool, p);
        }

        part = CHUNK - p->fill;
        part = part < n ? part : n;

        copy_words(chunk->words + p->fill, words, part);
        p->fill += part;
    }
}


/* Empties a partition's chunks. */
static void
discard(partition_t *p)
{
    chunk_t  *chunk;

    while (p->chunks != NULL) {
        chunk = p->chunks;
        p->chunks = chunk->next;
        chunk->next = p->spare;
        p->spare = chunk;
    }

    p->count = 0;
}


void
partition_scratch_free(partition_scratch_t *scratch)
{
    free(scratch->runs);
    free(scratch->hashes);
    hash_table_free(&scratch->table);
}


/* Returns an array of at least `n` members; its content is lost. */
static void *
ensure(void *array, size_t *room, size_t n, size_t size)
{
    if (n <= *room) {
        return array;
    }

    free(array);
    *room = n + n / 8;

    return cli_alloc(*room * size);
}


/* Drops duplicates in a bucket of n hashes.  Returns how many are left. */
static inline __attribute__((always_inline)) size_t
distinct_bucket(partition_scratch_t *scratch, unsigned width, uint64_t *hash,
    size_t n)
{
    size_t         i, kept;
    uint32_t      *slot;
    uint64_t       h1, h2;
    hash_table_t   table;

    hash_table_clear(&scratch->table, 8 * n);
    table = scratch->table;              /* a copy that may be in registers */

    for (i = 0, kept = 0; i < n; i++) {
        h1 = hash[i * width];
        h2 = hash[i * width + width - 1];

        slot = hash_table_find(&table, hash, width, h1, h2);

        if (*slot == 0) {
            hash[kept * width] = h1;
            hash[kept * width + width - 1] = h2;
            *slot = (uint32_t) ++kept;
        }
    }

    return kept;
}


/* Copies n words of hashes to the places of their buckets; counts them if `to`
 * is NULL. */
static inline __attribute__((always_inline)) void
to_buckets(uint64_t *to, size_t *place, unsigned width, unsigned shift,
    unsigned bits, const uint64_t *words, size_t n)
{
    size_t    i;
    uint64_t  at;

    for (i = 0; i < n; i += width) {
        at = (words[i] << shift >> 1) >> (63 - bits);

        if (to == NULL) {
            place[at + 1]++;
            continue;
        }

        memcpy(to + place[at]++ * width, words + i, width * sizeof(*to));
    }
}


/* Does what distinct() says; `width` is a constant. */
static inline __attribute__((always_inline)) size_t
distinct_of_width(partition_scratch_t *scratch, unsigned width, unsigned shared,
    const partition_t *p, size_t runs)
{
    size_t           i, n, kept, begin, one, first[(1 << BUCKET_BITS) + 1];
    unsigned         bits, shift, b, pass;
    uint64_t        *hash, *to;
    const chunk_t   *chunk;

    n = p->count + runs;
    shift = width == 2 ? shared : 0;

    for (bits = 0; bits < BUCKET_BITS && n >> bits > BUCKET; bits++) {
        /* void */
    }

    scratch->hashes = ensure(scratch->hashes, &scratch->hashes_room, n * width,
                             sizeof(uint64_t));
    hash = scratch->hashes;

    memset(first, 0, ((1u << bits) + 1) * sizeof(first[0]));

    for (pass = 0; pass < 2; pass++) {
        to = pass == 0 ? NULL : hash;

        for (chunk = p->chunks; chunk != NULL; chunk = chunk->next) {
            n = chunk_fill(p, chunk);

            for (i = 0; i < n; i += 8) {
                prefetch_next(chunk, i);
                to_buckets(to, first, width, shift, bits, chunk->words + i,
                           n - i < 8 ? n - i : 8);
            }
        }

        to_buckets(to, first, width, shift, bits, scratch->runs, runs * width);

        for (b = 1; pass == 0 && b <= 1u << bits; b++) {
            first[b] += first[b - 1];
        }
    }

    /* now first[b] is the end of bucket b */

    for (b = 0, begin = 0, kept = 0; b < 1u << bits; begin = first[b++]) {
        one = distinct_bucket(scratch, width, hash + begin * width,
                              first[b] - begin);

        if (kept != begin) {
            memmove(hash + kept * width, hash + begin * width,
                    one * width * sizeof(*hash));
        }

        kept += one;
    }

    return kept;
}


/*
 * Puts the distinct hashes of a partition, and of the first `runs` hashes of
 * scratch->runs, into scratch->hashes.  Sorts them into buckets by the bits
 * that differ first.  Returns how many there are.
 */
static size_t
distinct(partition_scratch_t *scratch, const partition_pool_t *pool,
    const partition_t *p, size_t runs)
{
    return pool->width == 1
           ? distinct_of_width(scratch, 1, pool->shared, p, runs)
           : distinct_of_width(scratch, 2, pool->shared, p, runs);
}


/* Writes n hashes, or the partition's chunks if `hash` is NULL, as a run. */
static void
spill(partition_pool_t *pool, partition_t *p, const uint64_t *hash, size_t n)
{
    size_t    size;
    uint64_t  offset;
    chunk_t  *chunk;

    size = n * pool->width * sizeof(*hash);
    offset = spill_file_reserve(&pool->file, size);

    p->run = cli_realloc(p->run, (p->runs + 1) * sizeof(*p->run));
    p->run[p->runs].offset = offset;
    p->run[p->runs].count = n;
    p->runs++;
    p->spilled += n;

    if (hash != NULL) {
        spill_file_write(&pool->file, hash, size, offset);
        return;
    }

    for (chunk = p->chunks; chunk != NULL; chunk = chunk->next) {
        size = chunk_fill(p, chunk) * sizeof(*chunk->words);
        spill_file_write(&pool->file, chunk->words, size, offset);
        offset += size;
    }
}


/* Replaces the hashes in a partition's chunks. */
static void
replace(partition_pool_t *pool, partition_t *p, const uint64_t *hash, size_t n)
{
    discard(p);
    append(pool, p, hash, n * pool->width);
}


/* Makes room in a partition that has grown. */
static void
compact(partition_pool_t *pool, partition_t *p, partition_scratch_t *scratch)
{
    size_t  n, before;

    before = p->count;

    if (p->trusted != 0 && before >= pool->limit) {
        p->trusted--;
        spill(pool, p, NULL, before);
        discard(p);
        return;
    }

    n = distinct(scratch, pool, p, 0);

    if (before >= pool->limit && n > pool->limit / 2) {
        spill(pool, p, scratch->hashes, n);
        discard(p);

    } else if (n < before) {
        replace(pool, p, scratch->hashes, n);
    }

    /* if there were few duplicates, wait longer before the next search */

    if (n > before / 2) {
        p->compact_at = 4 * p->compact_at;
        p->trusted = p->runs != 0 ? RUNS_TRUSTED : 0;

    } else {
        p->compact_at = 2 * n < COMPACT_MIN ? COMPACT_MIN : 2 * n;
    }

    if (p->compact_at > pool->limit) {
        p->compact_at = pool->limit;
    }
}


void
partition_add(partition_pool_t *pool, partition_t *p,
    partition_scratch_t *scratch, const uint64_t *words, size_t n)
{
    pthread_mutex_lock(&p->lock);

    append(pool, p, words, n);

    if (p->count >= p->compact_at) {
        compact(pool, p, scratch);
    }

    pthread_mutex_unlock(&p->lock);
}


/* Reads a partition's runs into scratch->runs.  Returns the number of their
 * hashes. */
static size_t
read_runs(const partition_pool_t *pool, const partition_t *p,
    partition_scratch_t *scratch)
{
    size_t     i, n;
    uint64_t  *hash;

    scratch->runs = ensure(scratch->runs, &scratch->runs_room,
                           p->spilled * pool->width, sizeof(uint64_t));
    hash = scratch->runs;

    for (i = 0; i < p->runs; i++) {
        n = p->run[i].count * pool->width;
        spill_file_read(&pool->file, hash, n * sizeof(*hash),
                        p->run[i].offset);
        hash += n;
    }

    return p->spilled;
}


size_t
partition_distinct(partition_pool_t *pool, partition_t *p,
    partition_scratch_t *scratch)
{
    size_t  runs;

    runs = read_runs(pool, p, scratch);
    p->distinct = distinct(scratch, pool, p, runs);

    if (runs == 0 && p->distinct != p->count) {
        replace(pool, p, scratch->hashes, p->distinct);
    }

    return p->distinct;
}


void
partition_each(const partition_pool_t *pool, const partition_t *p,
    partition_scratch_t *scratch, partition_see_t see, void *data)
{
    size_t          runs;
    const chunk_t  *chunk;

    for (chunk = p->chunks; chunk != NULL; chunk = chunk->next) {
        see(data, chunk->words, chunk_fill(p, chunk));
    }

    runs = read_runs(pool, p, scratch);

    if (runs != 0) {
        see(data, scratch->runs, runs * pool->width);
    }
}


void
partition_each_once(const partition_pool_t *pool, const partition_t *p,
    partition_scratch_t *scratch, partition_see_t see, void *data)
{
    size_t  runs, n;

    if (p->distinct == p->count + p->spilled) {
        partition_each(pool, p, scratch, see, data);
        return;
    }

    runs = read_runs(pool, p, scratch);
    n = distinct(scratch, pool, p, runs);
    see(data, scratch->hashes, n * pool->width);
}
