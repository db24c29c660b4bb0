
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"


const char  *cli_command;


static void
say(const char *kind, const char *fmt, va_list args, const char *rest)
{
    flockfile(stderr);

    fprintf(stderr, "ngx-bloom%s%s: %s", cli_command ? " " : "",
            cli_command ? cli_command : "", kind);
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "%s\n", rest);

    funlockfile(stderr);
}


void
cli_error(const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    say("", fmt, args, "");
    va_end(args);
}


void
cli_warn(const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    say("warning: ", fmt, args, "");
    va_end(args);
}


int
cli_misuse(const char *fmt, ...)
{
    char     hint[64];
    va_list  args;

    snprintf(hint, sizeof(hint), "; see \"ngx-bloom%s%s --help\"",
             cli_command ? " " : "", cli_command ? cli_command : "");

    va_start(args, fmt);
    say("", fmt, args, hint);
    va_end(args);

    return CLI_ERROR;
}


void
cli_no_memory(uint64_t size)
{
    cli_error("not enough memory: %llu bytes more are needed",
              (unsigned long long) size);
    exit(CLI_ERROR);
}


void *
cli_alloc(size_t size)
{
    return cli_realloc(NULL, size);
}


void *
cli_realloc(void *p, size_t size)
{
    p = realloc(p, size);

    if (p == NULL) {
        cli_no_memory(size);
    }

    return p;
}


void
cli_thread(pthread_t *thread, void *(*run)(void *), void *data)
{
    int  err;

    err = pthread_create(thread, NULL, run, data);

    if (err != 0) {
        cli_error("a thread cannot be started: %s; give a smaller -j",
                  strerror(err));
        exit(CLI_ERROR);
    }
}


/* 1 if there is an option with this letter or number. */
static int
is_option(const struct option *names, int c)
{
    for ( /* void */ ; names->name != NULL; names++) {
        if (names->val == c) {
            return 1;
        }
    }

    return 0;
}


int
cli_option(int argc, char **argv, const char *letters,
    const struct option *names)
{
    int    c;
    char  *word;

    opterr = 0;

    c = getopt_long(argc, argv, letters, names, NULL);

    if (c != ':' && c != '?') {
        return c;
    }

    /* a long option's word has just been passed; of a short one there is the
     * letter, as its word may have others behind it */

    word = argv[optind - 1];

    if (c == ':' && optopt < 128) {
        (void) cli_misuse("option -%c wants a value", optopt);

    } else if (c == ':') {
        (void) cli_misuse("option %s wants a value", word);

    } else if (optopt == 0) {
        (void) cli_misuse("unknown option \"%s\"", word);

    } else if (is_option(names, optopt)) {
        (void) cli_misuse("option %.*s takes no value",
                          (int) strcspn(word, "="), word);

    } else {
        (void) cli_misuse("unknown option \"-%c\"", optopt);
    }

    return '?';
}
