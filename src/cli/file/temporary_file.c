/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file creates, renames and removes temporary files.  Those that are not
 * renamed are removed when the program ends.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "temporary_file.h"


/* The files that are removed if a signal ends the program, or NULL.  They
 * change only while the signals below are blocked. */
static const char *volatile  unfinished[TEMPORARY_FILES];

static const int  signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE,
                                SIGXCPU };

#define SIGNALS  (sizeof(signals) / sizeof(signals[0]))


/* Returns the index of a file, or of a free place if the name is NULL; -1 if
 * the file is not registered, or no place is free. */
static int
place_of(const char *name)
{
    int  i;

    for (i = 0; i < TEMPORARY_FILES; i++) {
        if (unfinished[i] == name) {
            return i;
        }
    }

    return -1;
}


static void
remove_unfinished(void)
{
    int  i;

    for (i = 0; i < TEMPORARY_FILES; i++) {
        if (unfinished[i] != NULL) {
            (void) unlink(unfinished[i]);
            unfinished[i] = NULL;
        }
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
    int       fd, err, place;
    sigset_t  before;

    place = place_of(NULL);

    if (place == -1) {
        errno = EMFILE;
        return -1;
    }

    catch_signals();
    block_signals(&before);

    fd = mkostemp(name, O_CLOEXEC);
    err = errno;

    if (fd != -1) {
        unfinished[place] = name;
    }

    restore_signals(&before);

    errno = err;

    return fd;
}


int
temporary_file_rename(const char *name, const char *path)
{
    int       rc, err;
    sigset_t  before;

    block_signals(&before);

    rc = rename(name, path);
    err = errno;

    if (rc == 0) {
        unfinished[place_of(name)] = NULL;
    }

    restore_signals(&before);

    errno = err;

    return rc;
}


void
temporary_file_remove(const char *name)
{
    int       place;
    sigset_t  before;

    place = name != NULL ? place_of(name) : -1;

    if (place == -1) {
        return;
    }

    block_signals(&before);

    (void) unlink(name);
    unfinished[place] = NULL;

    restore_signals(&before);
}
