/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file sends a zone as an image: the helper writes the image into a file,
 * and the worker sends the file.
 */

#include "ngx_http_bloom_header.h"
#include "ngx_http_bloom_response.h"
#include "ngx_http_bloom_task.h"
#include "ngx_http_bloom_token.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_state_files.h"


/* How often the helper is asked again if the file is gone before it is
 * opened. */
#define NGX_HTTP_BLOOM_IMAGE_TRIES  5


typedef struct {
    ngx_http_bloom_task_t       task;
    ngx_file_t                 *file;    /* NULL: HEAD needs none */
    off_t                       size;    /* -1: not known before it is made */
    ngx_uint_t                  tries;
} ngx_http_bloom_image_t;


static ngx_int_t ngx_http_bloom_image_run(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_image_open(ngx_http_bloom_image_t *image);
static ngx_int_t ngx_http_bloom_image_send(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_image_headers(ngx_http_request_t *r,
    ngx_bloom_info_t *info);


const ngx_http_bloom_kind_t  ngx_http_bloom_get_image = {
    .size = sizeof(ngx_http_bloom_image_t),
    .which = NGX_BLOOM_TASK_SNAPSHOT,
    .begin = ngx_http_bloom_task_begin,
    .run = ngx_http_bloom_image_run,
    .put = ngx_http_bloom_task_put,
    .send = ngx_http_bloom_image_send
};


static ngx_int_t
ngx_http_bloom_image_run(ngx_http_bloom_operation_t *op)
{
    ngx_int_t                rc;
    ngx_http_bloom_image_t  *image;

    if (op->request->method & NGX_HTTP_HEAD) {
        return NGX_OK;
    }

    image = (ngx_http_bloom_image_t *) op;

    rc = ngx_http_bloom_task_run(op);

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_bloom_image_open(image);

    if (rc == NGX_OK) {
        return NGX_OK;
    }

    image->task.done = 0;

    if (rc == NGX_AGAIN && ++image->tries < NGX_HTTP_BLOOM_IMAGE_TRIES) {

        /* the helper has removed the file: it has written a newer image, or a
         * new helper has taken over */

        image->task.asked = 0;

        return ngx_http_bloom_task_run(op);
    }

    if (rc == NGX_AGAIN || rc == NGX_DECLINED) {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_FAILED,
                                    "the image of zone \"%V\" was written but "
                                    "cannot be read; see the error log and try "
                                    "again", &op->zone->name);
    }

    return rc;
}


/*
 * Opens the file and marks it as in use; the helper removes it after a while if
 * it is not.  Returns NGX_OK; NGX_AGAIN if the file is gone; NGX_DECLINED if it
 * cannot be read, which is logged; NGX_ERROR if memory is short.
 */
static ngx_int_t
ngx_http_bloom_image_open(ngx_http_bloom_image_t *image)
{
    u_char                   *name;
    ngx_file_t               *file;
    ngx_file_info_t           fi;
    ngx_bloom_state_t        *state;
    ngx_pool_cleanup_t       *cln;
    ngx_http_request_t       *r;
    ngx_pool_cleanup_file_t  *clnf;

    r = image->task.op.request;
    state = image->task.op.zone->state;

    file = ngx_pcalloc(r->pool, sizeof(ngx_file_t));
    name = ngx_pnalloc(r->pool, NGX_MAX_PATH);
    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_pool_cleanup_file_t));

    if (file == NULL || name == NULL || cln == NULL) {
        return NGX_ERROR;
    }

    ngx_bloom_state_files_path(state, image->task.result.name, name);

    file->name.len = ngx_strlen(name);
    file->name.data = name;
    file->log = r->connection->log;

    file->fd = ngx_bloom_io_open(state->dir, image->task.result.name,
                                 O_RDONLY);

    if (file->fd == NGX_INVALID_FILE && ngx_errno == NGX_ENOENT) {
        return NGX_AGAIN;
    }

    if (file->fd == NGX_INVALID_FILE) {
        ngx_log_error(NGX_LOG_ERR, file->log, ngx_errno,
                      ngx_open_file_n " \"%s\" failed", name);
        return NGX_DECLINED;
    }

    cln->handler = ngx_pool_cleanup_file;
    clnf = cln->data;

    clnf->fd = file->fd;
    clnf->name = name;
    clnf->log = r->pool->log;

    if (ngx_bloom_state_files_use(file->fd) != NGX_OK) {
        return NGX_AGAIN;
    }

    if (ngx_fd_info(file->fd, &fi) == NGX_FILE_ERROR) {
        ngx_log_error(NGX_LOG_ERR, file->log, ngx_errno,
                      ngx_fd_info_n " \"%s\" failed", name);
        return NGX_DECLINED;
    }

    image->file = file;
    image->size = ngx_file_size(&fi);

    return NGX_OK;
}


/* Sends the file with its headers; of HEAD, the headers alone, from the zone's
 * state. */
static ngx_int_t
ngx_http_bloom_image_send(ngx_http_bloom_operation_t *op)
{
    ngx_buf_t               *b;
    ngx_bloom_info_t         info;
    ngx_http_request_t      *r;
    ngx_http_bloom_image_t  *image;

    image = (ngx_http_bloom_image_t *) op;
    r = op->request;

    ngx_bloom_info_get(op->zone, &info);

    if (image->file != NULL) {

        /* the generation that the image was made from */

        info.generation = image->task.result.generation;

    } else if (info.generation == 0) {
        ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_FAILED,
                             "zone \"%V\" has no image; load one first",
                             &op->zone->name);

        return ngx_http_bloom_response_refuse(r, &op->error);

    } else if (ngx_bloom_zone_damaged(op->zone)) {
        ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_DAMAGED,
                             "zone \"%V\" is damaged: an image would lack "
                             "added keys", &op->zone->name);

        return ngx_http_bloom_response_refuse(r, &op->error);

    } else {

        /* the size of an image with removed keys is not known before it is
         * made */

        image->size = (info.removed != 0 || info.image.exceptions != 0)
                      ? -1 : (off_t) bloom_image_file_size(&info.image);
    }

    b = ngx_calloc_buf(r->pool);

    if (b == NULL || ngx_http_bloom_image_headers(r, &info) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b->file = image->file;
    b->file_last = image->size;
    b->in_file = 1;

    ngx_str_set(&r->headers_out.content_type, "application/octet-stream");
    r->headers_out.content_type_len = r->headers_out.content_type.len;

    return ngx_http_bloom_response_send(r, NGX_HTTP_OK, b);
}


static ngx_int_t
ngx_http_bloom_image_headers(ngx_http_request_t *r, ngx_bloom_info_t *info)
{
    u_char     *p;
    ngx_str_t   value;

    ngx_str_set(&value, "no-store");

    if (ngx_http_bloom_header_out(r, "Cache-Control", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    /* unknown to nginx, which would weaken the ETag if it compresses */

    value.data = ngx_pnalloc(r->pool, NGX_HTTP_BLOOM_TOKEN_MAX + 2);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    p = value.data;
    *p++ = '"';
    p = ngx_http_bloom_token(p, info);
    *p++ = '"';
    value.len = p - value.data;

    return ngx_http_bloom_header_out(r, "ETag", &value);
}
