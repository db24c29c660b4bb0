/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions put the keys of files into a keystore, or into a filter at
 * once.
 */

#ifndef STORE_KEYS_H
#define STORE_KEYS_H

#include "bloom_exceptions.h"
#include "bloom_layout.h"
#include "exceptions.h"
#include "intake.h"
#include "keystore.h"
#include "left_out.h"
#include "letter_case.h"


/* Where keys are put. */
typedef struct {
    const bloom_hasher_t    *hasher;
    keystore_t              *store;      /* gets the hashes if words is NULL */
    uint64_t                *words;      /* NULL, or a filter that gets the keys
                                            at once */
    const bloom_geometry_t  *geometry;   /* of the words */
    left_out_t              *left_out;   /* keys to leave out, or NULL */
    bloom_exceptions_t      *removed;    /* NULL, or removed keys of an image:
                                            the keys are taken from them */
    const uint64_t          *present;    /* with `removed`: the bits of that
                                            image */
    int                      except;     /* keep the exceptions of lists, which
                                            are skipped otherwise */
} store_keys_t;

/* The result.  All members are 0 at first. */
typedef struct {
    intake_counts_t   read;
    uint64_t          received;          /* keys, without those left out */
    uint64_t          left_out;          /* keys that --without leaves out */
    uint64_t          changed;           /* keys that changed the words */
    uint64_t          lifted;            /* removed keys of which `present` has
                                            the bits */
    letter_case_t     letters;           /* of URLs */
    exceptions_t      exceptions;        /* of lists */
} store_counts_t;


/* Reads `n` files, and puts their keys where `to` says.  Returns CLI_OK; or
 * CLI_ERROR after a message, if a file cannot be read. */
int store_keys(const store_keys_t *to, const intake_t *intake, char **names,
    int n, store_counts_t *counts);

void store_counts_free(store_counts_t *counts);


#endif /* STORE_KEYS_H */
