/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions print messages, allocate memory, get random bytes and start
 * threads for all subcommands.
 */

#ifndef CLI_H
#define CLI_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>


/* The exit statuses of the tool, which most functions return, too. */

#define CLI_OK     0
#define CLI_NO     1                     /* a negative answer: some key is
                                            absent or invalid, some file is
                                            damaged */
#define CLI_ERROR  2

/* The plural's letter, for "%d key%s". */
#define CLI_S(n)  ((n) == 1 ? "" : "s")


/* The subcommand's name, for messages; NULL before it is known. */
extern const char  *cli_command;

/*
 * Each prints a line "ngx-bloom build: ..." to standard error; cli_warn() puts
 * "warning: " before the text.  Characters that a terminal would obey are
 * escaped, and passwords of URLs are left out (visible.h).
 */
void cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Prints an error that ends with `; see "ngx-bloom build --help"'.  Returns
 * CLI_ERROR. */
int cli_misuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Each returns memory, or ends the program with a message; any thread may call
 * it. */
void *cli_alloc(size_t size);
void *cli_realloc(void *p, size_t size);

/* Says that `size` more bytes of memory are needed (0: an unknown number), and
 * ends the program. */
void cli_no_memory(uint64_t size) __attribute__((noreturn));

/* Returns the seconds of a clock that nobody sets. */
double cli_now(void);

/* Fills a buffer with random bytes, for seeds and ids; ends the program with a
 * message if the system has none. */
void cli_random(void *buf, size_t len);

/* Returns what to do about a file that cannot be opened or read for the reason
 * `err`, an errno: "; check the name", or "" if there is no advice. */
const char *cli_advice(int err);

/* Starts a thread, or ends the program with a message. */
void cli_thread(pthread_t *thread, void *(*run)(void *), void *data);


#endif /* CLI_H */
