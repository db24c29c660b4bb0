/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The table uses open addressing with linear probing.  Keys are hashed with a
 * secret of the run, so that no client can choose keys that collide.  Parts of
 * the table and of the marks that are not used take no memory: calloc() of this
 * size returns pages that the system allocates when they are touched.
 */

#include "ngx_bloom_compact_keys.h"

#include "bloom_siphash.h"

#include <sys/random.h>


/* The most distinct keys of a share; they fill two thirds of the table. */
#define NGX_BLOOM_COMPACT_KEYS_MAX    1000000
#define NGX_BLOOM_COMPACT_KEYS_SLOTS  1500000


static ngx_int_t ngx_bloom_compact_keys_walk(ngx_bloom_compact_keys_t *keys);
static ngx_bloom_compact_key_t *ngx_bloom_compact_keys_find(
    ngx_bloom_compact_keys_t *keys, bloom_hash_t hash);


/* Maps a hash evenly to a number below n. */
static ngx_inline uint64_t
ngx_bloom_compact_keys_reduce(uint64_t hash, uint64_t n)
{
    return (uint64_t) (((unsigned __int128) hash * n) >> 64);
}


/* Marks an occurrence; `n` is its ordinal plus 1. */
static ngx_inline void
ngx_bloom_compact_keys_drop(ngx_bloom_compact_keys_t *keys, uint32_t n)
{
    n--;
    keys->marks[n / 64] |= (uint64_t) 1 << n % 64;
}


ngx_int_t
ngx_bloom_compact_keys_begin(ngx_bloom_compact_keys_t *keys, uint64_t n)
{
    keys->marks = calloc(n / 64 + 1, sizeof(uint64_t));

    if (keys->marks == NULL
        || getrandom(keys->secret, BLOOM_HASH_KEY_LEN, 0) == -1)
    {
        return NGX_ERROR;
    }

    keys->shares = 1;

    return ngx_bloom_compact_keys_walk(keys);
}


void
ngx_bloom_compact_keys_end(ngx_bloom_compact_keys_t *keys)
{
    free(keys->table);
    free(keys->marks);
}


static ngx_int_t
ngx_bloom_compact_keys_walk(ngx_bloom_compact_keys_t *keys)
{
    free(keys->table);
    keys->table = calloc(NGX_BLOOM_COMPACT_KEYS_SLOTS,
                         sizeof(ngx_bloom_compact_key_t));
    keys->used = 0;

    if (keys->share == 0) {
        keys->distinct = 0;
        keys->bytes = 0;
    }

    return keys->table != NULL ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_bloom_compact_keys_mark(ngx_bloom_compact_keys_t *keys,
    bloom_record_t *record)
{
    bloom_key_t               key;
    bloom_hash_t              hash;
    const uint8_t            *p;
    ngx_bloom_compact_key_t  *found;

    for (p = record->keys; bloom_record_key(record, &key) == 1;
         p = record->keys)
    {
        keys->ordinal++;
        hash = bloom_siphash_128(key.data, key.len, keys->secret, 1, 3);

        if (ngx_bloom_compact_keys_reduce(hash.h1, keys->shares)
            != keys->share)
        {
            continue;
        }

        found = ngx_bloom_compact_keys_find(keys, hash);

        if (found->last != 0) {

            if (found->last != found->added) {
                ngx_bloom_compact_keys_drop(keys, found->last);
            }

            if (record->type == BLOOM_RECORD_ADD && found->added != 0) {
                ngx_bloom_compact_keys_drop(keys, found->added);
            }

        } else {
            if (keys->used == NGX_BLOOM_COMPACT_KEYS_MAX) {
                keys->share = 0;
                keys->shares *= 2;

                return ngx_bloom_compact_keys_walk(keys) == NGX_OK
                       ? NGX_AGAIN : NGX_ERROR;
            }

            found->hash = hash;
            keys->used++;
            keys->distinct++;
            keys->bytes += record->keys - p;
        }

        found->last = keys->ordinal;

        if (record->type == BLOOM_RECORD_ADD) {
            found->added = keys->ordinal;
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_compact_keys_next(ngx_bloom_compact_keys_t *keys)
{
    if (++keys->share < keys->shares) {
        return ngx_bloom_compact_keys_walk(keys) == NGX_OK ? NGX_AGAIN
                                                           : NGX_ERROR;
    }

    free(keys->table);
    keys->table = NULL;

    return NGX_OK;
}


/* Returns the slot of the key, or a free one for it, whose `last` is 0. */
static ngx_bloom_compact_key_t *
ngx_bloom_compact_keys_find(ngx_bloom_compact_keys_t *keys, bloom_hash_t hash)
{
    uint64_t                  i;
    ngx_bloom_compact_key_t  *key;

    i = ngx_bloom_compact_keys_reduce(hash.h2, NGX_BLOOM_COMPACT_KEYS_SLOTS);

    for ( ;; ) {
        key = &keys->table[i];

        if (key->last == 0
            || (key->hash.h1 == hash.h1 && key->hash.h2 == hash.h2))
        {
            return key;
        }

        if (++i == NGX_BLOOM_COMPACT_KEYS_SLOTS) {
            i = 0;
        }
    }
}
