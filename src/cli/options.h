
/*
 * Options that several subcommands have, and what may be their values.
 *
 * Each reads `text`, the option's value: CLI_OK, or CLI_ERROR having said what
 * is wrong with it.
 */

#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdint.h>

#include "bloom_hasher.h"


#define OPTION_THREADS_MAX  256


/* -n: a number of keys, 1 to BLOOM_CAPACITY_MAX */
int option_capacity(const char *text, uint64_t *capacity);

/* -p: BLOOM_FPR_MIN to BLOOM_FPR_MAX */
int option_fpr(const char *text, double *fpr);

/* --layout: one that filters can be made with */
int option_layout(const char *text, uint32_t *layout);

/* --hash: likewise; the hasher gets its kind */
int option_hash(const char *text, bloom_hasher_t *hasher);

/* --seed: of a hasher that has its kind */
int option_seed(const char *text, bloom_hasher_t *hasher);

/* -j: 1 to OPTION_THREADS_MAX; and if it is not given, one a processor */
int option_threads(const char *text, unsigned *threads);
unsigned option_default_threads(void);


#endif /* OPTIONS_H */
