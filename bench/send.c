/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * send sends requests on one connection, each when the previous one is
 * answered.
 *
 *     send -p PORT [-r ROUNDS] [-f FIRST] [-d DIGITS] [-w PID] KIND...
 *
 * A KIND is
 *
 *     NAME,METHOD,URI,COUNT,KEYS[,STATUS[,AS]]
 *
 * STATUS is the expected status of the answers, by default 200; a request with
 * another status has failed.  "{FROM-TO}" in the URI stands for a random number
 * of that range in each request; both numbers have the same number of digits.
 * There may be up to eight of these.
 *
 * A kind sends COUNT requests.  The body of each has KEYS new keys, one per
 * line: numbers of DIGITS digits (9), from FIRST on.  With 0 keys there is no
 * body.
 * With AS, the name of an earlier kind, the keys are not new: they are those
 * that the earlier kind had in the same round.
 * In each round all kinds have their turn, in this order, so that disturbances
 * affect them equally.  Bodies are made before the clock starts.
 *
 * For each kind and round it prints a line of JSON: what the answers said about
 * keys (0 if nothing), the seconds from the first request to the last answer,
 * the seconds that process PID, nginx's worker, spent on a processor, and the
 * seconds that the worker and the client waited for a processor that others
 * had.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http.h"

#define RANDOM   8                       /* most ranges in a URI */


typedef struct {
    const char    *name;
    const char    *method;
    const char    *uri;
    long           count;
    long           keys;
    int            status;
    int            as;                   /* the kind with these keys, or -1 */
    unsigned long  first;                /* key of this round */
} kind_t;


typedef struct {
    size_t         at;                   /* position in the URI */
    unsigned long  from;
    unsigned long  to;
} random_t;


static unsigned long  next_key = 100000000;
static int            digits = 9;        /* of a key */
static uint64_t       seed = 0x2545f4914f6cdd1d;


static const char *
part(char **text)
{
    char  *p;

    p = strsep(text, ",");

    if (p == NULL || *p == '\0') {
        errno = 0;
        die("a kind of request is NAME,METHOD,URI,COUNT,KEYS");
    }

    return p;
}


/* Returns the nanoseconds that a process was on a processor, and stores those
 * that it waited for one. */
static void
used(const char *pid, unsigned long long ns[2])
{
    char   path[64];
    FILE  *f;

    snprintf(path, sizeof(path), "/proc/%s/schedstat", pid);

    f = fopen(path, "r");

    if (f == NULL || fscanf(f, "%llu %llu", &ns[0], &ns[1]) != 2) {
        die("%s cannot be read", path);
    }

    fclose(f);
}


/*
 * Replaces each "{FROM-TO}" in a URI by a number.  Returns how many there were.
 */
static int
random_parts(char *uri, random_t part[RANDOM])
{
    int    before, all, n;
    char  *p;

    for (n = 0; (p = strchr(uri, '{')) != NULL; n++) {

        errno = 0;

        if (n == RANDOM) {
            die("a URI has no more than %d ranges", RANDOM);
        }

        before = all = 0;

        if (sscanf(p, "{%lu%n-%lu}%n", &part[n].from, &before, &part[n].to,
                   &all) != 2
            || all == 0 || part[n].to < part[n].from
            || all != 2 * before + 1)
        {
            die("a range of numbers is {FROM-TO}, both of as many digits");
        }

        part[n].at = (size_t) (p - uri);
        memmove(p, p + 1, (size_t) before - 1);
        memmove(p + before - 1, p + all, strlen(p + all) + 1);
    }

    return n;
}


static unsigned long
any(unsigned long from, unsigned long to)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;

    return from + seed % (to - from + 1);
}


/* Writes requests one after another to *text.  Returns the length of each. */
static size_t
make(const kind_t *kind, char **text)
{
    int            len, some, parts, k;
    char           head[1024], uri[512], number[24], *p;
    long           i, j;
    size_t         size;
    random_t       part[RANDOM];
    unsigned long  key;

    snprintf(uri, sizeof(uri), "%s", kind->uri);

    parts = random_parts(uri, part);

    len = (kind->keys == 0)
          ? snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\n"
                     "Host: localhost\r\n\r\n", kind->method, uri)
          : snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\n"
                     "Host: localhost\r\nContent-Length: %ld\r\n\r\n",
                     kind->method, uri, kind->keys * (digits + 1));

    size = (size_t) len + (size_t) (kind->keys * (digits + 1));
    p = malloc(size * (size_t) kind->count + 1);

    if (p == NULL) {
        die("no memory for bodies");
    }

    *text = p;
    key = kind->first;

    for (i = 0; i < kind->count; i++) {
        memcpy(p, head, (size_t) len);

        for (k = 0; k < parts; k++) {
            some = sprintf(number, "%lu", any(part[k].from, part[k].to));
            memcpy(p + strlen(kind->method) + 1 + part[k].at, number,
                   (size_t) some);
        }

        p += len;

        for (j = 0; j < kind->keys; j++, p += digits + 1) {
            sprintf(p, "%0*lu\n", digits, key++);
        }
    }

    return size;
}


static void
run(int fd, const kind_t *kind, long round, const char *pid)
{
    char                  *text;
    long                   i, n, received, added, removed, failed, durable;
    size_t                 size;
    double                 took;
    uint64_t               begun;
    unsigned long long     was[2], is[2], mine[2], ours[2];
    static http_answer_t   answer;

    size = make(kind, &text);

    received = 0;
    added = 0;
    removed = 0;
    failed = 0;
    durable = 0;

    /* the kernel updates a process's time when it leaves the processor */

    usleep(2000);

    used(pid, was);
    used("self", mine);
    begun = now();

    for (i = 0; i < kind->count; i++) {
        http_send(fd, text + (size_t) i * size, size);

        answer.len = 0;

        if (http_read(fd, &answer) != 1) {
            die("the connection ended instead of an answer");
        }

        if (answer.status != kind->status) {
            if (failed++ == 0) {
                fprintf(stderr, "%s: not %d: %.*s\n", kind->name, kind->status,
                        (int) strcspn(answer.text, "\r\n"), answer.text);
            }
        }

        n = http_number(&answer, "received");
        received += (n > 0) ? n : 0;

        n = http_number(&answer, "added");
        added += (n > 0) ? n : 0;

        n = http_number(&answer, "removed");
        removed += (n > 0) ? n : 0;

        durable += (strstr(answer.body, "\"durable\":true") != NULL);
    }

    took = (double) (now() - begun) / 1e9;

    used("self", ours);
    usleep(2000);
    used(pid, is);

    printf("{\"name\":\"%s\",\"round\":%ld,\"requests\":%ld,\"failed\":%ld,"
           "\"keys\":%ld,\"received\":%ld,\"added\":%ld,\"removed\":%ld,"
           "\"durable\":%ld,\"seconds\":%.9f,\"cpu\":%.9f,\"waited\":%.9f,"
           "\"client_waited\":%.9f}\n",
           kind->name, round, kind->count, failed, kind->count * kind->keys,
           received, added, removed, durable, took,
           (double) (is[0] - was[0]) / 1e9, (double) (is[1] - was[1]) / 1e9,
           (double) (ours[1] - mine[1]) / 1e9);
    fflush(stdout);

    free(text);
}


int
main(int argc, char **argv)
{
    int          opt, port, fd, kinds, i, j;
    char        *text;
    long         rounds, round;
    kind_t       kind[16];
    const char  *pid;

    port = 0;
    rounds = 1;
    pid = "self";

    while ((opt = getopt(argc, argv, "p:r:f:d:w:")) != -1) {
        switch (opt) {

        case 'p':
            port = atoi(optarg);
            break;

        case 'r':
            rounds = atol(optarg);
            break;

        case 'f':
            next_key = strtoul(optarg, NULL, 10);
            break;

        case 'd':
            digits = atoi(optarg);
            break;

        case 'w':
            pid = optarg;
            break;

        default:
            return 2;
        }
    }

    kinds = argc - optind;
    errno = 0;

    if (port == 0 || kinds == 0 || kinds > 16) {
        die("usage: send -p PORT [-r ROUNDS] [-f FIRST] [-w PID] KIND...");
    }

    for (i = 0; i < kinds; i++) {
        text = argv[optind + i];

        kind[i].name = part(&text);
        kind[i].method = part(&text);
        kind[i].uri = part(&text);
        kind[i].count = atol(part(&text));
        kind[i].keys = atol(part(&text));
        kind[i].status = (text != NULL) ? atoi(part(&text)) : 200;
        kind[i].as = -1;

        for (j = 0; text != NULL && j < i; j++) {
            if (strcmp(kind[j].name, text) == 0) {
                kind[i].as = j;
            }
        }

        if (text != NULL && kind[i].as == -1) {
            die("%s: no earlier kind is called \"%s\"", kind[i].name, text);
        }
    }

    fd = http_connect(port);

    for (round = 0; round < rounds; round++) {
        for (i = 0; i < kinds; i++) {

            if (kind[i].as != -1) {
                kind[i].first = kind[kind[i].as].first;

            } else {
                kind[i].first = next_key;
                next_key += (unsigned long) (kind[i].count * kind[i].keys);
            }

            run(fd, &kind[i], round, pid);
        }
    }

    return 0;
}
