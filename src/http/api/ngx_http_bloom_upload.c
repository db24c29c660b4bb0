
/*
 * This file takes an image from a client: nginx keeps the body in a file, and
 * the helper loads it from there.
 */

#include "ngx_http_bloom_upload.h"
#include "ngx_http_bloom_body.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_etag.h"
#include "ngx_http_bloom_header.h"
#include "ngx_http_bloom_response.h"
#include "ngx_http_bloom_task.h"


typedef struct {
    ngx_bloom_zone_t           *zone;
} ngx_http_bloom_upload_t;


static ngx_int_t ngx_http_bloom_upload_broken(ngx_http_request_t *r,
    ngx_int_t rc);
static void ngx_http_bloom_upload_body(ngx_http_request_t *r);
static ngx_int_t ngx_http_bloom_upload_start(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone);
static ngx_int_t ngx_http_bloom_upload_file(ngx_http_request_t *r,
    u_char **path, ngx_http_bloom_error_t *error);


ngx_int_t
ngx_http_bloom_upload_put(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    ngx_int_t                 rc;
    ngx_http_bloom_upload_t  *upload;

    if (r->headers_in.content_range != NULL) {
        return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_BAD_BODY,
                                              "an image cannot be sent in "
                                              "parts; send it whole, without "
                                              "\"Content-Range\"");
    }

    if (ngx_http_bloom_header_in(r, "content-encoding") != NULL) {
        return ngx_http_bloom_response_refuse(r, NGX_HTTP_BLOOM_E_TYPE,
                                              "an image with "
                                              "\"Content-Encoding\" cannot be "
                                              "read: send it as it is, not "
                                              "compressed");
    }

    upload = ngx_palloc(r->pool, sizeof(ngx_http_bloom_upload_t));

    if (upload == NULL || ngx_http_bloom_ctx_set_operation(r,
                                                           upload) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    upload->zone = zone;

    /* with a name, by which the helper finds it; removed with the request */

    r->request_body_in_file_only = 1;
    r->request_body_in_persistent_file = 1;
    r->request_body_in_clean_file = 1;
    r->request_body_file_log_level = 0;

    rc = ngx_http_read_client_request_body(r, ngx_http_bloom_upload_body);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return ngx_http_bloom_upload_broken(r, rc);
    }

    return NGX_DONE;
}


/* Responds to a body whose beginning cannot be read; to what comes later, nginx
 * itself responds. */
static ngx_int_t
ngx_http_bloom_upload_broken(ngx_http_request_t *r, ngx_int_t rc)
{
    ngx_http_bloom_error_t  error;

    if (ngx_http_bloom_body_broken(r, rc, &error)) {
        return rc;
    }

    /* some of it may have come */

    r->keepalive = 0;
    r->lingering_close = 1;
    r->read_event_handler = ngx_http_block_reading;

    return ngx_http_bloom_response_error(r, &error);
}


/*
 * From here on the request waits for the helper, even if the client has gone:
 * the file has to stay until then.
 */
static void
ngx_http_bloom_upload_body(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_bloom_upload_t  *upload;

    upload = ngx_http_bloom_ctx_operation(r);

    r->read_event_handler = ngx_http_block_reading;

    rc = ngx_http_bloom_upload_start(r, upload->zone);

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


/* Returns NGX_AGAIN if the request waits for the helper. */
static ngx_int_t
ngx_http_bloom_upload_start(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    u_char                  *path;
    ngx_int_t                rc;
    ngx_http_bloom_error_t   error;

    rc = ngx_http_bloom_upload_file(r, &path, &error);

    if (rc == NGX_OK) {

        /* the body may have taken a while */

        rc = ngx_http_bloom_etag_match(r, zone, &error);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_bloom_task_start(r, zone, NGX_BLOOM_TASK_UPLOAD, path,
                                       ngx_http_bloom_task_respond, &error);
    }

    switch (rc) {

    case NGX_OK:
        return NGX_AGAIN;

    case NGX_DECLINED:
        return ngx_http_bloom_response_error(r, &error);

    default: /* NGX_ERROR */
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
}


/*
 * Finds the name of the file with the body.  Returns NGX_OK; NGX_DECLINED with
 * *error; NGX_ERROR.
 */
static ngx_int_t
ngx_http_bloom_upload_file(ngx_http_request_t *r, u_char **path,
    ngx_http_bloom_error_t *error)
{
    off_t                      size;
    ngx_chain_t               *cl;
    ngx_temp_file_t           *tf;
    ngx_http_request_body_t   *body;
    ngx_http_core_loc_conf_t  *clcf;

    body = r->request_body;
    size = 0;

    for (cl = body ? body->bufs : NULL; cl != NULL; cl = cl->next) {
        size += ngx_buf_size(cl->buf);
    }

    if (size == 0) {
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_BODY,
                             "the request has no body; send an image file, as "
                             "ngx-bloom build makes it");
        return NGX_DECLINED;
    }

    tf = body->temp_file;

    if (tf != NULL && !tf->persistent) {
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_FAILED,
                             "something else has read the body before the "
                             "endpoint could, as \"mirror\" does; turn that "
                             "off in the endpoint's location");
        return NGX_DECLINED;
    }

    if (tf == NULL) {

        /* it was read before, and is in memory */

        clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

        tf = ngx_pcalloc(r->pool, sizeof(ngx_temp_file_t));
        if (tf == NULL) {
            return NGX_ERROR;
        }

        tf->file.fd = NGX_INVALID_FILE;
        tf->file.log = r->connection->log;
        tf->path = clcf->client_body_temp_path;
        tf->pool = r->pool;
        tf->persistent = 1;
        tf->clean = 1;

        if (ngx_write_chain_to_temp_file(tf, body->bufs) == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    *path = tf->file.name.data;

    return NGX_OK;
}
