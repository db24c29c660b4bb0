/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This function builds a fuse base from a keystore that keeps h2 of each hash.
 *
 * The first bits of h1 choose the partition of a hash in the store, and its
 * shard in the filter.  So a shard consists of one or several partitions.  Each
 * thread builds one shard after the other, in scratch memory for one shard.
 */

#ifndef FUSE_BUILD_H
#define FUSE_BUILD_H

#include "keystore.h"


/* Keys that a filter is built for at most: then it has no more shards than the
 * keystore has partitions. */
#define FUSE_BUILD_KEYS_MAX  ((uint64_t) 1 << 35)


/*
 * Sizes a filter for the `keys` distinct hashes of the store, which have been
 * counted, and builds it.
 * Threads that would take more scratch memory than `memory` all together are
 * not started, except the first.  Sets *g and *words, which the caller unmaps.
 * Returns CLI_OK; or CLI_ERROR after a message.
 */
int fuse_build(bloom_geometry_t *g, uint64_t **words, keystore_t *store,
    uint64_t keys, double fpr, unsigned threads, uint64_t memory);

/* Returns zeroed memory for a filter, on huge pages if the system has them. */
uint64_t *fuse_build_map(uint64_t size);


#endif /* FUSE_BUILD_H */
