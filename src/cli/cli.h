
/*
 * What every subcommand of ngx-bloom uses: exit statuses, messages, options.
 *
 * A subcommand is a function that gets its own name as argv[0] and returns
 * the exit status.  main.c has the table of them.
 */

#ifndef CLI_H
#define CLI_H

#include <getopt.h>
#include <pthread.h>
#include <stdint.h>


#ifndef NGX_BLOOM_VERSION
#define NGX_BLOOM_VERSION  "0.1.0"
#endif

#define CLI_OK     0
#define CLI_NO     1                     /* test: some key absent; expand:
                                            nothing to look up; verify,
                                            journal: damaged */
#define CLI_ERROR  2


int cmd_add(int argc, char **argv);
int cmd_analyze(int argc, char **argv);
int cmd_build(int argc, char **argv);
int cmd_expand(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_journal(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_size(int argc, char **argv);
int cmd_test(int argc, char **argv);
int cmd_verify(int argc, char **argv);


/* The subcommand's name, for messages; NULL before it is known. */
extern const char  *cli_command;

/* "ngx-bloom build: ..." to standard error, and a line's end. */
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

/*
 * The next option's letter or number, -1 at the end, '?' after a complaint
 * about an unknown one or a missing value.
 */
int cli_option(int argc, char **argv, const char *letters,
    const struct option *names);


#endif /* CLI_H */
