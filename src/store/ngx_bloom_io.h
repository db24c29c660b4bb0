
/*
 * These functions make system calls on the files of a state directory.  All
 * that write, synchronise, rename or remove a file are here, so that a test can
 * stop the process at each.
 */

#ifndef _NGX_BLOOM_IO_H_INCLUDED_
#define _NGX_BLOOM_IO_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


/*
 * A place where a process may die, or be overtaken by others.  Built with
 * -DNGX_BLOOM_FAULTS, and with NGX_BLOOM_FAULT_FILE=PATH in its environment:
 * while the file PATH is there and has "NAME N" in it, the first process that
 * reaches the place NAME for the N-th time removes the file and kills itself,
 * or with "NAME N stop" stops until it gets SIGCONT.  "any" is every place.
 * Otherwise it is nothing.
 */
#if (NGX_BLOOM_FAULTS)
void ngx_bloom_fault(const char *name);
#else
#define ngx_bloom_fault(name)
#endif


/* All of these set ngx_errno when they fail. */

/* O_CLOEXEC and O_NOFOLLOW are added to `flags`; mode is 0600. */
ngx_fd_t ngx_bloom_io_open(const u_char *path, int flags);

/* Writes all of it.  NGX_OK or NGX_ERROR. */
ngx_int_t ngx_bloom_io_write(ngx_fd_t fd, const void *buf, size_t len,
    uint64_t offset);

/* Bytes read, less than `len` only at the file's end, or NGX_ERROR. */
ssize_t ngx_bloom_io_read(ngx_fd_t fd, void *buf, size_t len, uint64_t offset);

/* Synchronises a file's data to disk. */
ngx_int_t ngx_bloom_io_sync(ngx_fd_t fd);

/* Synchronises the directory `path`, with the names in it. */
ngx_int_t ngx_bloom_io_sync_directory(const u_char *path);

/* Closes a file, if *fd is one, and sets *fd to NGX_INVALID_FILE. */
void ngx_bloom_io_close(ngx_fd_t *fd);

/* Renames a file within the directory `path`, and synchronises that. */
ngx_int_t ngx_bloom_io_rename(const u_char *path, const u_char *from,
    const u_char *to);

/* Removes a file; it is no error if there is none. */
ngx_int_t ngx_bloom_io_remove(const u_char *path);

/* Formats as ngx_sprintf() does into `size` bytes, cut off and terminated. */
void ngx_cdecl ngx_bloom_print(u_char *buf, size_t size, const char *fmt, ...);

/* The time now, ms since 1970-01-01 UTC. */
uint64_t ngx_bloom_time(void);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_IO_H_INCLUDED_ */
