
/*
 * This file opens state directories and maps their control pages; it has the
 * locks, the end of the journal, and the list of instances.
 */

#include "ngx_bloom_state.h"
#include "ngx_bloom_io.h"

#include <dirent.h>
#include <sys/file.h>
#include <sys/mman.h>


/* "BLOOMCTL" */
#define NGX_BLOOM_CONTROL_MAGIC  0x4c54434d4f4f4c42

/* How long it may take until no record is being appended, ms. */
#define NGX_BLOOM_STATE_PATIENCE  10000


static ngx_int_t ngx_bloom_state_directory(u_char *path, ngx_core_conf_t *ccf);
static ngx_int_t ngx_bloom_state_give(u_char *path, ngx_core_conf_t *ccf);
static ngx_int_t ngx_bloom_state_give_all(ngx_bloom_state_t *state,
    ngx_core_conf_t *ccf);
static ngx_fd_t ngx_bloom_state_file(ngx_bloom_state_t *state, u_char *name);
static ngx_int_t ngx_bloom_state_map(ngx_bloom_state_t *state);
static ngx_int_t ngx_bloom_state_enlist(ngx_bloom_state_t *state,
    u_char *name);
static ngx_int_t ngx_bloom_state_join(ngx_bloom_state_t *state);
static ngx_int_t ngx_bloom_state_renew(ngx_bloom_state_t *state);


u_char *
ngx_bloom_state_path(ngx_pool_t *pool, ngx_str_t *root, ngx_str_t *zone)
{
    u_char  c, *path, *p;
    size_t  i;

    path = ngx_pnalloc(pool, root->len + 1 + 3 * zone->len + 1);
    if (path == NULL) {
        return NULL;
    }

    p = ngx_cpymem(path, root->data, root->len);

    if (root->len == 0 || p[-1] != '/') {
        *p++ = '/';
    }

    for (i = 0; i < zone->len; i++) {
        c = zone->data[i];

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
            || (c >= '0' && c <= '9') || c == '_' || c == '-'
            || (c == '.' && i != 0))
        {
            *p++ = c;

        } else {
            p = ngx_sprintf(p, "%%%02Xd", (int) c);
        }
    }

    *p = '\0';

    return path;
}


ngx_uint_t
ngx_bloom_state_exists(u_char *path)
{
    struct stat  st;

    return stat((char *) path, &st) == 0 && S_ISDIR(st.st_mode);
}


u_char *
ngx_bloom_state_name(ngx_bloom_state_t *state, u_char *buf, const char *fmt,
    ...)
{
    u_char   *p, *last;
    va_list   args;

    last = buf + NGX_MAX_PATH - 1;

    p = ngx_slprintf(buf, last, "%V/", &state->path);

    va_start(args, fmt);
    p = ngx_vslprintf(p, last, fmt, args);
    va_end(args);

    *p = '\0';

    return buf;
}


ngx_int_t
ngx_bloom_state_open(ngx_bloom_state_t *state, ngx_str_t *root, u_char *path,
    ngx_core_conf_t *ccf, ngx_bloom_failure_t *failure)
{
    ngx_fd_t  lock;

    state->path.data = path;
    state->path.len = ngx_strlen(path);
    state->fd = NGX_INVALID_FILE;
    state->lock = NGX_INVALID_FILE;
    state->starts = NGX_INVALID_FILE;
    state->segment_fd = NGX_INVALID_FILE;
    state->oldest = 0;
    state->newest = 0;
    state->control = NULL;
    lock = NGX_INVALID_FILE;

    failure->what = "make";

    ngx_cpystrn(failure->name, root->data, NGX_MAX_PATH);

    if (ngx_bloom_state_directory(failure->name, ccf) != NGX_OK) {
        goto failed;
    }

    ngx_cpystrn(failure->name, path, NGX_MAX_PATH);

    if (ngx_bloom_state_directory(failure->name, ccf) != NGX_OK) {
        goto failed;
    }

    failure->what = "give to the workers' user the files in";

    if (ngx_bloom_state_give_all(state, ccf) != NGX_OK) {
        goto failed;
    }

    failure->what = "open";

    ngx_bloom_state_name(state, failure->name, "lock");

    lock = ngx_bloom_state_file(state, failure->name);
    if (lock == NGX_INVALID_FILE) {
        goto failed;
    }

    if (flock(lock, LOCK_EX) == -1) {
        failure->what = "lock";
        goto failed;
    }

    ngx_bloom_state_name(state, failure->name, "control");

    state->fd = ngx_bloom_state_file(state, failure->name);
    if (state->fd == NGX_INVALID_FILE) {
        goto failed;
    }

    if (ngx_bloom_state_map(state) != NGX_OK) {
        failure->what = "map";
        goto failed;
    }

    if (ngx_bloom_state_enlist(state, failure->name) != NGX_OK) {
        failure->what = "lock";
        goto failed;
    }

    failure->what = "use";
    ngx_bloom_state_name(state, failure->name, "control");

    if (state->alone) {
        if (ngx_bloom_state_renew(state) != NGX_OK) {
            goto failed;
        }

    } else if (state->control->magic != NGX_BLOOM_CONTROL_MAGIC
               || state->control->size != sizeof(ngx_bloom_control_t))
    {
        /* another version of the module has it */

        ngx_set_errno(NGX_EBUSY);
        goto failed;
    }

    if (ngx_bloom_state_join(state) != NGX_OK) {
        failure->what = "lock";
        goto failed;
    }

    /* kept open, and so locked, until ngx_bloom_state_ready() */

    state->starts = lock;

    return NGX_OK;

failed:

    failure->err = ngx_errno;

    ngx_bloom_io_close(&lock);
    ngx_bloom_state_close(state);

    return NGX_ERROR;
}


/*
 * From here on others count this instance in.  Under the lock: who publishes
 * has either done so before, or sees the bit.
 */
static ngx_int_t
ngx_bloom_state_join(ngx_bloom_state_t *state)
{
    ngx_bloom_control_t  *control;

    control = state->control;

    if (ngx_bloom_lock(&control->append, NGX_BLOOM_STATE_PATIENCE) != NGX_OK) {
        ngx_set_errno(NGX_EBUSY);
        return NGX_ERROR;
    }

    control->instance[state->instance].required = 0;
    control->instance[state->instance].applied = 0;

    __atomic_fetch_or(&control->instances, (uint64_t) 1 << state->instance,
                      __ATOMIC_SEQ_CST);

    if (!ngx_bloom_pending_empty(&control->pending)) {
        control->instance[state->instance].required = NGX_BLOOM_PENDING;
    }

    ngx_bloom_unlock(&control->append);

    return NGX_OK;
}


void
ngx_bloom_state_require(ngx_bloom_state_t *state, uint64_t position)
{
    uint64_t              instances, old, new, *required;
    ngx_uint_t            i;
    ngx_bloom_control_t  *control;

    control = state->control;

    instances = __atomic_load_n(&control->instances, __ATOMIC_SEQ_CST);
    instances &= ~((uint64_t) 1 << state->instance);

    for (i = 0; instances != 0; i++, instances >>= 1) {

        if ((instances & 1) == 0) {
            continue;
        }

        required = &control->instance[i].required;
        old = __atomic_load_n(required, __ATOMIC_SEQ_CST);

        do {
            if (old >= position && position != NGX_BLOOM_PENDING) {
                break;
            }

            /* pending: another value each time, so that nobody takes it back
             * unseen */

            new = (old & NGX_BLOOM_PENDING) ? old + 1 : position;

        } while (!__atomic_compare_exchange_n(required, &old, new, 0,
                                              __ATOMIC_SEQ_CST,
                                              __ATOMIC_SEQ_CST));
    }
}


void
ngx_bloom_state_ready(ngx_bloom_state_t *state)
{
    ngx_bloom_io_close(&state->starts);
}


/* Makes a directory for the workers' user. */
static ngx_int_t
ngx_bloom_state_directory(u_char *path, ngx_core_conf_t *ccf)
{
    if (mkdir((char *) path, 0700) == -1) {
        return ngx_errno == NGX_EEXIST ? NGX_OK : NGX_ERROR;
    }

    return ngx_bloom_state_give(path, ccf);
}


/* Gives a file or directory to the workers' user, if it is another's. */
static ngx_int_t
ngx_bloom_state_give(u_char *path, ngx_core_conf_t *ccf)
{
    struct stat  st;

    if (geteuid() != 0 || ccf->user == (ngx_uid_t) NGX_CONF_UNSET_UINT) {
        return NGX_OK;
    }

    if (lstat((char *) path, &st) == -1) {
        return NGX_ERROR;
    }

    if (st.st_uid == (uid_t) ccf->user || S_ISLNK(st.st_mode)) {
        return NGX_OK;
    }

    return lchown((char *) path, ccf->user, ccf->group) == 0 ? NGX_OK
                                                             : NGX_ERROR;
}


/* The same for all files in the directory: "user" may have changed. */
static ngx_int_t
ngx_bloom_state_give_all(ngx_bloom_state_t *state, ngx_core_conf_t *ccf)
{
    DIR            *dir;
    u_char          name[NGX_MAX_PATH];
    ngx_int_t       rc;
    struct dirent  *entry;

    if (geteuid() != 0) {
        return NGX_OK;
    }

    dir = opendir((char *) state->path.data);
    if (dir == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_bloom_state_give(state->path.data, ccf);

    while (rc == NGX_OK && (entry = readdir(dir)) != NULL) {

        if (entry->d_name[0] == '.') {
            continue;
        }

        rc = ngx_bloom_state_give(ngx_bloom_state_name(state, name, "%s",
                                                       entry->d_name),
                                  ccf);

        if (rc != NGX_OK && ngx_errno == NGX_ENOENT) {
            rc = NGX_OK;                         /* removed meanwhile */
        }
    }

    (void) closedir(dir);

    return rc;
}


/* Opens a file to write, and makes it if there is none. */
static ngx_fd_t
ngx_bloom_state_file(ngx_bloom_state_t *state, u_char *name)
{
    ngx_fd_t  fd;

    fd = ngx_bloom_io_open(name, O_RDWR|O_CREAT);

    if (fd != NGX_INVALID_FILE) {
        ngx_bloom_state_own(state, fd);
    }

    return fd;
}


void
ngx_bloom_state_own(ngx_bloom_state_t *state, ngx_fd_t fd)
{
    struct stat  st;

    if (geteuid() == 0 && stat((char *) state->path.data, &st) == 0) {
        (void) !fchown(fd, st.st_uid, st.st_gid);
    }
}


static ngx_int_t
ngx_bloom_state_map(ngx_bloom_state_t *state)
{
    void  *p;
    int    err;

    /* a page that is not there when it is written would be a SIGBUS */

    do {
        err = posix_fallocate(state->fd, 0, sizeof(ngx_bloom_control_t));
    } while (err == NGX_EINTR);

    if (err != 0) {
        ngx_set_errno(err);
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
 * Takes the first number whose file nobody has locked, and sees whether
 * anybody has any other.
 */
static ngx_int_t
ngx_bloom_state_enlist(ngx_bloom_state_t *state, u_char *name)
{
    ngx_fd_t    fd;
    ngx_uint_t  i;

    state->alone = 1;

    for (i = 0; i < NGX_BLOOM_INSTANCES; i++) {

        ngx_bloom_state_name(state, name, "instance.%ui", i);

        fd = (state->lock == NGX_INVALID_FILE)
             ? ngx_bloom_state_file(state, name)
             : ngx_bloom_io_open(name, O_RDWR);

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


/* Fills the control page again; of use are `synced`, `rewrite` and `pending`,
 * if whole. */
static ngx_int_t
ngx_bloom_state_renew(ngx_bloom_state_t *state)
{
    uint64_t              synced, rewrite;
    ngx_bloom_control_t  *control;

    control = state->control;
    synced = 0;
    rewrite = control->rewrite;

    if (control->magic != NGX_BLOOM_CONTROL_MAGIC
        || control->size != sizeof(ngx_bloom_control_t)
        || control->pending.begin > control->pending.end
        || control->pending.end > NGX_BLOOM_PENDING_SIZE)
    {
        control->pending.begin = 0;
        control->pending.end = 0;
        control->pending.count = 0;

    } else if (control->synced == ~control->synced_check) {
        synced = control->synced;
    }

    /* all but the pending keys, and that it was valid: whoever dies here
     * leaves them to the next */

    ngx_memzero((u_char *) control + offsetof(ngx_bloom_control_t, append),
                offsetof(ngx_bloom_control_t, pending)
                - offsetof(ngx_bloom_control_t, append));

    control->size = sizeof(ngx_bloom_control_t);
    control->synced = synced;
    control->synced_check = ~synced;
    control->rewrite = (rewrite != 0);

    if (ngx_bloom_lock_init(&control->append) != NGX_OK
        || ngx_bloom_lock_init(&control->keeper) != NGX_OK
        || ngx_bloom_lock_init(&control->pending.mutex) != NGX_OK
        || ngx_bloom_lock_init(&control->history) != NGX_OK)
    {
        return NGX_ERROR;
    }

    control->magic = NGX_BLOOM_CONTROL_MAGIC;

    return NGX_OK;
}


ngx_int_t
ngx_bloom_state_inherit(ngx_bloom_state_t *state, ngx_bloom_state_t *old,
    u_char *path, ngx_bloom_failure_t *failure)
{
    *state = *old;

    state->path.data = path;
    state->starts = NGX_INVALID_FILE;
    state->segment_fd = NGX_INVALID_FILE;
    state->control = NULL;
    state->lock = NGX_INVALID_FILE;
    state->appended = 0;
    state->late = 0;

    ngx_bloom_state_name(state, failure->name, "control");

    state->fd = fcntl(old->fd, F_DUPFD_CLOEXEC, 0);

    if (state->fd != NGX_INVALID_FILE) {
        state->lock = fcntl(old->lock, F_DUPFD_CLOEXEC, 0);
    }

    if (state->lock == NGX_INVALID_FILE
        || ngx_bloom_state_map(state) != NGX_OK)
    {
        failure->what = "map";
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

    ngx_bloom_io_close(&state->fd);
    ngx_bloom_io_close(&state->lock);
    ngx_bloom_io_close(&state->segment_fd);
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

        fd = ngx_bloom_io_open(ngx_bloom_state_name(state, name, "instance.%ui",
                                                    i),
                               O_RDWR);

        if (fd == NGX_INVALID_FILE) {
            continue;
        }

        if (flock(fd, LOCK_EX|LOCK_NB) == 0) {

            /* whoever becomes this instance sets the bit after taking the
             * lock that is held here */

            __atomic_fetch_and(&state->control->instances, ~bit,
                               __ATOMIC_SEQ_CST);
        }

        (void) ngx_close_file(fd);
    }
}


ngx_int_t
ngx_bloom_lock_init(pthread_mutex_t *mutex)
{
    int                  err;
    pthread_mutexattr_t  attr;

    err = pthread_mutexattr_init(&attr);

    if (err == 0) {
        (void) pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
        (void) pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);

        err = pthread_mutex_init(mutex, &attr);

        (void) pthread_mutexattr_destroy(&attr);
    }

    if (err != 0) {
        ngx_set_errno(err);
        return NGX_ERROR;
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_lock(pthread_mutex_t *mutex, ngx_msec_t wait)
{
    int              err;
    struct timespec  until;

    err = pthread_mutex_trylock(mutex);

    if (err == NGX_EBUSY && wait != 0) {
        (void) clock_gettime(CLOCK_REALTIME, &until);

        until.tv_sec += wait / 1000;
        until.tv_nsec += (wait % 1000) * 1000000;

        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }

        err = pthread_mutex_timedlock(mutex, &until);
    }

    if (err == EOWNERDEAD) {
        err = pthread_mutex_consistent(mutex);
    }

    return err == 0 ? NGX_OK : NGX_BUSY;
}


void
ngx_bloom_unlock(pthread_mutex_t *mutex)
{
    (void) pthread_mutex_unlock(mutex);
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
               ? "the journal has no room: a new segment, of 16 MiB, cannot be "
                 "made; free space on the disk of bloom_state_path"
               : "a new segment of the journal cannot be made; look at the "
                 "owner and the mode of bloom_state_path, and at its disk";

    case NGX_BLOOM_CANNOT_SYNC:
        return "the journal cannot be synchronised to disk; look at the disk "
               "of bloom_state_path";

    default: /* NGX_BLOOM_CANNOT_WRITE */
        return "the journal cannot be written; look at the disk and the owner "
               "of bloom_state_path";
    }
}


ngx_int_t
ngx_bloom_state_read_mark(ngx_bloom_state_t *state, const char *name,
    uint64_t *time, uint64_t *position)
{
    off_t      first, second;
    u_char     path[NGX_MAX_PATH], buf[2 * NGX_INT64_LEN + 4], *space;
    ssize_t    n;
    ngx_fd_t   fd;
    ngx_err_t  err;

    *time = 0;
    *position = 0;

    fd = ngx_bloom_io_open(ngx_bloom_state_name(state, path, "%s", name),
                           O_RDONLY);

    if (fd == NGX_INVALID_FILE) {
        return ngx_errno == NGX_ENOENT ? NGX_OK : NGX_ERROR;
    }

    n = ngx_bloom_io_read(fd, buf, sizeof(buf), 0);
    err = ngx_errno;

    (void) ngx_close_file(fd);

    if (n == NGX_ERROR) {
        ngx_set_errno(err);
        return NGX_ERROR;
    }

    if (n == 0 || buf[n - 1] != '\n') {
        goto invalid;
    }

    space = ngx_strlchr(buf, buf + n, ' ');
    if (space == NULL) {
        goto invalid;
    }

    first = ngx_atoof(buf, space - buf);
    second = ngx_atoof(space + 1, buf + n - 1 - (space + 1));

    if (first == NGX_ERROR || second == NGX_ERROR) {
        goto invalid;
    }

    *time = (uint64_t) first;
    *position = (uint64_t) second;

    return NGX_OK;

invalid:

    ngx_set_errno(NGX_EINVAL);

    return NGX_ERROR;
}


ngx_int_t
ngx_bloom_state_write_mark(ngx_bloom_state_t *state, const char *name,
    uint64_t time, uint64_t position)
{
    u_char     from[NGX_MAX_PATH], to[NGX_MAX_PATH];
    u_char     buf[2 * NGX_INT64_LEN + 4], *p;
    ngx_fd_t   fd;
    ngx_int_t  rc;

    ngx_bloom_state_name(state, from, "%s.tmp", name);
    ngx_bloom_state_name(state, to, "%s", name);

    fd = ngx_bloom_io_open(from, O_RDWR|O_CREAT|O_TRUNC);
    if (fd == NGX_INVALID_FILE) {
        return NGX_ERROR;
    }

    ngx_bloom_state_own(state, fd);

    p = ngx_sprintf(buf, "%uL %uL\n", time, position);

    rc = ngx_bloom_io_write(fd, buf, p - buf, 0);

    if (rc == NGX_OK) {
        rc = ngx_bloom_io_sync(fd);
    }

    (void) ngx_close_file(fd);

    return rc == NGX_OK ? ngx_bloom_io_rename(state->path.data, from, to)
                        : NGX_ERROR;
}
