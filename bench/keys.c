/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * keys writes files of keys, and measures what reading and copying them costs.
 *
 * keys -w COUNT FILE     writes COUNT distinct keys, each of 16 digits and a
 *                        line's end
 * keys -r FILE           reads a file in pieces of 1 MiB
 * keys -l FILE           does so, and counts its lines with memchr()
 * keys -c BYTES          copies that many bytes between touched memory
 * keys -x PROGRAM ARG... runs a program
 *
 * All but the first print a line of JSON: the result, the seconds, and the
 * seconds on a processor.  The last one also prints the most memory that the
 * program used, in bytes.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bloom_murmur3.h"
#include "http.h"

#define PIECE  (1024 * 1024)
#define KEY    17


static double
seconds_of(const struct rusage *usage)
{
    return (double) (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec)
           + (double) (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}


static void
report(const char *name, uint64_t result, uint64_t begun)
{
    uint64_t       took;
    struct rusage  usage;

    took = now() - begun;
    getrusage(RUSAGE_SELF, &usage);

    printf("{\"name\":\"%s\",\"result\":%" PRIu64 ",\"seconds\":%.6f,"
           "\"cpu\":%.6f}\n", name, result, (double) took / 1e9,
           seconds_of(&usage));
}


static void
write_keys(uint64_t n, const char *path)
{
    char         *buf;
    int           j;
    FILE         *file;
    size_t        len;
    uint64_t      i, x;

    file = fopen(path, "w");
    buf = malloc(KEY * 65536);

    if (file == NULL || buf == NULL) {
        die("%s cannot be written", path);
    }

    for (i = 0, len = 0; i < n; i++) {

        for (x = bloom_murmur3_mix(i + 1), j = 15; j >= 0; j--, x >>= 4) {
            buf[len + (size_t) j] = "0123456789abcdef"[x & 15];
        }

        buf[len + 16] = '\n';
        len += KEY;

        if (len == KEY * 65536 || i == n - 1) {
            if (fwrite(buf, len, 1, file) != 1) {
                die("%s cannot be written", path);
            }

            len = 0;
        }
    }

    if (fclose(file) != 0) {
        die("%s cannot be written", path);
    }

    free(buf);
}


static void
read_file(const char *path, int lines)
{
    int          fd;
    char        *buf, *p, *end;
    ssize_t      n;
    uint64_t     begun, result;

    fd = open(path, O_RDONLY);
    buf = malloc(PIECE);

    if (fd == -1 || buf == NULL) {
        die("%s cannot be read", path);
    }

    memset(buf, 1, PIECE);
    result = 0;
    begun = now();

    while ((n = read(fd, buf, PIECE)) > 0) {

        if (!lines) {
            result += (uint64_t) n;
            continue;
        }

        end = buf + n;

        for (p = buf; (p = memchr(p, '\n', (size_t) (end - p))) != NULL; p++) {
            result++;
        }
    }

    report(lines ? "lines" : "read", result, begun);
}


static void
copy(uint64_t bytes)
{
    char      *from, *to;
    uint64_t   begun;

    from = malloc(bytes);
    to = malloc(bytes);

    if (from == NULL || to == NULL) {
        die("no memory for %" PRIu64 " bytes twice", bytes);
    }

    memset(from, 1, bytes);
    memset(to, 2, bytes);

    begun = now();
    memcpy(to, from, bytes);

    report("copy", (uint64_t) to[bytes - 1] * bytes, begun);
}


static void
run(char **argv)
{
    int            status;
    pid_t          pid;
    uint64_t       begun;
    struct rusage  usage;

    begun = now();
    pid = fork();

    if (pid == 0) {
        execvp(argv[0], argv);
        die("%s cannot be run", argv[0]);
    }

    if (pid == -1 || wait4(pid, &status, 0, &usage) != pid) {
        die("fork");
    }

    if (status != 0) {
        die("%s failed", argv[0]);
    }

    printf("{\"name\":\"run\",\"seconds\":%.6f,\"cpu\":%.6f,\"memory\":%ld}\n",
           (double) (now() - begun) / 1e9, seconds_of(&usage),
           usage.ru_maxrss * 1024);
}


int
main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "-w") == 0) {
        write_keys(strtoull(argv[2], NULL, 10), argv[3]);

    } else if (argc == 3 && strcmp(argv[1], "-r") == 0) {
        read_file(argv[2], 0);

    } else if (argc == 3 && strcmp(argv[1], "-l") == 0) {
        read_file(argv[2], 1);

    } else if (argc == 3 && strcmp(argv[1], "-c") == 0) {
        copy(strtoull(argv[2], NULL, 10));

    } else if (argc > 2 && strcmp(argv[1], "-x") == 0) {
        run(argv + 2);

    } else {
        die("usage: keys -w COUNT FILE | -r FILE | -l FILE | -c BYTES | "
            "-x PROGRAM ARG...");
    }

    return 0;
}
