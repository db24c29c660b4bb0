/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A child is a process that was forked from one of nginx for one task, and
 * knows its memory of that moment.  It dies with its parent.
 */

#ifndef _NGX_BLOOM_CHILD_H_INCLUDED_
#define _NGX_BLOOM_CHILD_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


/* A child that runs; pid 0: none runs. */
typedef struct {
    pid_t  pid;
} ngx_bloom_child_t;


/* Makes this process, which has just been forked, one of its own: with its own
 * id and title, and without nginx's handlers of signals, which only set flags.
 */
void ngx_bloom_child_begin(const char *title);

/* Lets this process be killed when `parent`, which has forked it, dies.
 * Returns NGX_OK, or NGX_ERROR if that process has died already. */
ngx_int_t ngx_bloom_child_follow(pid_t parent);

/*
 * Calls function(data) in a child, which ends when the function returns.  It
 * ignores the signals by which nginx is told to exit, to reload or to open its
 * logs again: its parent ends it.  It has none of nginx's connections, so
 * clients notice when this process closes one.  From now on, nginx does not
 * learn of children of this process.  Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_child_start(ngx_bloom_child_t *child, const char *title,
    void (*function)(void *data), void *data);

/* Lets the system kill this process before any other when memory is short, if
 * the system can be told. */
void ngx_bloom_child_expendable(void);

/* Returns NGX_OK with the status of waitpid(), if the child has ended; or
 * NGX_AGAIN. */
ngx_int_t ngx_bloom_child_ended(ngx_bloom_child_t *child, int *status);

/* Kills the child, and waits for its end, but no longer than a second: a disk
 * may hold it. */
void ngx_bloom_child_kill(ngx_bloom_child_t *child);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_CHILD_H_INCLUDED_ */
