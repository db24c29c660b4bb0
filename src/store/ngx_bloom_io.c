
/*
 * A call that a signal interrupts is made again.
 */

#include "ngx_bloom_io.h"


#if (NGX_BLOOM_FAULTS)

void
ngx_bloom_fault(const char *name)
{
    static ngx_int_t        seen;
    static struct timespec  since;

    char         *path, wanted[32], how[8];
    FILE         *file;
    ngx_int_t     n, number;
    struct stat   st;

    path = getenv("NGX_BLOOM_FAULT_FILE");
    file = path ? fopen(path, "r") : NULL;

    if (file == NULL) {
        return;
    }

    number = 0;
    n = fscanf(file, "%31s %ld %7s", wanted, &number, how);

    if (fstat(fileno(file), &st) == 0
        && memcmp(&st.st_ctim, &since, sizeof(struct timespec)) != 0)
    {
        since = st.st_ctim;
        seen = 0;
    }

    (void) fclose(file);

    if (n < 2 || (strcmp(wanted, "any") != 0 && strcmp(wanted, name) != 0)
        || ++seen != number)
    {
        return;
    }

    /* once is enough: whoever comes next lives */

    (void) unlink(path);

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "fault injected at \"%s\"", name);

    (void) raise(n == 3 && strcmp(how, "stop") == 0 ? SIGSTOP : SIGKILL);
}

#endif


ngx_fd_t
ngx_bloom_io_open(const u_char *path, int flags)
{
    ngx_fd_t  fd;

    do {
        fd = open((const char *) path, flags|O_CLOEXEC|O_NOFOLLOW, 0600);
    } while (fd == NGX_INVALID_FILE && ngx_errno == NGX_EINTR);

    return fd;
}


ngx_int_t
ngx_bloom_io_write(ngx_fd_t fd, const void *buf, size_t len, uint64_t offset)
{
    ssize_t        n;
    const u_char  *p;

    ngx_bloom_fault("write");

    for (p = buf; len != 0; p += n, offset += n, len -= n) {

        n = pwrite(fd, p, len, (off_t) offset);

        if (n == -1) {
            if (ngx_errno != NGX_EINTR) {
                return NGX_ERROR;
            }

            n = 0;
        }
    }

    ngx_bloom_fault("written");

    return NGX_OK;
}


ssize_t
ngx_bloom_io_read(ngx_fd_t fd, void *buf, size_t len, uint64_t offset)
{
    size_t   done;
    ssize_t  n;

    for (done = 0; done < len; done += n) {

        n = pread(fd, (u_char *) buf + done, len - done,
                  (off_t) (offset + done));

        if (n == 0) {
            break;
        }

        if (n == -1) {
            if (ngx_errno != NGX_EINTR) {
                return NGX_ERROR;
            }

            n = 0;
        }
    }

    return (ssize_t) done;
}


ngx_int_t
ngx_bloom_io_sync(ngx_fd_t fd)
{
    ngx_int_t  rc;

    ngx_bloom_fault("sync");

    do {
        rc = fdatasync(fd);
    } while (rc == -1 && ngx_errno == NGX_EINTR);

    ngx_bloom_fault("synced");

    return rc == 0 ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_bloom_io_sync_directory(const u_char *path)
{
    ngx_fd_t   fd;
    ngx_err_t  err;
    ngx_int_t  rc;

    fd = ngx_bloom_io_open(path, O_RDONLY|O_DIRECTORY);
    if (fd == NGX_INVALID_FILE) {
        return NGX_ERROR;
    }

    ngx_bloom_fault("sync");

    rc = fsync(fd);
    err = ngx_errno;

    (void) ngx_close_file(fd);

    /* some file systems have nothing to synchronise there */

    if (rc == -1 && err != NGX_EINVAL) {
        ngx_set_errno(err);
        return NGX_ERROR;
    }

    ngx_bloom_fault("synced");

    return NGX_OK;
}


void
ngx_bloom_io_close(ngx_fd_t *fd)
{
    if (*fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(*fd);
        *fd = NGX_INVALID_FILE;
    }
}


ngx_int_t
ngx_bloom_io_rename(const u_char *path, const u_char *from, const u_char *to)
{
    ngx_bloom_fault("rename");

    if (rename((const char *) from, (const char *) to) == -1) {
        return NGX_ERROR;
    }

    ngx_bloom_fault("renamed");

    return ngx_bloom_io_sync_directory(path);
}


ngx_int_t
ngx_bloom_io_remove(const u_char *path)
{
    ngx_bloom_fault("remove");

    if (unlink((const char *) path) == -1 && ngx_errno != NGX_ENOENT) {
        return NGX_ERROR;
    }

    ngx_bloom_fault("removed");

    return NGX_OK;
}


void
ngx_bloom_print(u_char *buf, size_t size, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    *ngx_vslprintf(buf, buf + size - 1, fmt, args) = '\0';
    va_end(args);
}


uint64_t
ngx_bloom_time(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_REALTIME, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
