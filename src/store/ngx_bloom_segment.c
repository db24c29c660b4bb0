/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A segment is written to a temporary file and then renamed, so that no process
 * sees an incomplete segment.
 */

#include "ngx_bloom_segment.h"
#include "ngx_bloom_io.h"


#define NGX_BLOOM_SEGMENT_BUF  (1024 * 1024)


static ngx_int_t ngx_bloom_segment_scan(ngx_bloom_state_t *state,
    uint64_t position, ngx_uint_t *has_before, uint64_t *before,
    ngx_uint_t *has_behind, uint64_t *behind);
static ngx_int_t ngx_bloom_segment_after(ngx_bloom_state_t *state,
    uint64_t base, uint64_t *next);


u_char *
ngx_bloom_segment_name(u_char *name, uint64_t base)
{
    return ngx_bloom_state_name(name, "journal.%016xL", base);
}


ngx_fd_t
ngx_bloom_segment_open(ngx_bloom_state_t *state, uint64_t base, int flags,
    bloom_segment_t *segment, char *error, bloom_segment_e *what)
{
    u_char           name[NGX_MAX_PATH], header[BLOOM_SEGMENT_HEADER];
    ngx_fd_t         fd;
    ngx_err_t        err;
    ngx_file_info_t  fi;

    static const uint8_t  zero[BLOOM_JOURNAL_ID_LEN];

    fd = ngx_bloom_io_open(state->dir,
                           ngx_bloom_segment_name(name, base), flags);
    if (fd == NGX_INVALID_FILE) {
        return NGX_INVALID_FILE;
    }

    ngx_memzero(header, BLOOM_SEGMENT_HEADER);

    if (ngx_bloom_io_read(fd, header, BLOOM_SEGMENT_HEADER, 0) == NGX_ERROR
        || ngx_fd_info(fd, &fi) == NGX_FILE_ERROR)
    {
        err = ngx_errno;
        (void) ngx_close_file(fd);
        ngx_set_errno(err);
        return NGX_INVALID_FILE;
    }

    *what = bloom_segment_decode(segment, header,
                                 (uint64_t) ngx_file_size(&fi), error);

    if (*what == BLOOM_SEGMENT_OK && segment->base != base) {
        *what = BLOOM_SEGMENT_DAMAGED;
        (void) snprintf(error, BLOOM_RECORD_ERROR_LEN,
                        "was renamed: its header says \"journal.%016lx\"",
                        (unsigned long) segment->base);
    }

    if (*what == BLOOM_SEGMENT_OK
        && state->control != NULL
        && ngx_memcmp(state->control->journal, zero, BLOOM_JOURNAL_ID_LEN) != 0
        && ngx_memcmp(state->control->journal, segment->journal,
                      BLOOM_JOURNAL_ID_LEN)
           != 0)
    {
        *what = BLOOM_SEGMENT_DAMAGED;
        (void) snprintf(error, BLOOM_RECORD_ERROR_LEN,
                        "belongs to another journal");
    }

    return fd;
}


ngx_int_t
ngx_bloom_segment_read(ngx_bloom_state_t *state, uint64_t base, uint64_t most,
    bloom_segment_t *segment, u_char **buf, size_t *len)
{
    char             error[BLOOM_RECORD_ERROR_LEN];
    ssize_t          n;
    ngx_fd_t         fd;
    ngx_err_t        err;
    bloom_segment_e  what;

    fd = ngx_bloom_segment_open(state, base, O_RDONLY, segment, error, &what);

    if (fd == NGX_INVALID_FILE) {
        return ngx_errno == NGX_ENOENT ? NGX_DECLINED : NGX_ERROR;
    }

    if (what != BLOOM_SEGMENT_OK) {
        (void) ngx_close_file(fd);
        ngx_set_errno(NGX_EINVAL);
        return NGX_DECLINED;
    }

    *len = ngx_min(segment->size, most);
    *buf = malloc(*len);

    n = (*buf != NULL) ? ngx_bloom_io_read(fd, *buf, *len, 0) : NGX_ERROR;

    err = ngx_errno;
    (void) ngx_close_file(fd);

    if (n == NGX_ERROR) {
        free(*buf);
        ngx_set_errno(err);
        return NGX_ERROR;
    }

    ngx_memzero(*buf + n, *len - n);

    return NGX_OK;
}


/* Finds the last segment that begins at or before a position, and the first one
 * that begins after it. */
static ngx_int_t
ngx_bloom_segment_scan(ngx_bloom_state_t *state, uint64_t position,
    ngx_uint_t *has_before, uint64_t *before, ngx_uint_t *has_behind,
    uint64_t *behind)
{
    DIR            *dir;
    char           *end;
    uint64_t        at;
    struct dirent  *entry;

    dir = ngx_bloom_io_list(state->dir);
    if (dir == NULL) {
        return NGX_ERROR;
    }

    *has_before = 0;
    *has_behind = 0;
    *before = 0;
    *behind = 0;

    while ((entry = readdir(dir)) != NULL) {

        if (strncmp(entry->d_name, "journal.", 8) != 0
            || strlen(entry->d_name) != 24)
        {
            continue;
        }

        at = strtoull(entry->d_name + 8, &end, 16);

        if (*end != '\0') {
            continue;
        }

        if (at <= position) {
            if (!*has_before || at > *before) {
                *before = at;
                *has_before = 1;
            }

        } else if (!*has_behind || at < *behind) {
            *behind = at;
            *has_behind = 1;
        }
    }

    (void) closedir(dir);

    return NGX_OK;
}


ngx_int_t
ngx_bloom_segment_find(ngx_bloom_state_t *state, uint64_t position,
    uint64_t *base)
{
    char              error[BLOOM_RECORD_ERROR_LEN];
    uint64_t          before, behind;
    ngx_fd_t          fd;
    ngx_uint_t        has_before, has_behind;
    bloom_segment_e   what;
    bloom_segment_t   segment;

    *base = position;

    if (ngx_bloom_segment_scan(state, position, &has_before, &before,
                               &has_behind, &behind)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (has_before && before != position) {

        fd = ngx_bloom_segment_open(state, before, O_RDONLY, &segment, error,
                                    &what);
        if (fd == NGX_INVALID_FILE) {
            *base = before;
            return NGX_ERROR;
        }

        (void) ngx_close_file(fd);

        if (what != BLOOM_SEGMENT_OK || position >= before + segment.size) {
            has_before = 0;
        }
    }

    if (has_before) {
        *base = before;
        return NGX_OK;
    }

    *base = behind;

    return has_behind ? NGX_OK : NGX_DONE;
}


ngx_int_t
ngx_bloom_segment_last(ngx_bloom_state_t *state, uint64_t *base)
{
    return ngx_bloom_segment_before(state, UINT64_MAX, base);
}


ngx_int_t
ngx_bloom_segment_before(ngx_bloom_state_t *state, uint64_t position,
    uint64_t *base)
{
    uint64_t    behind;
    ngx_uint_t  found, none;

    if (position == 0) {
        return NGX_DONE;
    }

    if (ngx_bloom_segment_scan(state, position - 1, &found, base, &none,
                               &behind)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return found ? NGX_OK : NGX_DONE;
}


ngx_int_t
ngx_bloom_segment_unused(ngx_bloom_state_t *state, uint64_t base,
    uint64_t sequence, uint64_t *size)
{
    size_t           len;
    u_char          *buf;
    ngx_int_t        rc;
    bloom_segment_t  segment;

    rc = ngx_bloom_segment_read(state, base, UINT64_MAX, &segment, &buf, &len);

    if (rc != NGX_OK) {
        return rc;
    }

    *size = segment.size;

    if (segment.sequence > sequence
        || bloom_record_tail(buf + BLOOM_SEGMENT_HEADER,
                             len - BLOOM_SEGMENT_HEADER)
           != 0)
    {
        rc = NGX_DECLINED;
    }

    free(buf);

    return rc;
}


ngx_int_t
ngx_bloom_segment_discard(ngx_bloom_state_t *state, uint64_t base)
{
    char              error[BLOOM_RECORD_ERROR_LEN];
    u_char            name[NGX_MAX_PATH], aside[NGX_MAX_PATH];
    ngx_fd_t          fd;
    bloom_segment_e   what;
    bloom_segment_t   segment;

    fd = ngx_bloom_segment_open(state, base, O_RDONLY, &segment, error, &what);

    if (fd == NGX_INVALID_FILE) {
        return NGX_ERROR;
    }

    (void) ngx_close_file(fd);

    ngx_bloom_segment_name(name, base);

    if (what == BLOOM_SEGMENT_OK) {
        return ngx_bloom_io_remove(state->dir, name);
    }

    ngx_bloom_state_name(aside, "damaged.%016xL", base);

    return ngx_bloom_io_rename(state->dir, name, aside);
}


ngx_int_t
ngx_bloom_segment_remove(ngx_bloom_state_t *state, uint64_t end)
{
    u_char     name[NGX_MAX_PATH];
    uint64_t   base, next;
    ngx_int_t  rc;

    for ( ;; ) {
        rc = ngx_bloom_segment_find(state, 0, &base);

        if (rc != NGX_OK || base >= end) {
            return rc == NGX_ERROR ? NGX_ERROR : NGX_OK;
        }

        /* a segment ends where the next one begins */

        rc = ngx_bloom_segment_after(state, base, &next);

        if (rc != NGX_OK || next > end) {
            return rc == NGX_ERROR ? NGX_ERROR : NGX_OK;
        }

        if (ngx_bloom_io_remove(state->dir,
                                ngx_bloom_segment_name(name, base))
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }
}


/* Finds the segment after the one at `base`, by its name alone, and stores its
 * base in *next.  Returns NGX_OK, NGX_DONE if there is no such segment, or
 * NGX_ERROR with errno. */
static ngx_int_t
ngx_bloom_segment_after(ngx_bloom_state_t *state, uint64_t base,
    uint64_t *next)
{
    uint64_t    before;
    ngx_uint_t  found, none;

    if (ngx_bloom_segment_scan(state, base, &none, &before, &found, next)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return found ? NGX_OK : NGX_DONE;
}


ngx_int_t
ngx_bloom_segment_begins(ngx_bloom_state_t *state, uint64_t base,
    uint64_t *sequence)
{
    size_t           len;
    u_char          *buf;
    ngx_int_t        rc;
    bloom_record_t   record;
    bloom_segment_t  segment;

    *sequence = UINT64_MAX;

    rc = ngx_bloom_segment_read(state, base,
                                BLOOM_SEGMENT_HEADER + 2 * BLOOM_RECORD_MAX,
                                &segment, &buf, &len);

    if (rc != NGX_OK) {
        return rc == NGX_ERROR ? NGX_ERROR : NGX_OK;
    }

    len -= BLOOM_SEGMENT_HEADER;

    if (bloom_record_find(&record, &segment, base + BLOOM_SEGMENT_HEADER, 0,
                          buf + BLOOM_SEGMENT_HEADER, len)
        != len)
    {
        *sequence = record.stamp.sequence;
    }

    free(buf);

    return NGX_OK;
}


ngx_int_t
ngx_bloom_segment_make(ngx_bloom_state_t *state,
    const bloom_segment_t *segment)
{
    int         err;
    u_char      name[NGX_MAX_PATH], from[NGX_MAX_PATH];
    u_char      header[BLOOM_SEGMENT_HEADER];
    ngx_fd_t    fd;
    ngx_int_t   rc;

    ngx_bloom_state_name(from, "segment.tmp");
    ngx_bloom_segment_name(name, segment->base);

    fd = ngx_bloom_io_open(state->dir, from, O_RDWR|O_CREAT|O_TRUNC);

    if (fd == NGX_INVALID_FILE) {
        return NGX_ERROR;
    }

    rc = NGX_ERROR;
    bloom_segment_encode(segment, header);

    do {
        err = posix_fallocate(fd, 0, segment->size);
    } while (err == NGX_EINTR);

    if (err != 0) {
        ngx_set_errno(err);

    } else if (ngx_bloom_io_write(fd, header, BLOOM_SEGMENT_HEADER, 0)
                  == NGX_OK
               && ngx_bloom_io_sync(fd) == NGX_OK
               && ngx_bloom_io_rename(state->dir, from, name) == NGX_OK)
    {
        rc = NGX_OK;
    }

    err = ngx_errno;

    (void) ngx_close_file(fd);

    if (rc != NGX_OK) {
        (void) ngx_bloom_io_remove(state->dir, from);
    }

    ngx_set_errno(err);

    return rc;
}


ngx_int_t
ngx_bloom_segment_cut(ngx_bloom_state_t *state, uint64_t base, uint64_t tail)
{
    u_char           *buf, name[NGX_MAX_PATH];
    size_t            dirty;
    ssize_t           n;
    uint64_t          offset;
    ngx_fd_t          fd;
    ngx_err_t         err;
    ngx_int_t         rc;
    ngx_uint_t        cut;

    rc = NGX_ERROR;
    cut = 0;

    buf = malloc(NGX_BLOOM_SEGMENT_BUF);
    if (buf == NULL) {
        return NGX_ERROR;
    }

    fd = ngx_bloom_io_open(state->dir,
                           ngx_bloom_segment_name(name, base), O_RDWR);
    if (fd == NGX_INVALID_FILE) {
        goto done;
    }

    offset = (tail > base + BLOOM_SEGMENT_HEADER) ? tail - base
                                                  : BLOOM_SEGMENT_HEADER;

    for ( /* void */ ; ; offset += n) {

        n = ngx_bloom_io_read(fd, buf, NGX_BLOOM_SEGMENT_BUF, offset);

        if (n == NGX_ERROR) {
            goto done;
        }

        if (n == 0) {
            break;
        }

        dirty = bloom_record_tail(buf, n);

        if (dirty != 0) {
            ngx_memzero(buf, dirty);
            cut = 1;

            if (ngx_bloom_io_write(fd, buf, dirty, offset) != NGX_OK) {
                goto done;
            }
        }
    }

    if (!cut || ngx_bloom_io_sync(fd) == NGX_OK) {
        rc = NGX_OK;
    }

done:

    err = ngx_errno;

    ngx_bloom_io_close(&fd);

    free(buf);
    ngx_set_errno(err);

    return rc;
}
