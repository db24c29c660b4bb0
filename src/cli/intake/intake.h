/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The intake reads the keys in files, and passes them to a sink.
 *
 *     file --> bytes --> blocks of --> records --> entries --> keys --> sink
 *              (keystream.h)           (list_reader.h)   (keyform.h)
 *
 * Several threads take turns reading blocks.  Each finds the entries in the
 * records of its block, converts them to the key form, and passes the keys on.
 * If the records of a format depend on those before them, a thread does all
 * that before the next block is read.  If a record may cancel entries of
 * others, the blocks wait until all files have been read.
 *
 * What is done with the keys is the sink's alone: into a store, into a set, or
 * looked up.
 */

#ifndef INTAKE_H
#define INTAKE_H

#include "intake_file.h"
#include "keyform.h"
#include "place.h"
#include "reasons.h"


/* Keys that are passed to a sink at once. */
#define INTAKE_BATCH  256


/* What is done with the keys. */
typedef struct {
    /* If not NULL, returns the data of a thread, which end() frees.  Otherwise,
     * all threads share sink->data. */
    void        *(*begin)(void *data);
    void         (*end)(void *own);

    /* Takes n keys, from 1 to INTAKE_BATCH, that are valid until it returns.
     * Returns NULL; or why the only key is invalid, a constant phrase. */
    const char  *(*take)(void *own, const bloom_key_t *key, size_t n,
                         const place_t *place);

    /* If not NULL, takes a key that a list exempts.  If NULL, these entries are
     * skipped. */
    void         (*except)(void *own, const bloom_key_t *key,
                           const place_t *place);

    /* If not NULL, is called after each block.  Returns 1; or 0 to end the
     * reading. */
    int          (*pause)(void *own);

    void          *data;
    int            as_given;             /* takes keys as they are in the files,
                                            not in the key form */
    int            many;                 /* takes many keys at once, without
                                            their places */
} intake_sink_t;

/* The result.  All members are 0 at first. */
typedef struct {
    uint64_t        keys;                /* that the sink took */
    uint64_t        lines;               /* that are not empty or comments */
    uint64_t        empty;               /* empty lines, or csv fields */
    uint64_t        comments;            /* lines */
    uint64_t        skipped;             /* entries that cannot be a key, such
                                            as some Adblock rules */
    uint64_t        errors;              /* invalid lines */
    reasons_t       reasons;             /* of skipped and invalid lines */
    intake_file_t  *file;
    unsigned        files;
} intake_counts_t;


/* Reads `n` files; "-" is standard input.  Returns CLI_OK; or CLI_ERROR after a
 * message, if a file cannot be read or is no list of keys. */
int intake_read(const intake_t *intake, const intake_sink_t *sink, char **names,
    int n, intake_counts_t *counts);

void intake_free(intake_counts_t *counts);

/* Prints why the first line that is invalid or skipped is that, and what to
 * do: "; correct the file of --except".  Returns CLI_ERROR; or CLI_OK if all
 * lines are keys. */
int intake_refuse(const intake_counts_t *counts, const char *advice);

/* Prints the first invalid lines (`bad`) or skipped ones of each reason, as
 * errors. */
void intake_complain(const intake_counts_t *counts, bloom_split_e split,
    int bad);


#endif /* INTAKE_H */
