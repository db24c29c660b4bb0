/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the subcommand that the command line names, and runs it.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bloom_image.h"
#include "bloom_version.h"
#include "cli.h"
#include "command_list.h"


static void
usage(void)
{
    const command_t *const  *command;

    printf("ngx-bloom makes and reads Bloom filter images for nginx "
           "(ngx_http_bloom_module).\n\n"
           "Usage: ngx-bloom COMMAND [OPTION...] [ARGUMENT...]\n\n"
           "Commands:\n");

    for (command = command_list; *command != NULL; command++) {
        printf("  %-8s %s\n", (*command)->name, (*command)->does);
    }

    printf("  %-8s %s\n", "help", "show this help or the help of a command");

    printf("\n"
           "  -h, --help     show this help\n"
           "      --version  show the version\n"
           "\n"
           "\"ngx-bloom COMMAND --help\" shows the options and examples of a "
           "command.\n"
           "The man page, ngx-bloom(1), also describes files and the members "
           "of JSON.\n"
           "\n"
           "Exit status: 0 success; 1 a negative answer (test: some key is "
           "absent or\ninvalid; expand: some key is invalid; verify and "
           "journal: some file is damaged; status: something is wrong with a "
           "node);\n2 an error.\n"
           "\n"
           "Examples:\n"
           "  ngx-bloom build -o ids.bloom -p 0.001 ids.txt\n"
           "  ngx-bloom test ids.bloom 4711\n");
}


static int
unknown(const char *name)
{
    char                     names[256];
    size_t                   n;
    const command_t *const  *command;

    names[0] = '\0';

    for (n = 0, command = command_list; *command != NULL; command++) {
        n += (size_t) snprintf(names + n, sizeof(names) - n, " %s,",
                               (*command)->name);
    }

    return cli_misuse("unknown command \"%s\"; the commands are%s help", name,
                      names);
}


static int
is_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0
           || strcmp(word, "-h") == 0;
}


/* Shows the help of the command of this name, or, without one, the list of all
 * commands. */
static int
help(const char *name)
{
    const command_t  *command;

    if (name == NULL || is_help(name)) {
        usage();
        return CLI_OK;
    }

    command = command_list_find(name);

    if (command == NULL) {
        return unknown(name);
    }

    command_help(command);

    return CLI_OK;
}


static int
run(int argc, char **argv)
{
    const char       *word;
    const command_t  *command;

    if (argc < 2) {
        return cli_misuse("no command is given");
    }

    word = argv[1];

    if (strcmp(word, "--version") == 0) {
        printf("ngx-bloom %s, image format version %d\n", BLOOM_VERSION,
               BLOOM_IMAGE_VERSION);
        return CLI_OK;
    }

    if (is_help(word)) {
        return help(argc > 2 ? argv[2] : NULL);
    }

    if (word[0] == '-') {
        return cli_misuse("unknown option \"%s\"; the options of a command "
                          "follow its name", word);
    }

    command = command_list_find(word);

    return command != NULL ? command_run(command, argc - 1, argv + 1)
                           : unknown(word);
}


/*
 * Opens /dev/null for each standard stream that is closed.  Otherwise the next
 * file would get its number, and messages would go into an image.  /dev/null is
 * opened so that reads and writes still fail.
 */
static void
guard_standard_streams(void)
{
    int  fd;

    for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
            (void) open("/dev/null",
                        fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}


int
main(int argc, char **argv)
{
    int  status;

    guard_standard_streams();

    /* make the limit of a file's size an error instead of a signal */
    signal(SIGXFSZ, SIG_IGN);

    status = run(argc, argv);

    if (fflush(stdout) != 0) {
        cli_error("cannot write to standard output: %s", strerror(errno));
        return CLI_ERROR;
    }

    if (ferror(stdout)) {                /* an earlier write failed */
        cli_error("cannot write to standard output");
        return CLI_ERROR;
    }

    return status;
}
