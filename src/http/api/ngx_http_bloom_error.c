/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file has the table of the endpoint's errors, with codes and statuses,
 * and writes errors in JSON.
 */

#include "ngx_http_bloom_error.h"


typedef struct {
    ngx_uint_t                  status;
    const char                 *code;
} ngx_http_bloom_error_entry_t;


/* by ngx_http_bloom_error_code_e */
static ngx_http_bloom_error_entry_t  ngx_http_bloom_errors[] = {
    { 200, "none" },
    { 400, "bad_query" },
    { 400, "bad_key" },
    { 400, "bad_json" },
    { 400, "bad_body" },
    { 403, "read_only" },
    { 403, "no_image" },
    { 403, "cross_site" },
    { 404, "not_found" },
    { 404, "unknown_zone" },
    { 405, "method_not_allowed" },
    { 409, "load_in_progress" },
    { 409, "no_additions" },
    { 409, "no_removals" },
    { 409, "not_possible" },
    { 409, "wrong_source" },
    { 409, "wrong_position" },
    { 412, "generation_changed" },
    { 413, "too_large" },
    { 415, "unsupported_type" },
    { 422, "image_refused" },
    { 503, "journal_unavailable" },
    { 503, "failed" },
    { 503, "busy" },
    { 507, "no_room" }
};


ngx_int_t ngx_cdecl
ngx_http_bloom_error(ngx_http_bloom_error_t *error,
    ngx_http_bloom_error_code_e code, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    ngx_http_bloom_error_v(error, code, fmt, args);
    va_end(args);

    return NGX_DECLINED;
}


void
ngx_http_bloom_error_v(ngx_http_bloom_error_t *error,
    ngx_http_bloom_error_code_e code, const char *fmt, va_list args)
{
    u_char  *p;

    p = ngx_vslprintf(error->message,
                      error->message + NGX_HTTP_BLOOM_ERROR_LEN, fmt, args);

    error->code = code;
    error->len = p - error->message;
}


void
ngx_http_bloom_error_busy(ngx_http_bloom_error_t *error)
{
    ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BUSY,
                         "this worker's %d bytes for responses are in use, "
                         "since clients have not read theirs yet; try again "
                         "later, or ask for less at a time",
                         NGX_HTTP_BLOOM_TEXT_MAX);
}


void
ngx_http_bloom_error_put(ngx_http_bloom_text_t *text,
    ngx_http_bloom_error_t *error)
{
    bloom_json_put_object(&text->json, "error");
    bloom_json_put_text(&text->json, "code",
                        ngx_http_bloom_errors[error->code].code);
    bloom_json_put_bytes(&text->json, "message", error->message, error->len);
    bloom_json_put_end(&text->json);
}


ngx_uint_t
ngx_http_bloom_error_status(ngx_http_bloom_error_t *error)
{
    return ngx_http_bloom_errors[error->code].status;
}
