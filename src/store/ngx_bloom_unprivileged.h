/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A function is run as the workers' user, in a process of its own.
 *
 * The master may be root.  Files of a state directory and shared memory are
 * written by the workers' user, so root does not look into them: whatever has
 * to be read there before there are workers, is read by a child of the master
 * that is root no more.  It answers with a few bytes and up to two open files.
 */

#ifndef _NGX_BLOOM_UNPRIVILEGED_H_INCLUDED_
#define _NGX_BLOOM_UNPRIVILEGED_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


/* Whom a child is to be. */
typedef struct {
    ngx_uint_t   drops;                  /* 0: it stays who the master is */
    uid_t        user;
    gid_t        group;
    const char  *name;                   /* of the user; NULL: it gets no
                                            other groups */
} ngx_bloom_user_t;

/* What a child answers. */
typedef struct {
    ngx_int_t    rc;
    uint64_t     value;
    ngx_fd_t     fd[2];                  /* NGX_INVALID_FILE: none; to be
                                            closed by the caller */
} ngx_bloom_answer_t;

typedef void (*ngx_bloom_unprivileged_pt)(void *data,
    ngx_bloom_answer_t *answer);


/* Room for what ngx_bloom_unprivileged_called() writes. */
#define NGX_BLOOM_USER_LEN  64

/*
 * Writes what messages call a user, null-terminated: "33 (www-data)", or the
 * number alone if the system has no name for it.  Returns `buf`.  It reads the
 * system's list of users, so only the master calls it, at a start or a reload.
 */
u_char *ngx_bloom_unprivileged_called(u_char *buf, uid_t user);

/*
 * Returns the user whom the workers run as, once the configuration has been
 * read: files are theirs.  It is the master's own where it is not root, and
 * where it has no workers.
 */
ngx_bloom_user_t ngx_bloom_unprivileged_workers(ngx_core_conf_t *ccf);

/*
 * Calls function(data, answer) as `user` and waits for its answer, however long
 * that takes, unless the child is stopped.  `what` is what it does, a phrase to
 * follow "the process that" in a message.  What the child writes is lost but
 * for shared memory, files, the log, and *answer.  Returns NGX_OK; or
 * NGX_ERROR, logged, if there is no answer: then answer->rc is NGX_ERROR, too.
 */
ngx_int_t ngx_bloom_unprivileged(ngx_bloom_user_t *user, ngx_log_t *log,
    const char *what, ngx_bloom_unprivileged_pt function, void *data,
    ngx_bloom_answer_t *answer);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_UNPRIVILEGED_H_INCLUDED_ */
