/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A shard is built in four steps.  Its signatures are sorted by window, so that
 * all later steps move through the slots once and touch memory that is close
 * together.  Each slot gets the number of its keys and the XOR of their
 * signatures.  Keys are peeled from slots that have one key left; the XOR of
 * such a slot is its signature, and stays there.  Then the slots are set in the
 * reverse order, each in place of its signature, and packed.
 *
 * Members of build_t that a loop uses are copied to variables: the compiler has
 * to read a member again after each store into `count`.
 */

#include <string.h>

#include "bloom_fuse_build.h"


/* Slots are requested from memory for the key that is this far ahead in the
 * queue. */
#define AHEAD      6

/* Signatures are sorted by parts of windows, this many in each: then those of a
 * part are also close together in the window's first segment. */
#define PARTS      32


/*
 * What a shard is built with.  Two pairs of arrays share memory, as the first
 * one is not needed when the second is filled:
 *
 *     signatures as they are read --> sum
 *     sorted signatures --> queue
 */
typedef struct {
    uint32_t   windows;
    uint32_t   parts;                    /* of all windows */
    uint32_t   length;
    uint32_t   slots;
    uint64_t   n;                        /* keys */
    uint64_t   taken;                    /* signatures that were read */
    uint64_t  *sum;                      /* XOR of the signatures of each slot:
                                            of those not peeled yet, or the one
                                            that was peeled from it; in the end,
                                            the value of the slot */
    uint64_t  *sorted;                   /* all signatures, by part */
    uint32_t  *queue;                    /* slots that had one key; those before
                                            `peeled` are the slots that keys
                                            were peeled from, in order */
    uint8_t   *count;                    /* of the keys of each slot that are
                                            not peeled */
    uint64_t  *at;                       /* of each part in `sorted` */
    uint8_t    salt;
} build_t;


/* Lays the arrays out in scratch memory.  Returns their size. */
static size_t
lay_out(build_t *b, const bloom_geometry_t *g, uint64_t n, uint8_t *scratch)
{
    size_t    size;
    uint64_t  queued;

    b->windows = g->fuse.segments - 2;
    b->parts = b->windows * PARTS;
    b->length = g->fuse.length;
    b->slots = (uint32_t) bloom_fuse_slots(&g->fuse);
    b->n = n;
    b->taken = 0;

    queued = b->slots / 2 + 1;           /* the queue writes one ahead */
    size = 0;

#define array(member, count)                                                 \
    do {                                                                     \
        b->member = scratch == NULL ? NULL : (void *) (scratch + size);      \
        size += ((count) * sizeof(*b->member) + 63) / 64 * 64;               \
    } while (0)

    array(sum, b->slots);
    array(sorted, n > queued ? n : queued);
    array(count, b->slots);
    array(at, b->parts);

#undef array

    b->queue = (uint32_t *) (void *) b->sorted;

    return size;
}


size_t
bloom_fuse_scratch(const bloom_geometry_t *g, uint64_t n)
{
    build_t  b;

    return lay_out(&b, g, n, NULL);
}


uint64_t
bloom_fuse_shard_begin(const bloom_geometry_t *g, uint64_t shard)
{
    return bloom_fuse_bit(&g->fuse, shard * bloom_fuse_slots(&g->fuse)) / 64;
}


uint64_t
bloom_fuse_shard_words(const bloom_geometry_t *g, uint64_t shard)
{
    return (shard + 1 == (uint64_t) 1 << g->fuse.shard_bits
            ? g->bits / 64 - bloom_fuse_salt_words(&g->fuse)
            : bloom_fuse_shard_begin(g, shard + 1))
           - bloom_fuse_shard_begin(g, shard);
}


static inline uint64_t
part_of(const build_t *b, uint64_t x)
{
    return bloom_line_scale(x, b->parts);
}


/* Takes the keys as they are read: keeps their signatures, and counts those of
 * each part. */
static void
take(void *data, const uint64_t *h2, size_t n)
{
    size_t     i;
    build_t   *b = data;
    uint64_t  *x;

    x = b->sum + b->taken;

    for (i = 0; i < n; i++) {
        x[i] = bloom_fuse_signature(h2[i], b->salt);
        b->at[part_of(b, x[i])]++;
    }

    b->taken += n;
}


/* Sorts the signatures by part, from b->sum to b->sorted. */
static void
sort_by_part(build_t *b)
{
    uint64_t  i, next, begin, *at, *x;

    x = b->sum;
    at = b->at;

    for (begin = 0, i = 0; i < b->parts; i++, begin = next) {
        next = begin + at[i];
        at[i] = begin;
    }

    for (i = 0; i < b->n; i++) {
        b->sorted[at[part_of(b, x[i])]++] = x[i];
    }
}


/* Counts the keys of each slot.  Returns 0, or -1 if a slot has too many. */
static int
count_keys(build_t *b)
{
    uint8_t   *count;
    uint32_t   slot[BLOOM_FUSE_K], j, windows, length;
    uint64_t   i, n, x, *sum, *sorted;
    unsigned   most;

    memset(b->sum, 0, b->slots * sizeof(*b->sum));
    memset(b->count, 0, b->slots);

    n = b->n;
    sum = b->sum;
    count = b->count;
    sorted = b->sorted;
    windows = b->windows;
    length = b->length;

    for (most = 0, i = 0; i < n; i++) {
        x = sorted[i];
        (void) bloom_fuse_window(windows, length, x, slot);

#pragma GCC unroll 3
        for (j = 0; j < BLOOM_FUSE_K; j++) {
            sum[slot[j]] ^= x;
            most |= ++count[slot[j]];
        }
    }

    /* a count has been 128 before it wraps around */

    return most & 128 ? -1 : 0;
}


/*
 * Requests what is needed to peel a key further on in the queue.  Processors
 * look ahead by themselves, but not beyond a branch that they predict wrongly,
 * and whether the key of a slot was peeled elsewhere is not predictable.  This
 * is always a part of its caller: the compiler would drop a call that does
 * nothing but requests.
 */
static inline __attribute__((always_inline)) void
look_ahead(const build_t *b, const uint32_t *next, const uint32_t *end)
{
    uint32_t  slot[BLOOM_FUSE_K], j;

    if (end - next <= 2 * AHEAD) {
        return;
    }

    __builtin_prefetch(&b->sum[next[2 * AHEAD]]);

    (void) bloom_fuse_window(b->windows, b->length, b->sum[next[AHEAD]], slot);

#pragma GCC unroll 3
    for (j = 0; j < BLOOM_FUSE_K; j++) {
        __builtin_prefetch(&b->sum[slot[j]]);
        __builtin_prefetch(&b->count[slot[j]]);
    }
}


/* Peels the keys of the slots in the queue, and of those that have one key
 * after that.  Returns the new number of peeled keys. */
static uint64_t
peel_queue(build_t *b, uint32_t *begin, uint32_t *end, uint64_t peeled)
{
    uint8_t   *count;
    uint32_t   slot[BLOOM_FUSE_K], j, t, s, first, last, *queue;
    uint64_t   x, *sum;

    sum = b->sum;
    count = b->count;
    queue = b->queue;
    first = *begin;
    last = *end;

    while (first != last) {
        s = queue[first++];
        look_ahead(b, &queue[first], &queue[last]);

        if (count[s] != 1) {
            continue;                    /* its key was peeled elsewhere */
        }

        x = sum[s];
        queue[peeled++] = s;

        (void) bloom_fuse_window(b->windows, b->length, x, slot);

#pragma GCC unroll 3
        for (j = 0; j < BLOOM_FUSE_K; j++) {
            t = slot[j];
            sum[t] ^= x;
            count[t]--;

            queue[last] = t;
            last += count[t] == 1;
        }

        sum[s] = x;
    }

    *begin = first;
    *end = last;

    return peeled;
}


/* Peels what can be peeled.  Returns the number of peeled keys. */
static uint64_t
peel(build_t *b)
{
    uint32_t  s, next, begin, end;
    uint64_t  peeled;

    begin = 0;
    end = 0;
    peeled = 0;

    for (s = 0; s < b->slots; /* void */ ) {

        for (next = s + b->length; s < next; s++) {
            b->queue[end] = s;
            end += b->count[s] == 1;
        }

        peeled = peel_queue(b, &begin, &end, peeled);
    }

    return peeled;
}


/*
 * Sets the slots of the peeled keys, the last one first.  The other two slots
 * of a key are free, so that their sum is zero, or have been set.  Memory is
 * requested as in look_ahead().
 */
static void
set_slots(build_t *b, uint64_t peeled)
{
    uint32_t  slot[BLOOM_FUSE_K], s, *queue;
    uint64_t  x, *sum;

    sum = b->sum;
    queue = b->queue;

    while (peeled-- != 0) {

        if (peeled >= 2 * AHEAD) {
            __builtin_prefetch(&sum[queue[peeled - 2 * AHEAD]]);

            (void) bloom_fuse_window(b->windows, b->length,
                                     sum[queue[peeled - AHEAD]], slot);

            __builtin_prefetch(&sum[slot[0]]);
            __builtin_prefetch(&sum[slot[1]]);
            __builtin_prefetch(&sum[slot[2]]);
        }

        s = queue[peeled];
        x = sum[s];

        (void) bloom_fuse_window(b->windows, b->length, x, slot);

        /* one of the three slots is s, and has x */

        sum[s] = bloom_fuse_print(x) ^ x ^ sum[slot[0]] ^ sum[slot[1]]
                 ^ sum[slot[2]];
    }
}


/* Words that are written bit by bit. */
typedef struct {
    uint64_t  *next;
    uint64_t   word;
    uint32_t   bits;                     /* of the word */
} packer_t;


/* Writes `width` bits of each of n values. */
static void
pack(packer_t *p, const uint64_t *value, uint64_t n, uint32_t width)
{
    uint64_t  v, mask;

    mask = ((uint64_t) 1 << width) - 1;

    for ( /* void */ ; n != 0; n--) {
        v = *value++ & mask;
        p->word |= v << p->bits;
        p->bits += width;

        if (p->bits >= 64) {
            *p->next++ = bloom_le64(p->word);
            p->bits -= 64;
            p->word = p->bits != 0 ? v >> (width - p->bits) : 0;
        }
    }
}


static void
pack_shard(const build_t *b, const bloom_geometry_t *g, uint64_t shard,
    uint64_t *words)
{
    uint64_t  first, wide;
    packer_t  p;
    uint64_t *end;

    first = shard * b->slots;
    wide = g->fuse.wide > first ? g->fuse.wide - first : 0;
    wide = wide < b->slots ? wide : b->slots;
    end = words + bloom_fuse_shard_words(g, shard);

    p.next = words;
    p.word = 0;
    p.bits = 0;

    pack(&p, b->sum, wide, g->fuse.width + 1);
    pack(&p, b->sum + wide, b->slots - wide, g->fuse.width);

    while (p.next != end) {
        *p.next++ = bloom_le64(p.word);
        p.word = 0;
    }
}


int
bloom_fuse_build(const bloom_geometry_t *g, uint64_t shard, uint64_t n,
    bloom_fuse_read_t read, void *data, void *scratch, uint64_t *words,
    uint8_t *salt)
{
    build_t  b;

    (void) lay_out(&b, g, n, scratch);

    if (n > b.slots) {
        return -1;                       /* a key needs a slot of its own */
    }

    for (b.salt = 0; b.salt < BLOOM_FUSE_SALTS; b.salt++) {
        b.taken = 0;
        memset(b.at, 0, b.parts * sizeof(*b.at));
        read(data, take, &b);
        sort_by_part(&b);

        if (count_keys(&b) == 0 && peel(&b) == n) {
            set_slots(&b, n);
            pack_shard(&b, g, shard, words);
            *salt = b.salt;
            return 0;
        }
    }

    return -1;
}
