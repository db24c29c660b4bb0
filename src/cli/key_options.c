/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file has the table of the options that commands with files of keys
 * share, and reports how many lines were skipped.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "key_options.h"
#include "units.h"
#include "visible.h"

#define MEMORY_MAX  ((uint64_t) 1 << 40)


static int
take_list(const option_t *option, const char *text, void *to)
{
    const char  *what;

    what = list_format_parse(to, text);

    return what == NULL ? CLI_OK : options_wrong(option, text, "%s", what);
}


/* Takes a number of lines, or a percentage. */
static int
take_limit(const option_t *option, const char *text, void *to)
{
    line_limit_t  *limit = to;

    limit->relative = parse_percent(text, &limit->share) == 0;

    if (limit->relative ? limit->share <= 1
                        : (parse_count(text, &limit->count) == 0
                           && limit->count <= BLOOM_CAPACITY_MAX))
    {
        return CLI_OK;
    }

    return options_wrong(option, text, "must be a number of lines, such as 10, "
                         "or a percentage, such as 5%%");
}


const option_t  key_options[] = {
    { 0, "from", "LIST", offsetof(collect_options_t, list), take_list,
      "the format of the files (default: every line is a key)\n"
      "auto: the format that each file looks like; the command prints it\n"
      "lines: keys and comments\n"
      "adblock: ||domain^ and ||domain/path^ rules\n"
      "hosts: a hosts file\n"
      "dnsmasq: address=/domain/ and similar lines\n"
      "rpz: a response policy zone of DNS\n"
      "csv:COLUMN: a column, by name or number; the separator is found\n"
      "json: the output of \"ngx-bloom journal --keys --json\"" },
    { 0, "exceptions", "FILE", offsetof(collect_options_t, exceptions),
      options_take_text,
      "with --from: write the exceptions of the lists, such as "
      "@@||good.example^, to this file, one canonical key on each line "
      "(default: skip them)" },
    { 0, "without", "FILE", offsetof(collect_options_t, without),
      options_take_text,
      "leave out the keys in this file, which is read as with --from lines; "
      "they are compared with the keys of all lists after both are converted "
      "to the key form; an invalid key in it is an error" },
    { 0, "max-errors", "N", offsetof(collect_options_t, max_errors), take_limit,
      "leave out up to N invalid lines, or up to a percentage of the lines "
      "that are not empty or comments, such as 1%; print the reasons, with "
      "examples (default: 0)" },
    { 0, "max-skipped", "N", offsetof(collect_options_t, max_skipped),
      take_limit,
      "skip up to N entries that cannot be keys, or up to a percentage of the "
      "lines that are not empty or comments, such as 5%; with more, write no "
      "image (default: 100%)" },
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
        && !list_format_is_keys(&options->list))
    {
        return cli_misuse("--from and -0 cannot be used together: lists have "
                          "lines, and -0 reads keys that end with a zero byte");
    }

    if (options->without != NULL && strcmp(options->without, "-") == 0) {
        return cli_misuse("--without \"-\": must be a file; standard input has "
                          "the keys of the image");
    }

    if (options->threads == 0) {
        options->threads = options_processors();
    }

    return CLI_OK;
}


/* Returns 1 if a file is the regular file `st`. */
static int
is_same(const char *path, const struct stat *st)
{
    struct stat  other;

    return stat(path, &other) == 0 && other.st_dev == st->st_dev
           && other.st_ino == st->st_ino;
}


/* Checks that the file for exceptions is neither the image nor a file to
 * read. */
static int
spare_exceptions(const collect_options_t *options, const output_t *out,
    char **names, int n)
{
    int           i;
    const char   *path, *what;
    struct stat   st;

    path = options->exceptions;
    what = output_is(out, path) || strcmp(path, out->name) == 0 ? "the image"
                                                                : NULL;

    if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        for (i = 0; i < n; i++) {
            what = is_same(names[i], &st) ? "a list to read" : what;
        }

        if (options->without != NULL && is_same(options->without, &st)) {
            what = "the file of --without";
        }
    }

    if (what != NULL) {
        return cli_misuse("--exceptions \"%s\": is also %s; name another file",
                          path, what);
    }

    return CLI_OK;
}


/* Reads the file of --without.  Returns CLI_OK, or CLI_ERROR after a
 * message. */
static int
read_left_out(collect_options_t *options, const output_t *out)
{
    char  *name;

    name = (char *) options->without;

    if (key_options_spare(out, &name, 1, "the keys to leave out") != CLI_OK) {
        return CLI_ERROR;
    }

    options->left_out = cli_alloc(sizeof(left_out_t));
    memset(options->left_out, 0, sizeof(left_out_t));

    return left_out_read(options->left_out, name, options->key_form);
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

    if (options->exceptions != NULL) {

        /* perhaps --except was meant, whose file must not be replaced */

        if (list_format_is_keys(&options->list)) {
            return cli_misuse("--exceptions needs --from LIST: without it, "
                              "every line is a key");
        }

        if (spare_exceptions(options, out, *names, *n) != CLI_OK) {
            return CLI_ERROR;
        }
    }

    options->key_form = image->key_form;

    if (options->without != NULL && read_left_out(options, out) != CLI_OK) {
        return CLI_ERROR;
    }

    options->hasher = &image->hasher;
    options->geometry = &image->geometry;

    options->directory = output_directory(out);
    options->store = keystore_create(options->keep, options->memory,
                                     options->temporary ? options->temporary
                                                        : options->directory);

    return CLI_OK;
}


void
key_options_end(collect_options_t *options, collect_counts_t *counts)
{
    collect_free(counts);

    if (options->left_out != NULL) {
        left_out_free(options->left_out);
        free(options->left_out);
    }

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


/* Prints the reasons for which lines were left out. */
static void
json_reasons(bloom_json_writer_t *json, const char *name,
    const collect_counts_t *counts, int bad)
{
    size_t           i;
    unsigned         k;
    const reason_t  *reason;

    bloom_json_put_array(json, name);

    for (i = 0; i < counts->reasons.n; i++) {
        reason = &counts->reasons.reason[i];

        if (reason->bad != bad) {
            continue;
        }

        bloom_json_put_object(json, NULL);
        bloom_json_put_text(json, "reason", reason->why);
        bloom_json_put_count(json, "count", reason->count);
        bloom_json_put_array(json, "examples");

        for (k = 0; k < reason->n; k++) {
            bloom_json_put_object(json, NULL);
            bloom_json_put_text(json, "file",
                                counts->file[reason->example[k].file].name);
            bloom_json_put_count(json, "line", reason->example[k].line);
            bloom_json_put_text(json, "text", reason->example[k].text);
            bloom_json_put_end(json);
        }

        bloom_json_put_end(json);
        bloom_json_put_end(json);
    }

    bloom_json_put_end(json);
}


void
key_options_json(bloom_json_writer_t *json, const collect_options_t *options,
    const collect_counts_t *counts, double seconds)
{
    unsigned     i;
    const char  *name;

    bloom_json_put_count(json, "received", counts->received);
    bloom_json_put_count(json, "lines_read", counts->lines);
    bloom_json_put_count(json, "empty", counts->empty);
    bloom_json_put_count(json, "comments", counts->comments);
    bloom_json_put_count(json, "skipped", counts->skipped);
    json_reasons(json, "skipped_by_reason", counts, 0);
    bloom_json_put_count(json, "errors", counts->errors);
    json_reasons(json, "errors_by_reason", counts, 1);
    bloom_json_put_count(json, "exceptions", counts->exceptions.n);
    bloom_json_put_count(json, "left_out", counts->left_out);
    bloom_json_put_count(json, "without_unmatched",
                         options->left_out != NULL
                         ? left_out_unmatched(options->left_out) : 0);
    bloom_json_put_array(json, "files");

    for (i = 0; i < counts->files; i++) {
        name = counts->file[i].list.name;

        bloom_json_put_object(json, NULL);
        bloom_json_put_text(json, "file", counts->file[i].name);
        bloom_json_put_text(json, "from", name != NULL ? name : "keys");
        bloom_json_put_end(json);
    }

    bloom_json_put_end(json);
    bloom_json_put_count(json, "temporary_bytes",
                         keystore_spilled(options->store));
    bloom_json_put_count(json, "duration_ms",
                         (uint64_t) (seconds * 1000 + 0.5));
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


/* Prints why entries were skipped.  The reasons for invalid lines are on
 * standard error. */
static void
report_skipped(const collect_counts_t *counts)
{
    size_t                    i;
    unsigned                  k;
    const reason_t           *reason;
    const reasons_example_t  *example;

    for (i = 0; i < counts->reasons.n; i++) {
        reason = &counts->reasons.reason[i];

        if (reason->bad) {
            continue;
        }

        printf("  %" PRIu64 " skipped: %s\n", reason->count, reason->why);

        for (k = 0; k < reason->n; k++) {
            example = &reason->example[k];

            printf("    ");
            visible_name(counts->file[example->file].name);
            printf(":%" PRIu64 ": %s\n", example->line, example->text);
        }
    }
}


void
key_options_report(const collect_options_t *options,
    const collect_counts_t *counts, uint64_t duplicates, const char *file)
{
    uint64_t     n;
    const char  *before;

    if (options->exceptions != NULL) {
        visible_name(options->exceptions);
        printf(": %zu exception%s\n", counts->exceptions.n,
               CLI_S(counts->exceptions.n));
    }

    if (options->without != NULL) {
        visible_name(options->without);
        printf(": %" PRIu64 " key%s %s left out\n", counts->left_out,
               CLI_S(counts->left_out), counts->left_out == 1 ? "was" : "were");
    }

    n = duplicates + counts->empty + counts->comments + counts->skipped
        + counts->errors;

    if (n == 0) {
        return;
    }

    visible_name(file);
    printf(": ");

    before = print_count("", duplicates, "duplicate");
    before = print_count(before, counts->empty,
                         list_format_is_keys(&options->list) ? "empty key"
                                                               : "empty line");
    before = print_count(before, counts->comments, "comment");
    before = print_count(before, counts->skipped, "other line");
    (void) print_count(before, counts->errors, "invalid line");

    printf(" %s skipped\n", n == 1 ? "was" : "were");

    report_skipped(counts);
}


int
key_options_write_exceptions(const collect_options_t *options,
    collect_counts_t *counts)
{
    return options->exceptions != NULL
           ? exceptions_write(&counts->exceptions, options->exceptions)
           : CLI_OK;
}


int
key_options_commit_exceptions(collect_counts_t *counts, const char *image)
{
    if (exceptions_commit(&counts->exceptions) != CLI_OK) {
        cli_error("%s: is written, but its exceptions are not; repeat the "
                  "command", image);
        return CLI_ERROR;
    }

    return CLI_OK;
}
