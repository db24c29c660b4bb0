/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions open a connection to a server, by TCP or by a Unix socket, in
 * bounded time.
 */

#ifndef DIAL_H
#define DIAL_H

#include <stddef.h>


/*
 * Connects to a host, which is a name or an address.  The addresses of a name
 * are tried in turn, and each gets its part of `seconds`.  Returns the
 * connection; or -1 with the reason, and what to do, in `error`.
 */
int dial_host(const char *host, unsigned port, unsigned seconds, char *error,
    size_t size);

/* Connects to a Unix socket; returns as dial_host() does. */
int dial_unix(const char *path, unsigned seconds, char *error, size_t size);


#endif /* DIAL_H */
