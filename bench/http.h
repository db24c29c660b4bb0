/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions give the clients of the benchmarks a clock, and HTTP/1.1 over
 * a connection to localhost, for answers with a Content-Length.
 */

#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H

#include <stddef.h>
#include <stdint.h>


#define HTTP_ANSWER_MAX  (64 * 1024)


/* An answer, as far as it has been read.  `body` points into `text`. */
typedef struct {
    size_t       len;                    /* bytes read so far */
    size_t       whole;                  /* bytes in all; 0: not known yet */
    int          status;
    const char  *body;                   /* null-terminated once complete */
    char         text[HTTP_ANSWER_MAX];
} http_answer_t;


/* Returns the monotonic clock's time in nanoseconds. */
uint64_t now(void);

/* Exits with a message, followed by errno's message if errno is not 0. */
void die(const char *what, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Returns a blocking connection to a port of 127.0.0.1, with TCP_NODELAY. */
int http_connect(int port);

/* Writes all bytes, or exits. */
void http_send(int fd, const char *data, size_t len);

/*
 * Reads what has arrived of an answer.  Returns 1 if the answer is complete; 0
 * if it is not yet, on a non-blocking connection; -1 if the connection has
 * ended.  Set len to 0 before the first call for an answer.
 */
int http_read(int fd, http_answer_t *answer);

/* Returns the number of "name": in a JSON answer, or -1 if the answer has
 * no such number. */
long http_number(const http_answer_t *answer, const char *name);


#endif /* BENCH_HTTP_H */
