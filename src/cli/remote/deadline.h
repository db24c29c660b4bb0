/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A deadline limits how long the program waits for a peer.
 *
 * When the deadline passes, the connection is shut down, so that reads and
 * writes fail in any library.  A time limit for each read is not enough: a peer
 * that sends a byte of a TLS record now and then never exceeds it.
 */

#ifndef DEADLINE_H
#define DEADLINE_H


/* Sets the deadline of a connection, in `seconds` from now.  Each thread has
 * one deadline at a time. */
void deadline_begin(int fd, unsigned seconds);

/* Cancels the deadline and keeps errno.  Returns 1 if it has passed, else 0. */
int deadline_end(void);


#endif /* DEADLINE_H */
