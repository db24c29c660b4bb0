/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Guards hold a new image against limits and against the image that it
 * replaces, before it is written.  A query that ends halfway makes an image
 * that is whole and lacks most keys; only its number of keys shows that.
 */

#ifndef GUARDS_H
#define GUARDS_H

#include "bloom_image.h"
#include "options.h"
#include "output.h"


/* The options; a member that is 0 or NULL was not given. */
typedef struct {
    uint64_t     min_keys;
    double       max_change;             /* a part of the old number of keys */
    const char  *replaces;               /* NULL: the file of -o */
} guards_t;


/* The options for a group whose values are a guards_t. */
extern const option_t guards_options[];


/*
 * Checks an image whose number of items and key form are known.  Returns
 * CLI_OK; CLI_NO after a message, if a guard refuses the image; or CLI_ERROR
 * after a message, if the old image cannot be read.
 */
int guards_check(const guards_t *guards, const output_t *out,
    const bloom_image_t *image, int quiet);

/* The exit statuses of a command that has guards, for command_t. */
#define GUARDS_STATUS                                                        \
    "0 success, 1 --min-keys or --max-change refused the image, 2 an error"


#endif /* GUARDS_H */
