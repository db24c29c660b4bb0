/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file has the table of the options that commands with files of keys
 * share, and reads the files as they say.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "key_options.h"
#include "units.h"

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
    { 0, "from", "LIST", offsetof(key_options_t, intake.format), take_list,
      "the format of the files (default: every line is a key)\n"
      "auto: the format that each file looks like; the command prints it, also "
      "with -q\n"
      "lines: keys and comments\n"
      "adblock: ||domain^ and ||domain/path^ rules\n"
      "hosts: a hosts file\n"
      "dnsmasq: address=/domain/ and similar lines\n"
      "unbound: local-zone: and local-data: lines\n"
      "rpz: a response policy zone of DNS\n"
      "csv:COLUMN: a column, by name or number; the separator is found\n"
      "json: the output of \"ngx-bloom journal --keys --json\"" },
    { 0, "exceptions", "FILE", offsetof(key_options_t, exceptions),
      options_take_text,
      "with --from: write the exceptions of the lists, such as "
      "@@||good.example^, to this file, one canonical key on each line "
      "(default: skip them)" },
    { 0, "without", "FILE", offsetof(key_options_t, without),
      options_take_text,
      "leave out the keys in this file, which is read as with --from lines; "
      "they are compared with the keys of all lists after both are converted "
      "to the key form; an invalid key in it is an error" },
    { 0, "max-errors", "N", offsetof(key_options_t, max_errors), take_limit,
      "leave out up to N invalid lines, or up to a percentage of the lines "
      "that are not empty or comments, such as 1%; print the reasons, with "
      "examples (default: 0)" },
    { 0, "max-skipped", "N", offsetof(key_options_t, max_skipped),
      take_limit,
      "skip up to N entries that cannot be keys, or up to a percentage of the "
      "lines that are not empty or comments, such as 5%; with more, write no "
      "image (default: 100%)" },
    { '0', "null", NULL, offsetof(key_options_t, intake.split),
      options_take_flag,
      "keys end with a zero byte instead of a line end, and no byte is removed "
      "from them" },
    OPTIONS_THREADS(key_options_t, intake.threads,
      "the number of threads; the result does not depend on it (default: one "
      "per processor)"),
    { 0, "memory", "SIZE", offsetof(key_options_t, intake.memory),
      options_take_bytes,
      "memory for keys, from 16m to 1024g, in addition to the filter and some "
      "MiB for each thread; the result does not depend on it; lists of the "
      "formats adblock, dnsmasq and unbound, whose lines can take back others, "
      "must fit into as much again (default: 1g)",
      .is = "a size", KEYSTORE_MEMORY_MIN, MEMORY_MAX },
    { 0, "temp", "DIR", offsetof(key_options_t, temporary),
      options_take_text,
      "the directory of the temporary file for keys that exceed --memory; the "
      "file takes 16 bytes per key, or more if there are duplicates, and has "
      "no name, so it cannot be left behind (default: the image's directory)" },
    OPTIONS_QUIET_AS(key_options_t, intake.quiet),
    { 0 }
};


int
key_options_check(key_options_t *options)
{
    if (options->intake.split == BLOOM_SPLIT_NUL
        && !list_format_is_keys(&options->intake.format))
    {
        return cli_misuse("--from and -0 cannot be used together: lists have "
                          "lines, and -0 reads keys that end with a zero byte");
    }

    if (options->without != NULL && strcmp(options->without, "-") == 0) {
        return cli_misuse("--without \"-\": must be a file; standard input has "
                          "the keys of the image");
    }

    if (options->intake.threads == 0) {
        options->intake.threads = options_processors();
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
spare_exceptions(const key_options_t *options, const output_t *out,
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
read_left_out(key_options_t *options, const output_t *out)
{
    char  *name;

    name = (char *) options->without;

    if (key_options_spare(out, &name, 1, "the keys to leave out") != CLI_OK) {
        return CLI_ERROR;
    }

    options->to.left_out = cli_alloc(sizeof(left_out_t));
    memset(options->to.left_out, 0, sizeof(left_out_t));

    return left_out_read(options->to.left_out, name, options->intake.key_form);
}


int
key_options_begin(key_options_t *options, const bloom_image_t *image,
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

        if (list_format_is_keys(&options->intake.format)) {
            return cli_misuse("--exceptions needs --from LIST: without it, "
                              "every line is a key");
        }

        if (spare_exceptions(options, out, *names, *n) != CLI_OK) {
            return CLI_ERROR;
        }
    }

    options->intake.key_form = image->key_form;

    if (options->without != NULL && read_left_out(options, out) != CLI_OK) {
        return CLI_ERROR;
    }

    options->to.hasher = &image->hasher;
    options->to.geometry = &image->geometry;

    options->to.except = options->exceptions != NULL;

    options->directory = output_directory(out);
    options->to.store = keystore_create(options->keep, options->intake.memory,
                                        options->temporary != NULL
                                        ? options->temporary
                                        : options->directory);

    return CLI_OK;
}


/* Prints the invalid lines.  Returns CLI_OK; or CLI_ERROR after a message, if
 * more lines were left out than the limits allow. */
static int
judge(const key_options_t *options, const intake_counts_t *counts)
{
    char         limit[LINE_LIMIT_SHOWN];
    const char  *lines, *check;

    check = options->any_form ? "--from and --form" : "--from";
    lines = options->intake.split == BLOOM_SPLIT_NUL ? "keys" : "lines";

    intake_complain(counts, options->intake.split, 1);

    if (line_limit_exceeded(&options->max_errors, counts->errors,
                            counts->lines))
    {
        cli_error("there are more invalid %s than --max-errors allows (%s); %"
                  PRIu64 " of %" PRIu64 " are invalid: check %s, correct the "
                  "%s, or use a larger --max-errors", lines,
                  line_limit_show(limit, &options->max_errors),
                  counts->errors, counts->lines, check, lines);
        return CLI_ERROR;
    }

    if (line_limit_exceeded(&options->max_skipped, counts->skipped,
                            counts->lines))
    {
        intake_complain(counts, options->intake.split, 0);
        cli_error("more lines are skipped than --max-skipped allows (%s); %"
                  PRIu64 " of %" PRIu64 " are skipped: check %s, or use a "
                  "larger --max-skipped",
                  line_limit_show(limit, &options->max_skipped),
                  counts->skipped, counts->lines, check);
        return CLI_ERROR;
    }

    return CLI_OK;
}


int
key_options_read(const key_options_t *options, char **names, int n,
    store_counts_t *counts)
{
    if (store_keys(&options->to, &options->intake, names, n, counts) != CLI_OK
        || judge(options, &counts->read) != CLI_OK)
    {
        return CLI_ERROR;
    }

    if (!options->intake.quiet) {
        letter_case_warn(&counts->letters);

        if (options->to.left_out != NULL) {
            left_out_warn(options->to.left_out);
        }
    }

    return CLI_OK;
}


void
key_options_end(key_options_t *options, store_counts_t *counts)
{
    store_counts_free(counts);

    if (options->to.left_out != NULL) {
        left_out_free(options->to.left_out);
        free(options->to.left_out);
    }

    if (options->to.store != NULL) {
        keystore_free(options->to.store);
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


int
key_options_write_exceptions(const key_options_t *options,
    store_counts_t *counts)
{
    return options->exceptions != NULL
           ? exceptions_write(&counts->exceptions, options->exceptions)
           : CLI_OK;
}


int
key_options_commit_exceptions(store_counts_t *counts, const char *image)
{
    if (exceptions_commit(&counts->exceptions) != CLI_OK) {
        cli_error("%s: is written, but its exceptions are not; repeat the "
                  "command", image);
        return CLI_ERROR;
    }

    return CLI_OK;
}
