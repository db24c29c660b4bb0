/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file prints how many keys and other lines files had, and why lines were
 * left out.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "key_report.h"
#include "visible.h"


/* Prints the reasons for which lines were left out. */
static void
json_reasons(bloom_json_writer_t *json, const char *name,
    const intake_counts_t *counts, int bad)
{
    size_t                    i;
    unsigned                  k;
    const reason_t           *reason;
    const reasons_example_t  *example;

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
            example = &reason->example[k];

            bloom_json_put_object(json, NULL);
            bloom_json_put_text(json, "file",
                                counts->file[example->place.file].name);
            bloom_json_put_count(json, "line", example->place.line);
            bloom_json_put_text(json, "text", example->text);
            bloom_json_put_end(json);
        }

        bloom_json_put_end(json);
        bloom_json_put_end(json);
    }

    bloom_json_put_end(json);
}


void
key_report_json(bloom_json_writer_t *json, const key_options_t *options,
    const store_counts_t *counts, double seconds)
{
    unsigned                i;
    const char             *name;
    const intake_counts_t  *read;

    read = &counts->read;

    bloom_json_put_count(json, "received", counts->received);
    bloom_json_put_count(json, "lines_read", read->lines);
    bloom_json_put_count(json, "empty", read->empty);
    bloom_json_put_count(json, "comments", read->comments);
    bloom_json_put_count(json, "skipped", read->skipped);
    json_reasons(json, "skipped_by_reason", read, 0);
    bloom_json_put_count(json, "errors", read->errors);
    json_reasons(json, "errors_by_reason", read, 1);
    bloom_json_put_count(json, "exceptions", counts->exceptions.n);
    bloom_json_put_count(json, "left_out", counts->left_out);
    bloom_json_put_count(json, "without_unmatched",
                         options->to.left_out != NULL
                         ? left_out_unmatched(options->to.left_out) : 0);
    bloom_json_put_array(json, "files");

    for (i = 0; i < read->files; i++) {
        name = read->file[i].format.name;

        bloom_json_put_object(json, NULL);
        bloom_json_put_text(json, "file", read->file[i].name);
        bloom_json_put_text(json, "from", name != NULL ? name : "keys");
        bloom_json_put_end(json);
    }

    bloom_json_put_end(json);
    bloom_json_put_count(json, "temporary_bytes",
                         keystore_spilled(options->to.store));
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


/* Prints a table of the reasons why entries were skipped, with an example of
 * each.  The reasons for invalid lines are on standard error. */
static void
report_skipped(const intake_counts_t *read)
{
    int                       width;
    size_t                    i;
    const reason_t           *reason;
    const reasons_example_t  *example;

    width = sizeof("reason") - 1;

    for (i = 0; i < read->reasons.n; i++) {
        reason = &read->reasons.reason[i];

        if (!reason->bad && (int) strlen(reason->why) > width) {
            width = (int) strlen(reason->why);
        }
    }

    if (read->skipped != 0) {
        printf("%10s  %-*s  example\n", "skipped", width, "reason");
    }

    for (i = 0; i < read->reasons.n; i++) {
        reason = &read->reasons.reason[i];

        if (reason->bad) {
            continue;
        }

        example = &reason->example[0];

        printf("%10" PRIu64 "  %-*s  ", reason->count, width, reason->why);
        visible_name(read->file[example->place.file].name);
        printf(":%" PRIu64 ": %s\n", example->place.line, example->text);
    }
}


void
key_report(const key_options_t *options, const store_counts_t *counts,
    uint64_t duplicates, const char *file)
{
    uint64_t                n;
    const char             *before;
    const intake_counts_t  *read;

    read = &counts->read;

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

    n = duplicates + read->empty + read->comments + read->skipped
        + read->errors;

    if (n == 0) {
        return;
    }

    visible_name(file);
    printf(": ");

    before = print_count("", duplicates, "duplicate");
    before = print_count(before, read->empty,
                         list_format_is_keys(&options->intake.format)
                         ? "empty key" : "empty line");
    before = print_count(before, read->comments, "comment");
    before = print_count(before, read->skipped, "other line");
    (void) print_count(before, read->errors, "invalid line");

    printf(" %s skipped\n", n == 1 ? "was" : "were");

    report_skipped(read);
}
