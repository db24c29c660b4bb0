/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A zone's state directory has all that outlives nginx, and a control page by
 * which the processes that use it agree.
 *
 *     STATE_PATH/ZONE/    control               the control page, mapped
 *                         instance.N            locked while instance N lives
 *                         lock                  locked while one starts
 *                         dropped               time of a record
 *                         journal.BASE          segments, by their position
 *                         compact.BASE.END      one for all below END
 *                         upload.FILE.bloom     uploaded in place of FILE
 *                         checkpoint.BUILD.POSITION.bloom
 *                         snapshot.I.R.bloom    what GET .../image sends
 *                         *.tmp                 not whole yet
 *
 * FILE and BUILD are build ids in hexadecimal (of the image of file=, and of
 * the image that a checkpoint was made from; zeros: of a zone that starts
 * empty), POSITION and BASE are positions in the journal.
 *
 * An instance of a zone is one shared memory of it.  There is more than one
 * while nginx changes a zone's size or is upgraded, and each appends to the
 * one journal.  The control page is what they share:
 *
 *     the end      where the next record goes.  It moves when a record is
 *                  whole and in the filter of who appended it, all under the
 *                  lock `append`.
 *     required     of each instance: the end of the last record that another
 *                  has appended.  Until it has applied the journal so far, it
 *                  cannot say "absent".  With the bit NGX_BLOOM_PENDING,
 *                  another has keys that it could not append yet, so there is
 *                  no end.
 *     pending      these keys.  They survive whoever added them, and any helper
 *                  appends them as soon as that can be.
 *     lost         keys that were added up to then may be lost.
 *     synced       everything before it is on disk.
 *
 * When the holder of a lock has died, nothing has to be repaired, since each
 * change is made by one store that comes last.
 *
 * The page is believed only while somebody uses it: who finds himself alone
 * reads the segments and fills it again, but for `synced`, the pending keys and
 * `lost`.
 */

#ifndef _NGX_BLOOM_STATE_H_INCLUDED_
#define _NGX_BLOOM_STATE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_image.h"
#include "bloom_record.h"
#include "ngx_bloom_control.h"

#pragma GCC visibility push(hidden)


/* In a process's own memory. */
typedef struct ngx_bloom_state_s {
    ngx_str_t            path;           /* of the zone's directory, null-
                                            terminated: for messages */
    ngx_fd_t             dir;            /* of that directory */
    ngx_fd_t             fd;             /* of the file "control" */
    ngx_fd_t             lock;           /* of the file "instance.N" */
    ngx_uint_t           instance;       /* N */
    ngx_uint_t           alone;          /* at its start nobody else lived */
    ngx_fd_t             starts;         /* of the file "lock", while it does */
    ngx_bloom_control_t *control;        /* NULL in the master */

    /* the segment that this process appends to */
    ngx_fd_t             segment_fd;
    bloom_segment_t      segment;

    /* a segment that is not removed, and the time of a record in it: it is
     * not read again for an earlier one */
    uint64_t             oldest;
    uint64_t             newest;

    uint64_t             lost;           /* of the control page, when it was
                                            last known to be on disk */

    /* the loss that this process has noted when it last synchronised, and what
     * had been noted before; 0: none */
    uint64_t             lost_now;
    uint64_t             lost_before;

    /* behind what it has appended, now and when it last looked whether that is
     * on disk: see ngx_bloom_shutdown.h */
    uint64_t             appended;
    uint64_t             late;
} ngx_bloom_state_t;


/* What could not be done, and with which file. */
typedef struct {
    ngx_err_t            err;
    const char          *what;           /* "open", "lock" ... */
    u_char               name[NGX_MAX_PATH];
    pid_t                holder;         /* of a lock, if that is known */
    const char          *then;           /* why, and what to do; NULL: the
                                            errno says that */
} ngx_bloom_failure_t;


/*
 * Sets `state` up for the zone's directory `path`, null-terminated, which is
 * open as `dir`; closes nothing.
 */
void ngx_bloom_state_init(ngx_bloom_state_t *state, u_char *path,
    ngx_fd_t dir);

/*
 * Opens the control page, and makes it if there is none.  The caller is the
 * workers' user, and becomes an instance.  It holds the file "lock" until
 * ngx_bloom_state_ready(): nobody else starts meanwhile.
 *
 * If state->alone, the control page is empty, but for `synced` and `rewrite`,
 * which have what is known to be on disk, the pending keys, and what is known
 * of losses and of images: the caller fills it.  NGX_OK, NGX_ERROR with
 * *failure.
 */
ngx_int_t ngx_bloom_state_open(ngx_bloom_state_t *state,
    ngx_bloom_failure_t *failure);
void ngx_bloom_state_ready(ngx_bloom_state_t *state);

/*
 * Sees for "nginx -t" whether ngx_bloom_state_open() may open its files.  It
 * changes none, and waits for nothing.  The caller is the workers' user.
 * Returns NGX_OK, or NGX_ERROR with *failure.
 */
ngx_int_t ngx_bloom_state_check(ngx_bloom_state_t *state,
    ngx_bloom_failure_t *failure);

/*
 * Maps the control page of an instance whose files another process has opened.
 * NGX_OK, or NGX_ERROR with *failure.
 */
ngx_int_t ngx_bloom_state_attach(ngx_bloom_state_t *state,
    ngx_bloom_failure_t *failure);

/* The same instance for the next cycle, whose pool has `path`; the control page
 * is not mapped.  NGX_OK or NGX_ERROR with *failure. */
ngx_int_t ngx_bloom_state_inherit(ngx_bloom_state_t *state,
    ngx_bloom_state_t *old, u_char *path, ngx_bloom_failure_t *failure);

void ngx_bloom_state_close(ngx_bloom_state_t *state);

/*
 * Requires that the other instances apply the journal up to `position` before
 * they say "absent"; or, with NGX_BLOOM_PENDING, that they do not say so until
 * all pending keys have been appended.
 */
void ngx_bloom_state_require(ngx_bloom_state_t *state, uint64_t position);

/*
 * Notes that keys that were added up to a time, ms since 1970, may be lost, and
 * has that written to disk: before anything is done that would hide it.
 * Returns NGX_OK, or NGX_ERROR with errno if it is noted, and not on disk.
 */
ngx_int_t ngx_bloom_state_lose(ngx_bloom_state_t *state, uint64_t time);

/*
 * Leaves an instance alone from now on: its helper has ended, and its workers
 * only finish their requests.  They answer "unknown" instead of "absent", and
 * no segment is kept for it.
 */
void ngx_bloom_state_leave(ngx_bloom_state_t *state, ngx_uint_t instance);

/* Forgets instances that have ended. */
void ngx_bloom_state_prune(ngx_bloom_state_t *state);

/* The name of a file, formatted into `buf` of NGX_MAX_PATH bytes, and `buf`. */
u_char *ngx_cdecl ngx_bloom_state_name(u_char *buf, const char *fmt,
    ...);


/* The end of the journal as it is now, whole. */
static ngx_inline ngx_bloom_end_t
ngx_bloom_state_end(ngx_bloom_state_t *state)
{
    uint64_t              which;
    ngx_bloom_end_t       end;
    ngx_bloom_control_t  *control;

    control = state->control;

    do {
        which = __atomic_load_n(&control->which, __ATOMIC_ACQUIRE);
        end = control->end[which & 1];

        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (__atomic_load_n(&control->which, __ATOMIC_RELAXED) != which);

    return end;
}

static ngx_inline uint64_t
ngx_bloom_state_tail(ngx_bloom_state_t *state)
{
    return ngx_bloom_state_end(state).tail;
}

/* Notes what of the journal's work fails, or, with 0, that it does again. */
void ngx_bloom_state_fail(ngx_bloom_state_t *state, ngx_uint_t what,
    ngx_err_t err);

/* A message for NGX_BLOOM_CANNOT_... and its errno; NULL for 0. */
const char *ngx_bloom_state_error(uint64_t failed, ngx_err_t err);

/*
 * A time, ms since 1970, and a position in the journal, kept in the file
 * `name`; both 0 if there is no such file.  NGX_ERROR sets errno, to EINVAL if
 * the file is not as it was written.
 *
 *     "dropped"   of the newest record that was ever removed, and where the
 *                 journal has begun since, or since it was compacted
 */
ngx_int_t ngx_bloom_state_read_mark(ngx_bloom_state_t *state,
    const char *name, uint64_t *time, uint64_t *position);
ngx_int_t ngx_bloom_state_write_mark(ngx_bloom_state_t *state,
    const char *name, uint64_t time, uint64_t position);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_STATE_H_INCLUDED_ */
