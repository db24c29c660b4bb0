/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A child is made by fork(), never by clone(): the C library would not release
 * the robust locks of a process that it does not know.
 */

#include "ngx_bloom_child.h"

#include <ngx_event.h>

#include <sys/prctl.h>
#include <sys/wait.h>


/* How long to wait for a child that was killed, and the pause between two
 * looks, ms. */
#define NGX_BLOOM_CHILD_WAIT   1000
#define NGX_BLOOM_CHILD_PAUSE  2


static void ngx_bloom_child_ignore(void);
static void ngx_bloom_child_close(void);


void
ngx_bloom_child_begin(const char *title)
{
    int       signo;
    sigset_t  none;

    ngx_pid = ngx_getpid();
    ngx_setproctitle((char *) title);

    for (signo = 1; signo < NSIG; signo++) {
        (void) signal(signo, signo == SIGPIPE ? SIG_IGN : SIG_DFL);
    }

    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
}


ngx_int_t
ngx_bloom_child_follow(pid_t parent)
{
    /* the parent may have died before the call */

    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent
           ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_bloom_child_start(ngx_bloom_child_t *child, const char *title,
    void (*function)(void *data), void *data)
{
    pid_t  pid, parent;

    /* nginx's handler would take the status of the child */

    (void) signal(SIGCHLD, SIG_DFL);

    parent = ngx_getpid();
    pid = fork();

    if (pid == -1) {
        return NGX_ERROR;
    }

    if (pid == 0) {
        ngx_bloom_child_begin(title);

        ngx_bloom_child_ignore();

        if (ngx_bloom_child_follow(parent) != NGX_OK) {
            _exit(1);
        }

        ngx_bloom_child_close();

        function(data);
        _exit(0);
    }

    child->pid = pid;

    return NGX_OK;
}


/* Ignores the signals that are for nginx: somebody may send them to all of its
 * processes by name. */
static void
ngx_bloom_child_ignore(void)
{
    ngx_uint_t  i;

    static const int  signals[] = {
        SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH
    };

    for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        (void) signal(signals[i], SIG_IGN);
    }
}


/* Closes the connections of nginx that are in use; the others may have numbers
 * that are those of other files now. */
static void
ngx_bloom_child_close(void)
{
    u_char            *unused;
    ngx_uint_t         i, n;
    ngx_connection_t  *c;

    if (ngx_cycle->connections == NULL) {
        return;                      /* the only process, after a reload */
    }

    n = ngx_cycle->connection_n;
    unused = calloc(n + 1, 1);

    if (unused == NULL) {
        return;
    }

    for (c = ngx_cycle->free_connections; c != NULL; c = c->data) {
        unused[c - ngx_cycle->connections] = 1;
    }

    for (i = 0; i < n; i++) {
        c = &ngx_cycle->connections[i];

        if (!unused[i] && c->fd != (ngx_socket_t) -1) {
            (void) close(c->fd);

            /* a child of this process must not close the next file that gets
             * the number */

            c->fd = (ngx_socket_t) -1;
        }
    }

    free(unused);
}


void
ngx_bloom_child_expendable(void)
{
    ngx_fd_t  fd;

    static const char  most[] = "1000";

    fd = open("/proc/self/oom_score_adj", O_WRONLY|O_CLOEXEC);

    if (fd != NGX_INVALID_FILE) {
        (void) ngx_write_fd(fd, (void *) most, sizeof(most) - 1);
        (void) ngx_close_file(fd);
    }
}


ngx_int_t
ngx_bloom_child_ended(ngx_bloom_child_t *child, int *status)
{
    pid_t  pid;

    pid = waitpid(child->pid, status, WNOHANG);

    if (pid == 0 || (pid == -1 && ngx_errno == NGX_EINTR)) {
        return NGX_AGAIN;
    }

    if (pid == -1) {
        *status = 0;                 /* another handler has taken the status */
    }

    child->pid = 0;

    return NGX_OK;
}


void
ngx_bloom_child_kill(ngx_bloom_child_t *child)
{
    int         status;
    ngx_uint_t  i;

    (void) kill(child->pid, SIGKILL);

    for (i = 0; i < NGX_BLOOM_CHILD_WAIT / NGX_BLOOM_CHILD_PAUSE; i++) {

        if (ngx_bloom_child_ended(child, &status) == NGX_OK) {
            return;
        }

        ngx_msleep(NGX_BLOOM_CHILD_PAUSE);
    }
}
