/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions make system calls on the files of a state directory.  All
 * that write, synchronise, rename or remove a file are here, so that a test can
 * stop the process at each.
 */

#ifndef _NGX_BLOOM_IO_H_INCLUDED_
#define _NGX_BLOOM_IO_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include <dirent.h>

#pragma GCC visibility push(hidden)


/*
 * A place where a process may die, or be overtaken by others.  Built with
 * -DNGX_BLOOM_FAULTS, and with NGX_BLOOM_FAULT_FILE=PATH in its environment:
 * while the file PATH is there and has "NAME N" in it, the first process that
 * reaches the place NAME for the N-th time removes the file and kills itself,
 * or with "NAME N stop" stops until it gets SIGCONT.  With "NAME N all" the
 * file stays, and every process that gets there kills itself.  "any" is every
 * place.  Otherwise it is nothing.
 */
#if (NGX_BLOOM_FAULTS)
void ngx_bloom_fault(const char *name);
#else
#define ngx_bloom_fault(name)
#endif


/* All of these set ngx_errno when they fail. */

/*
 * Names are those of files in the directory `dir`, or, with AT_FDCWD, paths.
 * What is there may have been put there by anybody who runs as the workers'
 * user, so a link is not followed, nothing is waited for, and what is not a
 * regular file is refused with NGX_BLOOM_NOT_A_FILE.
 */
#define NGX_BLOOM_NOT_A_FILE  EBADFD     /* "File descriptor in bad state" */

/* Opens a file; a new one has the mode 0600. */
ngx_fd_t ngx_bloom_io_open(ngx_fd_t dir, const u_char *name, int flags);

/* What to do about an error of ngx_bloom_io_open(): a phrase to follow the
 * name of the file, or an empty one. */
const char *ngx_bloom_io_advice(ngx_err_t err);

/* Opens the directory again, to list what is in it.  NULL with errno. */
DIR *ngx_bloom_io_list(ngx_fd_t dir);

/* Writes all of it.  NGX_OK or NGX_ERROR. */
ngx_int_t ngx_bloom_io_write(ngx_fd_t fd, const void *buf, size_t len,
    uint64_t offset);

/*
 * Writes all of it to a file that is written from its beginning to its end, and
 * synchronises the file whenever NGX_BLOOM_IO_SLICE more bytes are in it, which
 * *unsynced counts.  A large file that is synchronised at its end alone keeps
 * every other synchronisation of the same disk waiting.
 */
#define NGX_BLOOM_IO_SLICE  (4 * 1024 * 1024)

ngx_int_t ngx_bloom_io_write_slice(ngx_fd_t fd, const void *buf, size_t len,
    uint64_t offset, size_t *unsynced);

/*
 * Has NGX_BLOOM_IO_SLICE bytes of a file written to disk that somebody else has
 * written, as far as they are not.  What makes them last is ngx_bloom_io_sync()
 * behind the last slice.
 */
ngx_int_t ngx_bloom_io_sync_slice(ngx_fd_t fd, uint64_t offset);

/* Bytes read, less than `len` only at the file's end, or NGX_ERROR. */
ssize_t ngx_bloom_io_read(ngx_fd_t fd, void *buf, size_t len, uint64_t offset);

/* Synchronises a file's data to disk. */
ngx_int_t ngx_bloom_io_sync(ngx_fd_t fd);

/*
 * Asks the file system to write into a file where its bytes are, if it would
 * otherwise write them elsewhere, for which there may be no room: for a file
 * that is empty and going to be mapped.  Most do so anyway, and some cannot.
 */
void ngx_bloom_io_overwrite(ngx_fd_t fd);

/* Synchronises a directory, with the names in it. */
ngx_int_t ngx_bloom_io_sync_directory(ngx_fd_t dir);

/* Closes a file, if *fd is one, and sets *fd to NGX_INVALID_FILE. */
void ngx_bloom_io_close(ngx_fd_t *fd);

/* Renames a file within a directory, and synchronises that. */
ngx_int_t ngx_bloom_io_rename(ngx_fd_t dir, const u_char *from,
    const u_char *to);

/* Removes a file; it is no error if there is none. */
ngx_int_t ngx_bloom_io_remove(ngx_fd_t dir, const u_char *name);

/* Formats as ngx_sprintf() does into `size` bytes, cut off and terminated. */
void ngx_cdecl ngx_bloom_print(u_char *buf, size_t size, const char *fmt, ...);

/* Returns the end of a noun that is counted: "1 key", "2 keys". */
static ngx_inline const char *
ngx_bloom_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* The time now, ms since 1970-01-01 UTC. */
uint64_t ngx_bloom_time(void);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_IO_H_INCLUDED_ */
