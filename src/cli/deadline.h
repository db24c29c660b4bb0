/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A deadline ends all waiting for a peer.
 *
 * When it passes, the connection is shut down, so that whoever reads from it or
 * writes to it, in whatever library, finds it closed.  A limit for each read
 * would not do: a peer that sends a byte now and then, within a record of TLS,
 * never reaches one.
 */

#ifndef DEADLINE_H
#define DEADLINE_H


/* Sets the deadline of a connection; there is one at a time. */
void deadline_begin(int fd, unsigned seconds);

/* Cancels it, and leaves errno as it is.  Returns 1 if it has passed. */
int deadline_end(void);


#endif /* DEADLINE_H */
