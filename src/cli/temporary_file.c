/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file creates, renames and removes the one temporary file, and removes it
 * if the program ends before it is renamed.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "temporary_file.h"


/* The file that is removed if a signal ends the program, or NULL.  It changes
 * only while the signals below are blocked. */
static const char *volatile  unfinished;

static const int  signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE,
                                SIGXCPU };

#define SIGNALS  (sizeof(signals) / sizeof(signals[0]))


static void
remove_unfinished(void)
{
    if (unfinished != NULL) {
        (void) unlink(unfinished);
        unfinished = NULL;
    }
}


static void
on_signal(int signo)
{
    remove_unfinished();

    /* the handler runs once (SA_RESETHAND); now the signal's default applies */

    (void) raise(signo);
}


static void
block_signals(sigset_t *before)
{
    size_t    i;
    sigset_t  set;

    sigemptyset(&set);

    for (i = 0; i < SIGNALS; i++) {
        sigaddset(&set, signals[i]);
    }

    (void) pthread_sigmask(SIG_BLOCK, &set, before);
}


static void
restore_signals(const sigset_t *before)
{
    (void) pthread_sigmask(SIG_SETMASK, before, NULL);
}


static void
catch_signals(void)
{
    size_t            i;
    static int        done;
    struct sigaction  now, before;

    if (done) {
        return;
    }

    done = 1;

    memset(&now, 0, sizeof(now));
    now.sa_handler = on_signal;
    now.sa_flags = SA_RESETHAND;
    sigemptyset(&now.sa_mask);

    for (i = 0; i < SIGNALS; i++) {

        /* a signal that the parent, such as nohup, ignores stays ignored */

        if (sigaction(signals[i], NULL, &before) == 0
            && before.sa_handler != SIG_IGN)
        {
            (void) sigaction(signals[i], &now, NULL);
        }
    }

    (void) atexit(remove_unfinished);
}


int
temporary_file_create(char *name)
{
    int       fd, err;
    sigset_t  before;

    catch_signals();
    block_signals(&before);

    fd = mkostemp(name, O_CLOEXEC);
    err = errno;

    if (fd != -1) {
        unfinished = name;
    }

    restore_signals(&before);

    errno = err;

    return fd;
}


int
temporary_file_rename(const char *path)
{
    int       rc, err;
    sigset_t  before;

    block_signals(&before);

    rc = rename(unfinished, path);
    err = errno;

    if (rc == 0) {
        unfinished = NULL;
    }

    restore_signals(&before);

    errno = err;

    return rc;
}


void
temporary_file_remove(void)
{
    sigset_t  before;

    block_signals(&before);
    remove_unfinished();
    restore_signals(&before);
}
