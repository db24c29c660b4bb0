/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A file is opened once and then read by its descriptor, so it does no harm if
 * the name is given to another file meanwhile.
 */

#include "ngx_bloom_image_file.h"
#include "bloom_exceptions_image.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_state_files.h"


static void ngx_bloom_image_file_identify(ngx_bloom_image_file_t *file,
    ngx_file_info_t *fi);
static int ngx_bloom_image_file_read(void *ctx, void *buf, size_t len,
    uint64_t offset);
static ngx_int_t ngx_bloom_image_file_put(ngx_bloom_image_file_t *file,
    u_char *data, bloom_exceptions_t *set);


ngx_int_t
ngx_bloom_image_file_open(ngx_bloom_image_file_t *file)
{
    ngx_file_info_t  fi;

    file->err = 0;

    /* non-blocking: a FIFO must not hold up the master */

    file->fd = (file->state != NULL)
               ? ngx_bloom_io_open(file->state->dir,
                                   ngx_bloom_state_files_name(file->name.data),
                                   O_RDONLY)
               : ngx_open_file(file->name.data,
                               NGX_FILE_RDONLY|NGX_FILE_NONBLOCK|O_CLOEXEC,
                               NGX_FILE_OPEN, 0);

    if (file->fd == NGX_INVALID_FILE) {
        file->err = ngx_errno;
        file->error = "cannot be opened";

        /* store the identity: it changes when the mode or owner is corrected */

        if (file->err == NGX_EACCES
            && ngx_file_info(file->name.data, &fi) != NGX_FILE_ERROR)
        {
            ngx_bloom_image_file_identify(file, &fi);
        }

        return NGX_ERROR;
    }

    if (ngx_fd_info(file->fd, &fi) == NGX_FILE_ERROR) {
        file->err = ngx_errno;
        file->error = "cannot be examined";
        goto failed;
    }

    ngx_bloom_image_file_identify(file, &fi);

    if (!ngx_is_file(&fi)) {
        file->error = "is not a regular file";
        goto failed;
    }

    if (bloom_image_open(&file->reader, ngx_bloom_image_file_read, file,
                         (uint64_t) ngx_file_size(&fi))
        != 0)
    {
        file->error = file->reader.error;
        goto failed;
    }

    if (file->state == NULL && (file->reader.image.flags & BLOOM_IMAGE_RING)) {
        file->error = BLOOM_IMAGE_IS_RING;
        goto failed;
    }

    return NGX_OK;

failed:

    ngx_bloom_image_file_close(file);

    return NGX_ERROR;
}


static void
ngx_bloom_image_file_identify(ngx_bloom_image_file_t *file, ngx_file_info_t *fi)
{
    file->id.device = fi->st_dev;
    file->id.inode = fi->st_ino;
    file->id.sec = fi->st_ctim.tv_sec;
    file->id.nsec = fi->st_ctim.tv_nsec;
}


ngx_int_t
ngx_bloom_image_file_check(ngx_bloom_image_file_t *file)
{
    u_char    *buf;
    uint64_t   chunk;
    ngx_int_t  rc;

    buf = malloc(BLOOM_IMAGE_CHUNK);

    if (buf == NULL) {
        file->err = ngx_errno;
        file->error = "cannot be checked";
        return NGX_ERROR;
    }

    rc = NGX_OK;

    for (chunk = 0; chunk < bloom_image_chunks(&file->reader.image); chunk++) {
        rc = ngx_bloom_image_file_next(file, buf);

        if (rc != NGX_OK) {
            break;
        }
    }

    free(buf);

    return rc == NGX_OK ? ngx_bloom_image_file_except(file, NULL) : rc;
}


ngx_int_t
ngx_bloom_image_file_next(ngx_bloom_image_file_t *file, u_char *dst)
{
    file->err = 0;

    if (bloom_image_next(&file->reader, dst) == 1) {
        return NGX_OK;
    }

    file->error = file->reader.error;

    return NGX_ERROR;
}


ngx_int_t
ngx_bloom_image_file_except(ngx_bloom_image_file_t *file,
    bloom_exceptions_t *set)
{
    u_char     *data;
    ngx_int_t   rc;

    file->err = 0;

    if (file->reader.image.exceptions == 0) {
        return NGX_OK;
    }

    data = malloc(bloom_image_exceptions_padded(&file->reader.image));

    if (data == NULL) {
        file->err = ngx_errno;
        file->error = "cannot be read";
        return NGX_ERROR;
    }

    rc = ngx_bloom_image_file_put(file, data, set);

    free(data);

    return rc;
}


/* Reads the exceptions into `data`, and puts them into a set. */
static ngx_int_t
ngx_bloom_image_file_put(ngx_bloom_image_file_t *file, u_char *data,
    bloom_exceptions_t *set)
{
    int                 rc;
    size_t              len;
    const uint8_t      *p, *end;
    bloom_exception_t   exception;

    len = 0;

    for ( ;; ) {
        rc = bloom_image_next_exceptions(&file->reader, data + len);

        if (rc != 1) {
            break;
        }

        len += file->reader.len;
    }

    file->error = (rc == 0)
                  ? bloom_exceptions_check(&file->reader.image, data)
                  : file->reader.error;

    if (file->error != NULL) {
        return NGX_ERROR;
    }

    p = data;
    end = p + file->reader.image.exceptions_size;

    while (set != NULL && bloom_exception_read(&p, end, &exception) == 1) {
        switch (bloom_exceptions_put(set, &exception)) {

        case -1:
            return NGX_DECLINED;

        case 0:
            file->error = "is invalid: a removed key occurs twice; build it "
                          "again";
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


void
ngx_bloom_image_file_close(ngx_bloom_image_file_t *file)
{
    if (file->fd == NGX_INVALID_FILE) {
        return;
    }

    (void) ngx_close_file(file->fd);

    file->fd = NGX_INVALID_FILE;
}


ngx_uint_t
ngx_bloom_image_file_same(const ngx_bloom_image_id_t *a,
    const ngx_bloom_image_id_t *b)
{
    return a->device == b->device && a->inode == b->inode
           && a->sec == b->sec && a->nsec == b->nsec;
}


static int
ngx_bloom_image_file_read(void *ctx, void *buf, size_t len, uint64_t offset)
{
    ngx_bloom_image_file_t *file = ctx;

    u_char   *p;
    ssize_t   n;

    for (p = buf; len != 0; p += n, offset += n, len -= n) {
        n = pread(file->fd, p, len, (off_t) offset);

        if (n == -1 && ngx_errno == NGX_EINTR) {
            n = 0;
            continue;
        }

        if (n <= 0) {
            file->err = (n == -1) ? ngx_errno : 0;
            return -1;
        }
    }

    return 0;
}


u_char *
ngx_bloom_image_file_barrier(const ngx_str_t *name, u_char *buf)
{
    u_char  *p;

    if (name->len >= NGX_MAX_PATH) {
        return NULL;
    }

    /* every directory above must be searchable */

    for (p = name->data; *p != '\0'; p++) {
        if (*p != '/') {
            continue;
        }

        ngx_cpystrn(buf, name->data, (size_t) (p - name->data) + 2);

        if (faccessat(AT_FDCWD, (char *) buf, X_OK, AT_EACCESS) == -1
            && ngx_errno == NGX_EACCES)
        {
            return buf;
        }
    }

    ngx_cpystrn(buf, name->data, name->len + 1);

    return faccessat(AT_FDCWD, (char *) buf, R_OK, AT_EACCESS) == -1
           && ngx_errno == NGX_EACCES ? buf : NULL;
}
