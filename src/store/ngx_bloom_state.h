
/*
 * A zone's state directory has all that outlives nginx, and a control page by
 * which the processes that use it agree.
 *
 *     STATE_PATH/ZONE/    control               the control page, mapped
 *                         instance.N            locked while instance N lives
 *                         lock                  locked while one starts
 *                         dropped, lost         times of records
 *                         journal.BASE          segments, by their position
 *                         compact.BASE.END      one for all below END
 *                         upload.FILE.bloom     uploaded in place of FILE
 *                         checkpoint.BUILD.POSITION.bloom
 *                         snapshot.TICKET.bloom what GET .../image sends
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
 *     synced       everything before it is on disk.
 *
 * The locks are robust: the system gives them to the next who asks when their
 * holder has died.  Nothing has to be repaired then, since each change is made
 * by one store that comes last.
 *
 * The page is believed only while somebody uses it: who finds himself alone
 * reads the segments and fills it again.
 */

#ifndef _NGX_BLOOM_STATE_H_INCLUDED_
#define _NGX_BLOOM_STATE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include <pthread.h>

#include "bloom_image.h"
#include "bloom_record.h"

#pragma GCC visibility push(hidden)


#define NGX_BLOOM_INSTANCES    64
#define NGX_BLOOM_PENDING      ((uint64_t) 1 << 63)


/* The end of the journal. */
typedef struct {
    uint64_t             tail;           /* of the next record */
    uint64_t             base;           /* of the segment it goes to */
    uint64_t             limit;          /* where that ends; 0: none yet */
    uint64_t             sequence;       /* of the next record */
    uint64_t             time;           /* of the last record */
} ngx_bloom_end_t;


/*
 * Keys that were added and are not in the journal yet, since it could not be
 * written: length (2 bytes), bytes, and so on, from `begin` to `end`.
 */
#define NGX_BLOOM_PENDING_SIZE  (256 * 1024)

typedef struct {
    pthread_mutex_t      mutex;          /* robust; held for a copy */
    uint64_t             begin;
    uint64_t             end;
    uint64_t             count;          /* keys in it */
    uint64_t             lost;           /* keys there was no room for */
    u_char               data[NGX_BLOOM_PENDING_SIZE];
} ngx_bloom_pending_t;


/* In the file "control".  All atomic, but what a lock guards. */
typedef struct {
    uint64_t             magic;
    uint64_t             size;           /* of this structure */

    pthread_mutex_t      append;         /* guards the end; held for a write */
    pthread_mutex_t      keeper;         /* guards segments and files */
    pthread_mutex_t      history;        /* guards segments that are replaced;
                                            see ngx_bloom_replace.h */

    uint64_t             which;          /* end[which & 1] is true */
    ngx_bloom_end_t      end[2];

    uint64_t             begin;          /* base of the oldest segment */
    uint64_t             compacted;      /* bytes that the last compaction
                                            made, or left as they were */
    uint64_t             prepared;       /* where the newest one ends */
    uint64_t             synced;
    uint64_t             synced_check;   /* ~synced */
    uint64_t             wanted;         /* somebody waits for it to be */
    uint64_t             dropped;        /* time of the newest record removed;
                                            0: none ever was */

    /* the last failure, until it has been overcome */
    uint64_t             err;            /* errno */
    uint64_t             failed;         /* NGX_BLOOM_CANNOT_..., 0: none */
    uint64_t             rewrite;        /* a synchronisation has failed */

    uint64_t             instances;      /* a bit for each that may live */

    struct {
        uint64_t             required;
        uint64_t             applied;
        uint64_t             reserved[6];
    } instance[NGX_BLOOM_INSTANCES];

    ngx_bloom_pending_t  pending;
} ngx_bloom_control_t;

#define NGX_BLOOM_CANNOT_WRITE    1
#define NGX_BLOOM_CANNOT_PREPARE  2
#define NGX_BLOOM_CANNOT_SYNC     3


/* In a process's own memory. */
typedef struct ngx_bloom_state_s {
    ngx_str_t            path;           /* of the zone's directory, null-
                                            terminated */
    ngx_fd_t             fd;             /* of the file "control" */
    ngx_fd_t             lock;           /* of the file "instance.N" */
    ngx_uint_t           instance;       /* N */
    ngx_uint_t           alone;          /* at its start nobody else lived */
    ngx_fd_t             starts;         /* of the file "lock", while it does */
    ngx_bloom_control_t *control;

    /* the segment that this process appends to */
    ngx_fd_t             segment_fd;
    bloom_segment_t      segment;

    /* a segment that is not removed, and the time of a record in it: it is
     * not read again for an earlier one */
    uint64_t             oldest;
    uint64_t             newest;

    /* behind what it has appended, now and when it last looked whether that is
     * on disk: see ngx_bloom_shutdown.h */
    uint64_t             appended;
    uint64_t             late;
} ngx_bloom_state_t;


/* What could not be done, and the name of the file or directory. */
typedef struct {
    ngx_err_t            err;
    const char          *what;           /* "open", "lock" ... */
    u_char               name[NGX_MAX_PATH];
} ngx_bloom_failure_t;


/*
 * The directory of a zone below `root`, in cycle->pool; NULL if memory is
 * short.  Bytes that may not stand in a file's name are written as %HH.
 */
u_char *ngx_bloom_state_path(ngx_pool_t *pool, ngx_str_t *root,
    ngx_str_t *zone);

/* Whether there is such a directory. */
ngx_uint_t ngx_bloom_state_exists(u_char *path);

/*
 * Opens the directory `path`, of `root`, and makes both if there is none, for
 * the workers' user.  The caller becomes an instance.  It holds the file
 * "lock" until ngx_bloom_state_ready(): nobody else starts meanwhile.
 *
 * If state->alone, the control page is empty, but for `synced`, which has
 * what is known to have been on disk: the caller fills it.  NGX_OK, NGX_ERROR
 * with *failure.
 */
ngx_int_t ngx_bloom_state_open(ngx_bloom_state_t *state, ngx_str_t *root,
    u_char *path, ngx_core_conf_t *ccf, ngx_bloom_failure_t *failure);
void ngx_bloom_state_ready(ngx_bloom_state_t *state);

/* The same instance for the next cycle, whose pool has `path`. */
ngx_int_t ngx_bloom_state_inherit(ngx_bloom_state_t *state,
    ngx_bloom_state_t *old, u_char *path, ngx_bloom_failure_t *failure);

void ngx_bloom_state_close(ngx_bloom_state_t *state);

/*
 * Requires that the other instances apply the journal up to `position` before
 * they say "absent"; or, with NGX_BLOOM_PENDING, that they do not say so until
 * all pending keys have been appended.
 */
void ngx_bloom_state_require(ngx_bloom_state_t *state, uint64_t position);

static ngx_inline ngx_uint_t
ngx_bloom_pending_empty(ngx_bloom_pending_t *pending)
{
    return __atomic_load_n(&pending->end, __ATOMIC_SEQ_CST)
           == __atomic_load_n(&pending->begin, __ATOMIC_SEQ_CST);
}

/* Forgets instances that have ended. */
void ngx_bloom_state_prune(ngx_bloom_state_t *state);

/* "PATH/NAME" formatted into `buf` of NGX_MAX_PATH bytes, and `buf`. */
u_char *ngx_cdecl ngx_bloom_state_name(ngx_bloom_state_t *state, u_char *buf,
    const char *fmt, ...);

/* What root writes belongs to whom the directory belongs to. */
void ngx_bloom_state_own(ngx_bloom_state_t *state, ngx_fd_t fd);

/*
 * Takes a robust lock: NGX_OK, NGX_BUSY.  `wait` ms at most, 0: not at all.
 */
ngx_int_t ngx_bloom_lock(pthread_mutex_t *mutex, ngx_msec_t wait);
void ngx_bloom_unlock(pthread_mutex_t *mutex);
ngx_int_t ngx_bloom_lock_init(pthread_mutex_t *mutex);

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
 *     "lost"      no lost record is newer, and where the damage was seen, or
 *                 NGX_BLOOM_NO_DAMAGE where keys were lost that never came
 *                 into the journal
 */
#define NGX_BLOOM_NO_DAMAGE  ((uint64_t) NGX_MAX_OFF_T_VALUE)

ngx_int_t ngx_bloom_state_read_mark(ngx_bloom_state_t *state,
    const char *name, uint64_t *time, uint64_t *position);
ngx_int_t ngx_bloom_state_write_mark(ngx_bloom_state_t *state,
    const char *name, uint64_t time, uint64_t position);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_STATE_H_INCLUDED_ */
