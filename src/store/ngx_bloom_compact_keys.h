/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Marking finds the keys that compaction drops.  Of each key, its last addition
 * stays; and if the last record that has the key is of another type, that
 * occurrence stays, too.  The addition is needed although the key was removed
 * later: if a restoration follows, the filter alone decides about the key.
 *
 * A walk reads the keys in order.  A table holds, for each distinct key, a
 * 128-bit hash and which occurrences stay.  If the table has no
 * room for all keys, they are divided by their hash into shares, and there is
 * one walk for each share.  When the table is full, the number of shares is
 * doubled and marking begins again with the first share.  Marks are kept then,
 * because a mark is true whatever the shares are.
 *
 * So memory is bounded: 36 MB for the table, and one bit for each key.
 */

#ifndef _NGX_BLOOM_COMPACT_KEYS_H_INCLUDED_
#define _NGX_BLOOM_COMPACT_KEYS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_hasher.h"
#include "bloom_record.h"

#pragma GCC visibility push(hidden)


/* A slot of the table: a distinct key, by its 128-bit hash. */
typedef struct {
    bloom_hash_t  hash;
    uint32_t      last;                  /* ordinal of its last occurrence plus
                                            1; 0: the slot is free */
    uint32_t      added;                 /* that of its last addition; 0: it has
                                            none */
} ngx_bloom_compact_key_t;


/* The state of a run that marks keys. */
typedef struct {
    u_char        secret[BLOOM_HASH_KEY_LEN];
    uint64_t      ordinal;               /* of the walk's next key, from 0 */
    uint64_t     *marks;                 /* one bit for each key */

    uint64_t      share;                 /* number of this walk's share */
    uint64_t      shares;
    ngx_bloom_compact_key_t  *table;     /* the keys of this share */
    uint64_t      used;                  /* slots used */

    uint64_t      distinct;              /* distinct keys in the shares up to
                                            this one */
    uint64_t      bytes;                 /* size of these keys, with their
                                            lengths */
} ngx_bloom_compact_keys_t;


/* Begins the first walk over at most `n` keys, n < 2^32.  The caller has set
 * `keys` to zeros.  Returns NGX_OK, or NGX_ERROR with errno. */
ngx_int_t ngx_bloom_compact_keys_begin(ngx_bloom_compact_keys_t *keys,
    uint64_t n);

/*
 * Processes the next record of a walk.  Returns NGX_OK; NGX_AGAIN if the caller
 * must begin again with the first record; or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_compact_keys_mark(ngx_bloom_compact_keys_t *keys,
    bloom_record_t *record);

/* Ends a walk.  Returns NGX_AGAIN if another walk begins; NGX_OK if the keys of
 * all shares have been marked; or NGX_ERROR with errno. */
ngx_int_t ngx_bloom_compact_keys_next(ngx_bloom_compact_keys_t *keys);

/* Returns 1 if the next key stays, in a walk after marking is complete; the
 * caller sets `ordinal` to 0 before that walk. */
static ngx_inline ngx_uint_t
ngx_bloom_compact_keys_stays(ngx_bloom_compact_keys_t *keys)
{
    uint64_t  ordinal;

    ordinal = keys->ordinal++;

    return (keys->marks[ordinal / 64] >> ordinal % 64 & 1) == 0;
}

/* Frees the memory; may be called at any time. */
void ngx_bloom_compact_keys_end(ngx_bloom_compact_keys_t *keys);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_COMPACT_KEYS_H_INCLUDED_ */
