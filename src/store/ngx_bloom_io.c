/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Each function repeats a system call that a signal has interrupted.
 */

#include "ngx_bloom_io.h"

#include <linux/fs.h>
#include <sys/ioctl.h>


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

    /* later processes live, unless all of them are to die */

    if (n != 3 || strcmp(how, "all") != 0) {
        if (unlink(path) == -1) {
            return;
        }
    }

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "fault injected at \"%s\"", name);

    (void) raise(n == 3 && strcmp(how, "stop") == 0 ? SIGSTOP : SIGKILL);
}

#endif


ngx_fd_t
ngx_bloom_io_open(ngx_fd_t dir, const u_char *name, int flags)
{
    ngx_fd_t         fd;
    ngx_err_t        err;
    ngx_file_info_t  fi;

    do {
        fd = openat(dir, (const char *) name,
                    flags|O_CLOEXEC|O_NOFOLLOW|O_NONBLOCK|O_NOCTTY, 0600);
    } while (fd == NGX_INVALID_FILE && ngx_errno == NGX_EINTR);

    if (fd == NGX_INVALID_FILE) {
        return NGX_INVALID_FILE;
    }

    if (ngx_fd_info(fd, &fi) == NGX_FILE_ERROR) {
        err = ngx_errno;

    } else if (!ngx_is_file(&fi)) {
        err = NGX_BLOOM_NOT_A_FILE;

    } else {
        return fd;
    }

    (void) ngx_close_file(fd);
    ngx_set_errno(err);

    return NGX_INVALID_FILE;
}


const char *
ngx_bloom_io_advice(ngx_err_t err)
{
    switch (err) {

    case NGX_BLOOM_NOT_A_FILE:
    case NGX_ELOOP:
    case NGX_EISDIR:
    case ENXIO:
        return ": it is not a regular file; find out who put it there, remove "
               "it, and restore the file if there was one";

    case NGX_EACCES:
    case NGX_EPERM:
        return ": the user that the workers run as cannot read and write it; "
               "make that user its owner, with mode 0600";

    case NGX_ENOSPC:
    case EDQUOT:
        return ": free about 20 MiB on its disk";

    default:
        return "";
    }
}


DIR *
ngx_bloom_io_list(ngx_fd_t dir)
{
    DIR        *list;
    ngx_fd_t    fd;
    ngx_err_t   err;

    /* a new descriptor, which has a read position of its own */

    fd = openat(dir, ".", O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (fd == NGX_INVALID_FILE) {
        return NULL;
    }

    list = fdopendir(fd);

    if (list == NULL) {
        err = ngx_errno;
        (void) ngx_close_file(fd);
        ngx_set_errno(err);
    }

    return list;
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


ngx_int_t
ngx_bloom_io_write_slice(ngx_fd_t fd, const void *buf, size_t len,
    uint64_t offset, size_t *unsynced)
{
    if (ngx_bloom_io_write(fd, buf, len, offset) != NGX_OK) {
        return NGX_ERROR;
    }

    *unsynced += len;

    if (*unsynced < NGX_BLOOM_IO_SLICE) {
        return NGX_OK;
    }

    *unsynced = 0;

    return ngx_bloom_io_sync(fd);
}


ngx_int_t
ngx_bloom_io_sync_slices(ngx_fd_t fd)
{
    off_t            at;
    ngx_file_info_t  fi;

    if (ngx_fd_info(fd, &fi) == NGX_FILE_ERROR) {
        return NGX_ERROR;
    }

    for (at = 0; at < ngx_file_size(&fi); at += NGX_BLOOM_IO_SLICE) {

        if (sync_file_range(fd, at, NGX_BLOOM_IO_SLICE,
                            SYNC_FILE_RANGE_WAIT_BEFORE|SYNC_FILE_RANGE_WRITE
                            |SYNC_FILE_RANGE_WAIT_AFTER)
            == -1
            && ngx_errno != ENOSYS && ngx_errno != NGX_EINVAL)
        {
            return NGX_ERROR;
        }
    }

    return ngx_bloom_io_sync(fd);
}


ngx_int_t
ngx_bloom_io_sync_foreign(ngx_fd_t fd)
{
    return ngx_bloom_io_sync_slices(fd) == NGX_OK
           ? ngx_bloom_io_sync_all(fd) : NGX_ERROR;
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

    if (rc != 0) {
        return NGX_ERROR;
    }

    ngx_bloom_fault("flushed");

    return NGX_OK;
}


ngx_int_t
ngx_bloom_io_sync_all(ngx_fd_t fd)
{
    ngx_bloom_fault("sync");

    return syncfs(fd) == 0 ? NGX_OK : NGX_ERROR;
}


void
ngx_bloom_io_overwrite(ngx_fd_t fd)
{
    int  flags;

    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
        flags |= FS_NOCOW_FL;
        (void) ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
}


ngx_int_t
ngx_bloom_io_sync_directory(ngx_fd_t dir)
{
    int        rc;
    ngx_fd_t   fd;
    ngx_err_t  err;

    ngx_bloom_fault("sync");

    fd = openat(dir, ".", O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (fd == NGX_INVALID_FILE) {
        return NGX_ERROR;
    }

    rc = fsync(fd);
    err = ngx_errno;

    (void) ngx_close_file(fd);
    ngx_set_errno(err);

    /* some file systems cannot synchronise directories: EINVAL */

    if (rc == -1 && err != NGX_EINVAL) {
        return NGX_ERROR;
    }

    ngx_bloom_fault("flushed");

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
ngx_bloom_io_rename(ngx_fd_t dir, const u_char *from, const u_char *to)
{
    ngx_bloom_fault("rename");

    if (renameat(dir, (const char *) from, dir, (const char *) to) == -1) {
        return NGX_ERROR;
    }

    ngx_bloom_fault("renamed");

    return ngx_bloom_io_sync_directory(dir);
}


ngx_int_t
ngx_bloom_io_remove(ngx_fd_t dir, const u_char *name)
{
    ngx_bloom_fault("remove");

    if (unlinkat(dir, (const char *) name, 0) == -1
        && ngx_errno != NGX_ENOENT)
    {
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
