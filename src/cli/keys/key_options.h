/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Key options are the options that all commands with files of keys have: how
 * keys are read, how much memory they take, and how many invalid lines are
 * allowed.
 */

#ifndef KEY_OPTIONS_H
#define KEY_OPTIONS_H

#include "bloom_image.h"
#include "intake.h"
#include "line_limit.h"
#include "list_text.h"
#include "options.h"
#include "output.h"
#include "store_keys.h"


typedef struct {
    intake_t          intake;            /* its memory is the keystore's, too */
    store_keys_t      to;
    line_limit_t      max_errors;        /* invalid lines that are allowed */
    line_limit_t      max_skipped;       /* lines without a key */
    const char       *exceptions;        /* file for exceptions of lists; NULL:
                                            these are skipped */
    const char       *without;           /* file of keys to leave out, or
                                            NULL */
    int               any_form;          /* the command has --form */
    keystore_keep_e   keep;              /* in the keystore */
    const char       *temporary;         /* directory of the spill file; NULL:
                                            the image's directory */
    char             *directory;         /* the image's directory */
} key_options_t;

/* The options for a group whose values are a key_options_t, and their
 * defaults. */
extern const option_t  key_options[];

#define KEY_OPTIONS_DEFAULTS(form)                                           \
    { .intake = { .format = { .reader = &list_keys },                        \
                  .memory = (uint64_t) 1 << 30 },                            \
      .any_form = form,                                                      \
      .keep = KEYSTORE_HASHES,                                               \
      .max_skipped = { .relative = 1, .share = 1 } }


/*
 * key_options_check() checks that the options go together.
 * key_options_begin() creates the keystore for an image that is written to
 * `out`; if there are no names of files, it names standard input.
 * Each returns CLI_OK; or CLI_ERROR after a message.
 */
int key_options_check(key_options_t *options);
int key_options_begin(key_options_t *options, const bloom_image_t *image,
    const output_t *out, char ***names, int *n);

/* Reads the files, and prints why lines are invalid.  Returns CLI_OK; or
 * CLI_ERROR after a message, if a file cannot be read, or more lines are
 * invalid or skipped than the limits allow. */
int key_options_read(const key_options_t *options, char **names, int n,
    store_counts_t *counts);
void key_options_end(key_options_t *options, store_counts_t *counts);

/*
 * The file of --exceptions, if that was given, is replaced after the image, but
 * written before it: then a full disk leaves both as they were.  The second
 * function takes the image's name.  Each returns CLI_OK; or CLI_ERROR after a
 * message.
 */
int key_options_write_exceptions(const key_options_t *options,
    store_counts_t *counts);
int key_options_commit_exceptions(store_counts_t *counts, const char *image);

/* Checks that the output does not replace one of the files that it is made
 * from.  `what` is a name for them in messages, such as "the keys".  Returns
 * CLI_OK; or CLI_ERROR after a message. */
int key_options_spare(const output_t *out, char **names, int n,
    const char *what);

#endif /* KEY_OPTIONS_H */
