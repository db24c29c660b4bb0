/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A command descriptor describes a subcommand for main.c, --help and the man
 * page.
 *
 * Its texts are wrapped when they are printed.  An empty line separates
 * paragraphs; a paragraph that begins with two blanks is printed as it is.
 */

#ifndef COMMAND_H
#define COMMAND_H

#include "options.h"


/* A member of the JSON that a command prints, for the man page. */
typedef struct {
    const char  *name;                   /* NULL: `text` is a heading */
    const char  *text;                   /* NULL: the table ends */
} command_member_t;


typedef struct {
    const char      *name;
    const char      *does;               /* one phrase, for the list of
                                            commands */
    const char      *synopsis;           /* "[OPTION...] IMAGE..." */
    const char      *about;
    const option_t  *options;
    void            *values;             /* a struct for the options' values */
    const char      *status;             /* exit statuses; NULL: 0 success, 2
                                            an error */
    const char      *examples;           /* one per line */

    const command_member_t  *members;    /* of the output with --json */

    /* Returns the exit status. */
    int            (*run)(char **operands, int n, void *values);
} command_t;


/* Each is defined in the file of its name; command_list.c lists them. */
extern const command_t  cmd_add, cmd_analyze, cmd_build, cmd_expand,
                        cmd_export, cmd_follow, cmd_import, cmd_info,
                        cmd_journal, cmd_merge, cmd_size, cmd_status, cmd_test,
                        cmd_verify;


/* Runs a command with a command line whose first word is its name.  Returns the
 * exit status. */
int command_run(const command_t *command, int argc, char **argv);

/* Prints the help of a command, which --help shows. */
void command_help(const command_t *command);


#endif /* COMMAND_H */
