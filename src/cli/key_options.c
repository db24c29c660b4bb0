/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file has the table of the options that commands with files of keys
 * share, and reports how many lines were skipped.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "key_options.h"
#include "visible.h"

#define MEMORY_MAX  ((uint64_t) 1 << 40)


static int
take_list(const option_t *option, const char *text, void *to)
{
    return listformat_parse(to, text) == 0
           ? CLI_OK
           : options_wrong(option, text, "must be lines, hosts, "
                           "adblock-domains, json or csv:COLUMN");
}


const option_t  key_options[] = {
    { 0, "from", "LIST", offsetof(collect_options_t, list), take_list,
      "the format of the files (default: every line is a key)\n"
      "lines: keys and comments\n"
      "hosts: a hosts file\n"
      "adblock-domains: ||domain^ lines\n"
      "json: the output of \"ngx-bloom journal --keys --json\"\n"
      "csv:COLUMN: a column, by name or number" },
    { 0, "max-errors", "N", offsetof(collect_options_t, max_errors),
      options_take_count,
      "leave out up to N invalid lines, and print their numbers and the "
      "reasons (default: 0)",
      .is = "a number of lines", 0, BLOOM_CAPACITY_MAX },
    { '0', "null", NULL, offsetof(collect_options_t, split), options_take_flag,
      "keys end with a zero byte instead of a line end, and no byte is removed "
      "from them" },
    OPTIONS_THREADS(collect_options_t,
      "the number of threads; the result does not depend on it (default: one "
      "per processor)"),
    { 0, "memory", "SIZE", offsetof(collect_options_t, memory),
      options_take_bytes,
      "memory for keys, from 16m to 1024g, in addition to the filter and some "
      "MiB for each thread; the result does not depend on it (default: 1g)",
      .is = "a size", KEYSTORE_MEMORY_MIN, MEMORY_MAX },
    { 0, "temp", "DIR", offsetof(collect_options_t, temporary),
      options_take_text,
      "the directory of the temporary file for keys that exceed --memory; the "
      "file takes 16 bytes per key, or more if there are duplicates, and has "
      "no name, so it cannot be left behind (default: the image's directory)" },
    OPTIONS_QUIET(collect_options_t),
    { 0 }
};


int
key_options_check(collect_options_t *options)
{
    if (options->split == BLOOM_SPLIT_NUL
        && options->list.kind != LISTFORMAT_KEYS)
    {
        return cli_misuse("--from and -0 cannot be used together: lists have "
                          "lines, and -0 reads keys that end with a zero byte");
    }

    if (options->threads == 0) {
        options->threads = options_processors();
    }

    return CLI_OK;
}


int
key_options_begin(collect_options_t *options, const bloom_image_t *image,
    const output_t *out, char ***names, int *n)
{
    static char  *standard_input[] = { "-" };

    if (*n == 0) {
        *names = standard_input;
        *n = 1;
    }

    if (key_options_spare(out, *names, *n, "the keys") != CLI_OK) {
        return CLI_ERROR;
    }

    options->key_form = image->key_form;
    options->hasher = &image->hasher;
    options->geometry = &image->geometry;

    options->directory = output_directory(out);
    options->store = keystore_create(options->memory,
                                     options->temporary ? options->temporary
                                                        : options->directory);

    return CLI_OK;
}


void
key_options_end(collect_options_t *options)
{
    if (options->store != NULL) {
        keystore_free(options->store);
    }

    free(options->directory);
}


int
key_options_spare(const output_t *out, char **names, int n, const char *what)
{
    const char  *name;

    name = output_among(out, names, n);

    if (name != NULL) {
        cli_error("%s: is also the output, and the image would replace %s; "
                  "write to another file", name, what);
        return CLI_ERROR;
    }

    return CLI_OK;
}


void
key_options_json(json_t *json, const collect_options_t *options,
    const collect_counts_t *counts, double seconds)
{
    json_count(json, "received", counts->received);
    json_count(json, "empty", counts->empty);
    json_count(json, "comments", counts->comments);
    json_count(json, "skipped", counts->skipped);
    json_count(json, "errors", counts->errors);
    json_count(json, "temporary_bytes", keystore_spilled(options->store));
    json_count(json, "duration_ms", (uint64_t) (seconds * 1000 + 0.5));
}


/* Prints a count such as "3 comments" after `before`, unless it is 0.  Returns
 * the text to print before the next count. */
static const char *
print_count(const char *before, uint64_t n, const char *what)
{
    if (n == 0) {
        return before;
    }

    printf("%s%" PRIu64 " %s%s", before, n, what, n == 1 ? "" : "s");

    return ", ";
}


void
key_options_report(const collect_options_t *options,
    const collect_counts_t *counts, const char *file)
{
    uint64_t     n;
    const char  *before;

    n = counts->empty + counts->comments + counts->skipped + counts->errors;

    if (n == 0) {
        return;
    }

    visible_name(file);
    printf(": ");

    before = print_count("", counts->empty,
                         options->list.kind == LISTFORMAT_KEYS ? "empty key"
                                                               : "empty line");
    before = print_count(before, counts->comments, "comment");
    before = print_count(before, counts->skipped, "other line");
    (void) print_count(before, counts->errors, "invalid line");

    printf(" %s skipped\n", n == 1 ? "was" : "were");
}
