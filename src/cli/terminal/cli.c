/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file prints messages, and ends the program if memory, random bytes or a
 * thread cannot be had.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/random.h>

#include "cli.h"
#include "visible.h"


const char  *cli_command;


/* Prints a message as one line; its text may come from anywhere. */
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
    char  more[64];

    more[0] = '\0';

    if (size != 0) {
        snprintf(more, sizeof(more), ": %llu more bytes are needed",
                 (unsigned long long) size);
    }

    cli_error("out of memory%s; free memory, or raise the limit that \"ulimit "
              "-v\" shows", more);
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
        cli_error("cannot start a thread: %s; use a smaller -j",
                  strerror(err));
        exit(CLI_ERROR);
    }
}


double
cli_now(void)
{
    struct timespec  now;

    clock_gettime(CLOCK_MONOTONIC, &now);

    return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}


void
cli_random(void *buf, size_t len)
{
    if (getrandom(buf, len, 0) != (ssize_t) len) {
        cli_error("cannot get random bytes: %s", strerror(errno));
        exit(CLI_ERROR);
    }
}


const char *
cli_advice(int err)
{
    switch (err) {

    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return "; check the name";

    case EACCES:
    case EPERM:
        return "; run as a user who may read it, or change its permissions or "
               "those of its directories";

    case EMFILE:
    case ENFILE:
        return "; raise the limit that \"ulimit -n\" shows";

    case EIO:
        return "; look for errors of the disk in the kernel's log";

    default:
        return "";
    }
}
