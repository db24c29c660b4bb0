/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * read_shm reads a file into new shared memory, in pieces as large as the
 * chunks of an image.
 *
 *     read_shm [-c] FILE
 *
 * With -c it also computes the checksum of each piece and counts its bits,
 * which is everything that a load has to compute.  It prints a line of JSON:
 * the bytes, the seconds, and the seconds on a processor.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bloom_crc.h"
#include "bloom_image.h"
#include "http.h"


static double
processor(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);

    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}


int
main(int argc, char **argv)
{
    int          fd, checks;
    char        *p;
    size_t       done, i;
    ssize_t      n;
    double       used;
    uint32_t     crc;
    uint64_t     begun, bits_set, *words;
    struct stat  st;

    checks = (argc == 3 && strcmp(argv[1], "-c") == 0);

    if (argc != 2 + checks) {
        die("usage: read_shm [-c] FILE");
    }

    fd = open(argv[1 + checks], O_RDONLY);

    if (fd == -1 || fstat(fd, &st) == -1) {
        die("%s cannot be opened", argv[1 + checks]);
    }

    p = mmap(NULL, (size_t) st.st_size, PROT_READ|PROT_WRITE,
             MAP_SHARED|MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        die("no memory");
    }

    bits_set = 0;
    crc = 0;
    begun = now();
    used = processor();

    for (done = 0; done < (size_t) st.st_size; done += (size_t) n) {
        n = read(fd, p + done, BLOOM_IMAGE_CHUNK);

        if (n <= 0) {
            die("%s cannot be read", argv[1 + checks]);
        }

        if (checks) {
            crc ^= bloom_crc32c(0, p + done, (size_t) n);
            words = (uint64_t *) (void *) (p + done);

            for (i = 0; i < (size_t) n / sizeof(uint64_t); i++) {
                bits_set += (uint64_t) __builtin_popcountll(words[i]);
            }
        }
    }

    /* print the result, so that the compiler keeps the computation */

    printf("{\"bytes\":%zu,\"seconds\":%.6f,\"cpu\":%.6f,\"bits_set\":%llu,"
           "\"crc\":%u}\n", done, (double) (now() - begun) / 1e9,
           processor() - used, (unsigned long long) bits_set, crc);

    return 0;
}
