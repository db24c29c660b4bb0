/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The clients of the benchmarks share a clock, and HTTP/1.1 over a connection
 * to localhost, for answers with a Content-Length.
 */

#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H

#include <stddef.h>
#include <stdint.h>


#define HTTP_ANSWER_MAX  (64 * 1024)


/* An answer, as far as it was read.  `body` lies in `text`. */
typedef struct {
    size_t       len;                    /* of what was read */
    size_t       whole;                  /* of all of it, 0: not known yet */
    int          status;
    const char  *body;                   /* null-terminated when it is whole */
    char         text[HTTP_ANSWER_MAX];
} http_answer_t;


/* Nanoseconds of the monotonic clock. */
uint64_t now(void);

/* Ends the program with a message, and errno's if that is not 0. */
void die(const char *what, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* A blocking connection to a port of 127.0.0.1, without Nagle's delay. */
int http_connect(int port);

/* Writes all of it; dies if that fails. */
void http_send(int fd, const char *data, size_t len);

/*
 * Reads what has come of an answer.  1: it is whole; 0: not yet (of a
 * connection that does not block); -1: the connection has ended.  To begin an
 * answer, set len to 0.
 */
int http_read(int fd, http_answer_t *answer);

/* The number behind "name": in a JSON answer, -1 if there is none. */
long http_number(const http_answer_t *answer, const char *name);


#endif /* BENCH_HTTP_H */
