/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The digest of a source's changes tells whether two zones have got the same
 * changes in the same order.  It is a number, 0 before the first change, that
 * each change turns into another one:
 *
 *     digest = digest * 0x9e3779b97f4a7c15 + h                  (mod 2^64)
 *
 * where h is one of the two numbers of the SipHash-1-3-128 of the key under the
 * secret "ngx-bloom digest": h1 if the key is added, h2 if it is removed.
 *
 * What a batch does to the digest is "times a factor, plus a sum", whatever the
 * digest was.  So a batch can be counted before its place is known, and it does
 * not matter where batches begin and end.  One change that is missing or altered
 * leaves the digest as it was with a probability of about 2^-64; two changes that
 * are swapped, d changes apart, with 2^-62 times the greatest power of two that
 * divides d.
 *
 * The secret is public: the digest finds mistakes, and no forgeries.
 */

#ifndef BLOOM_DIGEST_H
#define BLOOM_DIGEST_H

#include "bloom_key.h"
#include "bloom_source.h"

#pragma GCC visibility push(hidden)


/* A digest of the changes of a source after a position. */
typedef struct {
    uint64_t          value;
    bloom_position_t  since;
} bloom_digest_t;

/* What a batch of changes does to a digest. */
typedef struct {
    uint64_t          factor;
    uint64_t          sum;
} bloom_digest_batch_t;


/* Initialises an empty batch. */
static inline void
bloom_digest_begin(bloom_digest_batch_t *batch)
{
    batch->factor = 1;
    batch->sum = 0;
}

/* Counts a change at the end of a batch: the key is added, or removed. */
void bloom_digest_put(bloom_digest_batch_t *batch, const bloom_key_t *key,
    int removed);

/* Counts a batch after what the digest has. */
static inline void
bloom_digest_extend(bloom_digest_t *digest, const bloom_digest_batch_t *batch)
{
    digest->value = digest->value * batch->factor + batch->sum;
}

/* Makes a digest begin at a position. */
static inline void
bloom_digest_restart(bloom_digest_t *digest, bloom_position_t since)
{
    digest->value = 0;
    digest->since = since;
}


#pragma GCC visibility pop

#endif /* BLOOM_DIGEST_H */
