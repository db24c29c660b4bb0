/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions read and set one bit of a filter's words while other
 * processes may be setting bits of the same words.
 */

#ifndef BLOOM_BITS_H
#define BLOOM_BITS_H

#include "bloom_bytes.h"


/* Returns the word that holds the bit, shifted so that the bit is lowest. */
static inline uint64_t
bloom_bit_load(const uint64_t *words, uint64_t bit)
{
    uint64_t  w;

    w = __atomic_load_n(&words[bit / 64], __ATOMIC_RELAXED);

    return bloom_le64(w) >> (bit % 64);
}


/* Sets a bit of a word, 0 to 63.  Returns 1 if it was not set before, else 0. */
static inline int
bloom_word_set(uint64_t *word, uint64_t bit, int atomic)
{
    uint64_t  mask, old;

    mask = bloom_le64((uint64_t) 1 << bit);

    if (!atomic) {
        old = *word;
        *word = old | mask;

    } else {
        old = __atomic_load_n(word, __ATOMIC_RELAXED);

        if ((old & mask) == 0) {
            old = __atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
        }
    }

    return (old & mask) == 0;
}


/* Sets the bit.  Returns 1 if it was not set before, else 0. */
static inline int
bloom_bit_set(uint64_t *words, uint64_t bit, int atomic)
{
    return bloom_word_set(&words[bit / 64], bit % 64, atomic);
}


#endif /* BLOOM_BITS_H */
