/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file implements the set.
 *
 * A slot, that is, a hash with its number of a first cell, is in one of three
 * states:
 *
 *     h1 == 0, first == 0    the slot is free
 *     h1 != 0, first != 0    the slot has a key
 *     h1 == 0, first != 0    a process puts a key into the slot, or has dropped
 *                            the key and frees the key's cells; if the process
 *                            died meanwhile, the slot stays so
 *
 * A put stores `first` and then h1.  A drop changes h1 to 0 with a
 * compare-and-swap, which has one winner, frees the cells, and then stores 0 in
 * `first`.  So a slot and cells never have two owners.
 *
 * Cells that have been freed are in a list, the last one first.  Only the
 * holder of the caller's lock takes cells from the list, so no cell can leave
 * the list and return while a compare-and-swap of its head is under way.  Cells
 * that have never been used follow the first `fresh` ones.
 *
 * A process may die at any instruction: the counters grow before a key appears
 * and shrink after it has gone, so they are too high at worst.
 */

#include <string.h>

#include "bloom_exceptions.h"
#include "bloom_siphash.h"


#define SLOTS          3                 /* of a line */

#define SIP_C          1
#define SIP_D          3

/* line->first[]: the number of the cell + 1, and above it the kinds */
#define CELL_BITS      29
#define CELL_MASK      ((1u << CELL_BITS) - 1)
#define CELLS_MAX      CELL_MASK

/* line->away: how far the keys are away at most, and above it their number */
#define REACH_MASK     0xffu
#define AWAY_ONE       0x100u

/* The words of a cell.  Only a first cell has more than a number and a part of
 * the key. */
#define WORD_NEXT      0                 /* number of a cell + 1; 0: none */
#define WORD_KEY       1
#define WORD_LEN       1
#define PAIR_TIME      1                 /* words 2 and 3 */
#define PAIR_POSITION  2                 /* words 4 and 5 */
#define WORD_FIRST     6                 /* where a first cell's key begins */
#define WORDS          16

#define CELL_BYTES     (4 * (WORDS - WORD_KEY))
#define FIRST_BYTES    (4 * (WORD_FIRST - WORD_KEY))

#define LINE           64


struct bloom_exceptions_line_s {
    struct {
        uint64_t          h1;            /* 0: there is no key */
        uint64_t          h2;
    }                     hash[SLOTS];

    uint32_t              first[SLOTS];
    uint32_t              away;
};


struct bloom_exceptions_cell_s {
    union {
        uint32_t          word[WORDS];
        uint64_t          pair[WORDS / 2];
    }                     as;
};


_Static_assert(sizeof(bloom_exceptions_head_t) == LINE, "size of the head");
_Static_assert(sizeof(bloom_exceptions_line_t) == LINE, "size of a line");
_Static_assert(sizeof(bloom_exceptions_cell_t) == LINE, "size of a cell");


/* Where a key is, or could be put. */
typedef struct {
    bloom_exceptions_line_t  *home;
    bloom_exceptions_line_t  *line;
    unsigned                  slot;
    uint32_t                  distance;  /* of the line from its home */
} place_t;


#define load(p)            __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define load_relaxed(p)    __atomic_load_n(p, __ATOMIC_RELAXED)
#define store(p, v)        __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define store_relaxed(p, v)  __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define add(p, n)          (void) __atomic_fetch_add(p, n, __ATOMIC_SEQ_CST)
#define sub(p, n)          (void) __atomic_fetch_sub(p, n, __ATOMIC_SEQ_CST)
#define swap(p, old, v)                                                      \
    __atomic_compare_exchange_n(p, old, v, 0, __ATOMIC_SEQ_CST,              \
                                __ATOMIC_SEQ_CST)


/* ---- sizes ---- */


uint64_t
bloom_exceptions_cells(size_t len)
{
    return (len + FIRST_BYTES + CELL_BYTES - 1) / CELL_BYTES;
}


uint64_t
bloom_exceptions_cells_most(uint64_t n, uint64_t bytes)
{
    return (bytes + n * (FIRST_BYTES + CELL_BYTES - 1)) / CELL_BYTES;
}


uint64_t
bloom_exceptions_free(const bloom_exceptions_t *set)
{
    uint64_t  used;

    if (set->head == NULL) {
        return 0;
    }

    used = load(&set->head->cells_used);

    return used < set->ncells ? set->ncells - used : 0;
}


static uint32_t
lines_for(uint64_t n)
{
    return n < CELLS_MAX ? (uint32_t) n : CELLS_MAX;
}


static uint32_t
cells_for(uint64_t n, uint64_t bytes)
{
    uint64_t  cells;

    if (n > CELLS_MAX || bytes / CELL_BYTES > CELLS_MAX) {
        return CELLS_MAX;
    }

    cells = bloom_exceptions_cells_most(n, bytes);

    return cells < CELLS_MAX ? (uint32_t) cells : CELLS_MAX;
}


size_t
bloom_exceptions_size(uint64_t n, uint64_t bytes)
{
    if (n == 0) {
        return 0;
    }

    return LINE * ((size_t) 1 + lines_for(n) + cells_for(n, bytes));
}


void
bloom_exceptions_attach(bloom_exceptions_t *set, void *memory, uint64_t n,
    uint64_t bytes)
{
    memset(set, 0, sizeof(*set));

    if (n == 0) {
        return;
    }

    set->nlines = lines_for(n);
    set->ncells = cells_for(n, bytes);

    set->head = memory;
    set->lines = (bloom_exceptions_line_t *) (set->head + 1);
    set->cells = (bloom_exceptions_cell_t *) (set->lines + set->nlines);
}


void
bloom_exceptions_init(bloom_exceptions_t *set,
    const uint8_t secret[BLOOM_HASH_KEY_LEN])
{
    if (set->head != NULL) {
        memcpy(set->head->secret, secret, BLOOM_HASH_KEY_LEN);
    }
}


/* ---- lookups ---- */


bloom_hash_t
bloom_exceptions_hash(const bloom_exceptions_t *set, const void *data,
    size_t len)
{
    bloom_hash_t  hash;

    hash = bloom_siphash_128(data, len, set->head->secret, SIP_C, SIP_D);

    if (hash.h1 == 0) {
        hash.h1 = 1;
    }

    return hash;
}


static uint32_t
home_of(const bloom_exceptions_t *set, bloom_hash_t hash)
{
    return (uint32_t) ((hash.h2 >> 32) * set->nlines >> 32);
}


/* Returns the slot of a hash in a line, or SLOTS. */
static unsigned
slot_of(const bloom_exceptions_line_t *line, bloom_hash_t hash)
{
    unsigned  i;

    for (i = 0; i < SLOTS; i++) {
        if (load(&line->hash[i].h1) == hash.h1
            && load_relaxed(&line->hash[i].h2) == hash.h2)
        {
            break;
        }
    }

    return i;
}


/* Finds a key.  Returns 1, or 0 if it is not in the set. */
static int
find(const bloom_exceptions_t *set, bloom_hash_t hash, place_t *place)
{
    uint32_t  n;

    n = home_of(set, hash);

    place->home = &set->lines[n];

    for (place->distance = 0; /* void */ ; place->distance++) {
        place->line = &set->lines[n];
        place->slot = slot_of(place->line, hash);

        if (place->slot < SLOTS) {
            return 1;
        }

        if (place->distance >= (load(&place->home->away) & REACH_MASK)) {
            return 0;
        }

        n = n + 1 < set->nlines ? n + 1 : 0;
    }
}


unsigned
bloom_exceptions_find(const bloom_exceptions_t *set, const void *data,
    size_t len)
{
    uint32_t      first;
    place_t       place;
    bloom_hash_t  hash;

    hash = bloom_exceptions_hash(set, data, len);

    if (!find(set, hash, &place)) {
        return 0;
    }

    first = load(&place.line->first[place.slot]);

    /* if the key was dropped meanwhile, `first` may belong to another key */

    if (load(&place.line->hash[place.slot].h1) != hash.h1) {
        return 0;
    }

    return first >> CELL_BITS;
}


int
bloom_exceptions_contains(const bloom_exceptions_t *set, const void *data,
    size_t len)
{
    place_t  place;

    return bloom_exceptions_count(set) != 0
           && find(set, bloom_exceptions_hash(set, data, len), &place);
}


void
bloom_exceptions_prefetch(const bloom_exceptions_t *set, bloom_hash_t hash)
{
    __builtin_prefetch(&set->lines[home_of(set, hash)]);
}


/* ---- cells ---- */


/* Returns the cell of a number + 1; NULL for 0, or if there is no such cell. */
static bloom_exceptions_cell_t *
cell_at(const bloom_exceptions_t *set, uint32_t number)
{
    return number - 1 < set->ncells ? &set->cells[number - 1] : NULL;
}


/* Frees a chain of n cells, which becomes the beginning of the list. */
static void
cells_free(const bloom_exceptions_t *set, uint32_t chain, uint64_t n)
{
    uint64_t                  i, head;
    bloom_exceptions_cell_t  *last, *next;

    last = cell_at(set, chain);

    if (last == NULL) {
        return;
    }

    for (i = 1; i < n; i++) {
        next = cell_at(set, load_relaxed(&last->as.word[WORD_NEXT]));

        if (next == NULL) {
            break;
        }

        last = next;
    }

    head = load(&set->head->free);

    do {
        store_relaxed(&last->as.word[WORD_NEXT], (uint32_t) head);
    } while (!swap(&set->head->free, &head, (uint64_t) chain));

    sub(&set->head->cells_used, i);
}


/* Takes a cell out of the list, or one that has never been used.  Returns its
 * number + 1, or 0 if all cells are in use. */
static uint32_t
cell_take(const bloom_exceptions_t *set)
{
    uint64_t                  head, next, fresh;
    bloom_exceptions_cell_t  *cell;

    head = load(&set->head->free);

    for ( ;; ) {
        cell = cell_at(set, (uint32_t) head);

        if (cell == NULL) {
            break;
        }

        next = load_relaxed(&cell->as.word[WORD_NEXT]);

        if (swap(&set->head->free, &head, next)) {
            return (uint32_t) head;
        }
    }

    fresh = load(&set->head->fresh);

    if (fresh >= set->ncells) {
        return 0;
    }

    store(&set->head->fresh, fresh + 1);

    return (uint32_t) fresh + 1;
}


/* Takes a chain of n cells.  Returns the number of its first cell + 1, or 0 if
 * there are fewer cells. */
static uint32_t
cells_take(const bloom_exceptions_t *set, uint64_t n)
{
    uint32_t  chain, number;
    uint64_t  i;

    if (n > bloom_exceptions_free(set)) {
        return 0;
    }

    add(&set->head->cells_used, n);

    for (i = 0, chain = 0; i < n; i++) {
        number = cell_take(set);

        if (number == 0) {
            sub(&set->head->cells_used, n - i);
            cells_free(set, chain, i);
            return 0;
        }

        store_relaxed(&set->cells[number - 1].as.word[WORD_NEXT], chain);
        chain = number;
    }

    return chain;
}


/* Copies a key, and what is known about it, into a chain. */
static void
cells_write(const bloom_exceptions_t *set, uint32_t chain,
    const bloom_exception_t *exception)
{
    size_t                    n, rest;
    uint32_t                  i, word[WORDS];
    const uint8_t            *p;
    bloom_exceptions_cell_t  *cell;

    cell = cell_at(set, chain);
    store_relaxed(&cell->as.word[WORD_LEN], (uint32_t) exception->key.len);
    store_relaxed(&cell->as.pair[PAIR_TIME], exception->time);
    store_relaxed(&cell->as.pair[PAIR_POSITION], exception->position);

    p = exception->key.data;
    rest = exception->key.len;

    for (i = WORD_FIRST; rest > 0; i = WORD_KEY) {
        n = 4 * (WORDS - i);
        n = rest < n ? rest : n;

        memset(word, 0, sizeof(word));
        memcpy(&word[i], p, n);

        for ( /* void */ ; i < WORDS; i++) {
            store_relaxed(&cell->as.word[i], word[i]);
        }

        p += n;
        rest -= n;
        cell = cell_at(set, load_relaxed(&cell->as.word[WORD_NEXT]));
    }
}


/*
 * Copies a key, and what is known about it, out of a chain.  Other processes
 * may free the cells meanwhile and use them again, so the copy is valid only if
 * its hash is the key's.  Returns 0 if it cannot be valid, else 1.
 */
static int
cells_read(const bloom_exceptions_t *set, uint32_t chain,
    bloom_exception_t *exception, uint8_t *buf)
{
    size_t                    n, rest;
    uint32_t                  i, j, word[WORDS];
    bloom_exceptions_cell_t  *cell;

    cell = cell_at(set, chain);

    if (cell == NULL) {
        return 0;
    }

    rest = load_relaxed(&cell->as.word[WORD_LEN]);

    if (rest == 0 || rest > BLOOM_KEY_MAX) {
        return 0;
    }

    exception->time = load_relaxed(&cell->as.pair[PAIR_TIME]);
    exception->position = load_relaxed(&cell->as.pair[PAIR_POSITION]);
    exception->key.data = buf;
    exception->key.len = rest;

    for (i = WORD_FIRST; rest > 0; i = WORD_KEY) {

        if (cell == NULL) {
            return 0;
        }

        for (j = i; j < WORDS; j++) {
            word[j] = load_relaxed(&cell->as.word[j]);
        }

        n = 4 * (WORDS - i);
        n = rest < n ? rest : n;

        memcpy(buf, &word[i], n);

        buf += n;
        rest -= n;
        cell = cell_at(set, load_relaxed(&cell->as.word[WORD_NEXT]));
    }

    return 1;
}


/* ---- changes ---- */


/* Finds a free slot near a key's home.  Returns 0 if all are in use. */
static int
find_free(const bloom_exceptions_t *set, bloom_hash_t hash, place_t *place)
{
    uint32_t  n;

    n = home_of(set, hash);

    place->home = &set->lines[n];

    for (place->distance = 0;
         place->distance <= REACH_MASK && place->distance < set->nlines;
         place->distance++)
    {
        place->line = &set->lines[n];

        for (place->slot = 0; place->slot < SLOTS; place->slot++) {
            if (load(&place->line->hash[place->slot].h1) == 0
                && load(&place->line->first[place->slot]) == 0)
            {
                return 1;
            }
        }

        n = n + 1 < set->nlines ? n + 1 : 0;
    }

    return 0;
}


/* Lets the home line know of one more key that is in a later line. */
static void
away_raise(bloom_exceptions_line_t *home, uint32_t distance)
{
    uint32_t  old, reach;

    old = load(&home->away);

    do {
        reach = old & REACH_MASK;
        reach = distance > reach ? distance : reach;
    } while (!swap(&home->away, &old, (old & ~REACH_MASK) + AWAY_ONE + reach));
}


static void
away_lower(bloom_exceptions_line_t *home)
{
    uint32_t  old;

    old = load(&home->away);

    while (old >= AWAY_ONE
           && !swap(&home->away, &old,
                    old < 2 * AWAY_ONE ? 0 : old - AWAY_ONE))
    {
        /* void */
    }
}


/* Counts a change of the kinds of a key of `len` bytes. */
static void
count_feedback(const bloom_exceptions_t *set, uint32_t before, uint32_t after,
    size_t len)
{
    unsigned  was, is;

    was = (before >> CELL_BITS & BLOOM_EXCEPTION_FEEDBACK) != 0;
    is = (after >> CELL_BITS & BLOOM_EXCEPTION_FEEDBACK) != 0;

    if (is != was) {
        add(&set->head->feedback,
            ((uint64_t) is - was) * (1 + (bloom_exceptions_cells(len) << 32)));
    }
}


/*
 * Gives a key that is in the set further kinds, and the time and the position.
 * Returns 1; 0 if another process has dropped the key meanwhile.
 */
static int
update(const bloom_exceptions_t *set, const place_t *place, uint64_t h1,
    const bloom_exception_t *exception)
{
    uint32_t                  old, kinds, *first;
    bloom_exceptions_cell_t  *cell;

    first = &place->line->first[place->slot];
    kinds = exception->kinds & BLOOM_EXCEPTION_KINDS;

    old = load(first);
    cell = cell_at(set, old & CELL_MASK);

    if (cell != NULL
        && exception->position >= load_relaxed(&cell->as.pair[PAIR_POSITION]))
    {
        store_relaxed(&cell->as.pair[PAIR_TIME], exception->time);
        store_relaxed(&cell->as.pair[PAIR_POSITION], exception->position);
    }

    while (old != 0 && !swap(first, &old, old | kinds << CELL_BITS)) {
        /* void */
    }

    if (old != 0) {
        count_feedback(set, old, old | kinds << CELL_BITS, exception->key.len);
    }

    return __atomic_load_n(&place->line->hash[place->slot].h1, __ATOMIC_SEQ_CST)
           == h1;
}


int
bloom_exceptions_put(bloom_exceptions_t *set,
    const bloom_exception_t *exception)
{
    uint32_t                  kinds, chain;
    place_t                   place;
    bloom_hash_t              hash;
    bloom_exceptions_line_t  *line;

    kinds = exception->kinds & BLOOM_EXCEPTION_KINDS;

    if (set->head == NULL || exception->key.len == 0
        || exception->key.len > BLOOM_KEY_MAX)
    {
        return -1;
    }

    hash = bloom_exceptions_hash(set, exception->key.data, exception->key.len);

    if (find(set, hash, &place)) {
        add(&set->head->puts, 1);

        if (update(set, &place, hash.h1, exception)) {
            return 0;
        }
    }

    if (bloom_exceptions_count(set) >= set->nlines
        || !find_free(set, hash, &place))
    {
        return -1;
    }

    chain = cells_take(set, bloom_exceptions_cells(exception->key.len));

    if (chain == 0) {
        return -1;
    }

    cells_write(set, chain, exception);

    add(&set->head->puts, 1);
    add(&set->head->count, 1);

    if (place.distance != 0) {
        away_raise(place.home, place.distance);
    }

    line = place.line;

    count_feedback(set, 0, kinds << CELL_BITS, exception->key.len);

    store(&line->first[place.slot], chain | kinds << CELL_BITS);
    store(&line->hash[place.slot].h2, hash.h2);
    __atomic_store_n(&line->hash[place.slot].h1, hash.h1, __ATOMIC_SEQ_CST);

    /* whoever has read `puts` just now, and has not found the key, must see
     * that it has changed */

    add(&set->head->puts, 1);

    return 1;
}


int
bloom_exceptions_confirm(bloom_exceptions_t *set, const void *data, size_t len,
    unsigned kinds)
{
    uint32_t      old, counted, *first;
    place_t       place;
    bloom_hash_t  hash;

    hash = bloom_exceptions_hash(set, data, len);

    if (!find(set, hash, &place)) {
        return 0;
    }

    first = &place.line->first[place.slot];
    old = load(first);
    kinds = (kinds & BLOOM_EXCEPTION_KINDS) << CELL_BITS;

    /* with the caller's lock held, a key gets no other kinds, and loses them
     * only all at once */

    counted = old;
    count_feedback(set, counted, counted | kinds, len);

    while (old == 0 || !swap(first, &old, old | kinds)) {
        if (old == 0) {
            count_feedback(set, counted | kinds, counted, len);
            return 0;
        }
    }

    return __atomic_load_n(&place.line->hash[place.slot].h1, __ATOMIC_SEQ_CST)
           == hash.h1;
}


int
bloom_exceptions_drop(bloom_exceptions_t *set, const void *data, size_t len,
    unsigned kinds, uint64_t before)
{
    uint32_t                  first;
    uint64_t                  h1;
    place_t                   place;
    bloom_hash_t              hash;
    bloom_exceptions_cell_t  *cell;
    bloom_exceptions_line_t  *line;

    if (bloom_exceptions_count(set) == 0) {
        return 0;
    }

    hash = bloom_exceptions_hash(set, data, len);

    if (!find(set, hash, &place)) {
        return 0;
    }

    line = place.line;
    first = load(&line->first[place.slot]);
    cell = cell_at(set, first & CELL_MASK);

    if (before != UINT64_MAX
        && (cell == NULL
            || load_relaxed(&cell->as.pair[PAIR_POSITION]) >= before))
    {
        return 0;
    }

    kinds &= BLOOM_EXCEPTION_KINDS;

    if (kinds != BLOOM_EXCEPTION_KINDS) {

        if ((first >> CELL_BITS & ~kinds) != 0) {
            first = __atomic_fetch_and(&line->first[place.slot],
                                       ~(kinds << CELL_BITS),
                                       __ATOMIC_SEQ_CST);
            count_feedback(set, first, first & ~(kinds << CELL_BITS), len);
            return 0;
        }
    }

    h1 = hash.h1;

    if (!swap(&line->hash[place.slot].h1, &h1, 0)) {
        return 0;
    }

    /* The slot belongs to this process until `first` is 0.  The key may have
     * been dropped and put again since `first` was read above. */

    first = load(&line->first[place.slot]);

    cells_free(set, first & CELL_MASK, bloom_exceptions_cells(len));

    if (place.distance != 0) {
        away_lower(place.home);
    }

    sub(&set->head->count, 1);

    /* a key that is confirmed meanwhile may have got a kind */

    first = __atomic_exchange_n(&line->first[place.slot], 0, __ATOMIC_SEQ_CST);
    count_feedback(set, first, 0, len);

    return 1;
}


/* ---- listing ---- */


int
bloom_exceptions_next_within(const bloom_exceptions_t *set, uint64_t *cursor,
    uint64_t lines, bloom_exception_t *exception, uint8_t *buf)
{
    unsigned                  i;
    uint32_t                  first;
    uint64_t                  end;
    bloom_hash_t              hash, copied;
    bloom_exceptions_line_t  *line;

    if (bloom_exceptions_count(set) == 0) {
        return 0;
    }

    end = (uint64_t) set->nlines * SLOTS;

    if (lines < set->nlines && *cursor < end
        && (set->nlines - *cursor / SLOTS) > lines)
    {
        end = (*cursor / SLOTS + lines) * SLOTS;
    }

    while (*cursor < end) {
        line = &set->lines[*cursor / SLOTS];
        i = (unsigned) (*cursor % SLOTS);
        (*cursor)++;

        hash.h1 = load(&line->hash[i].h1);

        if (hash.h1 == 0) {
            continue;
        }

        hash.h2 = load(&line->hash[i].h2);
        first = load(&line->first[i]);

        if (first >> CELL_BITS == 0
            || !cells_read(set, first & CELL_MASK, exception, buf))
        {
            continue;
        }

        copied = bloom_exceptions_hash(set, buf, exception->key.len);

        if (copied.h1 == hash.h1 && copied.h2 == hash.h2) {
            exception->kinds = first >> CELL_BITS;
            return 1;
        }
    }

    return *cursor < (uint64_t) set->nlines * SLOTS ? -1 : 0;
}
