
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bloom_image.h"
#include "cli.h"


typedef struct {
    const char  *name;
    int        (*run)(int argc, char **argv);
    const char  *does;
} command_t;


static const command_t  commands[] = {
    { "build",   cmd_build,   "make an image of keys" },
    { "info",    cmd_info,    "show what an image is" },
    { "test",    cmd_test,    "ask an image about keys" },
    { "expand",  cmd_expand,  "show what a key is looked up by" },
    { "verify",  cmd_verify,  "check every byte of images" },
    { "size",    cmd_size,    "plan: items, rate, memory" },
    { "add",     cmd_add,     "add keys to an image" },
    { "merge",   cmd_merge,   "make one image of several" },
    { "journal", cmd_journal, "show and verify what was added" },
    { "import",  cmd_import,  "make an image of another system's filter" },
    { "export",  cmd_export,  "write it back as that system's" },
    { "analyze", cmd_analyze, "measure rates while a filter fills" },
};

#define COMMANDS  (sizeof(commands) / sizeof(commands[0]))


static void
usage(void)
{
    size_t  i;

    printf("ngx-bloom makes and reads Bloom filter images for "
           "ngx_http_bloom_module.\n\n"
           "Usage: ngx-bloom COMMAND [OPTION...] [ARGUMENT...]\n\n"
           "Commands:\n");

    for (i = 0; i < COMMANDS; i++) {
        printf("  %-8s %s\n", commands[i].name, commands[i].does);
    }

    printf("  %-8s %s\n", "help", "show this, or the help of a command");

    printf("\n"
           "  -h, --help     show this\n"
           "      --version  show the version\n"
           "\n"
           "\"ngx-bloom COMMAND --help\" has the options and examples of each.\n"
           "\n"
           "Exit status: 0 success; 1 an answer of no (test: some key is "
           "absent; expand:\nnothing to look up; verify and journal: damaged); "
           "2 an error.\n"
           "\n"
           "Examples:\n"
           "  ngx-bloom build -o ids.bloom -p 0.001 ids.txt\n"
           "  ngx-bloom test ids.bloom 4711\n");
}


static void
unknown(const char *name)
{
    size_t  i;

    fprintf(stderr, "ngx-bloom: unknown command \"%s\"; there are", name);

    for (i = 0; i < COMMANDS; i++) {
        fprintf(stderr, " %s,", commands[i].name);
    }

    fprintf(stderr, " help; see \"ngx-bloom --help\"\n");
}


static int
run_command(const char *name, int argc, char **argv)
{
    size_t  i;

    for (i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            cli_command = commands[i].name;
            return commands[i].run(argc, argv);
        }
    }

    unknown(name);

    return CLI_ERROR;
}


static int
run(int argc, char **argv)
{
    char  *help[] = { "help", "--help", NULL };

    if (argc < 2) {
        return cli_misuse("no command given");
    }

    if (strcmp(argv[1], "--version") == 0) {
        printf("ngx-bloom %s, image format version %d\n", NGX_BLOOM_VERSION,
               BLOOM_IMAGE_VERSION);
        return CLI_OK;
    }

    if (strcmp(argv[1], "help") == 0 && argc > 2
        && strcmp(argv[2], "help") != 0)
    {
        return run_command(argv[2], 2, help);
    }

    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0
        || strcmp(argv[1], "-h") == 0)
    {
        usage();
        return CLI_OK;
    }

    if (argv[1][0] == '-') {
        return cli_misuse("unknown option \"%s\"", argv[1]);
    }

    return run_command(argv[1], argc - 1, argv + 1);
}


/*
 * A standard stream that is closed would lend its number to the next file
 * opened, and messages would go into an image.  Its place is taken by
 * something that fails as a closed one does.
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

    /* a file that may not grow any more is then an error like any other */
    signal(SIGXFSZ, SIG_IGN);

    status = run(argc, argv);

    if (fflush(stdout) != 0) {
        cli_error("cannot write to standard output: %s", strerror(errno));
        return CLI_ERROR;
    }

    if (ferror(stdout)) {                /* some time ago */
        cli_error("cannot write to standard output");
        return CLI_ERROR;
    }

    return status;
}
