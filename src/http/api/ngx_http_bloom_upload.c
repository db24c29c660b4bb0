/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file takes an image from a client: it writes the body into a file of the
 * zone's state directory while the body arrives, and the helper loads that
 * file.  An image that the zone cannot take is refused as early as possible: by
 * its Content-Length, by the bytes that have arrived, or by its header.
 */

#include "ngx_http_bloom_upload.h"
#include "ngx_http_bloom_body.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_header.h"
#include "ngx_http_bloom_query.h"
#include "ngx_http_bloom_response.h"
#include "ngx_http_bloom_resume.h"
#include "ngx_http_bloom_task.h"
#include "ngx_http_bloom_token.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_load.h"
#include "ngx_bloom_state_files.h"


/* Bytes that are written in one turn. */
#define NGX_HTTP_BLOOM_UPLOAD_TURN  (128 * 1024)

/* How often a file is created again if the helper removes it before it is
 * locked. */
#define NGX_HTTP_BLOOM_UPLOAD_TRIES  5


typedef struct {
    ngx_http_bloom_body_t       body;
    ngx_http_bloom_resume_t     resume;
    ngx_http_bloom_error_t      error;
    ngx_bloom_zone_t           *zone;
    ngx_uint_t                  force;   /* "?force=true" */
    ngx_int_t                   sent;    /* what sending the response of a
                                            refused image returned */
    ngx_fd_t                    fd;
    uint64_t                    size;    /* bytes that have arrived */
    uint64_t                    max;     /* bytes that the zone can take */
    u_char                      header[BLOOM_IMAGE_PAGE];
    u_char                      name[NGX_MAX_PATH];    /* of the file */
    u_char                      path[NGX_MAX_PATH];
} ngx_http_bloom_upload_t;


static uint64_t ngx_http_bloom_upload_max(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_http_bloom_upload_refuse(ngx_http_request_t *r,
    ngx_http_bloom_upload_t *upload);
static void ngx_http_bloom_upload_too_large(ngx_http_bloom_upload_t *upload,
    uint64_t size);
static void ngx_http_bloom_upload_run(ngx_http_request_t *r);
static ngx_int_t ngx_http_bloom_upload_read(ngx_http_request_t *r,
    ngx_http_bloom_upload_t *upload);
static ngx_int_t ngx_http_bloom_upload_take(ngx_http_request_t *r,
    ngx_http_bloom_upload_t *upload, ngx_str_t *bytes);
static ngx_int_t ngx_http_bloom_upload_write(ngx_http_bloom_upload_t *upload,
    ngx_str_t *bytes, uint64_t offset);
static ngx_int_t ngx_http_bloom_upload_header(ngx_http_request_t *r,
    ngx_http_bloom_upload_t *upload);
static void ngx_http_bloom_upload_close(ngx_http_request_t *r);
static ngx_int_t ngx_http_bloom_upload_create(ngx_http_bloom_upload_t *upload);
static ngx_int_t ngx_http_bloom_upload_start(ngx_http_request_t *r,
    ngx_http_bloom_upload_t *upload);
static void ngx_http_bloom_upload_cleanup(void *data);


ngx_int_t
ngx_http_bloom_upload_put(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    const char               *why;
    ngx_pool_cleanup_t       *cln;
    ngx_http_bloom_upload_t  *upload;

    if (r->headers_in.content_range != NULL) {
        return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_BAD_BODY,
                                              "an image cannot be sent in "
                                              "parts; send the whole file "
                                              "without \"Content-Range\"");
    }

    if (ngx_http_bloom_header_in(r, "content-encoding") != NULL) {
        return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_TYPE,
                                              "an image with "
                                              "\"Content-Encoding\" cannot be "
                                              "read; send it uncompressed");
    }

    why = ngx_bloom_task_impossible(zone, NGX_BLOOM_TASK_UPLOAD);

    if (why != NULL) {
        return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_NOT_POSSIBLE,
                                              "zone \"%V\": %s", &zone->name,
                                              why);
    }

    upload = ngx_pcalloc(r->pool, sizeof(ngx_http_bloom_upload_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (upload == NULL || cln == NULL
        || ngx_http_bloom_ctx_set_operation(r, upload) != NGX_OK
        || ngx_http_bloom_resume_init(&upload->resume, r,
                                      ngx_http_bloom_upload_run)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    upload->zone = zone;
    upload->fd = NGX_INVALID_FILE;
    upload->max = ngx_http_bloom_upload_max(zone);

    if (ngx_http_bloom_query_flag(r, "force", &upload->force, &upload->error)
        != NGX_OK)
    {
        return ngx_http_bloom_upload_refuse(r, upload);
    }

    cln->handler = ngx_http_bloom_upload_cleanup;
    cln->data = upload;

    if (r->headers_in.content_length_n > 0
        && (uint64_t) r->headers_in.content_length_n > upload->max)
    {
        ngx_http_bloom_upload_too_large(upload,
                                        r->headers_in.content_length_n);
        return ngx_http_bloom_upload_refuse(r, upload);
    }

    ngx_http_bloom_body_init_bytes(&upload->body, r);

    return ngx_http_bloom_body_start(&upload->body, ngx_http_bloom_upload_run);
}


/* Returns the file size of the largest image that the zone has room for. */
static uint64_t
ngx_http_bloom_upload_max(ngx_bloom_zone_t *zone)
{
    bloom_image_t  image;

    ngx_memzero(&image, sizeof(bloom_image_t));

    image.geometry.bits = (uint64_t) zone->image_room * 8;

    return bloom_image_file_size(&image);
}


/*
 * Refuses a body before it arrives.  Left to itself, nginx would send "100
 * Continue" to a client with Expect, and read the whole body.
 */
static ngx_int_t
ngx_http_bloom_upload_refuse(ngx_http_request_t *r,
    ngx_http_bloom_upload_t *upload)
{
    if (r->http_version >= NGX_HTTP_VERSION_20) {
        return ngx_http_bloom_response_refuse_error(r, &upload->error);
    }

    r->keepalive = 0;
    r->lingering_close = 1;

    return ngx_http_bloom_response_error(r, &upload->error);
}


static void
ngx_http_bloom_upload_too_large(ngx_http_bloom_upload_t *upload, uint64_t size)
{
    uint64_t    needs, fuse;
    ngx_str_t  *name;

    name = &upload->zone->name;

    /* the layout is not known before the header has arrived */

    needs = ngx_bloom_zone_needs(size);
    fuse = ngx_bloom_zone_needs(ngx_bloom_layers_need_fuse(size));

    ngx_http_bloom_error(&upload->error, NGX_HTTP_BLOOM_E_TOO_LARGE,
                         "the body has %s%uL bytes, but bloom zone \"%V\" has "
                         "room for images of up to %uL bytes; make the zone "
                         "larger with \"zone=%V:%uLk\", or with "
                         "\"zone=%V:%uLk\" if the image was built with "
                         "\"--layout fuse\" and without \"-n\"",
                         size == upload->size ? "at least " : "", size,
                         name, upload->max, name, (needs + 1023) / 1024,
                         name, (fuse + 1023) / 1024);
}


/* Reads the body, and then asks the helper to load the image. */
static void
ngx_http_bloom_upload_run(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_bloom_upload_t  *upload;

    upload = ngx_http_bloom_ctx_operation(r);

    r->read_event_handler = ngx_http_bloom_upload_run;

    rc = ngx_http_bloom_upload_read(r, upload);

    if (rc == NGX_AGAIN) {
        return;
    }

    /* data that arrives from now on is not read */

    r->read_event_handler = ngx_http_block_reading;

    ngx_http_bloom_resume_stop(&upload->resume);

    if (rc == NGX_OK) {
        rc = ngx_http_bloom_upload_start(r, upload);
    }

    if (rc == NGX_OK) {

        /* the request waits for the helper, even if the client has gone */

        return;
    }

    /* the file is not needed while the rest of the body arrives */

    ngx_http_bloom_upload_cleanup(upload);

    switch (rc) {

    case NGX_DECLINED:
        ngx_http_bloom_upload_close(r);

        rc = upload->body.gone
             ? NGX_HTTP_CLIENT_CLOSED_REQUEST
             : ngx_http_bloom_response_error(r, &upload->error);
        break;

    case NGX_DONE:

        /* the response is on its way */

        rc = upload->sent;
        break;

    default: /* NGX_ERROR */
        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_finalize_request(r, rc);
}


/*
 * Writes the bytes that have arrived into the file.  Returns
 *
 *     NGX_OK          the body is complete
 *     NGX_AGAIN       the request waits for more, or for its next turn
 *     NGX_DECLINED    the body is refused: upload->error
 *     NGX_DONE        the image is refused, and the response has been sent
 *     NGX_ERROR       memory is short
 */
static ngx_int_t
ngx_http_bloom_upload_read(ngx_http_request_t *r,
    ngx_http_bloom_upload_t *upload)
{
    size_t     done;
    ngx_int_t  rc;
    ngx_str_t  bytes;

    for (done = 0; done < NGX_HTTP_BLOOM_UPLOAD_TURN; done += bytes.len) {

        rc = ngx_http_bloom_body_bytes(&upload->body, &bytes);

        switch (rc) {

        case NGX_OK:
            break;

        case NGX_AGAIN:
            return NGX_AGAIN;

        case NGX_DONE:
            return NGX_OK;

        default: /* NGX_ERROR */
            upload->error = upload->body.error;
            return NGX_DECLINED;
        }

        rc = ngx_http_bloom_upload_take(r, upload, &bytes);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    ngx_http_bloom_resume_soon(&upload->resume);

    return NGX_AGAIN;
}


/* Takes bytes of the body.  Returns NGX_OK, or the value with which
 * ngx_http_bloom_upload_read() ends. */
static ngx_int_t
ngx_http_bloom_upload_take(ngx_http_request_t *r,
    ngx_http_bloom_upload_t *upload, ngx_str_t *bytes)
{
    size_t     len;
    uint64_t   offset;
    ngx_err_t  err;
    ngx_int_t  rc;

    offset = upload->size;
    upload->size += bytes->len;

    if (upload->size > upload->max) {
        ngx_http_bloom_upload_too_large(upload, upload->size);
        return NGX_DECLINED;
    }

    if (offset < BLOOM_IMAGE_PAGE) {
        len = ngx_min(bytes->len, (size_t) (BLOOM_IMAGE_PAGE - offset));

        ngx_memcpy(upload->header + offset, bytes->data, len);

        if (upload->size >= BLOOM_IMAGE_PAGE) {
            rc = ngx_http_bloom_upload_header(r, upload);

            if (rc != NGX_OK) {
                return rc;
            }
        }
    }

    if ((upload->fd == NGX_INVALID_FILE
         && ngx_http_bloom_upload_create(upload) != NGX_OK)
        || ngx_http_bloom_upload_write(upload, bytes, offset) != NGX_OK)
    {
        err = ngx_errno;

        ngx_http_bloom_error(&upload->error, NGX_HTTP_BLOOM_E_FAILED,
                             "the image cannot be written into directory "
                             "\"%V\" (%d: %s); make room on its disk, or "
                             "correct its owner and mode, and upload again",
                             &upload->zone->state->path, err, strerror(err));

        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "bloom zone \"%V\": %*s", &upload->zone->name,
                      upload->error.len, upload->error.message);

        return NGX_DECLINED;
    }

    return NGX_OK;
}


/* Writes bytes into the file.  Returns NGX_OK, or NGX_ERROR with errno. */
static ngx_int_t
ngx_http_bloom_upload_write(ngx_http_bloom_upload_t *upload, ngx_str_t *bytes,
    uint64_t offset)
{
    size_t   done;
    ssize_t  n;

    for (done = 0; done < bytes->len; done += n) {

        n = pwrite(upload->fd, bytes->data + done, bytes->len - done,
                   (off_t) (offset + done));

        if (n == -1 && ngx_errno != NGX_EINTR) {
            return NGX_ERROR;
        }

        n = ngx_max(n, 0);
    }

    return NGX_OK;
}


/*
 * Checks the header of the image when it has arrived.  Returns NGX_OK; NGX_DONE
 * if the image is refused, which counts as a failed load, and the response has
 * been sent; NGX_ERROR if memory is short.
 */
static ngx_int_t
ngx_http_bloom_upload_header(ngx_http_request_t *r,
    ngx_http_bloom_upload_t *upload)
{
    uint64_t                size;
    ngx_bloom_load_t       *load;
    ngx_http_bloom_task_t  *task;

    /* the length of a chunked body is not known; the header states one */

    size = r->headers_in.chunked || r->headers_in.content_length_n < 0
           ? bloom_image_claims(upload->header)
           : (uint64_t) r->headers_in.content_length_n;

    load = ngx_palloc(r->pool, sizeof(ngx_bloom_load_t));
    task = ngx_pcalloc(r->pool, sizeof(ngx_http_bloom_task_t));

    if (load == NULL || task == NULL) {
        return NGX_ERROR;
    }

    if (ngx_bloom_load_check(load, upload->zone, upload->header, size,
                             "the uploaded image", upload->force)
        == NGX_OK)
    {
        return NGX_OK;
    }

    task->zone = upload->zone;
    task->kind = NGX_BLOOM_TASK_UPLOAD;
    task->result.outcome = load->outcome;
    ngx_cpystrn(task->result.message, load->error,
                sizeof(task->result.message));

    ngx_bloom_task_refused(upload->zone, &task->result);

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "%s; bloom zone \"%V\" continues with generation %uL",
                  load->error, &upload->zone->name, task->result.generation);

    ngx_http_bloom_upload_close(r);

    upload->sent = ngx_http_bloom_task_respond(r, task);

    return NGX_DONE;
}


/* Makes nginx close the connection after the response if the body has not
 * arrived completely. */
static void
ngx_http_bloom_upload_close(ngx_http_request_t *r)
{
    if (r->reading_body) {
        r->keepalive = 0;
        r->lingering_close = 1;
    }
}


/* Creates the file and locks it, so that the helper does not remove it while
 * this process lives.  Returns NGX_OK, or NGX_ERROR with errno. */
static ngx_int_t
ngx_http_bloom_upload_create(ngx_http_bloom_upload_t *upload)
{
    ngx_uint_t          i;
    ngx_bloom_state_t  *state;

    state = upload->zone->state;

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


/*
 * Asks the helper to load the file.  Returns NGX_OK; NGX_DECLINED with
 * upload->error; NGX_ERROR if memory is short.
 */
static ngx_int_t
ngx_http_bloom_upload_start(ngx_http_request_t *r,
    ngx_http_bloom_upload_t *upload)
{
    ngx_int_t  rc;

    if (upload->size == 0) {
        ngx_http_bloom_error(&upload->error, NGX_HTTP_BLOOM_E_BAD_BODY,
                             "the request has no body; send an image file, "
                             "such as \"ngx-bloom build\" writes");
        return NGX_DECLINED;
    }

    /* the generation may have changed while the body arrived */

    rc = ngx_http_bloom_token_match(r, upload->zone, &upload->error);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_bloom_state_files_path(upload->zone->state, upload->name,
                               upload->path);

    return ngx_http_bloom_task_start(r, upload->zone, NGX_BLOOM_TASK_UPLOAD,
                                     upload->path, ngx_http_bloom_task_respond,
                                     &upload->error);
}


static void
ngx_http_bloom_upload_cleanup(void *data)
{
    ngx_http_bloom_upload_t *upload = data;

    if (upload->fd == NGX_INVALID_FILE) {
        return;
    }

    (void) ngx_bloom_io_remove(upload->zone->state->dir, upload->name);

    ngx_bloom_io_close(&upload->fd);
}
