/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file sends a zone as an image: the helper writes the image into a file,
 * and the worker sends the file.
 */

#include "ngx_http_bloom_image.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_header.h"
#include "ngx_http_bloom_response.h"
#include "ngx_http_bloom_task.h"
#include "ngx_http_bloom_token.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_state_files.h"


/* How often the helper is asked again if the file is gone before it is
 * opened. */
#define NGX_HTTP_BLOOM_IMAGE_TRIES  5


static ngx_int_t ngx_http_bloom_image_head(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
static ngx_int_t ngx_http_bloom_image_respond(ngx_http_request_t *r,
    ngx_http_bloom_task_t *task);
static ngx_int_t ngx_http_bloom_image_open(ngx_http_request_t *r,
    ngx_http_bloom_task_t *task, ngx_file_t **file, off_t *size);
static ngx_int_t ngx_http_bloom_image_headers(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, ngx_bloom_info_t *info);
static ngx_int_t ngx_http_bloom_image_send(ngx_http_request_t *r,
    ngx_file_t *file, off_t size);


ngx_int_t
ngx_http_bloom_image_get(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    const char  *why;

    why = ngx_bloom_task_impossible(zone, NGX_BLOOM_TASK_SNAPSHOT);

    if (why != NULL) {
        return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_NOT_POSSIBLE,
                                              "zone \"%V\": %s", &zone->name,
                                              why);
    }

    if (r->method & NGX_HTTP_HEAD) {
        return ngx_http_bloom_image_head(r, zone);
    }

    return ngx_http_bloom_task_run(r, zone, NGX_BLOOM_TASK_SNAPSHOT,
                                   ngx_http_bloom_image_respond);
}


/* Responds with the headers of GET, from the zone's state, without an image. */
static ngx_int_t
ngx_http_bloom_image_head(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    ngx_bloom_info_t  info;

    ngx_bloom_info_get(zone, &info);

    if (info.generation == 0) {
        return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_FAILED,
                                              "zone \"%V\" has no image; load "
                                              "one first", &zone->name);
    }

    if (ngx_http_bloom_image_headers(r, zone, &info) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    /* the size of an image with removed keys is not known before it is made */

    return ngx_http_bloom_image_send(r, NULL,
                                     (info.removed != 0
                                      || info.image.exceptions != 0)
                                     ? -1
                                     : (off_t) bloom_image_file_size(
                                                                &info.image));
}


static ngx_int_t
ngx_http_bloom_image_respond(ngx_http_request_t *r, ngx_http_bloom_task_t *task)
{
    off_t                    size;
    ngx_int_t                rc;
    ngx_file_t              *file;
    ngx_uint_t               tries;
    ngx_bloom_info_t         info;
    ngx_http_bloom_error_t   error;

    if (task->result.outcome != NGX_BLOOM_DONE) {
        return ngx_http_bloom_task_respond(r, task);
    }

    switch (ngx_http_bloom_image_open(r, task, &file, &size)) {

    case NGX_OK:
        break;

    case NGX_AGAIN:

        /* the helper has removed the file: it has written a newer image, or a
         * new helper has taken over */

        tries = task->tries + 1;

        if (tries < NGX_HTTP_BLOOM_IMAGE_TRIES) {
            rc = ngx_http_bloom_image_get(r, task->zone);

            if (rc == NGX_DONE) {
                task = ngx_http_bloom_ctx_operation(r);
                task->tries = tries;
            }

            return rc;
        }

        /* fall through */

    case NGX_DECLINED:
        ngx_http_bloom_error(&error, NGX_HTTP_BLOOM_E_FAILED,
                             "the image of zone \"%V\" was written but cannot "
                             "be read; see the error log and try again",
                             &task->zone->name);
        return ngx_http_bloom_response_error(r, &error);

    default: /* NGX_ERROR */
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_bloom_info_get(task->zone, &info);

    /* the generation that the image was made from */

    info.generation = task->result.generation;

    if (ngx_http_bloom_image_headers(r, task->zone, &info) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_bloom_image_send(r, file, size);
}


/*
 * Opens the file and marks it as in use; the helper removes it after a while if
 * it is not.  Returns NGX_OK; NGX_AGAIN if the file is gone; NGX_DECLINED if it
 * cannot be read, which is logged; NGX_ERROR if memory is short.
 */
static ngx_int_t
ngx_http_bloom_image_open(ngx_http_request_t *r, ngx_http_bloom_task_t *task,
    ngx_file_t **filep, off_t *size)
{
    u_char                   *name;
    ngx_file_t               *file;
    ngx_file_info_t           fi;
    ngx_pool_cleanup_t       *cln;
    ngx_pool_cleanup_file_t  *clnf;

    file = ngx_pcalloc(r->pool, sizeof(ngx_file_t));
    name = ngx_pnalloc(r->pool, NGX_MAX_PATH);
    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_pool_cleanup_file_t));

    if (file == NULL || name == NULL || cln == NULL) {
        return NGX_ERROR;
    }

    ngx_bloom_state_files_path(task->zone->state, task->result.name, name);

    file->name.len = ngx_strlen(name);
    file->name.data = name;
    file->log = r->connection->log;

    file->fd = ngx_bloom_io_open(task->zone->state->dir, task->result.name,
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

    *filep = file;
    *size = ngx_file_size(&fi);

    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_image_headers(ngx_http_request_t *r, ngx_bloom_zone_t *zone,
    ngx_bloom_info_t *info)
{
    u_char            *p, c;
    size_t             i;
    ngx_str_t          value;

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

    if (ngx_http_bloom_header_out(r, "ETag", &value) != NGX_OK) {
        return NGX_ERROR;
    }

    /* the zone's name, with "_" for what some file systems do not take */

    value.data = ngx_pnalloc(r->pool, zone->name.len
                             + sizeof("attachment; filename=\".bloom\"") - 1);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    p = ngx_cpymem(value.data, "attachment; filename=\"",
                   sizeof("attachment; filename=\"") - 1);

    for (i = 0; i < zone->name.len; i++) {
        c = zone->name.data[i];

        *p++ = ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z')
                || (c >= 'A' && c <= 'Z') || c == '-' || c == '_'
                || (c == '.' && i != 0)) ? c : '_';
    }

    p = ngx_cpymem(p, ".bloom\"", sizeof(".bloom\"") - 1);
    value.len = p - value.data;

    return ngx_http_bloom_header_out(r, "Content-Disposition", &value);
}


static ngx_int_t
ngx_http_bloom_image_send(ngx_http_request_t *r, ngx_file_t *file, off_t size)
{
    ngx_buf_t  *b;

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    b->file = file;
    b->file_last = size;
    b->in_file = 1;

    ngx_str_set(&r->headers_out.content_type, "application/octet-stream");
    r->headers_out.content_type_len = r->headers_out.content_type.len;

    return ngx_http_bloom_response_send(r, NGX_HTTP_OK, b);
}
