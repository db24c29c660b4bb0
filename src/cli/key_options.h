/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Key options are the options that all commands with files of keys have: how
 * keys are read, how much memory they take, and how many invalid lines are
 * allowed.
 */

#ifndef KEY_OPTIONS_H
#define KEY_OPTIONS_H

#include "bloom_image.h"
#include "collect.h"
#include "json.h"
#include "list_text.h"
#include "options.h"
#include "output.h"


/* The options for a group whose values are a collect_options_t, and their
 * defaults. */
extern const option_t  key_options[];

#define KEY_OPTIONS_DEFAULTS                                                 \
    { .list = { .reader = &list_keys },                                      \
      .memory = (uint64_t) 1 << 30,                                          \
      .keep = KEYSTORE_HASHES,                                               \
      .max_skipped = { .relative = 1, .share = 1 } }


/*
 * key_options_check() checks that the options go together.
 * key_options_begin() creates the keystore for an image that is written to
 * `out`; if there are no names of files, it names standard input.
 * Each returns CLI_OK; or CLI_ERROR after a message.
 */
int key_options_check(collect_options_t *options);
int key_options_begin(collect_options_t *options, const bloom_image_t *image,
    const output_t *out, char ***names, int *n);
void key_options_end(collect_options_t *options, collect_counts_t *counts);

/*
 * The file of --exceptions, if that was given, is replaced after the image, but
 * written before it: then a full disk leaves both as they were.  The second
 * function takes the image's name.  Each returns CLI_OK; or CLI_ERROR after a
 * message.
 */
int key_options_write_exceptions(const collect_options_t *options,
    collect_counts_t *counts);
int key_options_commit_exceptions(collect_counts_t *counts, const char *image);

/* Checks that the output does not replace one of the files that it is made
 * from.  `what` is a name for them in messages, such as "the keys".  Returns
 * CLI_OK; or CLI_ERROR after a message. */
int key_options_spare(const output_t *out, char **names, int n,
    const char *what);

/* The members that key_options_json() prints, for cmd_*.c (command.h). */
#define KEY_OPTIONS_MEMBERS                                                  \
    { "received", "the number of keys that were read and not left out" },    \
    { "lines_read", "the number of lines or keys that are neither empty nor "\
      "comments" },                                                          \
    { "empty", "the number of empty lines or keys, which are skipped" },     \
    { "comments", "the number of lines that are comments" },                 \
    { "skipped", "the number of entries of lists that cannot be keys" },     \
    { "skipped_by_reason", "why entries were skipped: an array, with the most "\
      "frequent reason first, of objects with \"reason\", \"count\" and "    \
      "\"examples\", the first three: objects with \"file\", \"line\" and "  \
      "\"text\", the line" },                                                \
    { "errors", "the number of invalid keys and lines that were left out, "  \
      "with --max-errors" },                                                 \
    { "errors_by_reason", "why keys and lines are invalid, as in "             \
      "\"skipped_by_reason\"" },                                               \
    { "exceptions", "the number of keys in the file of --exceptions" },      \
    { "left_out", "the number of keys that --without left out; a key that "  \
      "came twice counts twice" },                                           \
    { "without_unmatched", "the number of keys in the file of --without that "\
      "no list has" },                                                       \
    { "files", "the files that were read: an array of objects with "         \
      "\"file\" and \"from\", the format; \"keys\" means that every line is "\
      "a key" },                                                             \
    { "temporary_bytes", "the size of the temporary file; 0 if all keys fit "\
      "into --memory" },                                                     \
    { "duration_ms", "the time that the command took, in milliseconds" }

/* Prints how many keys and other lines were read, and how long that took. */
void key_options_json(bloom_json_writer_t *json,
    const collect_options_t *options, const collect_counts_t *counts,
    double seconds);

/* Prints "FILE: 2 comments were skipped", if any lines were, and the reasons.
 * `duplicates` is 0 if it is unknown. */
void key_options_report(const collect_options_t *options,
    const collect_counts_t *counts, uint64_t duplicates, const char *file);


#endif /* KEY_OPTIONS_H */
