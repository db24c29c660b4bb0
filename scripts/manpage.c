/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * manpage prints the man page of ngx-bloom from a template and the tool's own
 * tables of commands and options.
 *
 *     manpage TEMPLATE
 *
 * It replaces @VERSION@ in the template, and replaces each of these lines:
 *
 *     @SYNOPSIS@         the synopsis of each command
 *     @ABOUT command@    a heading and the description of a command
 *     @OPTIONS command@  the options of a command
 *     @STATUS@           the exit statuses of the commands that describe theirs
 *     @JSON command@     a heading and the members of a command's JSON
 *
 * It fails if a command's options or members are missing.
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bloom_version.h"
#include "cli.h"
#include "command_list.h"


/* How many commands have their options and their JSON members printed. */
static int  with_options;
static int  with_members;


/* Prints a character, escaped if it has a meaning for troff. */
static void
print_char(char c)
{
    if (c == '-') {
        printf("\\-");

    } else if (c == '\\') {
        printf("\\e");

    } else {
        putchar(c);
    }
}


static int
is_option(const char *text, const char *begin)
{
    return *text == '-' && (text == begin || strchr(" \"(", text[-1]) != NULL)
           && (isalnum((unsigned char) text[1])
               || (text[1] == '-' && isalpha((unsigned char) text[2])));
}


/* Prints a text with a capital letter at its beginning, a full stop at its end,
 * each sentence on a line, and options in bold. */
static void
print_sentences(const char *text, size_t len)
{
    int          bold, stop;
    const char  *p, *end;

    end = text + len;
    bold = 0;

    for (p = text; p < end; p++) {

        if (bold && !isalnum((unsigned char) *p) && *p != '-') {
            printf("\\fR");
            bold = 0;

        } else if (is_option(p, text)) {
            printf("\\fB");
            bold = 1;
        }

        if (p == text) {
            print_char((char) toupper((unsigned char) *p));

        } else if (*p == ' ' && p[-1] == '.') {
            putchar('\n');

        } else if (*p == '\n') {
            printf("\n.br\n");

        } else {
            print_char(*p);
        }
    }

    stop = end[-1] != '.' && end[-1] != ':' && memchr(text, '\n', len) == NULL;

    printf("%s%s\n", bold ? "\\fR" : "", stop ? "." : "");
}


/* Prints a synopsis, as "-o FILE [OPTION...]", with words in italics and
 * options in bold. */
static void
print_usage(const char *text)
{
    char  font;

    for (font = 'R'; *text != '\0'; text++) {

        if (font == 'R' && *text == '-') {
            font = 'B';
            printf("\\fB");

        } else if (font == 'R' && isupper((unsigned char) *text)) {
            font = 'I';
            printf("\\fI");

        } else if (font != 'R' && !isalpha((unsigned char) *text)
                   && *text != '-')
        {
            font = 'R';
            printf("\\fR");
        }

        print_char(*text);
    }

    printf("%s\n", font != 'R' ? "\\fR" : "");
}


static void
print_synopsis(void)
{
    const command_t *const  *command;

    for (command = command_list; *command != NULL; command++) {
        printf(".br\n\\fBngx\\-bloom %s\\fR ", (*command)->name);
        print_usage((*command)->synopsis);
    }
}


static void
print_about(const command_t *command)
{
    size_t       len;
    const char  *text, *end;

    printf(".SS %s\n", command->name);

    for (text = command->about; *text != '\0'; text += len) {

        end = strstr(text, "\n\n");
        len = end != NULL ? (size_t) (end - text) : strlen(text);

        if (text != command->about) {
            printf(".PP\n");
        }

        if (strncmp(text, "  ", 2) == 0) {
            printf(".in +4n\n.EX\n%.*s\n.EE\n.in\n", (int) len - 2, text + 2);

        } else {
            print_sentences(text, len);
        }

        len += end != NULL ? 2 : 0;
    }
}


static void
print_option(const option_t *option, void *data)
{
    const char  *p;

    (void) data;

    printf(".TP\n");

    if (option->letter != 0) {
        printf("\\fB\\-%c\\fR, ", option->letter);
    }

    printf("\\fB\\-\\-");

    for (p = option->name; *p != '\0'; p++) {
        print_char(*p);
    }

    printf("\\fR%s%s%s\n", option->value ? " \\fI" : "",
           option->value ? option->value : "", option->value ? "\\fR" : "");

    print_sentences(option->help, strlen(option->help));
}


static void
print_status(void)
{
    const command_t *const  *command;

    for (command = command_list; *command != NULL; command++) {
        if ((*command)->status != NULL) {
            printf(".TP\n.B %s\n", (*command)->name);
            print_sentences((*command)->status, strlen((*command)->status));
        }
    }
}


static void
print_members(const command_t *command)
{
    const command_member_t  *member;

    printf(".SS %s\n", command->name);

    for (member = command->members; member->text != NULL; member++) {

        if (member->name != NULL) {
            printf(".TP\n.B %s\n", member->name);

        } else {
            printf(".PP\n");
        }

        print_sentences(member->text, strlen(member->text));
    }
}


/* Prints a line of the template, or what replaces it. */
static void
print_line(const char *line)
{
    char              what[16], name[16], *version;
    const command_t  *command;

    version = strstr(line, "@VERSION@");

    if (version != NULL) {
        printf("%.*s%s%s", (int) (version - line), line, BLOOM_VERSION,
               version + sizeof("@VERSION@") - 1);

    } else if (strcmp(line, "@SYNOPSIS@\n") == 0) {
        print_synopsis();

    } else if (strcmp(line, "@STATUS@\n") == 0) {
        print_status();

    } else if (sscanf(line, "@%15[A-Z] %15[a-z]@", what, name) == 2) {

        command = command_list_find(name);

        if (command != NULL && strcmp(what, "ABOUT") == 0) {
            print_about(command);

        } else if (command != NULL && strcmp(what, "OPTIONS") == 0) {
            options_each(command->options, print_option, NULL);
            with_options++;

        } else if (command != NULL && strcmp(what, "JSON") == 0) {
            print_members(command);
            with_members++;

        } else {
            fprintf(stderr, "manpage: unknown: %s", line);
            exit(1);
        }

    } else {
        fputs(line, stdout);
    }
}


int
main(int argc, char **argv)
{
    int    n;
    char   line[1024];
    FILE  *template;

    template = argc == 2 ? fopen(argv[1], "r") : NULL;

    if (template == NULL) {
        fprintf(stderr, "usage: manpage TEMPLATE\n");
        return 1;
    }

    printf(".\\\" Made by \"make man\" from docs/ngx-bloom.1.in and the tool's "
           "tables.\n");

    while (fgets(line, sizeof(line), template) != NULL) {
        print_line(line);
    }

    fclose(template);

    for (n = 0; command_list[n] != NULL; n++) { /* void */ }

    if (with_options != n || with_members != n) {
        fprintf(stderr, "manpage: of %d commands, the template has the options "
                "of %d and the JSON of %d\n", n, with_options, with_members);
        return 1;
    }

    return 0;
}
