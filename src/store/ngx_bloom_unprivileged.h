/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * ngx_bloom_unprivileged() runs a function as the workers' user, in a process
 * of its own.
 *
 * The master may be root.  State directories and shared memory are written by
 * the workers' user, so root must not trust their contents and never reads
 * them.  What has to be read there before workers exist is read by a child of
 * the master that has given up root's rights.  The child replies with a few
 * bytes and at most two open files.
 */

#ifndef _NGX_BLOOM_UNPRIVILEGED_H_INCLUDED_
#define _NGX_BLOOM_UNPRIVILEGED_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


/* The user that a child becomes. */
typedef struct {
    ngx_uint_t   drops;                  /* 0: the child keeps the master's
                                            user */
    uid_t        user;
    gid_t        group;
    const char  *name;                   /* user name, for supplementary groups;
                                            NULL: the child gets none */
} ngx_bloom_user_t;

/* The reply of a child. */
typedef struct {
    ngx_int_t    rc;
    uint64_t     value;
    uint64_t     room;                   /* a second value */
    ngx_fd_t     fd[2];                  /* the caller closes them;
                                            NGX_INVALID_FILE: none */
} ngx_bloom_reply_t;

typedef void (*ngx_bloom_unprivileged_pt)(void *data,
    ngx_bloom_reply_t *reply);


/* Room for what ngx_bloom_unprivileged_called() writes. */
#define NGX_BLOOM_USER_LEN  64

/*
 * Writes what messages call a user, null-terminated: "33 (www-data)", or the
 * number alone if the system has no name for it.  Returns `buf`.  It reads the
 * system's list of users, which may take long: workers do not call it.
 */
u_char *ngx_bloom_unprivileged_called(u_char *buf, uid_t user);

/*
 * Returns the user that the workers run as, to whom the files belong.  It is
 * known when the configuration has been read.  It is the master's own user if
 * the master is not root or has no workers.
 */
ngx_bloom_user_t ngx_bloom_unprivileged_workers(ngx_core_conf_t *ccf);

/*
 * Calls function(data, reply) in a child process as `user`, and waits for the
 * reply, however long that takes.  A child that is stopped by a signal is
 * killed.  `what` says what the child does: a phrase to follow "the process
 * that" in a message.  The child's changes to memory are lost, except in shared
 * memory and *reply.
 *
 * Returns NGX_OK; or NGX_ERROR if there is no reply, which is logged, and then
 * reply->rc is NGX_ERROR too.
 */
ngx_int_t ngx_bloom_unprivileged(ngx_bloom_user_t *user, ngx_log_t *log,
    const char *what, ngx_bloom_unprivileged_pt function, void *data,
    ngx_bloom_reply_t *reply);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_UNPRIVILEGED_H_INCLUDED_ */
