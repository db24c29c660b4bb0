
/*
 * This table finds out how many keys of a run of compaction are distinct,
 * estimated from a sample, and which occurrence of each is its last one and
 * stays.
 *
 * Distinct keys are told apart by a fingerprint, in a table that has room for a
 * million of them.  Where there are more, each pass over the journal takes its
 * share, so that memory is bounded: 40 MB, and a bit for each key.
 */

#ifndef _NGX_BLOOM_COMPACT_KEYS_H_INCLUDED_
#define _NGX_BLOOM_COMPACT_KEYS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_hasher.h"
#include "bloom_record.h"

#pragma GCC visibility push(hidden)


/* A distinct key, by its 128-bit hash. */
typedef struct {
    bloom_hash_t  hash;
    uint64_t      value;                 /* in the sample, bytes of the key;
                                            else 1 and which key it was last;
                                            0: no key */
} ngx_bloom_compact_keys_slot_t;


typedef struct {
    u_char       secret[BLOOM_HASH_KEY_LEN];
    uint64_t     ordinal;                /* of the next key of this pass */

    uint64_t     keys;
    uint64_t     distinct;               /* an estimate, until all are marked */

    ngx_bloom_compact_keys_slot_t  *table;
    uint64_t     slots;
    uint64_t     used;                   /* of them */

    ngx_uint_t   level;                  /* one key of 2^level is sampled */
    uint64_t     bytes;                  /* of those, each with its length */

    uint64_t     pass;                   /* of so many passes */
    uint64_t     passes;
    uint64_t    *stays;                  /* a bit for each key */
} ngx_bloom_compact_keys_t;


/* Functions that may be short of memory return NGX_ERROR then, with errno. */

/* Begins to count, `keys` being zeros and a random secret. */
ngx_int_t ngx_bloom_compact_keys_begin(ngx_bloom_compact_keys_t *keys);

/* Counts the keys of a record.  Returns NGX_OK or NGX_ERROR. */
ngx_int_t ngx_bloom_compact_keys_count(ngx_bloom_compact_keys_t *keys,
    bloom_record_t *record);

/* When all are counted: estimates keys->distinct, and returns about how many
 * bytes the distinct keys have, each with its length. */
uint64_t ngx_bloom_compact_keys_estimate(ngx_bloom_compact_keys_t *keys);

/* Begins to mark the keys that stay.  Returns NGX_OK or NGX_ERROR. */
ngx_int_t ngx_bloom_compact_keys_mark_begin(ngx_bloom_compact_keys_t *keys);

/*
 * Marks the keys of a record as far as they belong to this pass.  Returns
 * NGX_OK; NGX_AGAIN if there are more keys than was estimated, and the first
 * pass starts again; or NGX_ERROR.
 */
ngx_int_t ngx_bloom_compact_keys_mark(ngx_bloom_compact_keys_t *keys,
    bloom_record_t *record);

/*
 * Ends a pass.  Returns NGX_AGAIN if another one begins; NGX_OK if all keys are
 * marked, and keys->distinct says how many stay; or NGX_ERROR.
 */
ngx_int_t ngx_bloom_compact_keys_marked(ngx_bloom_compact_keys_t *keys);

/* Returns whether a key stays. */
static ngx_inline ngx_uint_t
ngx_bloom_compact_keys_stays(ngx_bloom_compact_keys_t *keys, uint64_t ordinal)
{
    return keys->stays[ordinal / 64] >> ordinal % 64 & 1;
}

/* Frees what they have, at any time. */
void ngx_bloom_compact_keys_end(ngx_bloom_compact_keys_t *keys);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_COMPACT_KEYS_H_INCLUDED_ */
