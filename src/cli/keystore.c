
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "keystore.h"

#define PARTITION_BITS   11
#define PARTITIONS       (1 << PARTITION_BITS)

#define WRITER_ROOM      32              /* hashes of a partition in a writer */
#define CHUNK_MIN        64              /* hashes */
#define CHUNK_MAX        8192

/* A partition is freed of duplicates when it has so many, and has doubled. */
#define COMPACT_MIN      4096

/* Hashes ahead of the one inserted, for which memory is asked for. */
#define PREFETCH         16


typedef struct chunk_s  chunk_t;

struct chunk_s {
    chunk_t        *next;
    size_t          count;
    size_t          room;
    bloom_hash_t    hashes[];
};

typedef struct {
    pthread_mutex_t  lock;
    chunk_t         *chunks;             /* the one being filled first */
    size_t           count;
    size_t           compact_at;
    int              zero;               /* the hash (0, 0) is among them */
} partition_t;

struct keystore_s {
    partition_t      partition[PARTITIONS];
};

struct keystore_writer_s {
    keystore_t      *store;
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
} share_t;


keystore_t *
keystore_create(void)
{
    unsigned     i;
    keystore_t  *store;

    store = cli_alloc(sizeof(*store));
    memset(store, 0, sizeof(*store));

    for (i = 0; i < PARTITIONS; i++) {
        pthread_mutex_init(&store->partition[i].lock, NULL);
        store->partition[i].compact_at = COMPACT_MIN;
    }

    return store;
}


static void
free_chunks(chunk_t *chunk)
{
    chunk_t  *next;

    for ( /* void */ ; chunk != NULL; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
}


void
keystore_free(keystore_t *store)
{
    unsigned  i;

    for (i = 0; i < PARTITIONS; i++) {
        free_chunks(store->partition[i].chunks);
        pthread_mutex_destroy(&store->partition[i].lock);
    }

    free(store);
}


/* Drops all but the first of equal hashes, by a table of open addressing. */
static void
compact(partition_t *p)
{
    size_t         i, at, mask, kept, room;
    chunk_t       *chunk;
    bloom_hash_t   hash, *table;

    for (room = 64; room < 2 * p->count; room *= 2) {
        /* void */
    }

    mask = room - 1;
    table = cli_alloc(room * sizeof(*table));
    memset(table, 0, room * sizeof(*table));     /* (0, 0) is a free place */

    p->zero = 0;
    p->count = 0;

    for (chunk = p->chunks; chunk != NULL; chunk = chunk->next) {

        for (i = 0, kept = 0; i < chunk->count; i++) {
            hash = chunk->hashes[i];

            if (hash.h1 == 0 && hash.h2 == 0) {
                if (!p->zero) {
                    p->zero = 1;
                    chunk->hashes[kept++] = hash;
                }

                continue;
            }

            at = hash.h2 & mask;

            while ((table[at].h1 != 0 || table[at].h2 != 0)
                   && (table[at].h1 != hash.h1 || table[at].h2 != hash.h2))
            {
                at = (at + 1) & mask;
            }

            if (table[at].h1 == 0 && table[at].h2 == 0) {
                table[at] = hash;
                chunk->hashes[kept++] = hash;
            }
        }

        chunk->count = kept;
        p->count += kept;
    }

    free(table);
}


/* Compacts a partition that grows; its emptied chunks are filled again. */
static void
compact_growing(partition_t *p)
{
    size_t    before;
    chunk_t  *chunk, **link, *partial;

    before = p->count;

    compact(p);

    /* with few duplicates it was in vain: wait longer for the next time */

    p->compact_at = (p->count > before / 2) ? 4 * p->count : 2 * p->count;

    if (p->compact_at < COMPACT_MIN) {
        p->compact_at = COMPACT_MIN;
    }

    if (p->count > before / 2) {
        return;
    }

    /* pour all into as few chunks as hold it */

    partial = NULL;

    for (link = &p->chunks; *link != NULL; /* void */ ) {
        chunk = *link;

        while (partial != NULL && chunk->count != 0
               && partial->count < partial->room)
        {
            partial->hashes[partial->count++] = chunk->hashes[--chunk->count];
        }

        if (chunk->count == 0) {
            *link = chunk->next;
            free(chunk);
            continue;
        }

        partial = chunk;
        link = &chunk->next;
    }

    /* the one with room comes first */

    for (link = &p->chunks; partial != NULL && *link != partial; /* void */ ) {
        link = &(*link)->next;
    }

    if (partial != NULL) {
        *link = partial->next;
        partial->next = p->chunks;
        p->chunks = partial;
    }
}


static void
hand_over(keystore_writer_t *writer, unsigned at)
{
    size_t        n, room;
    chunk_t      *chunk;
    partition_t  *p;
    bloom_hash_t *hash;

    p = &writer->store->partition[at];
    hash = writer->hashes[at];

    pthread_mutex_lock(&p->lock);

    while (writer->count[at] != 0) {
        chunk = p->chunks;

        if (chunk == NULL || chunk->count == chunk->room) {
            room = chunk ? 2 * chunk->room : CHUNK_MIN;
            room = room < CHUNK_MAX ? room : CHUNK_MAX;

            chunk = cli_alloc(sizeof(*chunk) + room * sizeof(*hash));
            chunk->next = p->chunks;
            chunk->count = 0;
            chunk->room = room;

            p->chunks = chunk;
        }

        n = chunk->room - chunk->count;
        n = n < writer->count[at] ? n : writer->count[at];

        memcpy(chunk->hashes + chunk->count, hash, n * sizeof(*hash));

        hash += n;
        chunk->count += n;
        p->count += n;
        writer->count[at] -= (uint8_t) n;
    }

    if (p->count >= p->compact_at) {
        compact_growing(p);
    }

    pthread_mutex_unlock(&p->lock);
}


keystore_writer_t *
keystore_writer(keystore_t *store)
{
    keystore_writer_t  *writer;

    writer = cli_alloc(sizeof(*writer));
    memset(writer->count, 0, sizeof(writer->count));
    writer->store = store;

    return writer;
}


void
keystore_add(keystore_writer_t *writer, bloom_hash_t hash)
{
    unsigned  at;

    at = (unsigned) (hash.h1 >> (64 - PARTITION_BITS));

    writer->hashes[at][writer->count[at]++] = hash;

    if (writer->count[at] == WRITER_ROOM) {
        hand_over(writer, at);
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

    free(writer);
}


static void *
count_share(void *data)
{
    unsigned      i;
    share_t      *share = data;
    partition_t  *p;

    for (i = share->first; i < share->last; i++) {
        p = &share->store->partition[i];

        if (p->count != 0) {
            compact(p);
        }

        share->distinct += p->count;
    }

    return NULL;
}


static void *
insert_share(void *data)
{
    size_t                   n;
    unsigned                 i;
    share_t                 *share = data;
    chunk_t                 *chunk;
    const bloom_geometry_t  *g;

    g = share->geometry;

    for (i = share->first; i < share->last; i++) {

        for (chunk = share->store->partition[i].chunks;
             chunk != NULL;
             chunk = chunk->next)
        {
            for (n = 0; n < chunk->count; n++) {

                if (n + PREFETCH < chunk->count) {
                    bloom_prefetch(g, share->words,
                                   chunk->hashes[n + PREFETCH]);
                }

                if (share->atomic) {
                    bloom_add_atomic(g, share->words, chunk->hashes[n]);

                } else {
                    bloom_add(g, share->words, chunk->hashes[n]);
                }
            }
        }
    }

    return NULL;
}


/* Runs `work` on as many threads as shares, one of them the caller's. */
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
keystore_count(keystore_t *store, unsigned threads)
{
    share_t   *share;
    unsigned   i;
    uint64_t   distinct;

    share = make_shares(store, threads);
    run_shares(count_share, share, threads);

    for (distinct = 0, i = 0; i < threads; i++) {
        distinct += share[i].distinct;
    }

    free(share);

    return distinct;
}


void
keystore_insert(keystore_t *store, const bloom_geometry_t *g,
    uint64_t *words, unsigned threads)
{
    int        near;
    share_t   *share, seam;
    unsigned   i;

    /* with one line a key, far partitions never meet in a line */

    near = g->layout == BLOOM_LAYOUT_BLOCKED && g->lines == 1;

    if (near && g->bits / BLOOM_LINE_BITS < 2 * PARTITIONS) {
        threads = 1;
    }

    share = make_shares(store, threads);

    for (i = 0; i < threads; i++) {
        share[i].geometry = g;
        share[i].words = words;
        share[i].atomic = !near && threads != 1;

        if (near && threads != 1) {
            share[i].last--;             /* the seam to the next share */
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
