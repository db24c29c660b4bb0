/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The child replies over a pair of sockets, and is killed after that: its exit
 * status does not matter.
 */

#include "ngx_bloom_unprivileged.h"
#include "ngx_bloom_child.h"
#include "ngx_bloom_io.h"

#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>


/* How often the master checks if the child has been stopped, ms. */
#define NGX_BLOOM_UNPRIVILEGED_LOOK  500


typedef struct {
    ngx_int_t    rc;
    uint64_t     value;
    uint64_t     room;
    ngx_uint_t   files;                  /* a bit for each of fd[] */
} ngx_bloom_unprivileged_message_t;

typedef union {
    struct cmsghdr  header;
    u_char          space[CMSG_SPACE(2 * sizeof(int))];
} ngx_bloom_unprivileged_files_t;


static void ngx_bloom_unprivileged_child(ngx_bloom_user_t *user,
    ngx_log_t *log, pid_t parent, ngx_socket_t s,
    ngx_bloom_unprivileged_pt function, void *data);
static ngx_int_t ngx_bloom_unprivileged_become(ngx_bloom_user_t *user);
static void ngx_bloom_unprivileged_end(ngx_bloom_user_t *user, pid_t pid);
static void ngx_bloom_unprivileged_carries(struct msghdr *msg,
    struct iovec *iov, ngx_bloom_unprivileged_message_t *message);
static ngx_int_t ngx_bloom_unprivileged_send(ngx_socket_t s,
    ngx_bloom_reply_t *reply);
static ngx_int_t ngx_bloom_unprivileged_wait(ngx_socket_t s, pid_t pid,
    ngx_log_t *log, const char *what);
static ngx_int_t ngx_bloom_unprivileged_receive(ngx_socket_t s,
    ngx_bloom_reply_t *reply);


u_char *
ngx_bloom_unprivileged_called(u_char *buf, uid_t user)
{
    struct passwd  *pwd;

    pwd = getpwuid(user);

    if (pwd == NULL) {
        ngx_bloom_print(buf, NGX_BLOOM_USER_LEN, "%ud", (uint32_t) user);

    } else {
        ngx_bloom_print(buf, NGX_BLOOM_USER_LEN, "%ud (%s)", (uint32_t) user,
                        pwd->pw_name);
    }

    return buf;
}


ngx_bloom_user_t
ngx_bloom_unprivileged_workers(ngx_core_conf_t *ccf)
{
    ngx_bloom_user_t  user;

    ngx_memzero(&user, sizeof(ngx_bloom_user_t));

    if (geteuid() == 0 && ccf->master
        && ccf->user != (ngx_uid_t) NGX_CONF_UNSET_UINT)
    {
        user.drops = 1;
        user.user = ccf->user;
        user.group = ccf->group;
        user.name = ccf->username;

    } else {
        user.user = geteuid();
        user.group = getegid();
    }

    return user;
}


ngx_int_t
ngx_bloom_unprivileged(ngx_bloom_user_t *user, ngx_log_t *log,
    const char *what, ngx_bloom_unprivileged_pt function, void *data,
    ngx_bloom_reply_t *reply)
{
    int           status;
    pid_t         pid, parent;
    ngx_err_t     err;
    ngx_int_t     rc;
    ngx_socket_t  s[2];

    reply->rc = NGX_ERROR;
    reply->value = 0;
    reply->room = 0;
    reply->fd[0] = NGX_INVALID_FILE;
    reply->fd[1] = NGX_INVALID_FILE;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET|SOCK_CLOEXEC, 0, s) == -1) {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      "socketpair() failed for the process that %s", what);
        return NGX_ERROR;
    }

    parent = getpid();
    pid = fork();

    if (pid == 0) {
        (void) close(s[0]);
        ngx_bloom_unprivileged_child(user, log, parent, s[1], function, data);
    }

    err = ngx_errno;
    (void) close(s[1]);

    if (pid == -1) {
        ngx_log_error(NGX_LOG_EMERG, log, err,
                      "fork() failed for the process that %s", what);
        (void) close(s[0]);
        return NGX_ERROR;
    }

    rc = ngx_bloom_unprivileged_wait(s[0], pid, log, what);

    if (rc == NGX_OK) {
        rc = ngx_bloom_unprivileged_receive(s[0], reply);
    }

    (void) close(s[0]);

    /* the child may still be running, or be stopped */

    ngx_bloom_unprivileged_end(user, pid);

    status = 0;

    while (waitpid(pid, &status, 0) == -1 && ngx_errno == NGX_EINTR) {
        /* void */
    }

    if (rc == NGX_DECLINED) {

        if (WIFSIGNALED(status)) {
            ngx_log_error(NGX_LOG_ALERT, log, 0,
                          "the process that %s, %P, died of signal %d; if "
                          "that is 9, check if the system was short of "
                          "memory", what, pid, WTERMSIG(status));

        } else {
            ngx_log_error(NGX_LOG_ALERT, log, 0,
                          "the process that %s, %P, exited without an answer; "
                          "see the messages above", what, pid);
        }

        rc = NGX_ERROR;
    }

    return rc;
}


static void
ngx_bloom_unprivileged_child(ngx_bloom_user_t *user, ngx_log_t *log,
    pid_t parent, ngx_socket_t s, ngx_bloom_unprivileged_pt function,
    void *data)
{
    ngx_bloom_reply_t   reply;

    ngx_bloom_child_begin("bloom loader");

    if (ngx_bloom_unprivileged_become(user) != NGX_OK) {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      "cannot become user %d and group %d, which the workers "
                      "run as: give nginx the capabilities CAP_SETUID and "
                      "CAP_SETGID, or start it as that user",
                      (int) user->user, (int) user->group);
        _exit(1);
    }

    /* a change of the user would undo this */

    if (ngx_bloom_child_follow(parent) != NGX_OK) {
        _exit(1);
    }

    reply.rc = NGX_ERROR;
    reply.value = 0;
    reply.room = 0;
    reply.fd[0] = NGX_INVALID_FILE;
    reply.fd[1] = NGX_INVALID_FILE;

    function(data, &reply);

    if (ngx_bloom_unprivileged_send(s, &reply) != NGX_OK) {
        ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                      "sendmsg() failed: the master does not get the result of "
                      "this process for a bloom zone; try again");
        _exit(1);
    }

    _exit(0);
}


/* Takes the rights that nginx gives its workers, who keep the master's
 * supplementary groups if they may not change them. */
static ngx_int_t
ngx_bloom_unprivileged_become(ngx_bloom_user_t *user)
{
    if (!user->drops) {
        return NGX_OK;
    }

    if (setgid(user->group) == -1) {
        return NGX_ERROR;
    }

    (void) (user->name != NULL ? initgroups(user->name, user->group)
                               : setgroups(0, NULL));

    return setuid(user->user) == -1 ? NGX_ERROR : NGX_OK;
}


/* Kills a child.  Without CAP_KILL, root may do so only as the child's user. */
static void
ngx_bloom_unprivileged_end(ngx_bloom_user_t *user, pid_t pid)
{
    if (kill(pid, SIGKILL) == 0 || ngx_errno != NGX_EPERM || !user->drops
        || seteuid(user->user) == -1)
    {
        return;
    }

    (void) kill(pid, SIGKILL);

    if (seteuid(0) == -1) {
        ngx_abort();
    }
}


/* Prepares a header for a message, without files. */
static void
ngx_bloom_unprivileged_carries(struct msghdr *msg, struct iovec *iov,
    ngx_bloom_unprivileged_message_t *message)
{
    iov->iov_base = message;
    iov->iov_len = sizeof(ngx_bloom_unprivileged_message_t);

    ngx_memzero(msg, sizeof(struct msghdr));

    msg->msg_iov = iov;
    msg->msg_iovlen = 1;
}


static ngx_int_t
ngx_bloom_unprivileged_send(ngx_socket_t s, ngx_bloom_reply_t *reply)
{
    int                               fd[2];
    ssize_t                           n;
    ngx_uint_t                        i, files;
    struct iovec                      iov;
    struct msghdr                     msg;
    ngx_bloom_unprivileged_files_t    control;
    ngx_bloom_unprivileged_message_t  message;

    ngx_memzero(&message, sizeof(ngx_bloom_unprivileged_message_t));
    ngx_memzero(&control, sizeof(ngx_bloom_unprivileged_files_t));

    message.rc = reply->rc;
    message.value = reply->value;
    message.room = reply->room;
    files = 0;

    for (i = 0; i < 2; i++) {
        if (reply->fd[i] != NGX_INVALID_FILE) {
            fd[files++] = reply->fd[i];
            message.files |= (ngx_uint_t) 1 << i;
        }
    }

    ngx_bloom_unprivileged_carries(&msg, &iov, &message);

    if (files != 0) {
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(files * sizeof(int));

        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(files * sizeof(int));

        ngx_memcpy(CMSG_DATA(&control.header), fd, files * sizeof(int));
    }

    do {
        n = sendmsg(s, &msg, 0);
    } while (n == -1 && ngx_errno == NGX_EINTR);

    return n == -1 ? NGX_ERROR : NGX_OK;
}


/*
 * Waits for a reply.  Returns NGX_OK if there is a reply or the child has
 * ended; or NGX_ERROR, which is logged.  It does not wait for a child that has
 * been stopped, because any process of the same user can do that.
 */
static ngx_int_t
ngx_bloom_unprivileged_wait(ngx_socket_t s, pid_t pid, ngx_log_t *log,
    const char *what)
{
    int            n;
    siginfo_t      info;
    struct pollfd  pfd;

    pfd.fd = s;
    pfd.events = POLLIN;

    for ( ;; ) {
        n = poll(&pfd, 1, NGX_BLOOM_UNPRIVILEGED_LOOK);

        if (n > 0) {
            return NGX_OK;
        }

        if (n == -1 && ngx_errno != NGX_EINTR) {
            ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                          "poll() failed for the process that %s, %P; try "
                          "again", what, pid);
            return NGX_ERROR;
        }

        info.si_pid = 0;

        if (waitid(P_PID, (id_t) pid, &info, WSTOPPED|WNOHANG) == 0
            && info.si_pid != 0)
        {
            ngx_log_error(NGX_LOG_ALERT, log, 0,
                          "the process that %s, %P, was stopped by a signal "
                          "and is killed; find out who sent it, and try again",
                          what, pid);
            return NGX_ERROR;
        }
    }
}


/* Returns NGX_OK, or NGX_DECLINED if there is no reply. */
static ngx_int_t
ngx_bloom_unprivileged_receive(ngx_socket_t s, ngx_bloom_reply_t *reply)
{
    int                               fd[2];
    ssize_t                           n;
    ngx_uint_t                        i, files;
    struct iovec                      iov;
    struct msghdr                     msg;
    ngx_bloom_unprivileged_files_t    control;
    ngx_bloom_unprivileged_message_t  message;

    ngx_memzero(&control, sizeof(ngx_bloom_unprivileged_files_t));

    ngx_bloom_unprivileged_carries(&msg, &iov, &message);

    msg.msg_control = &control;
    msg.msg_controllen = sizeof(ngx_bloom_unprivileged_files_t);

    do {
        n = recvmsg(s, &msg, MSG_CMSG_CLOEXEC|MSG_DONTWAIT);
    } while (n == -1 && ngx_errno == NGX_EINTR);

    files = 0;

    if (n >= 0 && msg.msg_controllen >= CMSG_LEN(sizeof(int))
        && control.header.cmsg_level == SOL_SOCKET
        && control.header.cmsg_type == SCM_RIGHTS)
    {
        files = (control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int);
        files = ngx_min(files, 2);

        ngx_memcpy(fd, CMSG_DATA(&control.header), files * sizeof(int));
    }

    /* an attacker may control the child: check that the number of files in the
     * message is the number received */

    if (n != (ssize_t) sizeof(ngx_bloom_unprivileged_message_t)
        || message.files > 3
        || files != (message.files & 1) + (message.files >> 1))
    {
        while (files != 0) {
            (void) close(fd[--files]);
        }

        return NGX_DECLINED;
    }

    reply->rc = message.rc;
    reply->value = message.value;
    reply->room = message.room;

    for (i = 2; i-- != 0; /* void */) {
        if (message.files & ((ngx_uint_t) 1 << i)) {
            reply->fd[i] = fd[--files];
        }
    }

    return NGX_OK;
}
