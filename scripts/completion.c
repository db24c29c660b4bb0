/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * completion prints the bash completion of ngx-bloom, from the tool's own
 * tables of commands and options.
 *
 * An option whose value is a FILE, an IMAGE or a DIR is completed with names of
 * files or directories.  The values of other options are the words of the
 * option's help that its parser accepts.
 */

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "command_list.h"


/* Prints a line of "case" if the option has a value. */
static void
print_value(const option_t *option, void *data)
{
    size_t            len;
    char              word[32];
    const char       *p;
    const command_t  *command;

    static char       seen[512];
    static uint64_t   place[8192];

    command = data;

    if (option->value == NULL) {
        return;
    }

    printf("    %s:--%s", command->name, option->name);

    if (option->letter != 0) {
        printf(" | %s:-%c", command->name, option->letter);
    }

    printf(") ");

    if (strcmp(option->value, "FILE") == 0
        || strcmp(option->value, "IMAGE") == 0)
    {
        printf("kind=file ;;\n");
        return;
    }

    if (strcmp(option->value, "DIR") == 0) {
        printf("kind=directory ;;\n");
        return;
    }

    printf("kind=word words='");
    strcpy(seen, " ");

    for (p = option->help; *p != '\0'; p += len > 0 ? len : 1) {

        for (len = 0; isalnum((unsigned char) p[len]) || p[len] == '-'; len++)
        { /* void */ }

        while (len > 0 && p[len - 1] == '-') {
            len--;
        }

        if (len == 0 || len > sizeof(word) - 3
            || !islower((unsigned char) *p)
            || option->take == options_take_text)
        {
            continue;
        }

        snprintf(word, sizeof(word), " %.*s ", (int) len, p);

        if (strstr(seen, word) != NULL
            || strlen(seen) + len + 2 > sizeof(seen))
        {
            continue;
        }

        word[len + 1] = '\0';

        if (option->take(option, word + 1, place) == CLI_OK) {
            printf("%s%s", seen[1] == '\0' ? "" : " ", word + 1);
            strcat(seen, word + 1);
            strcat(seen, " ");
        }
    }

    printf("' ;;\n");
}


static void
print_name(const option_t *option, void *data)
{
    (void) data;

    printf(" --%s", option->name);
}


int
main(void)
{
    int                      fd;
    const command_t *const  *command;

    /* the parsers complain about the words that they do not accept */
    fd = open("/dev/null", O_WRONLY);

    if (fd == -1 || dup2(fd, STDERR_FILENO) == -1) {
        return 1;
    }

    printf("# bash completion of ngx-bloom\n"
           "#\n"
           "# Made by \"make man\" from the tool's tables.\n"
           "\n"
           "# Sets kind, the kind of the value of an option of a command, and "
           "words.\n"
           "\n"
           "_ngx_bloom_value() {\n"
           "    case $1:$2 in\n");

    for (command = command_list; *command != NULL; command++) {
        options_each((*command)->options, print_value, (void *) *command);
    }

    printf("    *) kind=none ;;\n"
           "    esac\n"
           "}\n"
           "\n"
           "# Sets words to the options of a command.\n"
           "\n"
           "_ngx_bloom_options() {\n"
           "    case $1 in\n");

    for (command = command_list; *command != NULL; command++) {
        printf("    %s) words='", (*command)->name);
        options_each((*command)->options, print_name, NULL);
        printf("' ;;\n");
    }

    printf("    *) words='--help --version' ;;\n"
           "    esac\n"
           "}\n"
           "\n"
           "_ngx_bloom() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} at=$COMP_CWORD\n"
           "    local word command=${COMP_WORDS[1]} kind words commands='");

    for (command = command_list; *command != NULL; command++) {
        printf("%s ", (*command)->name);
    }

    printf("help'\n"
           "\n"
           "    COMPREPLY=()\n"
           "    compopt -o default 2> /dev/null\n"
           "\n"
           "    # readline makes words of \"--layout\", \"=\" and \"blocked\"\n"
           "\n"
           "    if [[ $cur == = ]]; then\n"
           "        cur=\n"
           "        at=$((at + 1))\n"
           "    fi\n"
           "    if [[ ${COMP_WORDS[at - 1]} == = ]]; then\n"
           "        at=$((at - 1))\n"
           "    fi\n"
           "\n"
           "    if ((COMP_CWORD == 1)) || [[ $command == help ]]; then\n"
           "        words=$commands\n"
           "        [[ $cur == -* ]] && words='--help --version'\n"
           "        compopt +o default 2> /dev/null\n"
           "    else\n"
           "        _ngx_bloom_value \"$command\" \"${COMP_WORDS[at - 1]}\"\n"
           "\n"
           "        case $kind in\n"
           "        file) return ;;\n"
           "        directory)\n"
           "            compopt -o dirnames +o default 2> /dev/null\n"
           "            return ;;\n"
           "        word) compopt +o default 2> /dev/null ;;\n"
           "        none)\n"
           "            [[ $cur == -* ]] || return\n"
           "            _ngx_bloom_options \"$command\" ;;\n"
           "        esac\n"
           "    fi\n"
           "\n"
           "    while IFS= read -r word; do\n"
           "        COMPREPLY+=(\"$word\")\n"
           "    done < <(compgen -W \"$words\" -- \"$cur\")\n"
           "}\n"
           "\n"
           "complete -o default -F _ngx_bloom ngx-bloom\n");

    return 0;
}
