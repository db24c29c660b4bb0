
/*
 * The table is open addressing with linear steps, over hashes with the run's
 * secret, so that nobody can choose keys that collide.
 */

#include "ngx_bloom_compact_keys.h"

#include "bloom_siphash.h"


/* Distinct keys that are told apart in one pass. */
#define NGX_BLOOM_COMPACT_KEYS_MAX     1000000

/* Distinct keys of the sample: an estimate of it is some 2 percent off. */
#define NGX_BLOOM_COMPACT_KEYS_SAMPLE  8192


static ngx_int_t ngx_bloom_compact_keys_thin(ngx_bloom_compact_keys_t *keys);
static ngx_int_t ngx_bloom_compact_keys_pass(ngx_bloom_compact_keys_t *keys);
static ngx_int_t ngx_bloom_compact_keys_table(ngx_bloom_compact_keys_t *keys,
    uint64_t slots);
static ngx_bloom_compact_keys_slot_t *ngx_bloom_compact_keys_slot(
    ngx_bloom_compact_keys_t *keys, bloom_hash_t hash);


static ngx_inline bloom_hash_t
ngx_bloom_compact_keys_hash(ngx_bloom_compact_keys_t *keys, bloom_key_t *key)
{
    return bloom_siphash_128(key->data, key->len, keys->secret, 1, 3);
}


/* Returns a number below n, evenly, of a hash. */
static ngx_inline uint64_t
ngx_bloom_compact_keys_reduce(uint64_t hash, uint64_t n)
{
    return (uint64_t) (((unsigned __int128) hash * n) >> 64);
}


/* Turns the bit of a key. */
static ngx_inline void
ngx_bloom_compact_keys_turn(ngx_bloom_compact_keys_t *keys, uint64_t ordinal)
{
    keys->stays[ordinal / 64] ^= (uint64_t) 1 << ordinal % 64;
}


ngx_int_t
ngx_bloom_compact_keys_begin(ngx_bloom_compact_keys_t *keys)
{
    return ngx_bloom_compact_keys_table(keys,
                                        2 * NGX_BLOOM_COMPACT_KEYS_SAMPLE);
}


void
ngx_bloom_compact_keys_end(ngx_bloom_compact_keys_t *keys)
{
    free(keys->table);
    free(keys->stays);
}


/*
 * The sample has each key whose hash ends with so many zeros, once.  When it
 * has too many, it is one more zero.  So it is all keys, if there are few, and
 * of many it has the lengths in their true proportions.  (Adaptive sampling, by
 * Wegman; its analysis is Flajolet's, 1990.)
 */
ngx_int_t
ngx_bloom_compact_keys_count(ngx_bloom_compact_keys_t *keys,
    bloom_record_t *record)
{
    bloom_key_t                     key;
    bloom_hash_t                    hash;
    const uint8_t                  *p;
    ngx_bloom_compact_keys_slot_t  *slot;

    keys->keys += record->count;

    for (p = record->keys; bloom_record_key(record, &key) == 1;
         p = record->keys)
    {
        hash = ngx_bloom_compact_keys_hash(keys, &key);

        if (hash.h1 & (((uint64_t) 1 << keys->level) - 1)) {
            continue;
        }

        slot = ngx_bloom_compact_keys_slot(keys, hash);

        if (slot->value != 0) {
            continue;
        }

        slot->hash = hash;
        slot->value = record->keys - p;

        keys->bytes += slot->value;
        keys->used++;

        while (keys->used > NGX_BLOOM_COMPACT_KEYS_SAMPLE) {
            if (ngx_bloom_compact_keys_thin(keys) != NGX_OK) {
                return NGX_ERROR;
            }
        }
    }

    return NGX_OK;
}


/* Halves the sample. */
static ngx_int_t
ngx_bloom_compact_keys_thin(ngx_bloom_compact_keys_t *keys)
{
    uint64_t                        i;
    ngx_bloom_compact_keys_slot_t  *old;

    old = keys->table;
    keys->table = NULL;

    if (ngx_bloom_compact_keys_table(keys, keys->slots) != NGX_OK) {
        free(old);
        return NGX_ERROR;
    }

    keys->bytes = 0;
    keys->level++;

    for (i = 0; i < keys->slots; i++) {

        if (old[i].value == 0
            || old[i].hash.h1 & (((uint64_t) 1 << keys->level) - 1))
        {
            continue;
        }

        *ngx_bloom_compact_keys_slot(keys, old[i].hash) = old[i];

        keys->bytes += old[i].value;
        keys->used++;
    }

    free(old);

    return NGX_OK;
}


uint64_t
ngx_bloom_compact_keys_estimate(ngx_bloom_compact_keys_t *keys)
{
    keys->distinct = keys->used << keys->level;

    return keys->bytes << keys->level;
}


ngx_int_t
ngx_bloom_compact_keys_mark_begin(ngx_bloom_compact_keys_t *keys)
{
    keys->stays = calloc(keys->keys / 64 + 1, sizeof(uint64_t));

    if (keys->stays == NULL) {
        return NGX_ERROR;
    }

    keys->passes = keys->distinct / NGX_BLOOM_COMPACT_KEYS_MAX + 1;
    keys->pass = 0;

    return ngx_bloom_compact_keys_pass(keys);
}


/* Begins a pass, with some room to spare in its table. */
static ngx_int_t
ngx_bloom_compact_keys_pass(ngx_bloom_compact_keys_t *keys)
{
    uint64_t  share;

    share = keys->distinct / keys->passes;

    return ngx_bloom_compact_keys_table(keys, share + share / 2 + 1024);
}


/* Each key of this pass stays until it comes again. */
ngx_int_t
ngx_bloom_compact_keys_mark(ngx_bloom_compact_keys_t *keys,
    bloom_record_t *record)
{
    bloom_key_t                     key;
    bloom_hash_t                    hash;
    ngx_bloom_compact_keys_slot_t  *slot;

    for ( /* void */ ; bloom_record_key(record, &key) == 1; keys->ordinal++) {

        hash = ngx_bloom_compact_keys_hash(keys, &key);

        if (ngx_bloom_compact_keys_reduce(hash.h1, keys->passes)
            != keys->pass)
        {
            continue;
        }

        slot = ngx_bloom_compact_keys_slot(keys, hash);

        if (slot->value != 0) {
            ngx_bloom_compact_keys_turn(keys, slot->value - 1);

        } else {
            if (++keys->used > keys->slots / 8 * 7) {

                ngx_memzero(keys->stays,
                            (keys->keys / 64 + 1) * sizeof(uint64_t));

                keys->distinct *= 2;
                keys->passes *= 2;
                keys->pass = 0;

                return ngx_bloom_compact_keys_pass(keys) == NGX_OK
                       ? NGX_AGAIN : NGX_ERROR;
            }

            slot->hash = hash;
        }

        slot->value = keys->ordinal + 1;
        ngx_bloom_compact_keys_turn(keys, keys->ordinal);
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_compact_keys_marked(ngx_bloom_compact_keys_t *keys)
{
    uint64_t  i;

    if (++keys->pass < keys->passes) {
        return ngx_bloom_compact_keys_pass(keys) == NGX_OK ? NGX_AGAIN
                                                           : NGX_ERROR;
    }

    free(keys->table);
    keys->table = NULL;

    keys->distinct = 0;

    for (i = 0; i <= keys->keys / 64; i++) {
        keys->distinct += __builtin_popcountll(keys->stays[i]);
    }

    return NGX_OK;
}


/* Makes the table an empty one. */
static ngx_int_t
ngx_bloom_compact_keys_table(ngx_bloom_compact_keys_t *keys, uint64_t slots)
{
    free(keys->table);

    keys->table = calloc(slots, sizeof(ngx_bloom_compact_keys_slot_t));
    keys->slots = slots;
    keys->used = 0;

    return keys->table != NULL ? NGX_OK : NGX_ERROR;
}


/* Returns where the key is, or would be: then its value is 0. */
static ngx_bloom_compact_keys_slot_t *
ngx_bloom_compact_keys_slot(ngx_bloom_compact_keys_t *keys, bloom_hash_t hash)
{
    uint64_t                        i;
    ngx_bloom_compact_keys_slot_t  *slot;

    i = ngx_bloom_compact_keys_reduce(hash.h2, keys->slots);
    slot = &keys->table[i];

    while (slot->value != 0
           && (slot->hash.h1 != hash.h1 || slot->hash.h2 != hash.h2))
    {
        if (++i == keys->slots) {
            i = 0;
        }

        slot = &keys->table[i];
    }

    return slot;
}
