/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Marking finds the keys of a run of compaction that come again later, which
 * can go.  Of each key its last occurrence stays.
 *
 * The keys are walked in their order, and a table has of each distinct one a
 * fingerprint and where it was last.  A table that has no room for all of them
 * has a share, by their hash, and there is a walk for each share.  It takes as
 * many shares as it takes: whenever the table is full, there are twice as many,
 * and the walk begins again.  What was marked stays marked, since that is true
 * of a key however its share is cut.
 *
 * So memory is bounded: 36 MB for the table, and a bit for each key.
 */

#ifndef _NGX_BLOOM_COMPACT_KEYS_H_INCLUDED_
#define _NGX_BLOOM_COMPACT_KEYS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_hasher.h"
#include "bloom_record.h"

#pragma GCC visibility push(hidden)


/* A distinct key of the share, by its 128-bit hash. */
typedef struct {
    bloom_hash_t  hash;
    uint64_t      last;                  /* 1 and its last ordinal; 0: no key */
} ngx_bloom_compact_key_t;


typedef struct {
    u_char        secret[BLOOM_HASH_KEY_LEN];
    uint64_t      ordinal;               /* of a walk's next key, from 0 on */
    uint64_t     *marks;                 /* a bit for each key */

    uint64_t      share;                 /* of this walk */
    uint64_t      shares;
    ngx_bloom_compact_key_t  *table;     /* of this share's keys */
    uint64_t      used;                  /* of its slots */

    uint64_t      distinct;              /* keys in the shares up to this one */
    uint64_t      bytes;                 /* of these, each with its length */
} ngx_bloom_compact_keys_t;


/* Begins the first walk over at most `n` keys; `keys` is zeros before.  Returns
 * NGX_OK, or NGX_ERROR with errno if memory is short. */
ngx_int_t ngx_bloom_compact_keys_begin(ngx_bloom_compact_keys_t *keys,
    uint64_t n);

/*
 * Takes the next record of a walk.  Returns NGX_OK; NGX_AGAIN if marking begins
 * again, with the first record; or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_compact_keys_mark(ngx_bloom_compact_keys_t *keys,
    bloom_record_t *record);

/* Ends a walk.  Returns NGX_AGAIN if another one begins; NGX_OK if all keys
 * have been looked at; or NGX_ERROR with errno. */
ngx_int_t ngx_bloom_compact_keys_next(ngx_bloom_compact_keys_t *keys);

/* Returns whether the next key of a walk behind these stays. */
static ngx_inline ngx_uint_t
ngx_bloom_compact_keys_stays(ngx_bloom_compact_keys_t *keys)
{
    uint64_t  ordinal;

    ordinal = keys->ordinal++;

    return (keys->marks[ordinal / 64] >> ordinal % 64 & 1) == 0;
}

/* Frees the memory, at any time. */
void ngx_bloom_compact_keys_end(ngx_bloom_compact_keys_t *keys);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_COMPACT_KEYS_H_INCLUDED_ */
