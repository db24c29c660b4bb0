/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file opens connections to servers.
 */

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli.h"
#include "dial.h"

#define SHARE_MIN    0.01                /* seconds for an address */
#define ADDRESS_LEN  64                  /* of a numeric address, with its scope */


/* Limits how long connect() and writes may take; 0: not at all. */
static void
limit(int fd, double seconds)
{
    struct timeval  span;

    span.tv_sec = (time_t) seconds;
    span.tv_usec = (suseconds_t) ((seconds - (double) span.tv_sec) * 1e6);

    (void) setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &span, sizeof(span));
}


/* Connects to an address.  Returns the connection, or -1 with errno. */
static int
dial(const struct sockaddr *address, socklen_t len, double seconds)
{
    int  fd, err;

    fd = socket(address->sa_family, SOCK_STREAM|SOCK_CLOEXEC, 0);

    if (fd == -1) {
        return -1;
    }

    limit(fd, seconds);

    if (connect(fd, address, len) == 0) {
        limit(fd, 0);
        return fd;
    }

    /* the limit has passed, for TCP and for a Unix socket */

    err = errno == EINPROGRESS || errno == EAGAIN ? ETIMEDOUT : errno;
    close(fd);
    errno = err;

    return -1;
}


/* Appends why an address cannot be reached: "::1: Connection refused". */
static void
append_reason(char *text, size_t size, const struct addrinfo *address)
{
    int     err;
    char    shown[ADDRESS_LEN];
    size_t  len;

    err = errno;
    len = strlen(text);

    if (getnameinfo(address->ai_addr, address->ai_addrlen, shown,
                    sizeof(shown), NULL, 0, NI_NUMERICHOST)
        != 0)
    {
        strcpy(shown, "?");
    }

    snprintf(text + len, size - len, "%s%s: %s", len != 0 ? ", " : "", shown,
             strerror(err));
}


int
dial_host(const char *host, unsigned port, unsigned seconds, char *error,
    size_t size)
{
    int               fd, n, rc;
    char              service[16], reasons[512];
    double            until, share;
    struct addrinfo   hints, *found, *address;
    const int         on = 1;

    memset(&hints, 0, sizeof(hints));
    hints.ai_socktype = SOCK_STREAM;
    snprintf(service, sizeof(service), "%u", port);

    rc = getaddrinfo(host, service, &hints, &found);

    if (rc != 0) {
        snprintf(error, size, "cannot connect: %s; check the name of the "
                 "server", rc == EAI_SYSTEM ? strerror(errno)
                                            : gai_strerror(rc));
        return -1;
    }

    for (n = 0, address = found; address != NULL; address = address->ai_next) {
        n++;
    }

    until = cli_now() + seconds;
    reasons[0] = '\0';
    fd = -1;

    for (address = found; address != NULL; address = address->ai_next, n--) {

        share = (until - cli_now()) / n;
        fd = dial(address->ai_addr, address->ai_addrlen,
                  share > SHARE_MIN ? share : SHARE_MIN);

        if (fd != -1) {
            (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            break;
        }

        append_reason(reasons, sizeof(reasons), address);
    }

    freeaddrinfo(found);

    if (fd == -1) {
        snprintf(error, size, "cannot connect: %s; check the address, and "
                 "that the server is running", reasons);
    }

    return fd;
}


/* Returns what to do about a Unix socket that cannot be connected to. */
static const char *
advice(const char *path, int err)
{
    struct stat  info;

    if (stat(path, &info) == 0 && !S_ISSOCK(info.st_mode)) {
        return "it is not a socket; use the path in the server's unixsocket";
    }

    switch (err) {

    case ENOENT:
        return "check the path, and that the server is running with this "
               "unixsocket";

    case EACCES:
        return "the user needs write access to the socket, which the server's "
               "unixsocketperm gives, and access to its directory";

    default:
        return "check that the server is running";
    }
}


int
dial_unix(const char *path, unsigned seconds, char *error, size_t size)
{
    int                 fd, err;
    struct sockaddr_un  address;

    if (strlen(path) >= sizeof(address.sun_path)) {
        snprintf(error, size, "cannot connect: the path of the socket has "
                 "more than %zu bytes; use a shorter one",
                 sizeof(address.sun_path) - 1);
        return -1;
    }

    memset(&address, 0, sizeof(address));
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path);

    fd = dial((struct sockaddr *) &address, sizeof(address), seconds);

    if (fd == -1) {
        err = errno;
        snprintf(error, size, "cannot connect: %s; %s", strerror(err),
                 advice(path, err));
    }

    return fd;
}
