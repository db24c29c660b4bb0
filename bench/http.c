/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file sends HTTP/1.1 requests to localhost and reads the answers.
 */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "http.h"


uint64_t
now(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_MONOTONIC, &t);

    return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}


void
die(const char *what, ...)
{
    int      err;
    va_list  args;

    err = errno;

    va_start(args, what);
    vfprintf(stderr, what, args);
    va_end(args);

    fprintf(stderr, err ? ": %s\n" : "\n", strerror(err));

    exit(2);
}


int
http_connect(int port)
{
    int                 fd, on;
    struct sockaddr_in  to;

    memset(&to, 0, sizeof(to));
    to.sin_family = AF_INET;
    to.sin_port = htons((uint16_t) port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    on = 1;
    fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd == -1
        || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == -1
        || connect(fd, (struct sockaddr *) &to, sizeof(to)) == -1)
    {
        die("cannot connect to port %d", port);
    }

    return fd;
}


void
http_send(int fd, const char *data, size_t len)
{
    ssize_t  n;

    for ( /* void */ ; len != 0; data += n, len -= (size_t) n) {
        n = send(fd, data, len, MSG_NOSIGNAL);

        if (n == -1) {
            die("cannot send");
        }
    }
}


int
http_read(int fd, http_answer_t *answer)
{
    char     *end, *length;
    ssize_t   n;

    if (answer->len == 0) {
        answer->whole = 0;
        answer->status = 0;
    }

    for ( ;; ) {
        n = read(fd, answer->text + answer->len,
                 HTTP_ANSWER_MAX - 1 - answer->len);

        if (n == -1 && errno == EAGAIN) {
            return 0;
        }

        if (n <= 0) {
            return -1;
        }

        answer->len += (size_t) n;
        answer->text[answer->len] = '\0';

        if (answer->whole == 0) {
            end = strstr(answer->text, "\r\n\r\n");

            if (end == NULL) {
                continue;
            }

            length = strcasestr(answer->text, "\r\nContent-Length:");

            if (length == NULL || length > end
                || sscanf(answer->text, "HTTP/1.1 %d", &answer->status) != 1)
            {
                errno = 0;
                die("an answer cannot be read: %s", answer->text);
            }

            answer->body = end + 4;
            answer->whole = (size_t) (answer->body - answer->text)
                            + strtoul(length + 17, NULL, 10);

            if (answer->whole >= HTTP_ANSWER_MAX) {
                errno = 0;
                die("an answer is too long: %s", answer->text);
            }
        }

        if (answer->len >= answer->whole) {
            return 1;
        }
    }
}


long
http_number(const http_answer_t *answer, const char *name)
{
    size_t       len;
    const char  *p;

    len = strlen(name);

    for (p = answer->body; (p = strstr(p, name)) != NULL; p += len) {
        if (p[-1] == '"' && p[len] == '"' && p[len + 1] == ':') {
            return strtol(p + len + 2, NULL, 10);
        }
    }

    return -1;
}
