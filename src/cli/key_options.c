
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "key_options.h"
#include "options.h"
#include "units.h"

#define MEMORY       ((uint64_t) 1 << 30)
#define MEMORY_MAX   ((uint64_t) 1 << 40)

/* Seconds by which another machine's clock may be ahead of ours. */
#define CLOCKS_DIFFER  3600


void
intake_begin(collect_options_t *options)
{
    memset(options, 0, sizeof(*options));

    options->threads = option_default_threads();
    options->memory = MEMORY;
}


int
intake_option(collect_options_t *options, int c)
{
    switch (c) {

    case INTAKE_FROM:
        if (list_parse(&options->list, optarg) != 0) {
            return CLI_ERROR;
        }

        break;

    case INTAKE_MAX_ERRORS:
        if (parse_count(optarg, &options->max_errors) != 0) {
            return cli_misuse("--max-errors \"%s\": lines to leave out "
                              "are a count", optarg);
        }

        break;

    case '0':
        options->split = BLOOM_SPLIT_NUL;
        break;

    case 'j':
        return option_threads(optarg, &options->threads);

    case INTAKE_MEMORY:
        if (parse_bytes(optarg, &options->memory) != 0
            || options->memory < KEYSTORE_MEMORY_MIN
            || options->memory > MEMORY_MAX)
        {
            return cli_misuse("--memory \"%s\": a size is from 16m to "
                              "1024g", optarg);
        }

        break;

    case INTAKE_TEMP:
        options->temporary = optarg;
        break;

    default:
        return -1;
    }

    return CLI_OK;
}


int
intake_check(const collect_options_t *options)
{
    if (options->split == BLOOM_SPLIT_NUL && options->list.kind != LIST_KEYS) {
        return cli_misuse("--from is for lists of lines, and -0 for keys that "
                          "end with a zero byte: give one of them");
    }

    return CLI_OK;
}


int
intake_as_of(const char *text, uint64_t *as_of)
{
    char  shown[UNITS_LEN];

    if (parse_time(text, as_of) != 0 || *as_of == 0) {
        return cli_misuse("--as-of \"%s\": a time is written as "
                          "2026-01-31T12:00:00Z or as seconds since "
                          "1970", text);
    }

    if (*as_of / 1000 > (uint64_t) time(NULL) + CLOCKS_DIFFER) {
        return cli_misuse("--as-of \"%s\": %s is in the future, and "
                          "keys cannot be complete up to then; give "
                          "the time at which they were read", text,
                          format_time(shown, *as_of));
    }

    return CLI_OK;
}


int
intake_spare(const output_t *out, char **names, int n, const char *what)
{
    const char  *name;

    name = output_among(out, names, n);

    if (name != NULL) {
        cli_error("%s: is the output too: the image would replace %s; name "
                  "another output", name, what);
        return CLI_ERROR;
    }

    return CLI_OK;
}


/* ", 3 comments" to standard output; without the comma at the beginning. */
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
intake_report(const collect_options_t *options, const collect_counts_t *counts,
    const char *file)
{
    uint64_t     n;
    const char  *before;

    n = counts->empty + counts->comments + counts->skipped + counts->errors;

    if (n == 0) {
        return;
    }

    printf("%s: ", file);

    before = print_count("", counts->empty, options->list.kind == LIST_KEYS
                                            ? "empty key" : "empty line");
    before = print_count(before, counts->comments, "comment");
    before = print_count(before, counts->skipped, "other line");
    (void) print_count(before, counts->errors, "unreadable line");

    printf(" %s skipped\n", n == 1 ? "was" : "were");
}
