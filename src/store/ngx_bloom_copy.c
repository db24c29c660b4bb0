/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A step copies one chunk.  It takes about a millisecond, or as long as the
 * disk needs to synchronise a slice.
 */

#include "ngx_bloom_copy.h"
#include "ngx_bloom_cleared.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_state_files.h"


static void ngx_bloom_copy_close(ngx_bloom_copy_t *copy);


void
ngx_bloom_copy_init(ngx_bloom_copy_t *copy)
{
    ngx_memzero(copy, sizeof(ngx_bloom_copy_t));

    copy->from = NGX_INVALID_FILE;
    copy->to = NGX_INVALID_FILE;
}


void
ngx_bloom_copy_begin(ngx_bloom_copy_t *copy, ngx_bloom_state_t *state,
    u_char *path)
{
    ngx_bloom_copy_init(copy);

    copy->state = state;
    copy->from = ngx_bloom_io_open(AT_FDCWD, path, O_RDONLY);

    if (copy->from != NGX_INVALID_FILE
        && ngx_bloom_state_files_temporary(state, "upload", "tmp", copy->tmp)
           == NGX_OK)
    {
        copy->to = ngx_bloom_io_open(state->dir, copy->tmp,
                                     O_RDWR|O_CREAT|O_TRUNC);
    }
}


ngx_int_t
ngx_bloom_copy_step(ngx_bloom_copy_t *copy)
{
    u_char     *buf;
    ssize_t     n;
    ngx_err_t   err;
    ngx_int_t   rc;

    rc = NGX_ERROR;
    buf = NULL;

    if (copy->from == NGX_INVALID_FILE || copy->to == NGX_INVALID_FILE) {
        goto done;
    }

    buf = malloc(BLOOM_IMAGE_CHUNK);
    if (buf == NULL) {
        goto done;
    }

    ngx_bloom_fault("copy");

    n = ngx_bloom_io_read(copy->from, buf, BLOOM_IMAGE_CHUNK, copy->done);

    if (n > 0
        && ngx_bloom_io_write_slice(copy->to, buf, n, copy->done,
                                    &copy->unsynced)
           == NGX_OK)
    {
        copy->done += n;
        rc = NGX_AGAIN;

    } else if (n == 0 && ngx_bloom_io_sync(copy->to) == NGX_OK) {
        ngx_bloom_copy_close(copy);

        copy->whole = 1;
        rc = NGX_OK;
    }

done:

    err = ngx_errno;
    free(buf);
    ngx_set_errno(err);

    return rc;
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
    ngx_bloom_copy_close(copy);

    if (copy->tmp[0] != '\0') {
        (void) ngx_bloom_io_remove(copy->state->dir, copy->tmp);
        copy->tmp[0] = '\0';
    }
}


static void
ngx_bloom_copy_close(ngx_bloom_copy_t *copy)
{
    ngx_bloom_io_close(&copy->from);
    ngx_bloom_io_close(&copy->to);
}
