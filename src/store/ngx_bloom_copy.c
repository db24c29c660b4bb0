/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_copy.h"
#include "ngx_bloom_cleared.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_state_files.h"


static ngx_int_t ngx_bloom_copy_bytes(ngx_bloom_copy_t *copy, u_char *path,
    u_char *buf);


void
ngx_bloom_copy_init(ngx_bloom_copy_t *copy)
{
    ngx_memzero(copy, sizeof(ngx_bloom_copy_t));

    copy->from = NGX_INVALID_FILE;
    copy->to = NGX_INVALID_FILE;
}


ngx_int_t
ngx_bloom_copy(ngx_bloom_copy_t *copy, ngx_bloom_state_t *state, u_char *path)
{
    u_char     *buf;
    ngx_err_t   err;
    ngx_int_t   rc;

    ngx_bloom_copy_init(copy);

    copy->state = state;
    buf = malloc(BLOOM_IMAGE_CHUNK);

    rc = (buf != NULL) ? ngx_bloom_copy_bytes(copy, path, buf) : NGX_ERROR;
    err = ngx_errno;

    free(buf);
    ngx_bloom_io_close(&copy->from);
    ngx_bloom_io_close(&copy->to);

    ngx_set_errno(err);

    return rc;
}


static ngx_int_t
ngx_bloom_copy_bytes(ngx_bloom_copy_t *copy, u_char *path, u_char *buf)
{
    size_t    unsynced;
    ssize_t   n;
    uint64_t  done;

    copy->from = ngx_bloom_io_open(AT_FDCWD, path, O_RDONLY);

    if (copy->from == NGX_INVALID_FILE
        || ngx_bloom_state_files_temporary(copy->state, "upload", "tmp",
                                           copy->tmp)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    copy->to = ngx_bloom_io_open(copy->state->dir, copy->tmp,
                                 O_RDWR|O_CREAT|O_TRUNC);

    if (copy->to == NGX_INVALID_FILE) {
        return NGX_ERROR;
    }

    unsynced = 0;

    for (done = 0; /* void */; done += n) {
        ngx_bloom_fault("copy");

        n = ngx_bloom_io_read(copy->from, buf, BLOOM_IMAGE_CHUNK, done);

        if (n == 0) {
            return ngx_bloom_io_sync(copy->to);
        }

        if (n == NGX_ERROR
            || ngx_bloom_io_write_slice(copy->to, buf, n, done, &unsynced)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }
}


ngx_int_t
ngx_bloom_copy_place(ngx_bloom_copy_t *copy, u_char *name, uint64_t position)
{
    if (ngx_bloom_cleared_place(copy->state, copy->tmp, name, position)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    copy->tmp[0] = '\0';

    return NGX_OK;
}


void
ngx_bloom_copy_end(ngx_bloom_copy_t *copy)
{
    if (copy->tmp[0] != '\0') {
        (void) ngx_bloom_io_remove(copy->state->dir, copy->tmp);
        copy->tmp[0] = '\0';
    }
}
