/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file lists the subcommands and finds one by its name.
 */

#include <string.h>

#include "command_list.h"


const command_t *const  command_list[] = {
    &cmd_build,
    &cmd_info,
    &cmd_test,
    &cmd_expand,
    &cmd_verify,
    &cmd_size,
    &cmd_add,
    &cmd_merge,
    &cmd_journal,
    &cmd_follow,
    &cmd_import,
    &cmd_export,
    &cmd_analyze,
    &cmd_status,
    NULL
};


const command_t *
command_list_find(const char *name)
{
    const command_t *const  *command;

    for (command = command_list; *command != NULL; command++) {
        if (strcmp(name, (*command)->name) == 0) {
            break;
        }
    }

    return *command;
}
