/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file runs a subcommand and prints its help.
 */

#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "command.h"

#define WIDTH   80
#define COLUMN  22                       /* where an option's help begins */


/* Prints a text from a column on, wrapped.  Its other lines are indented; a LF
 * begins an item, whose further lines are indented by two more. */
static void
print_words(const char *text, size_t column, size_t indent)
{
    int     item;
    size_t  len, at;

    for (at = column, item = 0; *text != '\0'; text += len) {

        if (*text == '\n') {
            item = 1;
            printf("\n%*s", (int) indent, "");
            at = indent;
        }

        text += strspn(text, " \n");
        len = strcspn(text, " \n");

        if (at > indent && at + 1 + len > WIDTH) {
            at = indent + (item ? 2 : 0);
            printf("\n%*s", (int) at, "");

        } else if (at > indent) {
            putchar(' ');
            at++;
        }

        printf("%.*s", (int) len, text);
        at += len;
    }

    putchar('\n');
}


static void
print_text(const char *text)
{
    char         paragraph[2048];
    size_t       len;
    const char  *end;

    for ( /* void */ ; *text != '\0'; text += len) {

        end = strstr(text, "\n\n");
        len = end != NULL ? (size_t) (end - text) : strlen(text);

        snprintf(paragraph, sizeof(paragraph), "%.*s", (int) len, text);
        len += end != NULL ? 2 : 0;

        if (strncmp(text, "  ", 2) == 0) {
            puts(paragraph);

        } else {
            print_words(paragraph, 0, 0);
        }

        putchar('\n');
    }
}


static void
print_option(const option_t *option, void *data)
{
    int  n;

    (void) data;

    n = option->letter != 0 ? printf("  -%c, ", option->letter)
                            : printf("      ");
    n += printf("--%s%s%s", option->name, option->value ? " " : "",
                option->value ? option->value : "");

    if (n + 2 > COLUMN) {
        putchar('\n');
        n = 0;
    }

    printf("%*s", COLUMN - n, "");
    print_words(option->help, COLUMN, COLUMN);
}


static void
print_examples(const char *examples)
{
    size_t  len;

    printf("Examples:\n");

    for ( /* void */ ; *examples != '\0'; examples += len + 1) {
        len = strcspn(examples, "\n");
        printf("  %.*s\n", (int) len, examples);
    }
}


void
command_help(const command_t *command)
{
    printf("Usage: ngx-bloom %s %s\n\n", command->name, command->synopsis);

    print_text(command->about);

    options_each(command->options, print_option, NULL);
    putchar('\n');

    if (command->status != NULL) {
        printf("Exit status:");
        print_words(command->status, sizeof("Exit status:") - 1, 0);
        putchar('\n');
    }

    print_examples(command->examples);
}


int
command_run(const command_t *command, int argc, char **argv)
{
    int  rc, first;

    cli_command = command->name;

    rc = options_parse(command->options, command->values, argc, argv, &first);

    if (rc == OPTIONS_HELP) {
        command_help(command);
        return CLI_OK;
    }

    return rc != CLI_OK ? rc
           : command->run(argv + first, argc - first, command->values);
}
