/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions solve the equations of a core: what is left of the equations
 * of a fuse base when no more of them can be peeled.
 *
 * Elimination of n equations takes n^3 steps.  Lazy elimination (Genuzio,
 * Ottaviano, Vigna, "Fast Scalable Construction of (Minimal Perfect Hash)
 * Functions", 2016) first declares a few slots idle, those that are in most
 * equations.  As soon as only one slot of an equation is neither idle nor
 * solved, the equation solves this slot, in terms of the idle ones.  When
 * nothing can be solved so, another slot becomes idle.  Equations whose slots
 * are all solved by others are equations of idle slots alone.  Only these are
 * eliminated: in a core of a fuse base, 8 % of the slots become idle.
 */

#ifndef BLOOM_FUSE_CORE_H
#define BLOOM_FUSE_CORE_H

#include <stddef.h>

#include "bloom_fuse.h"

#pragma GCC visibility push(hidden)


typedef struct {
    uint32_t   n;                        /* equations */
    uint32_t   slots;                    /* in any equation */
    uint32_t   idle;                     /* slots that are idle */
    uint32_t   solved;
    uint32_t   rows;
    uint32_t   room;                     /* for idle slots and for rows */
    uint32_t   words;                    /* of a vector of idle slots */

    uint32_t  *number;                   /* of each slot of the shard, from 1;
                                            0: it is in no equation */
    uint32_t  *slot;                     /* of each number */
    uint32_t  *equation;                 /* three numbers each */
    uint32_t  *right;                    /* right side of each equation */
    uint32_t  *first;                    /* of each slot in `of` */
    uint32_t  *of;                       /* equations of each slot */
    uint32_t  *order;                    /* slots, those in most equations
                                            first */
    uint32_t  *queue;                    /* equations with one active slot */
    uint32_t  *solution;                 /* solved slots, in order */
    uint32_t  *by;                       /* equation that solves each slot, or
                                            its number among the idle ones */
    uint32_t  *constant;                 /* of each solved slot */
    uint32_t  *sum;                      /* values of idle slots */
    uint8_t   *state;                    /* of each slot */
    uint8_t   *active;                   /* slots in each equation */
    uint64_t  *vector;                   /* idle slots in each solved one */
    uint64_t  *row;                      /* equations of idle slots */
} bloom_fuse_core_t;


/* Returns the bytes of scratch memory for a core of n equations. */
size_t bloom_fuse_core_scratch(uint64_t n);

/* Begins a core of n equations.  `number` has room for one number of each of
 * the shard's slots. */
void bloom_fuse_core_begin(bloom_fuse_core_t *core, void *scratch, uint64_t n,
    uint32_t *number, uint32_t slots);

/* Adds an equation, all n of them, before the core is solved. */
void bloom_fuse_core_add(bloom_fuse_core_t *core,
    const uint32_t slot[BLOOM_FUSE_K], uint32_t right);

/* Sets the values of all slots of the core.  Returns 0, or -1 if there is no
 * solution. */
int bloom_fuse_core_solve(bloom_fuse_core_t *core, uint32_t *value);


#pragma GCC visibility pop

#endif /* BLOOM_FUSE_CORE_H */
