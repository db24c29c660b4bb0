
/*
 * What commands that take many keys have in common: options, and what is said
 * of lines that were left out.
 */

#ifndef KEY_OPTIONS_H
#define KEY_OPTIONS_H

#include <stddef.h>

#include "collect.h"
#include "output.h"


/* In their order, for the help. */
#define INTAKE_USAGE                                                         \
"      --from LIST     lines: keys with comments; hosts: a hosts file;\n"    \
"                      adblock-domains: ||domain^ lines; csv:COLUMN: a column,\n" \
"                      by name or number (every line is a key)\n"            \
"      --max-errors N  leave out up to N lines that cannot be read (0)\n"    \
"  -0, --null          keys end with a zero byte instead of a line's end\n"  \
"  -j, --threads N     threads (one a processor)\n"                          \
"      --memory SIZE   memory for keys beside the filter's own, from 16m on\n" \
"                      (1g)\n"                                               \
"      --temp DIR      where the temporary file is if there are more: 16 bytes\n" \
"                      a key, without a name (where the image goes)\n"

#define INTAKE_LETTERS  "0j:"

enum { INTAKE_FROM = 512, INTAKE_MAX_ERRORS, INTAKE_MEMORY, INTAKE_TEMP };

/* Members of an array of struct option. */
#define INTAKE_NAMES                                                         \
    { "from",        required_argument, NULL, INTAKE_FROM },                 \
    { "max-errors",  required_argument, NULL, INTAKE_MAX_ERRORS },           \
    { "null",        no_argument,       NULL, '0' },                         \
    { "threads",     required_argument, NULL, 'j' },                         \
    { "memory",      required_argument, NULL, INTAKE_MEMORY },               \
    { "temp",        required_argument, NULL, INTAKE_TEMP }


/* The defaults; all else is zero. */
void intake_begin(collect_options_t *options);

/* Takes the option `c` of those above, with optarg: CLI_OK, or CLI_ERROR having
 * said what is wrong with it; -1 if it is none of them. */
int intake_option(collect_options_t *options, int c);

/* When all are there: whether they go together. */
int intake_check(const collect_options_t *options);

/* CLI_OK, or CLI_ERROR having said that the image would replace what it is made
 * of: "the keys" or the like. */
int intake_spare(const output_t *out, char **names, int n, const char *what);

/* The value of --as-of in *as_of, likewise. */
int intake_as_of(const char *text, uint64_t *as_of);

/* "FILE: 2 comments were skipped" to standard output, if any were. */
void intake_report(const collect_options_t *options,
    const collect_counts_t *counts, const char *file);


#endif /* KEY_OPTIONS_H */
