/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file shuts down a connection when its deadline passes, with a timer of
 * the thread and its signal.
 */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "deadline.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id  _sigev_un._tid
#endif


/* The signal goes to the thread that set the timer. */

static _Thread_local volatile sig_atomic_t  connection;
static _Thread_local volatile sig_atomic_t  passed;
static _Thread_local int                    created;
static _Thread_local timer_t                timer;


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


static void
create(void)
{
    sigset_t          set;
    struct sigevent   event;
    struct sigaction  action;

    memset(&action, 0, sizeof(action));
    action.sa_handler = on_alarm;
    (void) sigaction(SIGALRM, &action, NULL);

    /* the parent process may have blocked it */

    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    (void) pthread_sigmask(SIG_UNBLOCK, &set, NULL);

    memset(&event, 0, sizeof(event));
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGALRM;
    event.sigev_notify_thread_id = (pid_t) syscall(SYS_gettid);

    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) {
        cli_error("cannot create a timer: %s; raise the limit that \"ulimit "
                  "-i\" shows", strerror(errno));
        exit(CLI_ERROR);
    }

    created = 1;
}


void
deadline_begin(int fd, unsigned seconds)
{
    struct itimerspec  span;

    if (!created) {
        create();
    }

    connection = fd;
    passed = 0;

    memset(&span, 0, sizeof(span));
    span.it_value.tv_sec = seconds;
    (void) timer_settime(timer, 0, &span, NULL);
}


int
deadline_end(void)
{
    int                err;
    struct itimerspec  span;

    err = errno;

    memset(&span, 0, sizeof(span));
    (void) timer_settime(timer, 0, &span, NULL);

    errno = err;

    return passed;
}
