/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * All subcommands share these exit statuses and messages, and get memory and
 * threads from here.
 */

#ifndef CLI_H
#define CLI_H

#include <pthread.h>
#include <stdint.h>


#define CLI_OK     0
#define CLI_NO     1                     /* test: some key absent; expand:
                                            nothing to look up; verify,
                                            journal: damaged */
#define CLI_ERROR  2


/* The subcommand's name, for messages; NULL before it is known. */
extern const char  *cli_command;

/* "ngx-bloom build: ..." to standard error, and a line's end.  What a terminal
 * would obey and passwords of URLs are not printed (visible.h). */
void cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same with ": see "ngx-bloom build --help"" behind it; CLI_ERROR. */
int cli_misuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Memory, or the end of the program with a message (from any thread). */
void *cli_alloc(size_t size);
void *cli_realloc(void *p, size_t size);
void cli_no_memory(uint64_t size) __attribute__((noreturn));

/* Starts a thread, or ends the program with a message. */
void cli_thread(pthread_t *thread, void *(*run)(void *), void *data);


#endif /* CLI_H */
