/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A key report says how many keys and other lines files had, and why lines were
 * left out.
 */

#ifndef KEY_REPORT_H
#define KEY_REPORT_H

#include "json.h"
#include "key_options.h"


/* The members that key_report_json() prints, for cmd_*.c (command.h). */
#define KEY_REPORT_MEMBERS                                                   \
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
void key_report_json(bloom_json_writer_t *json,
    const key_options_t *options, const store_counts_t *counts,
    double seconds);

/* Prints "FILE: 2 comments were skipped", if any lines were, and a table of
 * the reasons.
 * `duplicates` is 0 if it is unknown. */
void key_report(const key_options_t *options,
    const store_counts_t *counts, uint64_t duplicates, const char *file);


#endif /* KEY_REPORT_H */
