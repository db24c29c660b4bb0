/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A shard is built in four steps.  Its signatures are sorted by window, so that
 * all later steps move through the slots once and touch memory that is close
 * together.  Each slot gets the number of its keys and the XOR of their
 * signatures.  Keys are peeled from slots that have one key left; the XOR of
 * such a slot is its signature.  Then slots are set in the reverse order, and
 * packed.
 */

#include <string.h>

#include "bloom_fuse_build.h"
#include "bloom_fuse_core.h"


/* A slot's count is incremented in steps of 4; below them is the XOR of the
 * places, 0 to 2, that its keys have it in. */
#define ONE        4
#define COUNT_MAX  (UINT8_MAX - UINT8_MAX % ONE)

/* Cores that are solved if the filter is too large to eliminate all. */
#define CORE_MAX   4096

/* Slots are requested from memory for the key that is this far ahead in the
 * queue. */
#define AHEAD      6


/* What a shard is built with. */
typedef struct {
    uint32_t   windows;
    uint32_t   length;
    uint32_t   slots;
    uint64_t  *x;                        /* the peeled signatures, in order */
    uint64_t  *sorted;                   /* all signatures, by window */
    uint64_t  *sum;                      /* XOR of the signatures of each
                                            slot */
    uint32_t  *value;                    /* of each slot; while peeling, the
                                            queue */
    uint8_t   *count;                    /* of the keys of each slot */
    uint8_t   *place;                    /* that each peeled signature has its
                                            slot in */
    uint64_t  *core;                     /* scratch */
} build_t;


static uint64_t
core_keys(const bloom_geometry_t *g, uint64_t n)
{
    return g->fuse.segments == BLOOM_FUSE_K || n < CORE_MAX ? n : CORE_MAX;
}


/* Lays the arrays out in scratch memory.  Returns their size. */
static size_t
lay_out(build_t *b, const bloom_geometry_t *g, uint64_t n, uint8_t *scratch)
{
    size_t  size;

    b->windows = g->fuse.segments - 2;
    b->length = g->fuse.length;
    b->slots = (uint32_t) bloom_fuse_slots(&g->fuse);

    size = 0;

#define array(member, count)                                                 \
    do {                                                                     \
        b->member = scratch == NULL ? NULL : (void *) (scratch + size);      \
        size += ((count) * sizeof(*b->member) + 63) / 64 * 64;               \
    } while (0)

    array(sorted, n);
    array(sum, b->slots);
    array(value, b->slots + 1);          /* the queue writes one ahead */
    array(count, b->slots);
    array(place, n);
    array(core, bloom_fuse_core_scratch(core_keys(g, n)) / sizeof(uint64_t));

#undef array

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
            ? g->bits / 64 : bloom_fuse_shard_begin(g, shard + 1))
           - bloom_fuse_shard_begin(g, shard);
}


/* Sorts the n signatures by window, from b->x to b->sorted. */
static void
sort_by_window(build_t *b, uint64_t n)
{
    uint32_t   w;
    uint64_t   i, next, begin, *at;

    /* there are no more windows than slots */

    at = b->sum;
    memset(at, 0, b->windows * sizeof(*at));

    for (i = 0; i < n; i++) {
        at[bloom_line_scale(b->x[i], b->windows)]++;
    }

    for (begin = 0, w = 0; w < b->windows; w++, begin = next) {
        next = begin + at[w];
        at[w] = begin;
    }

    for (i = 0; i < n; i++) {
        b->sorted[at[bloom_line_scale(b->x[i], b->windows)]++] = b->x[i];
    }
}


/* Sorts the n signatures of b->sorted, and drops those that are equal.  Returns
 * how many are left. */
static uint64_t
drop_equal(build_t *b, uint64_t n)
{
    uint64_t   i, kept, at[256], begin, next, *from, *to, *last;
    uint32_t   digit, shift;

    from = b->sorted;
    to = b->x;

    for (shift = 0; shift < 64; shift += 8) {
        memset(at, 0, sizeof(at));

        for (i = 0; i < n; i++) {
            at[from[i] >> shift & 255]++;
        }

        for (begin = 0, digit = 0; digit < 256; digit++, begin = next) {
            next = begin + at[digit];
            at[digit] = begin;
        }

        for (i = 0; i < n; i++) {
            to[at[from[i] >> shift & 255]++] = from[i];
        }

        last = from;
        from = to;
        to = last;
    }

    for (kept = 0, i = 0; i < n; i++) {
        if (kept == 0 || from[i] != from[kept - 1]) {
            from[kept++] = from[i];
        }
    }

    return kept;
}


/* Counts the keys of each slot.  Returns 0, or -1 if a slot has too many. */
static int
count_keys(build_t *b, uint64_t n)
{
    uint32_t  slot[BLOOM_FUSE_K], j;
    uint64_t  i, x;
    unsigned  most;

    memset(b->sum, 0, b->slots * sizeof(*b->sum));
    memset(b->count, 0, b->slots);

    for (most = 0, i = 0; i < n; i++) {
        x = b->sorted[i];
        (void) bloom_fuse_window(b->windows, b->length, x, slot);

        for (j = 0; j < BLOOM_FUSE_K; j++) {
            b->sum[slot[j]] ^= x;
            most |= b->count[slot[j]];
            b->count[slot[j]] = (uint8_t) ((b->count[slot[j]] + ONE) ^ j);
        }
    }

    /* a count has been half of COUNT_MAX before it wraps around */

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
    uint8_t   place;
    uint32_t  slot[BLOOM_FUSE_K], j, t, s;
    uint64_t  x;

    while (*begin != *end) {
        s = b->value[(*begin)++];
        look_ahead(b, &b->value[*begin], &b->value[*end]);

        if (b->count[s] / ONE != 1) {
            continue;                    /* its key was peeled elsewhere */
        }

        x = b->sum[s];
        place = b->count[s] % ONE;
        b->x[peeled] = x;
        b->place[peeled++] = place;

        (void) bloom_fuse_window(b->windows, b->length, x, slot);

        for (j = 0; j < BLOOM_FUSE_K; j++) {
            t = slot[j];
            b->sum[t] ^= x;
            b->count[t] = (uint8_t) ((b->count[t] - ONE) ^ j);

            b->value[*end] = t;
            *end += b->count[t] / ONE == 1;
        }
    }

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
            b->value[end] = s;
            end += b->count[s] / ONE == 1;
        }

        peeled = peel_queue(b, &begin, &end, peeled);
    }

    return peeled;
}


/* Solves the equations of the n signatures that were not peeled: those that
 * have no slot without keys.  Returns 0 or -1. */
static int
solve_core(build_t *b, uint64_t n, uint64_t keys)
{
    uint32_t           slot[BLOOM_FUSE_K];
    uint64_t           i;
    bloom_fuse_core_t  core;

    /* the sums are not needed any more */

    bloom_fuse_core_begin(&core, b->core, n, (uint32_t *) (void *) b->sum,
                          b->slots);

    for (i = 0; i < keys; i++) {
        (void) bloom_fuse_window(b->windows, b->length, b->sorted[i], slot);

        if (b->count[slot[0]] != 0 && b->count[slot[1]] != 0
            && b->count[slot[2]] != 0)
        {
            bloom_fuse_core_add(&core, slot, bloom_fuse_print(b->sorted[i]));
        }
    }

    return bloom_fuse_core_solve(&core, b->value);
}


/* Sets the slots of the peeled keys, the last one first. */
static void
set_slots(build_t *b, uint64_t peeled)
{
    uint32_t  slot[BLOOM_FUSE_K];
    uint64_t  x;

    while (peeled-- != 0) {
        x = b->x[peeled];

        (void) bloom_fuse_window(b->windows, b->length, x, slot);

        /* the slot to set is still zero */

        b->value[slot[b->place[peeled]]] = bloom_fuse_print(x)
                                           ^ b->value[slot[0]]
                                           ^ b->value[slot[1]]
                                           ^ b->value[slot[2]];
    }
}


/* Words that are written bit by bit. */
typedef struct {
    uint64_t  *next;
    uint64_t   word;
    uint32_t   bits;                     /* of the word */
} packer_t;


static void
pack(packer_t *p, const uint32_t *value, uint64_t n, uint32_t width)
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

    pack(&p, b->value, wide, g->fuse.width + 1);
    pack(&p, b->value + wide, b->slots - wide, g->fuse.width);

    while (p.next != end) {
        *p.next++ = bloom_le64(p.word);
        p.word = 0;
    }
}


int
bloom_fuse_build(const bloom_geometry_t *g, uint64_t shard, uint64_t *x,
    uint64_t n, void *scratch, uint64_t *words)
{
    int       rc, distinct;
    build_t   b;
    uint64_t  peeled;

    (void) lay_out(&b, g, n, scratch);
    b.x = x;

    sort_by_window(&b, n);

    for (distinct = 0; ; distinct = 1) {
        rc = count_keys(&b, n);
        peeled = rc == 0 ? peel(&b) : 0;

        if (peeled == n || distinct) {
            break;
        }

        n = drop_equal(&b, n);
    }

    if (rc != 0 || n - peeled > core_keys(g, n)) {
        return -1;
    }

    memset(b.value, 0, b.slots * sizeof(*b.value));

    if (peeled != n && solve_core(&b, n - peeled, n) != 0) {
        return -1;
    }

    set_slots(&b, peeled);
    pack_shard(&b, g, shard, words);

    return 0;
}
