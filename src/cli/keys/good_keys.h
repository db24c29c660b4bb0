/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Good keys are the keys of --except, which must not be found in the image that
 * is built.
 *
 * When the filter is finished, each good key is looked up as nginx does it.  An
 * expression that the filter takes for present although no list has it becomes
 * an exception of the image.  An expression that a list has is a conflict,
 * which refuses the image, or becomes an exception with --except-wins.
 *
 *     good keys --> expressions that are    hash not in    exceptions
 *                   present: candidates --> the store? --> of the image
 *                                               | in the store
 *                                               v
 *                                           lists, read again: the key's line,
 *                                           or another key with that hash
 *
 * Equal keys have equal hashes, so a candidate whose hash is not in the
 * keystore is in no list.  MurmurHash3 collides at will, so any other candidate
 * is looked for in the lists themselves.  It is cleared only if all lists are
 * unchanged files, none has it, and one has another key with its hash.
 *
 * The memory that this takes is proportional to the number of candidates: about
 * 400 bytes for each.  The good keys themselves are read in blocks.
 */

#ifndef GOOD_KEYS_H
#define GOOD_KEYS_H

#include "good_search.h"
#include "json.h"
#include "options.h"
#include "output.h"


/* The options for a group whose values are a good_keys_t. */
extern const option_t  good_keys_options[];


/*
 * Checks the options before anything is read, and keeps the state of the lists.
 * Returns CLI_OK; or CLI_ERROR after a message, if a file of good keys cannot
 * be read, or is also the output or the file of --exceptions.
 */
int good_keys_begin(good_keys_t *good, const key_options_t *from,
    const bloom_image_t *image, const output_t *out, char **lists, int n);

/*
 * Looks the good keys up in a finished filter, whose keys are in from->to.store
 * and come from the n lists, and finds the exceptions.  Returns CLI_OK; or
 * CLI_ERROR after a message, if a good key is invalid or is a conflict, or if
 * there is no room for so many exceptions.
 */
int good_keys_find(good_keys_t *good, const key_options_t *from,
    const bloom_image_t *image, const uint64_t *words, const char *output,
    char **lists, int n);

void good_keys_free(good_keys_t *good);

/* The members that good_keys_json() prints, for cmd_build.c. */
#define GOOD_KEYS_MEMBERS                                                    \
    { "good_keys", "the number of keys in the files of --except" },          \
    { "good_keys_matched", "the number of these keys that would be found "   \
      "without --except" },                                                  \
    { "exceptions_bytes", "the bytes that the exceptions take in the image; "\
      "\"excepted\" is their number" },                                      \
    { "conflicts", "with --except-wins: the number of expressions of good "  \
      "keys that a list has; they are exceptions, too" },                    \
    { "conflict_examples", "the first " GOOD_KEYS_EXAMPLES_TEXT " conflicts: "\
      "objects with \"file\" and \"line\", where the good key is, \"key\", " \
      "\"expression\", and \"list\" and \"list_line\", where the expression "\
      "is; these are null if the lists cannot be read again" }

#define GOOD_KEYS_EXAMPLES_TEXT  "20"

/* Prints how many good keys there were, how many of them matched, the
 * exceptions, and the conflicts.  good_keys_report() prints nothing without
 * --except. */
void good_keys_json(bloom_json_writer_t *json, const good_keys_t *good,
    const bloom_image_t *image);
void good_keys_report(const good_keys_t *good, const key_options_t *from,
    const bloom_image_t *image, const char *file);


#endif /* GOOD_KEYS_H */
