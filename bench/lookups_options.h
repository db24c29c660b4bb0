/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The command line of lookups, and what it chooses.
 */

#ifndef LOOKUPS_OPTIONS_H
#define LOOKUPS_OPTIONS_H

#include "bloom_layout.h"


#define KEY_MAX      4096
#define ROUNDS_MAX   1000
#define WORK_MAX     100000              /* ns */


typedef enum { ALONE, LOOP, BATCH } way_t;

typedef enum { BASE, LIMIT, LOOKUP, KINDS } kind_t;

typedef struct {
    uint64_t          memory;
    double            fpr;
    uint32_t          layout;
    double            hits;              /* share of keys to be found */
    way_t             way;
    uint64_t          batch;             /* keys at a time */
    int               huge;
    uint64_t          key_len;           /* 0: the hash is at hand */
    uint64_t          work;              /* other work per key, ns */
    double            steps;             /* of work_on() per key */
    uint64_t          lookups;           /* in a turn */
    uint64_t          rounds;
    int               json;

    bloom_hasher_t    hasher;
    bloom_geometry_t  geometry;
    uint64_t          capacity;
    uint64_t         *words;
    uint64_t          size;              /* bytes of them */
    uint64_t          added;             /* keys 0 .. added - 1 are set */
} bench_t;


/* The names of the ways. */
extern const char *const  lookups_ways[];

/* Reads the command line into *bench, which has the defaults.  Exits after a
 * message if it is wrong, and after the help if that is asked for. */
void lookups_options(int argc, char **argv, bench_t *bench);

/* Prints what is wrong with the command line, and exits. */
void refuse(const char *what, ...)
    __attribute__((noreturn, format(printf, 1, 2)));


#endif /* LOOKUPS_OPTIONS_H */
