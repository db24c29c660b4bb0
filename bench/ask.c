/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * ask keeps a server busy: it sends requests on many connections at once.  Each
 * connection sends the next request as soon as it has the answer.
 *
 *     ask -p PORT [-c CONNECTIONS] [-r ROUNDS] [-q SECONDS] [-a SECONDS]
 *         -t URI PREFIX
 *
 * A request's URI is PREFIX and random digits.
 * In each round there are three phases:
 *
 *     quiet     for -q seconds
 *     during    from a POST to the URI of -t until that is answered
 *     after     for -a seconds
 *
 * For each phase it prints a line of JSON: the requests, the failures (a status
 * other than 200, or a connection that ended), and the latency of requests that
 * were answered in the phase, in microseconds.  For "during" the line also has
 * the seconds that the POST took, and its status.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "http.h"

#define CONNECTIONS_MAX  256


typedef enum {
    QUIET = 0,
    DURING,
    AFTER,
    PHASES
} phase_e;

typedef struct {
    uint64_t  *ns;
    size_t     n;
    size_t     room;
    size_t     failed;
    double     seconds;
} phase_t;

typedef struct {
    int            fd;
    uint64_t       sent;
    http_answer_t  answer;
} connection_t;


static const char    *names[PHASES] = { "quiet", "during", "after" };

static int            epoll, port;
static const char    *prefix;
static connection_t   asking[CONNECTIONS_MAX], asked;
static uint64_t       seed = 0x2545f4914f6cdd1d;


static uint64_t
any(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;

    return seed;
}


static void
open_connection(connection_t *c)
{
    struct epoll_event  ev;

    c->fd = http_connect(port);

    ev.events = EPOLLIN;
    ev.data.ptr = c;

    if (fcntl(c->fd, F_SETFL, O_NONBLOCK) == -1
        || epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &ev) == -1)
    {
        die("epoll");
    }
}


static void
ask(connection_t *c)
{
    int   len;
    char  text[512];

    len = snprintf(text, sizeof(text), "GET %s%016llx HTTP/1.1\r\n"
                   "Host: localhost\r\n\r\n", prefix,
                   (unsigned long long) any());

    c->answer.len = 0;
    c->sent = now();

    http_send(c->fd, text, (size_t) len);
}


static void
note(phase_t *phase, uint64_t ns)
{
    if (phase->n == phase->room) {
        phase->room = phase->room ? 2 * phase->room : 1024 * 1024;
        phase->ns = realloc(phase->ns, phase->room * sizeof(uint64_t));

        if (phase->ns == NULL) {
            die("no memory for latencies");
        }
    }

    phase->ns[phase->n++] = ns;
}


/* Returns 1 once the POST is answered. */
static int
serve(phase_t *phase)
{
    int                  i, n, rc, done;
    connection_t        *c;
    struct epoll_event   ev[CONNECTIONS_MAX];

    n = epoll_wait(epoll, ev, CONNECTIONS_MAX, 10);
    done = 0;

    for (i = 0; i < n; i++) {
        c = ev[i].data.ptr;
        rc = http_read(c->fd, &c->answer);

        if (rc == 0) {
            continue;
        }

        if (c == &asked) {
            if (rc == -1) {
                die("the connection ended instead of an answer");
            }

            done = 1;
            continue;
        }

        note(phase, now() - c->sent);

        if (rc == -1 || c->answer.status != 200) {
            phase->failed++;
        }

        if (rc == -1) {
            close(c->fd);
            open_connection(c);
        }

        ask(c);
    }

    return done;
}


static void
serve_for(phase_t *phase, double seconds)
{
    uint64_t  begun;

    begun = now();

    while ((double) (now() - begun) < seconds * 1e9) {
        (void) serve(phase);
    }

    phase->seconds = (double) (now() - begun) / 1e9;
}


static int
ascending(const void *a, const void *b)
{
    uint64_t  x, y;

    x = *(const uint64_t *) a;
    y = *(const uint64_t *) b;

    return (x > y) - (x < y);
}


static double
percentile(const phase_t *phase, double share)
{
    return phase->n == 0 ? 0
           : (double) phase->ns[(size_t) (share * (double) (phase->n - 1))]
             / 1e3;
}


static void
print(long round, phase_t *phases)
{
    int       i;
    phase_t  *phase;

    for (i = 0; i < PHASES; i++) {
        phase = &phases[i];

        qsort(phase->ns, phase->n, sizeof(uint64_t), ascending);

        printf("{\"name\":\"%s\",\"round\":%ld,\"requests\":%zu,"
               "\"failed\":%zu,\"seconds\":%.6f,\"p50\":%.1f,\"p99\":%.1f,"
               "\"p999\":%.1f,\"max\":%.1f",
               names[i], round, phase->n, phase->failed, phase->seconds,
               percentile(phase, 0.5), percentile(phase, 0.99),
               percentile(phase, 0.999), percentile(phase, 1));

        if (i == DURING) {
            printf(",\"status\":%d", asked.answer.status);
        }

        printf("}\n");

        phase->n = 0;
        phase->failed = 0;
    }

    fflush(stdout);
}


int
main(int argc, char **argv)
{
    int              opt, i, len, connections;
    char             text[512];
    long             rounds, round;
    double           quiet, after;
    uint64_t         begun;
    const char      *uri;
    static phase_t   phases[PHASES];

    connections = 16;
    rounds = 5;
    quiet = 1;
    after = 0.3;
    uri = NULL;

    while ((opt = getopt(argc, argv, "p:c:r:q:a:t:")) != -1) {
        switch (opt) {

        case 'p':
            port = atoi(optarg);
            break;

        case 'c':
            connections = atoi(optarg);
            break;

        case 'r':
            rounds = atol(optarg);
            break;

        case 'q':
            quiet = atof(optarg);
            break;

        case 'a':
            after = atof(optarg);
            break;

        case 't':
            uri = optarg;
            break;

        default:
            return 2;
        }
    }

    errno = 0;

    if (port == 0 || uri == NULL || optind != argc - 1 || connections < 1
        || connections > CONNECTIONS_MAX)
    {
        die("usage: ask -p PORT [-c CONNECTIONS] [-r ROUNDS] [-q SECONDS] "
            "[-a SECONDS] -t URI PREFIX");
    }

    prefix = argv[optind];
    epoll = epoll_create1(0);

    for (i = 0; i < connections; i++) {
        open_connection(&asking[i]);
        ask(&asking[i]);
    }

    open_connection(&asked);

    len = snprintf(text, sizeof(text), "POST %s HTTP/1.1\r\n"
                   "Host: localhost\r\nContent-Length: 0\r\n\r\n", uri);

    for (round = 0; round < rounds; round++) {

        /* skip answers that were delayed while the last round was printed */

        serve_for(&phases[QUIET], 0.2);
        phases[QUIET].n = 0;

        serve_for(&phases[QUIET], quiet);

        begun = now();
        asked.answer.len = 0;
        http_send(asked.fd, text, (size_t) len);

        while (!serve(&phases[DURING])) { /* void */ }

        phases[DURING].seconds = (double) (now() - begun) / 1e9;

        serve_for(&phases[AFTER], after);

        print(round, phases);
    }

    return 0;
}
