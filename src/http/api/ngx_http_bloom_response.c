
/*
 * Answers of the endpoint: JSON, errors, headers.
 */

#include "ngx_http_bloom_api.h"


#define NGX_HTTP_BLOOM_PRINTF_MAX  1024


typedef struct {
    ngx_uint_t                  status;
    const char                 *code;
} ngx_http_bloom_error_t;


static void ngx_http_bloom_vfault(ngx_http_bloom_fault_t *fault,
    ngx_http_bloom_error_e error, const char *fmt, va_list args);


/* by ngx_http_bloom_error_e */
static ngx_http_bloom_error_t  ngx_http_bloom_errors[] = {
    { 200, "none" },
    { 400, "bad_query" },
    { 400, "bad_key" },
    { 400, "bad_json" },
    { 400, "bad_body" },
    { 403, "read_only" },
    { 403, "cross_site" },
    { 404, "not_found" },
    { 404, "unknown_zone" },
    { 405, "method_not_allowed" },
    { 409, "load_under_way" },
    { 409, "no_additions" },
    { 409, "not_possible" },
    { 412, "generation_changed" },
    { 413, "too_large" },
    { 415, "unsupported_type" },
    { 422, "image_refused" },
    { 503, "journal_unavailable" },
    { 503, "failed" },
    { 507, "no_room" }
};


void
ngx_http_bloom_text_init(ngx_http_bloom_text_t *text, ngx_pool_t *pool)
{
    ngx_memzero(text, sizeof(ngx_http_bloom_text_t));

    text->pool = pool;
}


u_char *
ngx_http_bloom_text_room(ngx_http_bloom_text_t *text, size_t size)
{
    size_t   used, room;
    u_char  *p;

    if (text->failed) {
        return NULL;
    }

    if ((size_t) (text->end - text->pos) >= size) {
        return text->pos;
    }

    used = text->pos - text->start;
    room = ngx_max(2 * (size_t) (text->end - text->start), used + size);
    room = ngx_max(room, 2 * NGX_HTTP_BLOOM_PRINTF_MAX);

    p = ngx_palloc(text->pool, room);
    if (p == NULL) {
        text->failed = 1;
        return NULL;
    }

    if (used != 0) {
        ngx_memcpy(p, text->start, used);
        ngx_pfree(text->pool, text->start);
    }

    text->start = p;
    text->pos = p + used;
    text->end = p + room;

    return text->pos;
}


void ngx_cdecl
ngx_http_bloom_printf(ngx_http_bloom_text_t *text, const char *fmt, ...)
{
    u_char   *p;
    va_list   args;

    p = ngx_http_bloom_text_room(text, NGX_HTTP_BLOOM_PRINTF_MAX);
    if (p == NULL) {
        return;
    }

    va_start(args, fmt);
    text->pos = ngx_vslprintf(p, p + NGX_HTTP_BLOOM_PRINTF_MAX, fmt, args);
    va_end(args);
}


void
ngx_http_bloom_quote(ngx_http_bloom_text_t *text, u_char *data, size_t len)
{
    u_char  *p;

    p = ngx_http_bloom_text_room(text,
                                 bloom_json_escape(NULL, data, len) + 2);
    if (p == NULL) {
        return;
    }

    *p++ = '"';
    p += bloom_json_escape(p, data, len);
    *p++ = '"';

    text->pos = p;
}


void ngx_cdecl
ngx_http_bloom_fault(ngx_http_bloom_fault_t *fault,
    ngx_http_bloom_error_e error, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    ngx_http_bloom_vfault(fault, error, fmt, args);
    va_end(args);
}


static void
ngx_http_bloom_vfault(ngx_http_bloom_fault_t *fault,
    ngx_http_bloom_error_e error, const char *fmt, va_list args)
{
    u_char  *p;

    p = ngx_vslprintf(fault->message,
                      fault->message + NGX_HTTP_BLOOM_MESSAGE_LEN, fmt, args);

    fault->error = error;
    fault->len = p - fault->message;
}


void
ngx_http_bloom_put_fault(ngx_http_bloom_text_t *text,
    ngx_http_bloom_fault_t *fault)
{
    ngx_http_bloom_printf(text, "\"error\":{\"code\":\"%s\",\"message\":",
                          ngx_http_bloom_errors[fault->error].code);
    ngx_http_bloom_quote(text, fault->message, fault->len);
    ngx_http_bloom_printf(text, "}");
}


ngx_uint_t
ngx_http_bloom_fault_status(ngx_http_bloom_fault_t *fault)
{
    return ngx_http_bloom_errors[fault->error].status;
}


ngx_int_t
ngx_http_bloom_answer(ngx_http_request_t *r, ngx_uint_t status,
    ngx_http_bloom_text_t *text)
{
    ngx_str_t  type;

    ngx_http_bloom_printf(text, "\n");
    ngx_str_set(&type, "application/json");

    return ngx_http_bloom_answer_as(r, status, &type, text);
}


ngx_int_t
ngx_http_bloom_answer_fault(ngx_http_request_t *r,
    ngx_http_bloom_fault_t *fault)
{
    ngx_http_bloom_text_t  text;

    ngx_http_bloom_text_init(&text, r->pool);

    ngx_http_bloom_printf(&text, "{");
    ngx_http_bloom_put_fault(&text, fault);
    ngx_http_bloom_printf(&text, "}");

    return ngx_http_bloom_answer(r, ngx_http_bloom_fault_status(fault), &text);
}


ngx_int_t ngx_cdecl
ngx_http_bloom_refuse(ngx_http_request_t *r, ngx_http_bloom_error_e error,
    const char *fmt, ...)
{
    va_list                 args;
    ngx_http_bloom_fault_t  fault;

    va_start(args, fmt);
    ngx_http_bloom_vfault(&fault, error, fmt, args);
    va_end(args);

    return ngx_http_bloom_refuse_fault(r, &fault);
}


ngx_int_t
ngx_http_bloom_refuse_fault(ngx_http_request_t *r,
    ngx_http_bloom_fault_t *fault)
{
    ngx_int_t  rc;

    rc = ngx_http_discard_request_body(r);

    return rc == NGX_OK ? ngx_http_bloom_answer_fault(r, fault) : rc;
}


ngx_int_t
ngx_http_bloom_answer_as(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *type, ngx_http_bloom_text_t *text)
{
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_str_t     value;
    ngx_chain_t   out;

    if (text->failed) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_set(&value, "no-store");

    if (ngx_http_bloom_header(r, "Cache-Control", &value) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = status;
    r->headers_out.content_length_n = text->pos - text->start;

    r->headers_out.content_type = *type;
    r->headers_out.content_type_len = type->len;
    r->headers_out.content_type_lowcase = NULL;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->pos = text->start;
    b->last = text->pos;
    b->memory = (text->pos != text->start);    /* not of an empty body */
    b->last_buf = 1;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


ngx_int_t
ngx_http_bloom_header(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->hash = 1;
    h->key.data = (u_char *) name;
    h->key.len = ngx_strlen(name);
    h->value = *value;
#if (nginx_version >= 1023000)
    h->next = NULL;
#endif

    return NGX_OK;
}
