
/*
 * GET keys and POST test: keys are asked for.  Neither counts as a check.
 */

#include "ngx_http_bloom_api.h"


#define NGX_HTTP_BLOOM_TEST_MAX  1000000

/* Keys are asked for together, up to so many, and about so many bytes. */
#define NGX_HTTP_BLOOM_TOGETHER  256
#define NGX_HTTP_BLOOM_SCRATCH   (16 * 1024)


typedef struct {
    ngx_http_bloom_body_t       body;
    ngx_http_bloom_pause_t      pause;
    ngx_http_bloom_text_t       text;
    ngx_bloom_zone_t           *zone;
    uint64_t                    tested;
    uint64_t                    answers[NGX_BLOOM_ANSWERS];

    ngx_str_t                   key[NGX_HTTP_BLOOM_TOGETHER];
    ngx_uint_t                  keys;    /* that wait for others to come */
    size_t                      bytes;   /* of them */
    ngx_pool_t                 *scratch; /* where they are */
} ngx_http_bloom_testing_t;


static void ngx_http_bloom_put_lookup(ngx_http_bloom_text_t *text,
    ngx_bloom_lookup_t *lookup);
static void ngx_http_bloom_testing_cleanup(void *data);
static void ngx_http_bloom_testing_run(ngx_http_request_t *r);
static ngx_int_t ngx_http_bloom_testing_fail(ngx_http_request_t *r,
    ngx_http_bloom_testing_t *testing);
static ngx_int_t ngx_http_bloom_testing_take(void *data, ngx_str_t *key);
static ngx_int_t ngx_http_bloom_testing_flush(
    ngx_http_bloom_testing_t *testing);
static void ngx_http_bloom_testing_reply(ngx_http_request_t *r,
    ngx_http_bloom_testing_t *testing);


/* by NGX_BLOOM_ABSENT, _PRESENT, _UNKNOWN, _UNPARSABLE */
static ngx_str_t  ngx_http_bloom_answer_names[] = {
    ngx_string("absent"),
    ngx_string("present"),
    ngx_string("unknown"),
    ngx_string("unparsable")
};


ngx_int_t
ngx_http_bloom_get_key(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    u_char                 *p;
    ngx_int_t               rc;
    ngx_str_t               key;
    ngx_uint_t              answer;
    ngx_bloom_info_t        info;
    ngx_bloom_lookup_t      lookup;
    ngx_http_bloom_text_t   text;

    if (ngx_http_arg(r, (u_char *) "key", sizeof("key") - 1, &key) != NGX_OK
        || key.len == 0)
    {
        return ngx_http_bloom_refuse(r, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                     "the request must name a key: "
                                     "\"%V?key=K\", with K percent-encoded",
                                     &r->uri);
    }

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    p = ngx_pnalloc(r->pool, key.len);
    if (p == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    key.len = bloom_key_decode(p, key.data, key.len, BLOOM_DECODE_FORM);
    key.data = p;

    answer = ngx_bloom_zone_explain(zone, &key, &lookup, r->pool);

    ngx_bloom_zone_info(zone, &info);

    ngx_http_bloom_text_init(&text, r->pool);

    ngx_http_bloom_printf(&text, "{\"key\":");
    ngx_http_bloom_quote(&text, key.data, key.len);
    ngx_http_bloom_printf(&text, ",\"answer\":\"%V\"",
                          &ngx_http_bloom_answer_names[answer]);

    ngx_http_bloom_put_lookup(&text, &lookup);

    ngx_http_bloom_printf(&text, "}");

    if (ngx_http_bloom_etag(r, &info) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_bloom_answer(r, NGX_HTTP_OK, &text);
}


/* What the key was looked up by, and what of that is there. */
static void
ngx_http_bloom_put_lookup(ngx_http_bloom_text_t *text,
    ngx_bloom_lookup_t *lookup)
{
    u_char       *data;
    unsigned      i;
    bloom_key_t  *key;

    if (lookup->generation != 0) {
        ngx_http_bloom_printf(text, ",\"key_form\":\"%s\"",
                              bloom_key_form_name(lookup->form));
    }

    if (lookup->why != NULL) {
        ngx_http_bloom_printf(text, ",\"reason\":\"%s\"", lookup->why);
    }

    if (lookup->keys.n != 0) {
        key = &lookup->keys.canonical;
        data = (u_char *) key->data;

        ngx_http_bloom_printf(text, ",\"canonical\":");
        ngx_http_bloom_quote(text, data, key->len);
    }

    ngx_http_bloom_printf(text, ",\"expressions\":[");

    for (i = 0; i < lookup->keys.n; i++) {
        key = &lookup->keys.expression[i];
        data = (u_char *) key->data;

        ngx_http_bloom_printf(text, "%s{\"key\":", i == 0 ? "" : ",");
        ngx_http_bloom_quote(text, data, key->len);
        ngx_http_bloom_printf(text, ",\"present\":%s}",
                              (lookup->matches >> i) & 1 ? "true" : "false");
    }

    ngx_http_bloom_printf(text, "],\"bits\":[");

    for (i = 0; i < lookup->k; i++) {
        ngx_http_bloom_printf(text, "%s%uL", i == 0 ? "" : ",",
                              lookup->bits[i]);
    }

    ngx_http_bloom_printf(text, "],\"set\":[");

    for (i = 0; i < lookup->k; i++) {
        ngx_http_bloom_printf(text, "%s%s", i == 0 ? "" : ",",
                              lookup->set[i] ? "true" : "false");
    }

    ngx_http_bloom_printf(text, "]");
}


ngx_int_t
ngx_http_bloom_post_test(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    ngx_int_t                  rc;
    ngx_pool_cleanup_t        *cln;
    ngx_http_bloom_testing_t  *testing;

    testing = ngx_pcalloc(r->pool, sizeof(ngx_http_bloom_testing_t));
    if (testing == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    testing->zone = zone;

    rc = ngx_http_bloom_body_init(&testing->body, r,
                                  ngx_http_bloom_testing_take, testing);

    if (rc == NGX_DECLINED) {
        return ngx_http_bloom_refuse_fault(r, &testing->body.fault);
    }

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    testing->scratch = ngx_create_pool(NGX_HTTP_BLOOM_SCRATCH,
                                       r->connection->log);

    cln->handler = ngx_http_bloom_testing_cleanup;
    cln->data = testing;

    if (rc != NGX_OK || testing->scratch == NULL
        || ngx_http_bloom_ctx_set_operation(r, testing) != NGX_OK
        || ngx_http_bloom_pause_init(&testing->pause, r,
                                     ngx_http_bloom_testing_run)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_bloom_text_init(&testing->text, r->pool);
    ngx_http_bloom_printf(&testing->text, "{\"results\":[");

    return ngx_http_bloom_body_start(&testing->body,
                                     ngx_http_bloom_testing_run);
}


static void
ngx_http_bloom_testing_cleanup(void *data)
{
    ngx_http_bloom_testing_t *testing = data;

    if (testing->scratch != NULL) {
        ngx_destroy_pool(testing->scratch);
    }
}


static void
ngx_http_bloom_testing_run(ngx_http_request_t *r)
{
    ngx_http_bloom_testing_t  *testing;

    testing = ngx_http_bloom_ctx_operation(r);

    r->read_event_handler = ngx_http_bloom_testing_run;

    switch (ngx_http_bloom_body_read(&testing->body)) {

    case NGX_AGAIN:
        return;

    case NGX_DONE:
        ngx_http_bloom_yield(&testing->pause);
        return;

    case NGX_OK:

        if (ngx_http_bloom_testing_flush(testing) == NGX_OK) {
            ngx_http_bloom_testing_reply(r, testing);
            return;
        }

        /* fall through */

    default: /* NGX_ABORT, NGX_ERROR */

        r->read_event_handler = ngx_http_block_reading;

        ngx_http_finalize_request(r, ngx_http_bloom_testing_fail(r, testing));
    }
}


static ngx_int_t
ngx_http_bloom_testing_fail(ngx_http_request_t *r,
    ngx_http_bloom_testing_t *testing)
{
    ngx_http_bloom_stop(&testing->pause);

    if (testing->body.gone) {
        return NGX_HTTP_CLIENT_CLOSED_REQUEST;
    }

    return ngx_http_bloom_answer_fault(r, &testing->body.fault);
}


static ngx_int_t
ngx_http_bloom_testing_take(void *data, ngx_str_t *key)
{
    ngx_http_bloom_testing_t *testing = data;

    u_char     *p;
    ngx_str_t  *kept;

    if (testing->tested + testing->keys == NGX_HTTP_BLOOM_TEST_MAX) {
        ngx_http_bloom_fault(&testing->body.fault, NGX_HTTP_BLOOM_E_TOO_LARGE,
                             "more than %d keys; ask for fewer at a time",
                             NGX_HTTP_BLOOM_TEST_MAX);
        return NGX_ERROR;
    }

    p = ngx_pnalloc(testing->scratch, key->len + 1);

    if (p == NULL) {
        ngx_http_bloom_fault(&testing->body.fault, NGX_HTTP_BLOOM_E_FAILED,
                             "memory is short");
        return NGX_ERROR;
    }

    ngx_memcpy(p, key->data, key->len);

    kept = &testing->key[testing->keys++];
    kept->data = p;
    kept->len = key->len;

    testing->bytes += key->len;

    if (testing->keys < NGX_HTTP_BLOOM_TOGETHER
        && testing->bytes < NGX_HTTP_BLOOM_SCRATCH)
    {
        return NGX_OK;
    }

    return ngx_http_bloom_testing_flush(testing);
}


/* Asks for the keys that wait. */
static ngx_int_t
ngx_http_bloom_testing_flush(ngx_http_bloom_testing_t *testing)
{
    u_char      *p, answer[NGX_HTTP_BLOOM_TOGETHER];
    ngx_str_t   *name;
    ngx_uint_t   i;

    ngx_bloom_zone_test_many(testing->zone, testing->key, testing->keys,
                             answer, testing->scratch);

    for (i = 0; i < testing->keys; i++) {

        name = &ngx_http_bloom_answer_names[answer[i]];

        p = ngx_http_bloom_text_room(&testing->text, name->len + 3);

        if (p == NULL) {
            ngx_http_bloom_fault(&testing->body.fault,
                                 NGX_HTTP_BLOOM_E_FAILED, "memory is short");
            return NGX_ERROR;
        }

        if (testing->tested != 0) {
            *p++ = ',';
        }

        *p++ = '"';
        p = ngx_cpymem(p, name->data, name->len);
        *p++ = '"';

        testing->text.pos = p;

        testing->answers[answer[i]]++;
        testing->tested++;
    }

    testing->keys = 0;
    testing->bytes = 0;

    ngx_reset_pool(testing->scratch);

    return NGX_OK;
}


static void
ngx_http_bloom_testing_reply(ngx_http_request_t *r,
    ngx_http_bloom_testing_t *testing)
{
    r->read_event_handler = ngx_http_block_reading;

    ngx_http_bloom_stop(&testing->pause);

    ngx_http_bloom_printf(&testing->text,
                          "],\"tested\":%uL,\"absent\":%uL,\"present\":%uL,"
                          "\"unknown\":%uL,\"unparsable\":%uL}",
                          testing->tested,
                          testing->answers[NGX_BLOOM_ABSENT],
                          testing->answers[NGX_BLOOM_PRESENT],
                          testing->answers[NGX_BLOOM_UNKNOWN],
                          testing->answers[NGX_BLOOM_UNPARSABLE]);

    ngx_http_finalize_request(r,
                              ngx_http_bloom_answer(r, NGX_HTTP_OK,
                                                    &testing->text));
}
