
/*
 * One list has all subcommands.
 */

#ifndef COMMANDS_H
#define COMMANDS_H

#include "command.h"


/* In the order in which --help has them; NULL at the end. */
extern const command_t *const  commands[];

/* Returns the command of that name, or NULL. */
const command_t *commands_find(const char *name);


#endif /* COMMANDS_H */
