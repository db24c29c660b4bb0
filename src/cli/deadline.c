/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file shuts down a connection when its deadline passes, with a timer and
 * its signal.
 */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "deadline.h"


static volatile sig_atomic_t  connection;
static volatile sig_atomic_t  passed;


static void
on_alarm(int signo)
{
    int  err;

    (void) signo;

    err = errno;
    passed = 1;
    (void) shutdown(connection, SHUT_RDWR);
    errno = err;
}


void
deadline_begin(int fd, unsigned seconds)
{
    sigset_t          set;
    struct sigaction  action;
    struct itimerval  timer;

    connection = fd;
    passed = 0;

    memset(&action, 0, sizeof(action));
    action.sa_handler = on_alarm;
    (void) sigaction(SIGALRM, &action, NULL);

    /* the parent process may have blocked it */

    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    (void) pthread_sigmask(SIG_UNBLOCK, &set, NULL);

    memset(&timer, 0, sizeof(timer));
    timer.it_value.tv_sec = seconds;
    (void) setitimer(ITIMER_REAL, &timer, NULL);
}


int
deadline_end(void)
{
    int               err;
    struct itimerval  timer;

    err = errno;

    memset(&timer, 0, sizeof(timer));
    (void) setitimer(ITIMER_REAL, &timer, NULL);

    errno = err;

    return passed;
}
