/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Vectors are bitmaps over the idle slots.  A solved slot is the XOR of the
 * idle slots in its vector and of its constant.
 */

#include <string.h>

#include "bloom_fuse_core.h"


/* The states of a slot. */
#define ACTIVE  0
#define IDLE    1
#define SOLVED  2


/* Lays the arrays out in scratch memory.  Returns their size. */
static size_t
lay_out(bloom_fuse_core_t *core, uint64_t n, uint8_t *scratch)
{
    size_t    size;
    uint64_t  slots;

    /* each slot is in two equations at least, unless equal ones were dropped */

    slots = n * BLOOM_FUSE_K;

    core->room = (uint32_t) (n / 8 + 64);
    core->words = (core->room + 63) / 64;

    size = 0;

#define array(member, count)                                                 \
    do {                                                                     \
        core->member = scratch == NULL ? NULL : (void *) (scratch + size);   \
        size += ((count) * sizeof(*core->member) + 63) / 64 * 64;            \
    } while (0)

    array(slot, slots + 1);
    array(equation, n * BLOOM_FUSE_K);
    array(right, n);
    array(first, slots + 2);
    array(of, n * BLOOM_FUSE_K);
    array(order, slots);
    array(queue, n);
    array(solution, n);
    array(by, slots + 1);
    array(constant, slots + 1);
    array(sum, core->room);
    array(state, slots + 1);
    array(active, n);
    array(vector, (n + 1) * core->words);
    array(row, (uint64_t) core->room * (core->words + 1));

#undef array

    return size;
}


size_t
bloom_fuse_core_scratch(uint64_t n)
{
    bloom_fuse_core_t  core;

    return lay_out(&core, n, NULL);
}


void
bloom_fuse_core_begin(bloom_fuse_core_t *core, void *scratch, uint64_t n,
    uint32_t *number, uint32_t slots)
{
    memset(core, 0, sizeof(*core));

    (void) lay_out(core, n, scratch);
    core->number = number;

    memset(number, 0, slots * sizeof(*number));
}


void
bloom_fuse_core_add(bloom_fuse_core_t *core, const uint32_t slot[BLOOM_FUSE_K],
    uint32_t right)
{
    uint32_t  j, *number;

    for (j = 0; j < BLOOM_FUSE_K; j++) {
        number = &core->number[slot[j]];

        if (*number == 0) {
            *number = ++core->slots;
            core->slot[*number] = slot[j];
        }

        core->equation[core->n * BLOOM_FUSE_K + j] = *number;
    }

    core->active[core->n] = BLOOM_FUSE_K;
    core->right[core->n++] = right;
}


/* Lists the equations of each slot. */
static void
index_slots(bloom_fuse_core_t *core)
{
    uint32_t  i, sum, next, *first;

    first = core->first;
    memset(first, 0, (core->slots + 2) * sizeof(*first));

    for (i = 0; i < core->n * BLOOM_FUSE_K; i++) {
        first[core->equation[i]]++;
    }

    for (sum = 0, i = 1; i <= core->slots + 1; i++, sum = next) {
        next = sum + first[i];
        first[i] = sum;
    }

    for (i = 0; i < core->n * BLOOM_FUSE_K; i++) {
        core->of[first[core->equation[i]]++] = i / BLOOM_FUSE_K;
    }

    /* now first[i] is where the equations of slot i end */

    memset(core->state, ACTIVE, core->slots + 1);
}


/* Returns how many equations a slot is in. */
static inline uint32_t
degree(const bloom_fuse_core_t *core, uint32_t slot)
{
    return core->first[slot] - core->first[slot - 1];
}


/* Sorts the slots by the number of their equations. */
static void
order_slots(bloom_fuse_core_t *core)
{
    uint32_t  i, d, sum, next, at[64];

    memset(at, 0, sizeof(at));

#define bucket(slot)                                                         \
    (63 - (degree(core, slot) < 63 ? degree(core, slot) : 63))

    for (i = 1; i <= core->slots; i++) {
        at[bucket(i)]++;
    }

    for (sum = 0, d = 0; d < 64; d++, sum = next) {
        next = sum + at[d];
        at[d] = sum;
    }

    for (i = 1; i <= core->slots; i++) {
        core->order[at[bucket(i)]++] = i;
    }

#undef bucket
}


static inline void
add_words(uint64_t *dst, const uint64_t *src, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        dst[i] ^= src[i];
    }
}


/* A slot is not active any more: queues the equations in which only one is. */
static uint32_t
leave(bloom_fuse_core_t *core, uint32_t slot, uint32_t end)
{
    uint32_t  i, equation;

    for (i = core->first[slot - 1]; i < core->first[slot]; i++) {
        equation = core->of[i];

        if (--core->active[equation] == 1) {
            core->queue[end++] = equation;
        }
    }

    return end;
}


/*
 * Uses an equation that has at most one active slot.  If it has one, the
 * equation solves that slot.  Otherwise all its slots follow from idle ones, and
 * it becomes a row.  Returns the solved slot; 0 for a row; or UINT32_MAX if
 * there is no room for another row.
 */
static uint32_t
use_equation(bloom_fuse_core_t *core, uint32_t equation)
{
    uint32_t         j, slot, target, constant;
    uint64_t        *vector;
    const uint32_t  *slots;

    slots = &core->equation[equation * BLOOM_FUSE_K];
    constant = core->right[equation];

    for (target = 0, j = 0; j < BLOOM_FUSE_K; j++) {
        if (core->state[slots[j]] == ACTIVE) {
            target = slots[j];
        }
    }

    if (target == 0 && core->rows == core->room) {
        return UINT32_MAX;
    }

    vector = target != 0
             ? core->vector + (uint64_t) core->solved * core->words
             : core->row + (uint64_t) core->rows * (core->words + 1);

    memset(vector, 0, (core->words + (target == 0)) * sizeof(*vector));

    for (j = 0; j < BLOOM_FUSE_K; j++) {
        slot = slots[j];

        if (core->state[slot] == IDLE) {
            vector[core->by[slot] / 64] ^= (uint64_t) 1 << core->by[slot] % 64;

        } else if (core->state[slot] == SOLVED) {
            add_words(vector,
                      core->vector + (uint64_t) core->by[slot] * core->words,
                      core->words);
            constant ^= core->constant[slot];
        }
    }

    if (target == 0) {
        vector[core->words] = constant;
        core->rows++;
        return 0;
    }

    core->state[target] = SOLVED;
    core->constant[target] = constant;
    core->by[target] = core->solved;
    core->solution[core->solved++] = target;

    return target;
}


/* Makes every slot idle or solved.  Returns 0, or -1 if there are too many idle
 * slots or equations of idle slots. */
static int
reduce(bloom_fuse_core_t *core)
{
    uint32_t  i, begin, end, slot;

    begin = 0;
    end = 0;

    for (i = 0; i < core->slots; i++) {
        slot = core->order[i];

        if (core->state[slot] != ACTIVE) {
            continue;
        }

        if (core->idle == core->room) {
            return -1;
        }

        core->state[slot] = IDLE;
        core->by[slot] = core->idle++;
        end = leave(core, slot, end);

        while (begin != end) {
            slot = use_equation(core, core->queue[begin++]);

            if (slot == UINT32_MAX) {
                return -1;
            }

            if (slot != 0) {
                end = leave(core, slot, end);
            }
        }
    }

    return 0;
}


/* Returns the first idle slot in a row, at or after one; UINT32_MAX if none. */
static uint32_t
next_idle(const bloom_fuse_core_t *core, const uint64_t *row, uint32_t from)
{
    uint32_t  i;
    uint64_t  word;

    for (i = from / 64; i < core->words; i++) {
        word = row[i];

        if (i == from / 64) {
            word &= UINT64_MAX << from % 64;
        }

        if (word != 0) {
            return i * 64 + (uint32_t) __builtin_ctzll(word);
        }
    }

    return UINT32_MAX;
}


/* Solves the equations of idle slots.  Returns 0, or -1 if that is
 * impossible. */
static int
eliminate(bloom_fuse_core_t *core)
{
    uint32_t   i, j, pivot, other;
    uint64_t  *row, *below, value;

    for (i = 0; i < core->rows; i++) {
        row = core->row + (uint64_t) i * (core->words + 1);
        pivot = next_idle(core, row, 0);

        if (pivot == UINT32_MAX) {
            if (row[core->words] != 0) {
                return -1;
            }

            continue;
        }

        for (j = i + 1; j < core->rows; j++) {
            below = core->row + (uint64_t) j * (core->words + 1);

            if (below[pivot / 64] >> pivot % 64 & 1) {
                add_words(below, row, core->words + 1);
            }
        }
    }

    memset(core->sum, 0, core->room * sizeof(*core->sum));

    /* a row has no pivots of rows before it */

    for (i = core->rows; i-- != 0; /* void */ ) {
        row = core->row + (uint64_t) i * (core->words + 1);
        pivot = next_idle(core, row, 0);

        if (pivot == UINT32_MAX) {
            continue;
        }

        value = row[core->words];

        for (other = next_idle(core, row, pivot + 1); other != UINT32_MAX;
             other = next_idle(core, row, other + 1))
        {
            value ^= core->sum[other];
        }

        core->sum[pivot] = (uint32_t) value;
    }

    return 0;
}


int
bloom_fuse_core_solve(bloom_fuse_core_t *core, uint32_t *value)
{
    uint32_t         i, n, slot, sum;
    uint64_t        *vector;

    index_slots(core);
    order_slots(core);

    if (reduce(core) != 0 || eliminate(core) != 0) {
        return -1;
    }

    for (slot = 1; slot <= core->slots; slot++) {
        if (core->state[slot] == IDLE) {
            value[core->slot[slot]] = core->sum[core->by[slot]];
        }
    }

    for (i = 0; i < core->solved; i++) {
        slot = core->solution[i];
        vector = core->vector + (uint64_t) i * core->words;
        sum = core->constant[slot];

        for (n = next_idle(core, vector, 0); n != UINT32_MAX;
             n = next_idle(core, vector, n + 1))
        {
            sum ^= core->sum[n];
        }

        value[core->slot[slot]] = sum;
    }

    return 0;
}
