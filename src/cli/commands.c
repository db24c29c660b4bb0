
#include <string.h>

#include "commands.h"


const command_t *const  commands[] = {
    &cmd_build,
    &cmd_info,
    &cmd_test,
    &cmd_expand,
    &cmd_verify,
    &cmd_size,
    &cmd_add,
    &cmd_merge,
    &cmd_journal,
    &cmd_import,
    &cmd_export,
    &cmd_analyze,
    NULL
};


const command_t *
commands_find(const char *name)
{
    const command_t *const  *command;

    for (command = commands; *command != NULL; command++) {
        if (strcmp(name, (*command)->name) == 0) {
            break;
        }
    }

    return *command;
}
