/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file opens and maps the control page of a state directory, and manages
 * the instances.
 */

#include "ngx_bloom_state.h"
#include "ngx_bloom_io.h"

#include <sys/file.h>
#include <sys/mman.h>


/* How long to wait for the lock `append`, ms. */
#define NGX_BLOOM_STATE_PATIENCE  10000

/* How long to wait for the start of another instance, ms. */
#define NGX_BLOOM_STATE_STARTS  30000


static ngx_int_t ngx_bloom_state_start(ngx_bloom_state_t *state,
    ngx_bloom_failure_t *failure);
static pid_t ngx_bloom_state_holder(ngx_fd_t fd);
static ngx_int_t ngx_bloom_state_map(ngx_bloom_state_t *state);
static ngx_int_t ngx_bloom_state_enlist(ngx_bloom_state_t *state,
    u_char *name);
static ngx_int_t ngx_bloom_state_control(ngx_bloom_state_t *state,
    ngx_bloom_failure_t *failure);
static ngx_int_t ngx_bloom_state_make(ngx_bloom_state_t *state,
    ngx_bloom_failure_t *failure);
static ngx_int_t ngx_bloom_state_allocate(ngx_fd_t fd);
static ngx_int_t ngx_bloom_state_join(ngx_bloom_state_t *state);


u_char *
ngx_bloom_state_name(u_char *buf, const char *fmt, ...)
{
    u_char   *p;
    va_list   args;

    va_start(args, fmt);
    p = ngx_vslprintf(buf, buf + NGX_MAX_PATH - 1, fmt, args);
    va_end(args);

    *p = '\0';

    return buf;
}


void
ngx_bloom_state_init(ngx_bloom_state_t *state, u_char *path, ngx_fd_t dir)
{
    ngx_memzero(state, sizeof(ngx_bloom_state_t));

    state->path.data = path;
    state->path.len = ngx_strlen(path);
    state->dir = dir;
    state->fd = NGX_INVALID_FILE;
    state->lock = NGX_INVALID_FILE;
    state->starts = NGX_INVALID_FILE;
    state->segment_fd = NGX_INVALID_FILE;
}


ngx_int_t
ngx_bloom_state_open(ngx_bloom_state_t *state, ngx_bloom_failure_t *failure)
{
    ngx_memzero(failure, sizeof(ngx_bloom_failure_t));

    if (ngx_bloom_state_start(state, failure) != NGX_OK) {
        goto failed;
    }

    failure->what = "lock";

    if (ngx_bloom_state_enlist(state, failure->name) != NGX_OK) {

        if (ngx_errno == NGX_EBUSY) {
            failure->then = "all files \"instance.*\" are locked; find the "
                            "processes that lock them, and end those";
        }

        goto failed;
    }

    if (ngx_bloom_state_control(state, failure) != NGX_OK) {
        goto failed;
    }

    if (ngx_bloom_state_join(state) != NGX_OK) {
        failure->what = "lock";
        failure->then = "another process has held its lock for ten seconds; "
                        "check if a process that uses the directory is stopped";
        goto failed;
    }

    return NGX_OK;

failed:

    failure->err = ngx_errno;

    ngx_bloom_io_close(&state->starts);
    ngx_bloom_state_close(state);

    return NGX_ERROR;
}


ngx_int_t
ngx_bloom_state_check(ngx_bloom_state_t *state, ngx_bloom_failure_t *failure)
{
    ngx_fd_t    fd;
    ngx_uint_t  i;

    ngx_memzero(failure, sizeof(ngx_bloom_failure_t));

    failure->what = "write into";

    if (faccessat(state->dir, ".", R_OK|W_OK|X_OK, AT_EACCESS) == -1) {
        failure->err = ngx_errno;

        if (failure->err == NGX_EACCES) {
            failure->then = "the user that the workers run as cannot read and "
                            "write it; make that user its owner, with mode "
                            "0700";
        }

        return NGX_ERROR;
    }

    failure->what = "open";

    for (i = 0; i < NGX_BLOOM_INSTANCES + 2; i++) {

        if (i < NGX_BLOOM_INSTANCES) {
            ngx_bloom_state_name(failure->name, "instance.%ui", i);

        } else {
            ngx_bloom_state_name(failure->name, "%s",
                                 i == NGX_BLOOM_INSTANCES ? "lock" : "control");
        }

        fd = ngx_bloom_io_open(state->dir, failure->name, O_RDWR);

        if (fd != NGX_INVALID_FILE) {
            (void) ngx_close_file(fd);

        } else if (ngx_errno != NGX_ENOENT) {
            failure->err = ngx_errno;
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* Keeps other instances from starting until ngx_bloom_state_ready(). */
static ngx_int_t
ngx_bloom_state_start(ngx_bloom_state_t *state, ngx_bloom_failure_t *failure)
{
    ngx_uint_t  i;

    failure->what = "open";
    ngx_bloom_state_name(failure->name, "lock");

    state->starts = ngx_bloom_io_open(state->dir, failure->name,
                                      O_RDWR|O_CREAT);
    if (state->starts == NGX_INVALID_FILE) {
        return NGX_ERROR;
    }

    failure->what = "lock";

    /* the wait is bounded: any process of this user can hold the lock for
     * ever */

    for (i = 0; flock(state->starts, LOCK_EX|LOCK_NB) == -1; i++) {

        if (ngx_errno != EWOULDBLOCK) {
            return NGX_ERROR;
        }

        if (i == NGX_BLOOM_STATE_STARTS / 10) {
            failure->holder = ngx_bloom_state_holder(state->starts);
            ngx_set_errno(NGX_EBUSY);
            return NGX_ERROR;
        }

        ngx_msleep(10);
    }

    return NGX_OK;
}


/* Returns the process that has locked a file; 0 if it is not known. */
static pid_t
ngx_bloom_state_holder(ngx_fd_t fd)
{
    int            pid, holder;
    char           line[256];
    FILE          *locks;
    struct stat    st;
    unsigned long  inode;

    locks = fopen("/proc/locks", "re");

    if (locks == NULL || fstat(fd, &st) == -1) {
        return 0;
    }

    holder = 0;

    while (fgets(line, sizeof(line), locks) != NULL) {

        if (sscanf(line, "%*s FLOCK %*s WRITE %d %*x:%*x:%lu", &pid, &inode)
            == 2
            && inode == (unsigned long) st.st_ino)
        {
            holder = pid;
            break;
        }
    }

    (void) fclose(locks);

    return (pid_t) holder;
}


/*
 * Adds this instance to control->instances.  It does so under the lock, so that
 * a process that publishes a record has either done that before, or sees the
 * new instance.
 */
static ngx_int_t
ngx_bloom_state_join(ngx_bloom_state_t *state)
{
    const bloom_base_t   *base;
    ngx_bloom_control_t  *control;

    control = state->control;

    if (ngx_bloom_state_lock(state, NGX_BLOOM_STATE_PATIENCE) != NGX_OK) {
        ngx_set_errno(NGX_EBUSY);
        return NGX_ERROR;
    }

    control->instance[state->instance].required = 0;
    control->instance[state->instance].applied = 0;
    control->instance[state->instance].as_of = 0;
    control->instance[state->instance].removals = 0;
    control->instance[state->instance].removed = 0;

    /* until it says more, it may need room for all removals */

    base = &control->base[control->based & 1];
    control->instance[state->instance].counted = base->from.removals;

    __atomic_fetch_or(&control->instances, (uint64_t) 1 << state->instance,
                      __ATOMIC_SEQ_CST);

    ngx_bloom_unlock(&control->append);

    return NGX_OK;
}


ngx_int_t
ngx_bloom_state_lock(ngx_bloom_state_t *state, ngx_msec_t wait)
{
    ngx_uint_t  died;

    if (ngx_bloom_lock_died(&state->control->append, wait, &died) != NGX_OK) {
        return NGX_BUSY;
    }

    if (died) {
        ngx_bloom_state_require(state,
                                __atomic_load_n(&state->control->instances,
                                                __ATOMIC_SEQ_CST),
                                ngx_bloom_state_tail(state));
    }

    return NGX_OK;
}


void
ngx_bloom_state_require(ngx_bloom_state_t *state, uint64_t instances,
    uint64_t position)
{
    uint64_t    old, *required;
    ngx_uint_t  i;

    for (i = 0; instances != 0; i++, instances >>= 1) {

        if ((instances & 1) == 0) {
            continue;
        }

        required = &state->control->instance[i].required;
        old = __atomic_load_n(required, __ATOMIC_SEQ_CST);

        while (old < position
               && !__atomic_compare_exchange_n(required, &old, position, 0,
                                               __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST))
        {
            /* void */
        }
    }
}


void
ngx_bloom_state_ready(ngx_bloom_state_t *state)
{
    ngx_bloom_io_close(&state->starts);
}


/*
 * Opens and maps the control page.  The only instance creates the page if there
 * is none, or resets the one that the last users left.
 */
static ngx_int_t
ngx_bloom_state_control(ngx_bloom_state_t *state, ngx_bloom_failure_t *failure)
{
    ngx_bloom_control_e  found;

    failure->what = "open";
    ngx_bloom_state_name(failure->name, "control");

    state->fd = ngx_bloom_io_open(state->dir, failure->name, O_RDWR);

    if (state->fd != NGX_INVALID_FILE) {
        found = ngx_bloom_control_look(state->fd);

    } else if (ngx_errno == NGX_ENOENT) {
        found = NGX_BLOOM_CONTROL_EMPTY;

    } else {
        return NGX_ERROR;
    }

    state->found = found;
    failure->what = "use";

    if (found == NGX_BLOOM_CONTROL_UNREADABLE) {
        return NGX_ERROR;
    }

    if (found == NGX_BLOOM_CONTROL_FOREIGN) {
        failure->then = "another version of the module has created it; start "
                        "nginx with that version, or move the zone's "
                        "directory away and start without its keys";
        ngx_set_errno(0);
        return NGX_ERROR;
    }

    if (found != NGX_BLOOM_CONTROL_OK && !state->alone) {
        failure->then = "another nginx uses this directory, and the file has "
                        "been replaced; stop that nginx first";
        ngx_set_errno(NGX_EBUSY);
        return NGX_ERROR;
    }

    if (found != NGX_BLOOM_CONTROL_OK) {
        if (ngx_bloom_state_make(state, failure) != NGX_OK) {
            return NGX_ERROR;
        }

    } else {
        failure->what = "map";

        /* a page that was copied may have holes; no other process maps it */

        if ((state->alone && ngx_bloom_state_allocate(state->fd) != NGX_OK)
            || ngx_bloom_state_map(state) != NGX_OK)
        {
            return NGX_ERROR;
        }

        state->fresh = ngx_bloom_control_fresh(state->control);

        if (state->alone && ngx_bloom_control_renew(state->control) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/*
 * Creates a control page in place of the file that was found, if any.  The old
 * file stays until the new page is complete and on disk.
 */
static ngx_int_t
ngx_bloom_state_make(ngx_bloom_state_t *state, ngx_bloom_failure_t *failure)
{
    u_char     name[NGX_MAX_PATH];
    ngx_fd_t   old;
    ngx_int_t  rc;
    ngx_err_t  err;

    failure->what = "create";
    ngx_bloom_state_name(name, "control");
    ngx_bloom_state_name(failure->name, "control.tmp");
    (void) ngx_bloom_io_remove(state->dir, failure->name);

    rc = NGX_ERROR;
    old = state->fd;
    state->fd = ngx_bloom_io_open(state->dir, failure->name,
                                  O_RDWR|O_CREAT|O_EXCL);

    if (state->fd == NGX_INVALID_FILE) {
        goto done;
    }

    ngx_bloom_io_overwrite(state->fd);

    if (ngx_bloom_state_allocate(state->fd) != NGX_OK
        || ngx_bloom_state_map(state) != NGX_OK
        || ngx_bloom_control_fill(state->control) != NGX_OK)
    {
        goto done;
    }

    if (ngx_bloom_io_sync(state->fd) == NGX_OK) {
        rc = ngx_bloom_io_rename(state->dir, failure->name, name);
    }

done:

    err = ngx_errno;

    ngx_bloom_io_close(&old);

    if (rc != NGX_OK) {
        (void) ngx_bloom_io_remove(state->dir, failure->name);
    }

    ngx_set_errno(err);

    return rc;
}


/*
 * Allocates the whole page on disk: writing to a block that the disk has no
 * room for would raise SIGBUS.  If the file system cannot allocate, the C
 * library writes to each block, so no other process may map the page.
 */
static ngx_int_t
ngx_bloom_state_allocate(ngx_fd_t fd)
{
    int  err;

    do {
        err = posix_fallocate(fd, 0, sizeof(ngx_bloom_control_t));
    } while (err == NGX_EINTR);

    if (err != 0) {
        ngx_set_errno(err);
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_state_lose(ngx_bloom_state_t *state, uint64_t time)
{
    ngx_bloom_control_lose(&state->control->loss, time);

    ngx_bloom_fault("lost");

    return ngx_bloom_io_sync(state->fd);
}


uint64_t
ngx_bloom_state_time(ngx_bloom_state_t *state)
{
    uint64_t  now;

    now = state->expire != 0 ? ngx_bloom_clock_now(&state->control->clock) : 0;

    return now != 0 ? now : ngx_bloom_time();
}


uint64_t
ngx_bloom_state_expired(ngx_bloom_state_t *state)
{
    uint64_t  now;

    if (state->expire == 0) {
        return 0;
    }

    now = ngx_bloom_clock_expiry(&state->control->clock);

    return now > state->expire ? now - state->expire : 0;
}


static ngx_int_t
ngx_bloom_state_map(ngx_bloom_state_t *state)
{
    void             *p;
    ngx_file_info_t   fi;

    if (ngx_fd_info(state->fd, &fi) == NGX_FILE_ERROR) {
        return NGX_ERROR;
    }

    if (ngx_file_size(&fi) < (off_t) sizeof(ngx_bloom_control_t)) {
        ngx_set_errno(NGX_EINVAL);               /* it has been truncated */
        return NGX_ERROR;
    }

    p = mmap(NULL, sizeof(ngx_bloom_control_t), PROT_READ|PROT_WRITE,
             MAP_SHARED, state->fd, 0);

    if (p == MAP_FAILED) {
        return NGX_ERROR;
    }

    state->control = p;

    return NGX_OK;
}


/*
 * Takes the first number whose file is not locked, and finds out if there are
 * other instances.
 */
static ngx_int_t
ngx_bloom_state_enlist(ngx_bloom_state_t *state, u_char *name)
{
    ngx_fd_t    fd;
    ngx_uint_t  i;

    state->alone = 1;

    for (i = 0; i < NGX_BLOOM_INSTANCES; i++) {

        ngx_bloom_state_name(name, "instance.%ui", i);

        fd = ngx_bloom_io_open(state->dir, name,
                               state->lock == NGX_INVALID_FILE
                               ? O_RDWR|O_CREAT : O_RDWR);

        if (fd == NGX_INVALID_FILE) {
            if (state->lock != NGX_INVALID_FILE && ngx_errno == NGX_ENOENT) {
                continue;
            }

            return NGX_ERROR;
        }

        if (flock(fd, LOCK_EX|LOCK_NB) == -1) {
            state->alone = 0;
            (void) ngx_close_file(fd);
            continue;
        }

        if (state->lock == NGX_INVALID_FILE) {
            state->lock = fd;
            state->instance = i;
            continue;
        }

        (void) ngx_close_file(fd);
    }

    if (state->lock == NGX_INVALID_FILE) {
        ngx_set_errno(NGX_EBUSY);
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_state_attach(ngx_bloom_state_t *state, ngx_bloom_failure_t *failure)
{
    if (state->control != NULL) {
        return NGX_OK;
    }

    ngx_memzero(failure, sizeof(ngx_bloom_failure_t));
    ngx_bloom_state_name(failure->name, "control");
    failure->what = "map";

    if (ngx_bloom_state_map(state) != NGX_OK) {
        failure->err = ngx_errno;
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_state_inherit(ngx_bloom_state_t *state, ngx_bloom_state_t *old,
    u_char *path, ngx_bloom_failure_t *failure)
{
    ngx_bloom_state_init(state, path, NGX_INVALID_FILE);

    state->instance = old->instance;
    state->alone = old->alone;

    state->dir = fcntl(old->dir, F_DUPFD_CLOEXEC, 0);
    state->fd = fcntl(old->fd, F_DUPFD_CLOEXEC, 0);
    state->lock = fcntl(old->lock, F_DUPFD_CLOEXEC, 0);

    if (state->dir == NGX_INVALID_FILE || state->fd == NGX_INVALID_FILE
        || state->lock == NGX_INVALID_FILE)
    {
        ngx_memzero(failure, sizeof(ngx_bloom_failure_t));
        ngx_bloom_state_name(failure->name, "control");
        failure->what = "open again";
        failure->err = ngx_errno;
        ngx_bloom_state_close(state);
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_bloom_state_close(ngx_bloom_state_t *state)
{
    ngx_bloom_state_ready(state);

    if (state->control != NULL) {
        (void) munmap(state->control, sizeof(ngx_bloom_control_t));
        state->control = NULL;
    }

    ngx_bloom_io_close(&state->dir);
    ngx_bloom_io_close(&state->fd);
    ngx_bloom_io_close(&state->lock);
    ngx_bloom_io_close(&state->segment_fd);
}


void
ngx_bloom_state_leave(ngx_bloom_state_t *state, ngx_uint_t instance)
{
    if (instance != state->instance) {
        __atomic_store_n(&state->control->instance[instance].required,
                         NGX_BLOOM_LEFT, __ATOMIC_SEQ_CST);
    }
}


void
ngx_bloom_state_prune(ngx_bloom_state_t *state)
{
    u_char      name[NGX_MAX_PATH];
    uint64_t    bit, instances;
    ngx_fd_t    fd;
    ngx_uint_t  i;

    instances = __atomic_load_n(&state->control->instances, __ATOMIC_SEQ_CST);

    for (i = 0; i < NGX_BLOOM_INSTANCES; i++) {
        bit = (uint64_t) 1 << i;

        if (i == state->instance || (instances & bit) == 0) {
            continue;
        }

        fd = ngx_bloom_io_open(state->dir,
                               ngx_bloom_state_name(name, "instance.%ui", i),
                               O_RDWR);

        if (fd == NGX_INVALID_FILE) {
            continue;
        }

        if (flock(fd, LOCK_EX|LOCK_NB) == 0) {

            /* a new instance of this number sets the bit after it has taken the
             * lock that is held here */

            __atomic_fetch_and(&state->control->instances, ~bit,
                               __ATOMIC_SEQ_CST);
        }

        (void) ngx_close_file(fd);
    }
}


void
ngx_bloom_state_fail(ngx_bloom_state_t *state, ngx_uint_t what, ngx_err_t err)
{
    if (state->control->failed == what && what == 0) {
        return;
    }

    __atomic_store_n(&state->control->err, (uint64_t) err, __ATOMIC_RELAXED);
    __atomic_store_n(&state->control->failed, (uint64_t) what,
                     __ATOMIC_RELEASE);
}


const char *
ngx_bloom_state_error(uint64_t failed, ngx_err_t err)
{
    switch (failed) {

    case 0:
        return NULL;

    case NGX_BLOOM_CANNOT_PREPARE:
        return (err == NGX_ENOSPC || err == EDQUOT)
               ? "the journal has no room: a new segment of 16 MiB cannot be "
                 "created; free space on the disk of bloom_state_path"
               : "a new segment of the journal cannot be created; check the "
                 "owner and mode of the zone's directory in bloom_state_path, "
                 "and its disk";

    case NGX_BLOOM_CANNOT_SYNC:
        return "the journal cannot be synchronised to disk; check the disk of "
               "bloom_state_path";

    default: /* NGX_BLOOM_CANNOT_WRITE */
        return "the journal cannot be written; check the owner and mode of the "
               "zone's directory in bloom_state_path, and its disk";
    }
}
