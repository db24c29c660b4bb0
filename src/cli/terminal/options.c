/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file parses a command line by a table of options, and the values of
 * options that several subcommands have.
 */

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bloom_form.h"
#include "bloom_geometry.h"
#include "bloom_hasher.h"
#include "bloom_source.h"
#include "cli.h"
#include "options.h"
#include "units.h"

#define OPTIONS_MAX  32

/* getopt_long() returns LONG + i for the long name of option i. */
#define LONG  256

/* The clock of another machine may be this many seconds ahead. */
#define CLOCKS_DIFFER  3600


/* An option of a table or of a group in it, with the place of its value. */
typedef struct {
    const option_t  *option;
    char            *to;
    int              given;
} entry_t;

typedef struct {
    entry_t  entry[OPTIONS_MAX];
    int      n;
} entries_t;


static const option_t  help_option = {
    'h', "help", NULL, 0, NULL, "show the options, with examples"
};


/* ---- kinds of values ---- */


/* Returns an option's name for messages: "-p" or "--seed". */
static const char *
shown(const option_t *option, char text[32])
{
    if (option->letter != 0) {
        snprintf(text, 32, "-%c", option->letter);

    } else {
        snprintf(text, 32, "--%s", option->name);
    }

    return text;
}


int
options_wrong(const option_t *option, const char *text, const char *fmt, ...)
{
    char     name[32], what[256];
    va_list  args;

    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);

    return cli_misuse("%s \"%s\": %s", shown(option, name), text, what);
}


int
options_take_flag(const option_t *option, const char *text, void *to)
{
    (void) option;
    (void) text;

    *(int *) to = 1;

    return CLI_OK;
}


int
options_take_text(const option_t *option, const char *text, void *to)
{
    (void) option;

    *(const char **) to = text;

    return CLI_OK;
}


int
options_take_count(const option_t *option, const char *text, void *to)
{
    uint64_t  *value = to;

    if (parse_count(text, value) != 0 || *value < option->least
        || *value > option->most)
    {
        return options_wrong(option, text, "must be %s from %" PRIu64 " to %"
                             PRIu64 ", and may end in k, m or g", option->is,
                             option->least, option->most);
    }

    return CLI_OK;
}


int
options_take_number(const option_t *option, const char *text, void *to)
{
    uint64_t  value;

    if (parse_count(text, &value) != 0 || value < option->least
        || value > option->most)
    {
        return options_wrong(option, text, "must be %s from %" PRIu64 " to %"
                             PRIu64, option->is, option->least, option->most);
    }

    *(unsigned *) to = (unsigned) value;

    return CLI_OK;
}


int
options_take_span(const option_t *option, const char *text, void *to)
{
    uint64_t  *ms = to;

    if (parse_span(text, ms) != 0 || *ms == 0 || *ms > INT64_MAX) {
        return options_wrong(option, text, "must be %s such as 24h, 30m or 7d",
                             option->is);
    }

    return CLI_OK;
}


/* Formats a size as the option takes it: "16m". */
static const char *
bytes(char text[32], uint64_t value)
{
    int  unit;

    static const char *const  units[] = { "", "k", "m", "g" };

    for (unit = 0; unit < 3 && value != 0 && value % 1024 == 0; unit++) {
        value /= 1024;
    }

    snprintf(text, 32, "%" PRIu64 "%s", value, units[unit]);

    return text;
}


int
options_take_bytes(const option_t *option, const char *text, void *to)
{
    char       least[32], most[32];
    uint64_t  *value = to;

    if (parse_bytes(text, value) != 0 || *value < option->least
        || *value > option->most)
    {
        return options_wrong(option, text, "must be %s from %s to %s, in bytes "
                             "or with k, m or g", option->is,
                             bytes(least, option->least),
                             bytes(most, option->most));
    }

    return CLI_OK;
}


int
options_take_fpr(const option_t *option, const char *text, void *to)
{
    double  *value = to;

    if (parse_rate(text, value) != 0 || *value < BLOOM_FPR_MIN
        || *value > BLOOM_FPR_MAX)
    {
        return options_wrong(option, text, "must be %s from 1e-9 to 0.5, "
                             "such as 0.001 or 0.1%%", option->is);
    }

    return CLI_OK;
}


int
options_take_layout(const option_t *option, const char *text, void *to)
{
    uint32_t  *layout = to;

    *layout = bloom_geometry_layout_parse(text, strlen(text));

    return *layout != 0
           ? CLI_OK
           : options_wrong(option, text, "must be blocked, classic or fuse");
}


int
options_take_hash(const option_t *option, const char *text, void *to)
{
    uint32_t  *hash = to;

    *hash = bloom_hasher_parse(text, strlen(text));

    return *hash != 0
           ? CLI_OK
           : options_wrong(option, text, "must be murmur3 or siphash");
}


int
options_take_key_form(const option_t *option, const char *text, void *to)
{
    int  form;

    form = bloom_form_parse(text, strlen(text));

    if (form == -1) {
        return options_wrong(option, text, "must be raw, lower, host or url");
    }

    *(uint32_t *) to = (uint32_t) form;

    return CLI_OK;
}


int
options_take_source(const option_t *option, const char *text, void *to)
{
    size_t           len;
    const char      *last;
    bloom_source_t  *source = to;

    last = strrchr(text, '=');

    if (last == NULL
        || !bloom_source_name_valid(text, (size_t) (last - text))
        || bloom_position_parse(&source->position, last + 1, strlen(last + 1))
           != 0)
    {
        return options_wrong(option, text, "must be the name of a source and a "
                             "position, such as ids=1700000000000-3; a name "
                             "has 1 to 255 letters, digits and characters of "
                             "\"._:/-\"");
    }

    len = (size_t) (last - text);

    source->len = (uint32_t) len;
    memcpy(source->name, text, len);

    return CLI_OK;
}


int
options_take_as_of(const option_t *option, const char *text, void *to)
{
    char             time_shown[UNITS_LEN];
    uint64_t        *as_of = to;
    struct timespec  now;

    if (strcmp(text, "start") == 0) {

        /* options are parsed before any file is opened */

        (void) clock_gettime(CLOCK_REALTIME, &now);

        *as_of = (uint64_t) now.tv_sec * 1000
                 + (uint64_t) now.tv_nsec / 1000000;

        return CLI_OK;
    }

    if (parse_time(text, as_of) != 0 || *as_of == 0) {
        return options_wrong(option, text, "must be a time such as "
                             "2026-01-31T12:00:00Z, seconds since 1970, or "
                             "start");
    }

    if (*as_of / 1000 > (uint64_t) time(NULL) + CLOCKS_DIFFER) {
        return options_wrong(option, text, "%s is in the future; use the time "
                             "at which the keys were read",
                             format_time(time_shown, *as_of));
    }

    return CLI_OK;
}


/* ---- tables ---- */


/* Appends an option.  Ends the program if the table is too long for the array;
 * any use of the command shows that, and so any test of it. */
static void
append(entries_t *entries, const option_t *option, char *to)
{
    entry_t  *entry;

    if (entries->n == OPTIONS_MAX) {
        cli_error("this command has more than %d options: raise OPTIONS_MAX in "
                  "options.c", OPTIONS_MAX);
        exit(CLI_ERROR);
    }

    entry = &entries->entry[entries->n++];
    entry->option = option;
    entry->to = to;
    entry->given = 0;
}


/* Appends the options of a table, and of the groups in it. */
static void
flatten(const option_t *table, char *values, entries_t *entries)
{
    for ( /* void */ ; table->name != NULL || table->group != NULL; table++) {

        if (table->group != NULL) {
            flatten(table->group, values + table->offset, entries);

        } else {
            append(entries, table, values + table->offset);
        }
    }
}


/* Collects the options of a table, and --help. */
static void
collect_entries(const option_t *table, void *values, entries_t *entries)
{
    entries->n = 0;

    flatten(table, values, entries);
    append(entries, &help_option, NULL);
}


void
options_each(const option_t *table,
    void (*show)(const option_t *option, void *data), void *data)
{
    int        i;
    entries_t  entries;

    collect_entries(table, NULL, &entries);

    for (i = 0; i < entries.n; i++) {
        show(entries.entry[i].option, data);
    }
}


/* Returns the option that getopt_long() found, or NULL for an unknown one. */
static entry_t *
find(entries_t *entries, int c)
{
    int  i;

    if (c >= LONG) {
        return &entries->entry[c - LONG];
    }

    for (i = 0; i < entries->n; i++) {
        if (c != 0 && entries->entry[i].option->letter == c) {
            return &entries->entry[i];
        }
    }

    return NULL;
}


/* Returns 1 if a command has the long option. */
static int
has(const entries_t *entries, const char *name)
{
    int          i;
    const char  *long_name;

    for (i = 0; i < entries->n; i++) {
        long_name = entries->entry[i].option->name;

        if (long_name != NULL && strcmp(long_name, name) == 0) {
            return 1;
        }
    }

    return 0;
}


/* Says that a command has no such long option, and what to use instead of an
 * old one. */
static int
unknown(const entries_t *entries, const char *word)
{
    size_t  i;

    static const struct {
        const char  *old;
        const char  *now;                /* an option of the same command */
        const char  *instead;
    } gone[] = {
        { "--key", "form", "use --form" },
        { "--max-change", "max-loss", "use --max-loss and --max-growth" },
        { "--slices", "expire",
          "leave it out: --expire decides the number of slices" }
    };

    for (i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {

        if (strcspn(word, "=") == strlen(gone[i].old)
            && strncmp(word, gone[i].old, strlen(gone[i].old)) == 0
            && has(entries, gone[i].now))
        {
            return cli_misuse("unknown option \"%s\"; %s", word,
                              gone[i].instead);
        }
    }

    return cli_misuse("unknown option \"%s\"", word);
}


/* Says what is wrong with the word that getopt_long() has refused. */
static int
refuse(entries_t *entries, int c, const char *word)
{
    char      name[32];
    entry_t  *entry;

    entry = find(entries, optopt);

    if (c == ':') {
        return cli_misuse("option %s needs a value",
                          shown(entry->option, name));
    }

    if (optopt == 0) {
        return unknown(entries, word);
    }

    if (entry != NULL) {
        return cli_misuse("option %.*s takes no value",
                          (int) strcspn(word, "="), word);
    }

    return cli_misuse("unknown option \"-%c\"", optopt);
}


/* Returns 1 if a word is only the beginning of the long option for which
 * getopt_long() took it.  Such a word may be the name of another command's
 * option: "--except" reads a file, and "--exceptions" replaces one. */
static int
is_abbreviated(const option_t *option, const char *word)
{
    return strcspn(word, "=") != 2 + strlen(option->name);
}


static int
missing(const option_t *option)
{
    char  name[32];

    return cli_misuse("%s %s is missing; it names %s", shown(option, name),
                      option->value, option->needed);
}


int
options_parse(const option_t *table, void *values, int argc, char **argv,
    int *first)
{
    int              c, i;
    char             letters[3 * OPTIONS_MAX], *p, *word;
    entry_t         *entry;
    entries_t        entries;
    const option_t  *option;
    struct option    names[OPTIONS_MAX + 1];

    collect_entries(table, values, &entries);
    memset(names, 0, sizeof(names));

    p = letters;
    *p++ = ':';

    for (i = 0; i < entries.n; i++) {
        option = entries.entry[i].option;

        names[i].name = option->name;
        names[i].has_arg = option->value ? required_argument : no_argument;
        names[i].val = LONG + i;

        if (option->letter != 0) {
            p += sprintf(p, "%c%s", option->letter, option->value ? ":" : "");
        }
    }

    *p = '\0';
    opterr = 0;

    while ((c = getopt_long(argc, argv, letters, names, NULL)) != -1) {

        /* a long option is the word before optind; a short one is only in
         * optopt, as its word may have more letters */

        if (c == ':' || c == '?') {
            return refuse(&entries, c, argv[optind - 1]);
        }

        entry = find(&entries, c);

        word = argv[optind - (optarg == argv[optind - 1] ? 2 : 1)];

        if (c >= LONG && is_abbreviated(entry->option, word)) {
            return unknown(&entries, word);
        }

        if (entry->option == &help_option) {
            return OPTIONS_HELP;
        }

        entry->given = 1;

        if (entry->option->take(entry->option, optarg, entry->to) != CLI_OK) {
            return CLI_ERROR;
        }
    }

    for (i = 0; i < entries.n; i++) {
        if (entries.entry[i].option->needed != NULL
            && !entries.entry[i].given)
        {
            return missing(entries.entry[i].option);
        }
    }

    *first = optind;

    return CLI_OK;
}


unsigned
options_processors(void)
{
    long  processors;

    processors = sysconf(_SC_NPROCESSORS_ONLN);

    return processors < 1 ? 1
           : processors > OPTIONS_THREADS_MAX ? OPTIONS_THREADS_MAX
           : (unsigned) processors;
}
