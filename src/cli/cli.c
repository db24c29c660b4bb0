/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file prints messages, and ends the program where memory or threads are
 * not to be had.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "visible.h"


const char  *cli_command;


/* A message is one line.  What is in it may come from anywhere. */
static void
say(const char *kind, const char *fmt, va_list args, const char *rest)
{
    char     *text, cut[1024];
    va_list   again;

    va_copy(again, args);

    if (vasprintf(&text, fmt, args) == -1) {
        vsnprintf(cut, sizeof(cut), fmt, again);
        text = cut;
    }

    va_end(again);

    visible_without_passwords(text);

    flockfile(stderr);

    fprintf(stderr, "ngx-bloom%s%s: %s", cli_command ? " " : "",
            cli_command ? cli_command : "", kind);
    visible_print(stderr, text, strlen(text));
    fprintf(stderr, "%s\n", rest);

    funlockfile(stderr);

    if (text != cut) {
        free(text);
    }
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
