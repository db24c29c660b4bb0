/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The command list names all subcommands.
 */

#ifndef COMMAND_LIST_H
#define COMMAND_LIST_H

#include "command.h"


/* All commands in the order of --help; NULL ends the list. */
extern const command_t *const  command_list[];

/* Returns the command of that name, or NULL. */
const command_t *command_list_find(const char *name);


#endif /* COMMAND_LIST_H */
