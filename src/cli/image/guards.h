/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Guards check a new image before it replaces another.  If a query ended
 * halfway, the image is whole and lacks most keys: its number of keys shows
 * that.  If a list was taken for another, single keys show it: those that the
 * right list always has, or never has.  nginx has the same guards:
 * src/core/bloom_guard.h.  If somebody sends an image that was good once, its
 * age shows that; this guard is of the tool alone.
 */

#ifndef GUARDS_H
#define GUARDS_H

#include "bloom_census.h"
#include "bloom_exceptions.h"
#include "bloom_guard.h"
#include "bloom_image.h"
#include "options.h"


/* The options; a member that is 0 or NULL was not given. */
typedef struct {
    uint64_t              min_keys;
    bloom_guard_limits_t  max;           /* if any is set, the key form may not
                                            change either */
    const char           *replaces;      /* NULL: the file of -o */
    const char           *must_have;     /* files of keys */
    const char           *must_not_have;
    const char           *not_older;     /* an image */

    int                   written;       /* 1: the image is not to be written;
                                            it is there already */
    char                  error[1024];   /* why an image was refused: a phrase
                                            that follows its name */
} guards_t;


/* The options for groups whose values are a guards_t: for the number of keys,
 * for single keys, and for the age. */
extern const option_t  guards_options[];
extern const option_t  guards_key_options[];
extern const option_t  guards_age_options[];


/*
 * Each function checks the image `name`: the first its number of items and its
 * key form, the second whether its bits contradict that number, the third its
 * keys, the fourth its age.  Returns CLI_OK; CLI_NO
 * after a message, if a guard refuses the image; or CLI_ERROR after a message,
 * if a guard cannot be checked.
 */
int guards_check(guards_t *guards, const char *name,
    const bloom_image_t *image, int quiet);
int guards_check_bits(guards_t *guards, const char *name,
    const bloom_image_t *image, const bloom_census_t *census);
int guards_check_keys(guards_t *guards, const char *name,
    const bloom_image_t *image, const uint64_t *words,
    const bloom_exceptions_t *removed);
int guards_check_age(guards_t *guards, const char *name,
    const bloom_image_t *image);

/* The exit statuses of a command that has guards, for command_t. */
#define GUARDS_STATUS                                                        \
    "0 success, 1 --min-keys, --max-loss or --max-growth refused the "       \
    "image, 2 an error"
#define GUARDS_KEY_STATUS                                                    \
    "0 success, 1 --min-keys, --max-loss, --max-growth, --must-have or "     \
    "--must-not-have refused the image, 2 an error"


#endif /* GUARDS_H */
