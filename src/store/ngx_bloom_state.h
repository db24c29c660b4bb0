/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A zone's state directory contains everything that survives nginx, and the
 * control page, through which the processes that use the zone agree.
 *
 *     STATE_PATH/ZONE/    control               the control page, mapped
 *                         instance.N            locked while instance N lives
 *                         lock                  locked while an instance starts
 *                         base                  what the zone stands on, see
 *                                               ngx_bloom_base_file.h
 *                         journal.BASE          a segment of the journal
 *                         upload.BUILD.bloom    an uploaded image
 *                         checkpoint.BUILD.POSITION.bloom
 *                         damaged.*             what could not be believed, for
 *                                               an administrator
 *                         snapshot.N.R.bloom    what GET .../image sends
 *                         *.tmp                 incomplete files
 *
 * BUILD is the build id of an image: of an upload, or of the image from which a
 * checkpoint was made.  It is in hexadecimal, and zeros for a zone that starts
 * empty.  POSITION and BASE are positions in the journal.  N is the number of
 * an instance. ngx_bloom_state_files.h explains R and names the incomplete
 * files.
 *
 * An instance is one shared memory zone with the processes that use it.  While
 * nginx changes a zone's size or is upgraded, there is more than one instance,
 * and all of them append to the same journal.  They share the control page:
 *
 *     end          Where the next record is appended.  A process that holds
 *                  the lock `append` writes the record, moves the end, and
 *                  then applies the record to the filter of its instance.
 *     required     For each instance, the end of the last record that another
 *                  process has appended or, if a process died before it had
 *                  applied one, the journal's end.  The instance cannot say
 *                  "absent" until it has applied the journal up to there.
 *     owing        Whether a process owes keys that are in no record yet.  No
 *                  instance says "absent" meanwhile.
 *     lost         The time up to which added keys may be lost.
 *     synced       The position up to which the journal is on disk.
 *
 * If the holder of a lock dies, nothing has to be repaired, because each change
 * takes effect by a single store; but a record may not have been applied, so
 * the next holder of `append` requires it of every instance (I2).
 *
 * The page is valid only while a process uses it.  An instance that starts and
 * finds no other one reads the segments and fills the page again; only
 * `synced`, `rewrite`, the clock and `lost` are kept.
 */

#ifndef _NGX_BLOOM_STATE_H_INCLUDED_
#define _NGX_BLOOM_STATE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_image.h"
#include "bloom_record.h"
#include "ngx_bloom_control.h"

#pragma GCC visibility push(hidden)


/* A state directory as one process uses it. */
typedef struct ngx_bloom_state_s {
    ngx_str_t            path;           /* the zone's directory, null-
                                            terminated, for messages */
    ngx_fd_t             dir;            /* that directory */
    ngx_fd_t             fd;             /* the file "control" */
    ngx_fd_t             lock;           /* the file "instance.N" */
    ngx_uint_t           instance;       /* N */
    uint64_t             expire;         /* how long a key lives, ms; 0: until
                                            it is removed */
    ngx_uint_t           alone;          /* no other instance lived when this
                                            one started */
    ngx_bloom_control_e  found;          /* what the file "control" was then */
    ngx_uint_t           fresh;          /* 1: the machine was not booted since
                                            it was last used */
    const char          *doubt;          /* why keys may be lost: what is wrong
                                            with the directory; NULL: nothing */
    ngx_fd_t             starts;         /* the file "lock", during a start */
    ngx_bloom_control_t *control;        /* NULL in the master */

    /* the segment that this process appends to */
    ngx_fd_t             segment_fd;
    bloom_segment_t      segment;

    /* the oldest segment, and the time of a record in it: the segment need not
     * be read to know that it cannot be removed for an earlier time */
    uint64_t             oldest;
    uint64_t             newest;
    bloom_position_t     reaches;        /* nor, if it is not 0, for an image at
                                            an earlier position */

    uint64_t             lost;           /* loss.lost when it was last known
                                            to be on disk */

    /* the value that this process gave loss.lost in its last
     * synchronisation, and the value before that; 0: none */
    uint64_t             lost_now;
    uint64_t             lost_before;

    /* the end of the last record that this process has appended: now, and when
     * it last checked what is on disk; see ngx_bloom_shutdown.h */
    uint64_t             appended;
    uint64_t             late;

    ngx_msec_t           pruned;         /* when this process last removed
                                            instances that have ended, to make
                                            room for removals */
} ngx_bloom_state_t;


/* An operation that failed, and its file. */
typedef struct {
    ngx_err_t            err;
    const char          *what;           /* "open", "lock" ... */
    u_char               name[NGX_MAX_PATH];
    pid_t                holder;         /* of a lock; 0: not known */
    const char          *then;           /* the reason and what to do; NULL:
                                            `err` is reason enough */
} ngx_bloom_failure_t;


/* Initialises `state` for the zone's directory `path`, null-terminated, which
 * is open as `dir`. */
void ngx_bloom_state_init(ngx_bloom_state_t *state, u_char *path,
    ngx_fd_t dir);

/*
 * Makes this process an instance and maps the control page, and creates the
 * page if the directory has none.  The caller runs as the workers' user.  The
 * file "lock" is held until ngx_bloom_state_ready(), so that no other instance
 * starts meanwhile.
 *
 * If state->alone is set, the control page has been reset (see
 * ngx_bloom_control_renew()), and the caller fills it.  Returns NGX_OK, or
 * NGX_ERROR with *failure.
 */
ngx_int_t ngx_bloom_state_open(ngx_bloom_state_t *state,
    ngx_bloom_failure_t *failure);

/* Releases the file "lock": other instances may start. */
void ngx_bloom_state_ready(ngx_bloom_state_t *state);

/*
 * Checks for "nginx -t" that ngx_bloom_state_open() could open its files.  It
 * changes nothing and waits for nothing.  The caller runs as the workers' user.
 * Returns NGX_OK, or NGX_ERROR with *failure.
 */
ngx_int_t ngx_bloom_state_check(ngx_bloom_state_t *state,
    ngx_bloom_failure_t *failure);

/*
 * Maps the control page of an instance whose files another process has opened.
 * Returns NGX_OK, or NGX_ERROR with *failure.
 */
ngx_int_t ngx_bloom_state_attach(ngx_bloom_state_t *state,
    ngx_bloom_failure_t *failure);

/*
 * Copies an instance for the next cycle, whose pool owns `path`.  The control
 * page of the copy is not mapped.  Returns NGX_OK, or NGX_ERROR with *failure.
 */
ngx_int_t ngx_bloom_state_inherit(ngx_bloom_state_t *state,
    ngx_bloom_state_t *old, u_char *path, ngx_bloom_failure_t *failure);

/* Closes the files and unmaps the control page. */
void ngx_bloom_state_close(ngx_bloom_state_t *state);

/*
 * Takes the lock `append`, as ngx_bloom_lock() does.  If its holder has died,
 * every instance is required to apply what may not have been applied (I2).
 * Returns NGX_OK or NGX_BUSY.
 */
ngx_int_t ngx_bloom_state_lock(ngx_bloom_state_t *state, ngx_msec_t wait);

/*
 * Requires that the instances of a bitmap apply the journal up to `position`
 * before they say "absent".
 */
void ngx_bloom_state_require(ngx_bloom_state_t *state, uint64_t instances,
    uint64_t position);

/* Returns the bitmap of the other instances. */
static ngx_inline uint64_t
ngx_bloom_state_others(ngx_bloom_state_t *state)
{
    return __atomic_load_n(&state->control->instances, __ATOMIC_SEQ_CST)
           & ~((uint64_t) 1 << state->instance);
}

/*
 * Records that keys added up to a time, ms since 1970, may be lost, and writes
 * that to disk.  Call it before anything is done that would hide the loss.
 * Returns NGX_OK; or NGX_ERROR with errno if it is recorded, but not on disk.
 */
ngx_int_t ngx_bloom_state_lose(ngx_bloom_state_t *state, uint64_t time);

/*
 * Marks an instance as abandoned: its helper has ended, and its workers only
 * finish their requests.  From now on they answer "unknown" instead of
 * "absent", and no segment is kept for them.
 */
void ngx_bloom_state_leave(ngx_bloom_state_t *state, ngx_uint_t instance);

/* Removes instances that have ended from control->instances. */
void ngx_bloom_state_prune(ngx_bloom_state_t *state);

/* Formats the name of a file into `buf`, which has NGX_MAX_PATH bytes.  Returns
 * `buf`. */
u_char *ngx_cdecl ngx_bloom_state_name(u_char *buf, const char *fmt,
    ...);


/* Returns a consistent copy of the end of the journal, without a lock. */
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

/* Returns the position of the next record. */
static ngx_inline uint64_t
ngx_bloom_state_tail(ngx_bloom_state_t *state)
{
    return ngx_bloom_state_end(state).tail;
}

/* Returns the time that records get now, ms since 1970: the system's or, if
 * keys expire, that of the zone's clock. */
uint64_t ngx_bloom_state_time(ngx_bloom_state_t *state);

/* Returns the time, ms since 1970, before which records have expired; 0 if none
 * has. */
uint64_t ngx_bloom_state_expired(ngx_bloom_state_t *state);

/* Records in the control page that an operation on the journal has failed,
 * NGX_BLOOM_CANNOT_...; or, if `what` is 0, that it succeeds again. */
void ngx_bloom_state_fail(ngx_bloom_state_t *state, ngx_uint_t what,
    ngx_err_t err);

/* Returns a message for NGX_BLOOM_CANNOT_... and its errno; NULL for 0. */
const char *ngx_bloom_state_error(uint64_t failed, ngx_err_t err);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_STATE_H_INCLUDED_ */
