/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A descriptor tells main.c, --help and the man page what a subcommand is.
 *
 * Texts are broken where the line ends.  The paragraphs of one have an empty
 * line between them; one that begins with two blanks stays as it is.
 */

#ifndef COMMAND_H
#define COMMAND_H

#include "options.h"


typedef struct {
    const char      *name;
    const char      *does;               /* in the list of commands */
    const char      *synopsis;           /* "[OPTION...] IMAGE..." */
    const char      *about;
    const option_t  *options;
    void            *values;             /* where the options' values go */
    const char      *status;             /* NULL: 0 success, 2 an error */
    const char      *examples;           /* one a line */

    /* Returns the exit status. */
    int            (*run)(char **operands, int n, void *values);
} command_t;


/* Each is in the file of its name; command_list.c lists them. */
extern const command_t  cmd_add, cmd_analyze, cmd_build, cmd_expand,
                        cmd_export, cmd_import, cmd_info, cmd_journal,
                        cmd_merge, cmd_size, cmd_test, cmd_verify;


/* Runs one with a command line whose first word is its name.  Returns the exit
 * status. */
int command_run(const command_t *command, int argc, char **argv);

/* Prints what --help shows. */
void command_help(const command_t *command);


#endif /* COMMAND_H */
