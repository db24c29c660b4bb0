
/*
 * Hash functions: MurmurHash3 x64 128 and SipHash-c-d with 128 bits out; those
 * of imported filters are in bloom_hash_foreign.h.
 *
 * Both give 128 bits as two 64-bit halves.  They are functions of the key's
 * bytes, the length and the hash key alone, the same on every machine.
 */

#ifndef BLOOM_HASH_H
#define BLOOM_HASH_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


/* Values recorded in image files: never renumbered. */
#define BLOOM_HASH_MURMUR3  1    /* MurmurHash3 x64 128, 32-bit seed */
#define BLOOM_HASH_SIPHASH  2    /* SipHash-1-3, 128 bits, 128-bit key */

/* Of imported filters; bloom_hash_foreign.h says what each is. */
#define BLOOM_HASH_FUNNEL         3
#define BLOOM_HASH_MURMUR64A      4
#define BLOOM_HASH_MURMUR2        5
#define BLOOM_HASH_MURMUR3_32     6
#define BLOOM_HASH_HIGHWAY        7
#define BLOOM_HASH_FNV1           8
#define BLOOM_HASH_MURMUR3_TWICE  9
#define BLOOM_HASH_MURMUR3_EACH   10

#define BLOOM_HASH_KEY_LEN  16


typedef struct {
    uint64_t  h1;
    uint64_t  h2;
} bloom_hash_t;


/*
 * Which hash, and its secret or seed.  For MURMUR3 the first four bytes of
 * `key` are the seed, little-endian, and the other twelve are zero.
 */
typedef struct {
    uint32_t  kind;                      /* BLOOM_HASH_... */
    uint8_t   key[BLOOM_HASH_KEY_LEN];
} bloom_hasher_t;


/*
 * The hash of `len` bytes at `data` (any alignment; NULL only if len is 0).
 * That of MURMUR3_TWICE and MURMUR3_EACH refers to those bytes, which must then
 * be there until it has been used.
 */
bloom_hash_t bloom_hash(const bloom_hasher_t *hasher, const void *data,
    size_t len);

/*
 * MurmurHash3_x64_128 by Austin Appleby (public domain, SMHasher).  Its
 * published verification value is 0x6384BA69.
 */
bloom_hash_t bloom_murmur3_x64_128(const void *data, size_t len,
    uint32_t seed);

/*
 * MurmurHash3 x64 128, seed 0, of a message that comes in pieces; or of many
 * that begin alike: copy the state, then go on from it.
 */
typedef struct {
    uint64_t  h1;
    uint64_t  h2;
    uint64_t  len;
    uint8_t   tail[16];                  /* len mod 16 bytes of it in use */
} bloom_murmur3_t;

void bloom_murmur3_begin(bloom_murmur3_t *m);
void bloom_murmur3_update(bloom_murmur3_t *m, const void *data, size_t len);
bloom_hash_t bloom_murmur3_end(const bloom_murmur3_t *m);

/*
 * SipHash-c-d with 128-bit output, by Jean-Philippe Aumasson and Daniel
 * J. Bernstein: "SipHash: a fast short-input PRF" (2012), and the authors'
 * later 128-bit variant.  h1 is the first eight bytes of the output read as
 * little-endian, h2 the last eight.
 */
bloom_hash_t bloom_siphash_128(const void *data, size_t len,
    const uint8_t key[BLOOM_HASH_KEY_LEN], unsigned c, unsigned d);

/* MurmurHash3's 64-bit finalizer: a bijection that mixes every bit. */
uint64_t bloom_murmur3_mix(uint64_t x);

/* Makes a MURMUR3 hasher of a seed. */
void bloom_hasher_murmur3(bloom_hasher_t *hasher, uint32_t seed);

/* The seed of a MURMUR3 hasher. */
uint32_t bloom_hasher_seed(const bloom_hasher_t *hasher);

/*
 * "murmur3" or "siphash" or the name of an imported filter's hash, NULL if
 * unknown; and back, for the first two, which filters can be made with: 0 if
 * unknown.
 */
const char *bloom_hasher_name(uint32_t kind);
uint32_t bloom_hasher_parse(const char *name, size_t len);


#pragma GCC visibility pop

#endif /* BLOOM_HASH_H */
