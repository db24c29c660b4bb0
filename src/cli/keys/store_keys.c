/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file hashes the keys of files in several threads, and puts the hashes
 * into a keystore or a filter.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "store_keys.h"


/* What all threads share. */
typedef struct {
    const store_keys_t  *to;
    uint32_t             key_form;
    pthread_mutex_t      lock;           /* protects the counts */
    store_counts_t      *counts;
} work_t;

/* The data of one thread. */
typedef struct {
    work_t             *work;
    keystore_writer_t  *writer;
    store_counts_t      counts;
    size_t              n;
    bloom_hash_t        hash[INTAKE_BATCH];   /* not yet in the store */
} hasher_t;


static void *
begin(void *data)
{
    hasher_t  *hasher;

    hasher = cli_alloc(sizeof(*hasher));
    memset(hasher, 0, offsetof(hasher_t, hash));
    hasher->work = data;
    hasher->writer = keystore_writer(hasher->work->to->store);

    return hasher;
}


/* Passes the hashes to the store, or adds them to the words. */
static void
flush(hasher_t *hasher)
{
    size_t               i;
    uint64_t             changed;
    const store_keys_t  *to;

    to = hasher->work->to;

    if (to->words == NULL) {
        keystore_add(hasher->writer, hasher->hash, hasher->n);
        hasher->n = 0;
        return;
    }

    for (i = 0, changed = 0; i < hasher->n; i++) {
        changed += bloom_layout_add_atomic(to->geometry, to->words,
                                           hasher->hash[i])
                   != 0;
    }

    hasher->counts.changed += changed;
    hasher->n = 0;
}


/* Takes a key from the removed ones. */
static void
lift_key(hasher_t *hasher, const bloom_key_t *key)
{
    const store_keys_t  *to = hasher->work->to;

    if (bloom_exceptions_drop(to->removed, key->data, key->len,
                              BLOOM_EXCEPTION_KINDS, UINT64_MAX)
        && bloom_layout_test(to->geometry, to->present,
                             bloom_hash(to->hasher, key->data, key->len)))
    {
        hasher->counts.lifted++;
    }
}


/* Hashes keys. */
static inline void
hash_keys(hasher_t *hasher, const bloom_key_t *key, size_t n)
{
    size_t                 i;
    bloom_hash_t          *hash;
    const bloom_hasher_t  *with = hasher->work->to->hasher;

    if (hasher->n + n > INTAKE_BATCH) {
        flush(hasher);
    }

    hash = hasher->hash + hasher->n;

    for (i = 0; i < n; i++) {
        hash[i] = bloom_hash(with, key[i].data, key[i].len);
    }

    hasher->n += n;
    hasher->counts.received += n;

    /* with words, a hash may refer to its key, which is valid only now */

    if (hasher->work->to->words != NULL) {
        flush(hasher);
    }
}


/* Takes a key, unless --without leaves it out. */
static void
take_key(hasher_t *hasher, const bloom_key_t *key)
{
    const store_keys_t  *to = hasher->work->to;

    if (to->left_out != NULL && left_out_has(to->left_out, key)) {
        hasher->counts.left_out++;
        return;
    }

    if (to->removed != NULL) {
        lift_key(hasher, key);
    }

    if (hasher->work->key_form == BLOOM_FORM_URL) {
        letter_case_see(&hasher->counts.letters, key);
    }

    hash_keys(hasher, key, 1);
}


static const char *
take(void *own, const bloom_key_t *key, size_t n, const place_t *place)
{
    size_t               i;
    hasher_t            *hasher = own;
    const store_keys_t  *to = hasher->work->to;

    (void) place;

    if (n != 1 && to->left_out == NULL && to->removed == NULL) {
        hash_keys(hasher, key, n);
        return NULL;
    }

    for (i = 0; i < n; i++) {
        take_key(hasher, &key[i]);
    }

    return NULL;
}


static void
except(void *own, const bloom_key_t *key, const place_t *place)
{
    hasher_t  *hasher = own;

    exceptions_add(&hasher->counts.exceptions, place, key);
}


/* Adds the counts of a thread. */
static void
end(void *own)
{
    hasher_t        *hasher = own;
    work_t          *work = hasher->work;
    store_counts_t  *sum, *counts;

    flush(hasher);
    keystore_writer_close(hasher->writer);

    sum = work->counts;
    counts = &hasher->counts;

    pthread_mutex_lock(&work->lock);

    sum->received += counts->received;
    sum->left_out += counts->left_out;
    sum->changed += counts->changed;
    sum->lifted += counts->lifted;
    letter_case_add(&sum->letters, &counts->letters);
    exceptions_move(&sum->exceptions, &counts->exceptions);

    pthread_mutex_unlock(&work->lock);

    free(hasher);
}


int
store_keys(const store_keys_t *to, const intake_t *intake, char **names, int n,
    store_counts_t *counts)
{
    int            rc;
    work_t         work;
    intake_sink_t  sink;

    work.to = to;
    work.key_form = intake->key_form;
    work.counts = counts;
    pthread_mutex_init(&work.lock, NULL);

    memset(&sink, 0, sizeof(sink));
    sink.begin = begin;
    sink.end = end;
    sink.take = take;
    sink.except = to->except ? except : NULL;
    sink.data = &work;
    sink.many = 1;

    rc = intake_read(intake, &sink, names, n, &counts->read);

    pthread_mutex_destroy(&work.lock);

    return rc;
}


void
store_counts_free(store_counts_t *counts)
{
    intake_free(&counts->read);
    exceptions_free(&counts->exceptions);
    memset(counts, 0, sizeof(*counts));
}
