
/*
 * Asked keys are those that a command is asked about: on its command line, in a
 * file, or from standard input.
 */

#ifndef ASKED_H
#define ASKED_H

#include "bloom_key.h"
#include "options.h"


typedef struct {
    const char     *file;
    bloom_split_e   split;
} asked_t;

/* The options, whose values go to an asked_t. */
extern const option_t  asked_options[];


/* Returns CLI_OK; or CLI_ERROR having said that keys come from two places. */
int asked_check(const asked_t *asked, int n);

/*
 * Calls `answer` for each of the keys, or, if there are none, for each key that
 * is read.  Returns CLI_OK; or CLI_ERROR having said what cannot be read.
 */
int asked_each(const asked_t *asked, char **keys, int n,
    void (*answer)(const bloom_key_t *key, void *data), void *data);


#endif /* ASKED_H */
