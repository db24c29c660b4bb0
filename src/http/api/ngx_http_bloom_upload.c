/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file takes an image from a client: it writes the body into a file of the
 * zone's state directory while the body arrives, and the helper loads and
 * renames that file.  An image that the zone cannot take is refused as early as
 * possible: by its Content-Length, by the bytes that have arrived, or by its
 * header.
 */

#include "ngx_http_bloom_task.h"
#include "ngx_http_bloom_token.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_load.h"
#include "ngx_bloom_state_files.h"
#include "bloom_image_decode.h"


/* How often a file is created again if the helper removes it before it is
 * locked. */
#define NGX_HTTP_BLOOM_UPLOAD_TRIES  5


typedef struct {
    ngx_http_bloom_task_t       task;
    ngx_fd_t                    fd;
    uint64_t                    size;    /* bytes that have arrived */
    uint64_t                    max;     /* bytes that the zone can take */
    u_char                      header[BLOOM_IMAGE_PAGE];
    u_char                      name[NGX_MAX_PATH];    /* of the file */
    u_char                      path[NGX_MAX_PATH];
} ngx_http_bloom_upload_t;


static ngx_int_t ngx_http_bloom_upload_begin(ngx_http_bloom_operation_t *op);
static uint64_t ngx_http_bloom_upload_max(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_http_bloom_upload_too_large(
    ngx_http_bloom_upload_t *upload, uint64_t size);
static ngx_int_t ngx_http_bloom_upload_take(ngx_http_bloom_operation_t *op,
    ngx_str_t *bytes);
static ngx_int_t ngx_http_bloom_upload_header(ngx_http_bloom_upload_t *upload);
static ngx_int_t ngx_http_bloom_upload_create(ngx_http_bloom_upload_t *upload);
static ngx_int_t ngx_http_bloom_upload_run(ngx_http_bloom_operation_t *op);
static void ngx_http_bloom_upload_end(ngx_http_bloom_operation_t *op);


const ngx_http_bloom_kind_t  ngx_http_bloom_put_image = {
    .size = sizeof(ngx_http_bloom_upload_t),
    .which = NGX_BLOOM_TASK_UPLOAD,
    .args = ngx_http_bloom_task_args,
    .begin = ngx_http_bloom_upload_begin,
    .take = ngx_http_bloom_upload_take,
    .run = ngx_http_bloom_upload_run,
    .put = ngx_http_bloom_task_put,
    .end = ngx_http_bloom_upload_end,
    .bytes = 1
};


static ngx_int_t
ngx_http_bloom_upload_begin(ngx_http_bloom_operation_t *op)
{
    off_t                     length;
    ngx_int_t                 rc;
    ngx_http_bloom_upload_t  *upload;

    upload = (ngx_http_bloom_upload_t *) op;

    upload->fd = NGX_INVALID_FILE;
    upload->max = ngx_http_bloom_upload_max(op->zone);
    upload->task.path = upload->path;

    if (op->request->headers_in.content_range != NULL) {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_BAD_BODY,
                                    "an image cannot be sent in parts; send "
                                    "the whole file without \"Content-Range\"");
    }

    rc = ngx_http_bloom_task_begin(op);

    if (rc != NGX_OK) {
        return rc;
    }

    length = op->request->headers_in.content_length_n;

    return length > 0 && (uint64_t) length > upload->max
           ? ngx_http_bloom_upload_too_large(upload, length) : NGX_OK;
}


/* Returns the file size of the largest image that the zone has room for. */
static uint64_t
ngx_http_bloom_upload_max(ngx_bloom_zone_t *zone)
{
    bloom_image_t  image;

    ngx_memzero(&image, sizeof(bloom_image_t));

    image.geometry.bits = (uint64_t) zone->image_room * 8;

    /* an exception takes more bytes in memory than in a file, and another page
     * suffices for the tables, however both parts are divided */

    image.exceptions_size = ngx_bloom_zone_removals_size(zone->removals);

    return bloom_image_file_size(&image) + BLOOM_IMAGE_PAGE;
}


static ngx_int_t
ngx_http_bloom_upload_too_large(ngx_http_bloom_upload_t *upload, uint64_t size)
{
    uint64_t    needs, fuse;
    ngx_str_t  *name;

    name = &upload->task.op.zone->name;

    /* the layout is not known before the header has arrived */

    needs = ngx_bloom_zone_needs(size);
    fuse = ngx_bloom_zone_needs(ngx_bloom_layers_need_fuse(size));

    return ngx_http_bloom_error(&upload->task.op.error,
                                NGX_HTTP_BLOOM_E_TOO_LARGE,
                                "the body has %s%uL bytes, but bloom zone "
                                "\"%V\" has room for images of up to %uL "
                                "bytes, with the room for removed keys; make "
                                "the zone larger with \"zone=%V:%uLk\", or "
                                "with \"zone=%V:%uLk\" if the image was built "
                                "with \"--layout fuse\" and without \"-n\"",
                                size == upload->size ? "at least " : "", size,
                                name, upload->max, name, (needs + 1023) / 1024,
                                name, (fuse + 1023) / 1024);
}


/* Writes bytes that have arrived into the file, once the header of the image is
 * found to be right. */
static ngx_int_t
ngx_http_bloom_upload_take(ngx_http_bloom_operation_t *op, ngx_str_t *bytes)
{
    size_t                    len;
    uint64_t                  offset;
    ngx_err_t                 err;
    ngx_int_t                 rc;
    ngx_http_bloom_upload_t  *upload;

    upload = (ngx_http_bloom_upload_t *) op;

    offset = upload->size;
    upload->size += bytes->len;

    if (upload->size > upload->max) {
        return ngx_http_bloom_upload_too_large(upload, upload->size);
    }

    if (offset < BLOOM_IMAGE_PAGE) {
        len = ngx_min(bytes->len, (size_t) (BLOOM_IMAGE_PAGE - offset));

        ngx_memcpy(upload->header + offset, bytes->data, len);

        if (upload->size >= BLOOM_IMAGE_PAGE) {
            rc = ngx_http_bloom_upload_header(upload);

            if (rc != NGX_OK) {
                return rc;
            }
        }
    }

    if ((upload->fd == NGX_INVALID_FILE
         && ngx_http_bloom_upload_create(upload) != NGX_OK)
        || ngx_bloom_io_write(upload->fd, bytes->data, bytes->len, offset)
           != NGX_OK)
    {
        err = ngx_errno;

        ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_FAILED,
                             "the image cannot be written into directory "
                             "\"%V\" (%d: %s); make room on its disk, or "
                             "correct its owner and mode, and upload again",
                             &op->zone->state->path, err, strerror(err));

        ngx_log_error(NGX_LOG_ERR, op->request->connection->log, 0,
                      "bloom zone \"%V\": %*s", &op->zone->name,
                      op->error.len, op->error.message);

        return NGX_DECLINED;
    }

    return NGX_OK;
}


/* Checks the header of the image when it has arrived.  A refusal counts as a
 * failed load. */
static ngx_int_t
ngx_http_bloom_upload_header(ngx_http_bloom_upload_t *upload)
{
    uint64_t                size;
    ngx_bloom_load_t       *load;
    ngx_bloom_zone_t       *zone;
    ngx_http_request_t     *r;
    ngx_http_bloom_task_t  *task;

    task = &upload->task;
    zone = task->op.zone;
    r = task->op.request;

    /* the length of a chunked body is not known; the header states one */

    size = r->headers_in.chunked || r->headers_in.content_length_n < 0
           ? bloom_image_claims(upload->header)
           : (uint64_t) r->headers_in.content_length_n;

    load = ngx_palloc(r->pool, sizeof(ngx_bloom_load_t));

    if (load == NULL) {
        return NGX_ERROR;
    }

    if (ngx_bloom_load_check(load, zone, upload->header, size,
                             "the uploaded image", task->force)
        == NGX_OK)
    {
        return NGX_OK;
    }

    task->result.outcome = load->outcome;
    ngx_cpystrn(task->result.message, load->error,
                sizeof(task->result.message));

    ngx_bloom_task_refused(zone, &task->result);

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "%s; bloom zone \"%V\" continues with generation %uL",
                  load->error, &zone->name, task->result.generation);

    return ngx_http_bloom_task_done(task);
}


/* Creates the file and locks it, so that the helper does not remove it while
 * this process lives.  Returns NGX_OK, or NGX_ERROR with errno. */
static ngx_int_t
ngx_http_bloom_upload_create(ngx_http_bloom_upload_t *upload)
{
    ngx_uint_t          i;
    ngx_bloom_state_t  *state;

    state = upload->task.op.zone->state;

    for (i = 0; i < NGX_HTTP_BLOOM_UPLOAD_TRIES; i++) {

        if (ngx_bloom_state_files_temporary(state, "body", "tmp", upload->name)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        upload->fd = ngx_bloom_io_open(state->dir, upload->name,
                                       O_RDWR|O_CREAT|O_EXCL);

        if (upload->fd == NGX_INVALID_FILE) {
            return NGX_ERROR;
        }

        if (ngx_bloom_state_files_use(upload->fd) == NGX_OK) {
            return NGX_OK;
        }

        /* the helper has removed the file before it was locked */

        ngx_bloom_io_close(&upload->fd);
    }

    ngx_set_errno(NGX_EAGAIN);

    return NGX_ERROR;
}


/* Asks the helper to load the file, and waits even if the client has gone. */
static ngx_int_t
ngx_http_bloom_upload_run(ngx_http_bloom_operation_t *op)
{
    ngx_int_t                 rc;
    ngx_http_bloom_upload_t  *upload;

    upload = (ngx_http_bloom_upload_t *) op;

    if (upload->size == 0) {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_BAD_BODY,
                                    "the request has no body; send an image "
                                    "file, such as \"ngx-bloom build\" writes");
    }

    if (!upload->task.asked) {

        /* the generation may have changed while the body arrived */

        rc = ngx_http_bloom_token_match(op->request, op->zone, &op->error);

        if (rc != NGX_OK) {
            return rc;
        }

        ngx_bloom_state_files_path(op->zone->state, upload->name,
                                   upload->path);
    }

    return ngx_http_bloom_task_run(op);
}


static void
ngx_http_bloom_upload_end(ngx_http_bloom_operation_t *op)
{
    ngx_http_bloom_upload_t  *upload;

    upload = (ngx_http_bloom_upload_t *) op;

    if (upload->fd == NGX_INVALID_FILE) {
        return;
    }

    /* a job that still loads the file renames it, or the helper removes it */

    if (!upload->task.asked || upload->task.done) {
        (void) ngx_bloom_io_remove(op->zone->state->dir, upload->name);
    }

    ngx_bloom_io_close(&upload->fd);
}
