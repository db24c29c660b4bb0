/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Key options are the options that commands with files of keys share: how keys
 * are read, how much memory they take, and how many lines may be left out.
 */

#ifndef KEY_OPTIONS_H
#define KEY_OPTIONS_H

#include "bloom_image.h"
#include "collect.h"
#include "json.h"
#include "options.h"
#include "output.h"


/* The options, whose values go to a collect_options_t with these defaults. */
extern const option_t  key_options[];

#define KEY_OPTIONS_DEFAULTS  { .memory = (uint64_t) 1 << 30 }


/*
 * Checks that the options go together, and creates the keystore for an image
 * that is written to `out`.  Without the name of a file, keys are read from
 * standard input.  Returns CLI_OK; or CLI_ERROR after a message.
 */
int key_options_check(collect_options_t *options);
int key_options_begin(collect_options_t *options, const bloom_image_t *image,
    const output_t *out, char ***names, int *n);
void key_options_end(collect_options_t *options);

/* Returns CLI_OK; or CLI_ERROR having said that the image would replace what it
 * is made of: "the keys" or the like. */
int key_options_spare(const output_t *out, char **names, int n,
    const char *what);

/* Prints how many lines were read and left out, and how long that took. */
void key_options_json(json_t *json, const collect_options_t *options,
    const collect_counts_t *counts, double seconds);

/* Prints "FILE: 2 comments were skipped", if any were. */
void key_options_report(const collect_options_t *options,
    const collect_counts_t *counts, const char *file);


#endif /* KEY_OPTIONS_H */
