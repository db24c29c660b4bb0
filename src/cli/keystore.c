/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file holds the hashes of all keys in partitions, drops duplicates,
 * spills what exceeds the memory to a file, and inserts all of them into a
 * filter.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "cli.h"
#include "keystore.h"
#include "spill_file.h"

#define PARTITION_BITS   KEYSTORE_BITS
#define PARTITIONS       (1 << PARTITION_BITS)

#define WRITER_ROOM      32              /* hashes of a partition in a writer */
#define CHUNK            508             /* hashes; with `next`, 8 KiB */
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

/* Memory is prefetched for the hash that is this far ahead. */
#define PREFETCH         16


typedef struct chunk_s  chunk_t;

struct chunk_s {
    chunk_t         *next;
    bloom_hash_t     hashes[CHUNK] __attribute__((aligned(64)));
};

/* A part of the spill file. */
typedef struct {
    uint64_t         offset;
    size_t           count;              /* hashes */
} run_t;

typedef struct {
    pthread_mutex_t  lock;
    chunk_t         *chunks;             /* all except the first are full */
    size_t           fill;               /* hashes in the first chunk */
    chunk_t         *spare;
    size_t           count;              /* hashes in all chunks */
    size_t           compact_at;
    unsigned         trusted;            /* runs still to write unsearched */
    run_t           *run;
    size_t           runs;
    size_t           spilled;            /* hashes in runs */
} partition_t;

/* Buffers that grow as needed. */
typedef struct {
    bloom_hash_t    *runs;               /* read from the spill file */
    size_t           runs_room;
    bloom_hash_t    *hashes;
    size_t           hashes_room;
    uint32_t        *table;              /* indices of hashes, from 1 */
    size_t           table_room;
} scratch_t;

struct keystore_s {
    size_t           limit;              /* hashes in memory per partition */
    spill_file_t     file;

    pthread_mutex_t  lock;               /* protects the slabs */
    uint8_t         *slabs;              /* the first chunk of each holds the
                                            address of the next slab */
    size_t           used;               /* bytes of the first slab */

    partition_t      partition[PARTITIONS];
};

struct keystore_writer_s {
    keystore_t      *store;
    scratch_t        scratch;
    uint8_t          count[PARTITIONS];
    bloom_hash_t     hashes[PARTITIONS][WRITER_ROOM];
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
    keystore_see_t            see;       /* NULL: hashes are inserted */
    void                     *see_data;
} share_t;


keystore_t *
keystore_create(uint64_t memory, const char *directory)
{
    unsigned     i;
    keystore_t  *store;

    store = cli_alloc(sizeof(*store));
    memset(store, 0, sizeof(*store));

    /* one eighth is for threads, and for chunks that are not full */

    store->limit = (size_t) ((memory - memory / 8)
                             / (PARTITIONS * sizeof(bloom_hash_t)));

    spill_file_init(&store->file, directory);
    pthread_mutex_init(&store->lock, NULL);

    for (i = 0; i < PARTITIONS; i++) {
        pthread_mutex_init(&store->partition[i].lock, NULL);
        store->partition[i].compact_at = store->limit < COMPACT_MIN
                                         ? store->limit : COMPACT_MIN;
    }

    return store;
}


void
keystore_free(keystore_t *store)
{
    uint8_t   *slab, *next;
    unsigned   i;

    for (slab = store->slabs; slab != NULL; slab = next) {
        next = *(uint8_t **) (void *) slab;
        (void) munmap(slab, SLAB);
    }

    for (i = 0; i < PARTITIONS; i++) {
        free(store->partition[i].run);
        pthread_mutex_destroy(&store->partition[i].lock);
    }

    spill_file_close(&store->file);
    pthread_mutex_destroy(&store->lock);
    free(store);
}


uint64_t
keystore_spilled(const keystore_t *store)
{
    return store->file.size;
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
new_chunk(keystore_t *store, partition_t *p)
{
    chunk_t  *chunk;
    uint8_t  *slab;

    if (p->spare != NULL) {
        chunk = p->spare;
        p->spare = chunk->next;

    } else {
        pthread_mutex_lock(&store->lock);

        if (store->slabs == NULL
            || store->used + sizeof(chunk_t) > SLAB)
        {
            slab = map_slab();
            *(uint8_t **) (void *) slab = store->slabs;
            store->slabs = slab;
            store->used = sizeof(chunk_t);
        }

        chunk = (chunk_t *) (void *) (store->slabs + store->used);
        store->used += sizeof(chunk_t);

        pthread_mutex_unlock(&store->lock);
    }

    chunk->next = p->chunks;
    p->chunks = chunk;
    p->fill = 0;

    return chunk;
}


static inline size_t
chunk_count(const partition_t *p, const chunk_t *chunk)
{
    return chunk == p->chunks ? p->fill : CHUNK;
}


/* Prefetches the next chunk: chunks are anywhere in memory, so the processor
 * does not predict which one is next. */
static inline void
prefetch_next(const chunk_t *chunk, size_t i)
{
    if (i % 4 == 0 && chunk->next != NULL) {
        __builtin_prefetch(&chunk->next->hashes[i]);
    }
}


/* Copies hashes past the caches, as they are not read soon. */
static void
copy_hashes(bloom_hash_t *dst, const bloom_hash_t *src, size_t n)
{
#if defined(__SSE2__)

    size_t  i;

    for (i = 0; i < n; i++) {
        _mm_stream_si128((__m128i *) (void *) &dst[i],
                         _mm_loadu_si128((const __m128i *) (const void *)
                                         &src[i]));
    }

#else

    memcpy(dst, src, n * sizeof(*dst));

#endif
}


static void
append(keystore_t *store, partition_t *p, const bloom_hash_t *hash, size_t n)
{
    size_t    part;
    chunk_t  *chunk;

    p->count += n;

    for ( /* void */ ; n != 0; n -= part, hash += part) {
        chunk = p->chunks;

        if (chunk == NULL || p->fill == CHUNK) {
            chunk = new_chunk(store, p);
        }

        part = CHUNK - p->fill;
        part = part < n ? part : n;

        copy_hashes(chunk->hashes + p->fill, hash, part);
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


static void
free_scratch(scratch_t *scratch)
{
    free(scratch->runs);
    free(scratch->hashes);
    free(scratch->table);
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
static size_t
distinct_bucket(scratch_t *scratch, bloom_hash_t *hash, size_t n)
{
    size_t         i, at, mask, kept;
    uint32_t      *table;
    bloom_hash_t   one;

    for (mask = 64; mask < 2 * n; mask *= 2) {
        /* void */
    }

    scratch->table = ensure(scratch->table, &scratch->table_room, mask,
                            sizeof(uint32_t));
    table = scratch->table;
    memset(table, 0, mask * sizeof(uint32_t));
    mask--;

    for (i = 0, kept = 0; i < n; i++) {
        one = hash[i];

        for (at = one.h2 & mask; table[at] != 0; at = (at + 1) & mask) {
            if (hash[table[at] - 1].h2 == one.h2
                && hash[table[at] - 1].h1 == one.h1)
            {
                break;
            }
        }

        if (table[at] == 0) {
            hash[kept++] = one;
            table[at] = (uint32_t) kept;
        }
    }

    return kept;
}


/*
 * Puts the distinct hashes of a partition, and of the first `runs` hashes of
 * scratch->runs, into scratch->hashes.  Sorts them into buckets by the bits
 * after those of the partition.  Returns how many there are.
 */
static size_t
distinct(scratch_t *scratch, const partition_t *p, size_t runs)
{
    size_t           i, n, kept, begin, one, first[(1 << BUCKET_BITS) + 1];
    unsigned         bits, b;
    const chunk_t   *chunk;
    bloom_hash_t    *hash;

    n = p->count + runs;

    for (bits = 0; bits < BUCKET_BITS && n >> bits > BUCKET; bits++) {
        /* void */
    }

#define bucket(hash)                                                         \
    ((size_t) ((hash).h1 << PARTITION_BITS >> 1) >> (63 - bits))

    scratch->hashes = ensure(scratch->hashes, &scratch->hashes_room, n,
                             sizeof(bloom_hash_t));
    hash = scratch->hashes;

    memset(first, 0, ((1u << bits) + 1) * sizeof(first[0]));

    for (chunk = p->chunks; chunk != NULL; chunk = chunk->next) {
        n = chunk_count(p, chunk);

        for (i = 0; i < n; i++) {
            prefetch_next(chunk, i);
            first[bucket(chunk->hashes[i]) + 1]++;
        }
    }

    for (i = 0; i < runs; i++) {
        first[bucket(scratch->runs[i]) + 1]++;
    }

    for (b = 1; b <= 1u << bits; b++) {
        first[b] += first[b - 1];
    }

    for (chunk = p->chunks; chunk != NULL; chunk = chunk->next) {
        n = chunk_count(p, chunk);

        for (i = 0; i < n; i++) {
            hash[first[bucket(chunk->hashes[i])]++] = chunk->hashes[i];
        }
    }

    for (i = 0; i < runs; i++) {
        hash[first[bucket(scratch->runs[i])]++] = scratch->runs[i];
    }

    /* now first[b] is the end of bucket b */

    for (b = 0, begin = 0, kept = 0; b < 1u << bits; begin = first[b++]) {
        one = distinct_bucket(scratch, hash + begin, first[b] - begin);

        if (kept != begin) {
            memmove(hash + kept, hash + begin, one * sizeof(*hash));
        }

        kept += one;
    }

    return kept;
}


/* Writes n hashes, or the partition's chunks if `hash` is NULL, as a run. */
static void
spill(keystore_t *store, partition_t *p, const bloom_hash_t *hash, size_t n)
{
    uint64_t  offset;
    chunk_t  *chunk;

    offset = spill_file_reserve(&store->file, n * sizeof(*hash));

    p->run = cli_realloc(p->run, (p->runs + 1) * sizeof(*p->run));
    p->run[p->runs].offset = offset;
    p->run[p->runs].count = n;
    p->runs++;
    p->spilled += n;

    if (hash != NULL) {
        spill_file_write(&store->file, hash, n * sizeof(*hash), offset);
        return;
    }

    for (chunk = p->chunks; chunk != NULL; chunk = chunk->next) {
        n = chunk_count(p, chunk);
        spill_file_write(&store->file, chunk->hashes, n * sizeof(*hash),
                         offset);
        offset += n * sizeof(*hash);
    }
}


/* Makes room in a partition that has grown. */
static void
compact(keystore_t *store, partition_t *p, scratch_t *scratch)
{
    size_t  n, before;

    before = p->count;

    if (p->trusted != 0 && before >= store->limit) {
        p->trusted--;
        spill(store, p, NULL, before);
        discard(p);
        return;
    }

    n = distinct(scratch, p, 0);

    if (before >= store->limit && n > store->limit / 2) {
        spill(store, p, scratch->hashes, n);
        discard(p);

    } else if (n < before) {
        discard(p);
        append(store, p, scratch->hashes, n);
    }

    /* if there were few duplicates, wait longer before the next search */

    if (n > before / 2) {
        p->compact_at = 4 * p->compact_at;
        p->trusted = p->runs != 0 ? RUNS_TRUSTED : 0;

    } else {
        p->compact_at = 2 * n < COMPACT_MIN ? COMPACT_MIN : 2 * n;
    }

    if (p->compact_at > store->limit) {
        p->compact_at = store->limit;
    }
}


static void
hand_over(keystore_writer_t *writer, unsigned at)
{
    partition_t  *p;

    p = &writer->store->partition[at];

    pthread_mutex_lock(&p->lock);

    append(writer->store, p, writer->hashes[at], writer->count[at]);

    if (p->count >= p->compact_at) {
        compact(writer->store, p, &writer->scratch);
    }

    pthread_mutex_unlock(&p->lock);

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
    size_t    i;
    unsigned  at;

    for (i = 0; i < n; i++) {
        at = (unsigned) (hash[i].h1 >> (64 - PARTITION_BITS));

        writer->hashes[at][writer->count[at]++] = hash[i];

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

    free_scratch(&writer->scratch);
    free(writer);
}


/* Reads a partition's runs into scratch->runs.  Returns the number of their
 * hashes. */
static size_t
read_runs(const keystore_t *store, const partition_t *p, scratch_t *scratch)
{
    size_t         i;
    bloom_hash_t  *hash;

    scratch->runs = ensure(scratch->runs, &scratch->runs_room, p->spilled,
                           sizeof(bloom_hash_t));
    hash = scratch->runs;

    for (i = 0; i < p->runs; i++) {
        spill_file_read(&store->file, hash, p->run[i].count * sizeof(*hash),
                        p->run[i].offset);
        hash += p->run[i].count;
    }

    return p->spilled;
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
    size_t        n, runs;
    unsigned      i;
    share_t      *share = data;
    scratch_t     scratch;
    partition_t  *p;

    memset(&scratch, 0, sizeof(scratch));

    for (i = share->first; i < share->last; i++) {
        p = &share->store->partition[i];

        runs = read_runs(share->store, p, &scratch);
        n = distinct(&scratch, p, runs);

        share->distinct += n;

        if (share->filter != NULL) {
            share->absent += count_absent(share, scratch.hashes, n);
        }
    }

    free_scratch(&scratch);

    return NULL;
}


/* Inserts n hashes, or passes them to `see`. */
static void
insert_hashes(const share_t *share, const bloom_hash_t *hash, size_t n)
{
    size_t  i;

    if (share->see != NULL) {
        share->see(share->see_data, hash, n);
        return;
    }

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


static void
insert_partitions(const share_t *share, scratch_t *scratch)
{
    size_t         runs;
    unsigned       i;
    partition_t   *p;
    const chunk_t *chunk;

    for (i = share->first; i < share->last; i++) {
        p = &share->store->partition[i];

        for (chunk = p->chunks; chunk != NULL; chunk = chunk->next) {
            insert_hashes(share, chunk->hashes, chunk_count(p, chunk));
        }

        runs = read_runs(share->store, p, scratch);
        insert_hashes(share, scratch->runs, runs);
    }
}


static void *
insert_share(void *data)
{
    share_t    *share = data;
    scratch_t   scratch;

    memset(&scratch, 0, sizeof(scratch));

    insert_partitions(share, &scratch);
    free_scratch(&scratch);

    return NULL;
}


/* Drops duplicates in partitions without runs. */
static void *
distinct_share(void *data)
{
    size_t        n;
    unsigned      i;
    share_t      *share = data;
    scratch_t     scratch;
    partition_t  *p;

    memset(&scratch, 0, sizeof(scratch));

    for (i = share->first; i < share->last; i++) {
        p = &share->store->partition[i];

        if (p->runs == 0) {
            n = distinct(&scratch, p, 0);

            if (n != p->count) {
                discard(p);
                append(share->store, p, scratch.hashes, n);
            }
        }
    }

    free_scratch(&scratch);

    return NULL;
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

    run_shares(insert_share, share, threads);

    free(share);
}


struct keystore_reader_s {
    share_t    share;
    scratch_t  scratch;
};


keystore_reader_t *
keystore_reader(keystore_t *store)
{
    keystore_reader_t  *reader;

    reader = cli_alloc(sizeof(*reader));
    memset(reader, 0, sizeof(*reader));
    reader->share.store = store;

    return reader;
}


void
keystore_read(keystore_reader_t *reader, unsigned first, unsigned n,
    keystore_see_t see, void *data)
{
    reader->share.first = first;
    reader->share.last = first + n;
    reader->share.see = see;
    reader->share.see_data = data;

    insert_partitions(&reader->share, &reader->scratch);
}


void
keystore_reader_close(keystore_reader_t *reader)
{
    free_scratch(&reader->scratch);
    free(reader);
}


uint64_t
keystore_held(const keystore_t *store, unsigned first, unsigned n)
{
    uint64_t  held;

    for (held = 0; n != 0; n--, first++) {
        held += store->partition[first].count + store->partition[first].spilled;
    }

    return held;
}


void
keystore_distinct(keystore_t *store, unsigned threads)
{
    share_t  *share;

    share = make_shares(store, threads);
    run_shares(distinct_share, share, threads);
    free(share);
}
