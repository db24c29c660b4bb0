/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions access the files of a state directory.  All calls that write,
 * synchronise, rename or remove a file are made here, so that a test can kill
 * or stop the process at each of them.
 */

#ifndef _NGX_BLOOM_IO_H_INCLUDED_
#define _NGX_BLOOM_IO_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include <dirent.h>

#pragma GCC visibility push(hidden)


/*
 * Marks a fault point: a place where a test can kill or stop the process.  It
 * does nothing unless the module is built with -DNGX_BLOOM_FAULTS.
 *
 * The environment variable NGX_BLOOM_FAULT_FILE names a file.  As long as that
 * file exists, its contents decide what happens:
 *
 *     NAME N        the first process that reaches the point NAME for the N-th
 *                   time removes the file and kills itself
 *     NAME N stop   that process stops itself until it gets SIGCONT
 *     NAME N all    every process that reaches the point for the N-th time
 *                   kills itself; the file stays
 *
 * The NAME "any" stands for every fault point.
 */
#if (NGX_BLOOM_FAULTS)
void ngx_bloom_fault(const char *name);
#else
#define ngx_bloom_fault(name)
#endif


/* All of these set ngx_errno when they fail. */

/*
 * The errno of ngx_bloom_io_open() for anything but a regular file.  Any
 * process of the workers' user may have put something else there, so links are
 * not followed and opening never blocks.
 */
#define NGX_BLOOM_NOT_A_FILE  EBADFD     /* "File descriptor in bad state" */

/* Opens a file in the directory `dir`; if that is AT_FDCWD, `name` is a path.
 * A new file gets the mode 0600.  Returns NGX_INVALID_FILE with errno. */
ngx_fd_t ngx_bloom_io_open(ngx_fd_t dir, const u_char *name, int flags);

/* Returns what to do about an error of ngx_bloom_io_open(): a phrase to follow
 * the name of the file, or "". */
const char *ngx_bloom_io_advice(ngx_err_t err);

/* Opens a directory for readdir(), with a read position of its own.  Returns
 * NULL with errno. */
DIR *ngx_bloom_io_list(ngx_fd_t dir);

/* Writes `len` bytes at `offset`.  Returns NGX_OK or NGX_ERROR. */
ngx_int_t ngx_bloom_io_write(ngx_fd_t fd, const void *buf, size_t len,
    uint64_t offset);

/*
 * Writes the next `len` bytes of a file that is written from beginning to end.
 * The file is synchronised whenever NGX_BLOOM_IO_SLICE more bytes have been
 * written, which *unsynced counts.  If a large file were synchronised only at
 * its end, every other synchronisation of the same disk would have to wait.
 * Returns NGX_OK or NGX_ERROR.
 */
#define NGX_BLOOM_IO_SLICE  (4 * 1024 * 1024)

ngx_int_t ngx_bloom_io_write_slice(ngx_fd_t fd, const void *buf, size_t len,
    uint64_t offset, size_t *unsynced);

/* Reads up to `len` bytes.  Returns their number, which is less than `len` only
 * at the end of the file; or NGX_ERROR. */
ssize_t ngx_bloom_io_read(ngx_fd_t fd, void *buf, size_t len, uint64_t offset);

/* Synchronises a file's data to disk.  Returns NGX_OK or NGX_ERROR. */
ngx_int_t ngx_bloom_io_sync(ngx_fd_t fd);

/* Synchronises the file system of a file, also the names in its directories.
 * Returns NGX_OK or NGX_ERROR. */
ngx_int_t ngx_bloom_io_sync_all(ngx_fd_t fd);

/* Synchronises a large file's data that another process has written, slice by
 * slice, so that other synchronisations of the disk need not wait for all of
 * it.  Returns NGX_OK or NGX_ERROR. */
ngx_int_t ngx_bloom_io_sync_slices(ngx_fd_t fd);

/*
 * Synchronises a file that another process has written, in slices, and the name
 * that leads to it.  The workers' user may not open the directory of the file,
 * so its whole file system is synchronised.  Returns NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_bloom_io_sync_foreign(ngx_fd_t fd);

/*
 * Asks the file system to overwrite the blocks of a file in place.  A file
 * system that copies on write would need new blocks, and may have none.  Call
 * it for an empty file that is going to be mapped.  Errors are ignored: most
 * file systems overwrite anyway, and some cannot.
 */
void ngx_bloom_io_overwrite(ngx_fd_t fd);

/* Synchronises a directory and the names in it.  Returns NGX_OK or
 * NGX_ERROR. */
ngx_int_t ngx_bloom_io_sync_directory(ngx_fd_t dir);

/* Closes *fd and sets it to NGX_INVALID_FILE; does nothing if it already has
 * that value. */
void ngx_bloom_io_close(ngx_fd_t *fd);

/* Renames a file in a directory, and synchronises the directory.  Returns
 * NGX_OK or NGX_ERROR. */
ngx_int_t ngx_bloom_io_rename(ngx_fd_t dir, const u_char *from,
    const u_char *to);

/* Removes a file.  Returns NGX_OK, also if there is no such file; or
 * NGX_ERROR. */
ngx_int_t ngx_bloom_io_remove(ngx_fd_t dir, const u_char *name);

/* Formats like ngx_sprintf() into `size` bytes.  The result is truncated to
 * fit, and null-terminated. */
void ngx_cdecl ngx_bloom_print(u_char *buf, size_t size, const char *fmt, ...);

/* Returns the plural ending of a noun that is counted: "1 key", "2 keys". */
static ngx_inline const char *
ngx_bloom_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Returns the current time, ms since 1970-01-01 UTC. */
uint64_t ngx_bloom_time(void);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_IO_H_INCLUDED_ */
