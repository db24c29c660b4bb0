/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A hasher names the hash function of a filter's keys and its seed or secret.
 * An image records its hasher.
 */

#ifndef BLOOM_HASHER_H
#define BLOOM_HASHER_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_bytes.h"

#pragma GCC visibility push(hidden)


/* Values recorded in image files: never renumbered. */
#define BLOOM_HASH_MURMUR3  1    /* MurmurHash3 x64 128, 32-bit seed */
#define BLOOM_HASH_SIPHASH  2    /* SipHash-1-3, 128 bits, 128-bit key */

/* Hashes of imported filters, described in bloom_hash_foreign.h. */
#define BLOOM_HASH_FUNNEL         3
#define BLOOM_HASH_MURMUR64A      4
#define BLOOM_HASH_MURMUR2        5
#define BLOOM_HASH_MURMUR3_32     6
#define BLOOM_HASH_HIGHWAY        7
#define BLOOM_HASH_FNV1           8
#define BLOOM_HASH_MURMUR3_TWICE  9
#define BLOOM_HASH_MURMUR3_EACH   10

/* Funnels, described in bloom_hash_foreign.h.  Recorded in image files: never
 * renumbered. */
#define BLOOM_FUNNEL_BYTES  0
#define BLOOM_FUNNEL_UTF16  1
#define BLOOM_FUNNEL_LONG   2
#define BLOOM_FUNNEL_INT    3

#define BLOOM_HASH_KEY_LEN  16

/* The offset of the funnel in the hasher's key. */
#define BLOOM_HASHER_AT_FUNNEL  4


/* The hash of a key: 128 bits in two halves, the same on every machine.  For
 * MURMUR3_TWICE and MURMUR3_EACH it refers to the key: see
 * bloom_hash_foreign.h. */
typedef struct {
    uint64_t  h1;
    uint64_t  h2;
} bloom_hash_t;


/*
 * A hash function with its seed or secret.  For SIPHASH, `key` is the secret.
 * For every other kind, its first four bytes are the seed, little-endian, the
 * fifth byte is the funnel, and the other eleven bytes are zero.
 */
typedef struct {
    uint32_t  kind;                      /* BLOOM_HASH_... */
    uint8_t   key[BLOOM_HASH_KEY_LEN];
} bloom_hasher_t;


/* Initialises a MURMUR3 hasher with a seed. */
void bloom_hasher_murmur3(bloom_hasher_t *hasher, uint32_t seed);

/* Initialises a hasher of an imported filter.  `seed` is 0 except for
 * MURMUR3_32. */
void bloom_hasher_foreign(bloom_hasher_t *hasher, uint32_t kind,
    uint32_t funnel, uint32_t seed);

/* Returns the seed of a hasher that is not SIPHASH. */
static inline uint32_t
bloom_hasher_seed(const bloom_hasher_t *hasher)
{
    return bloom_get32(hasher->key);
}

/* Returns the funnel; for MURMUR3 and SIPHASH it is BLOOM_FUNNEL_BYTES. */
static inline uint32_t
bloom_hasher_funnel(const bloom_hasher_t *hasher)
{
    return hasher->kind >= BLOOM_HASH_FUNNEL
           ? hasher->key[BLOOM_HASHER_AT_FUNNEL] : BLOOM_FUNNEL_BYTES;
}

/* Returns 1 if a hash refers to its key, which must then stay where it is as
 * long as the hash is used. */
static inline int
bloom_hasher_refers(const bloom_hasher_t *hasher)
{
    return hasher->kind == BLOOM_HASH_MURMUR3_TWICE
           || hasher->kind == BLOOM_HASH_MURMUR3_EACH;
}

/* Returns 1 if the kind is known and `key` is valid for it, else 0. */
int bloom_hasher_valid(const bloom_hasher_t *hasher);

/* Returns the name of a kind of hash, such as "murmur3"; NULL if the kind is
 * unknown. */
const char *bloom_hasher_name(uint32_t kind);

/* Returns the kind of the name "murmur3" or "siphash", the hashes with which
 * new filters are made; 0 for any other name. */
uint32_t bloom_hasher_parse(const char *name, size_t len);

/* Returns "bytes", "utf16", "long" or "int"; NULL if the funnel is unknown. */
const char *bloom_hasher_funnel_name(uint32_t funnel);

/* Returns the funnel of a name; -1 if the name is unknown. */
int bloom_hasher_funnel_parse(const char *name, size_t len);


#pragma GCC visibility pop

#endif /* BLOOM_HASHER_H */
