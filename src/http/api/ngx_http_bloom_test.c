/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file looks up the keys of a request's body while they arrive.  That does
 * not count as a check.
 */

#include "ngx_http_bloom_operation.h"
#include "ngx_http_bloom_lookup.h"
#include "ngx_http_bloom_response.h"
#include "ngx_bloom_lookup_list.h"


#define NGX_HTTP_BLOOM_TEST_MAX  1000000

/* The memory for a lookup, used again by the next one. */
#define NGX_HTTP_BLOOM_TEST_BYTES  (4 * 1024)


typedef struct {
    ngx_http_bloom_operation_t  op;
    ngx_http_bloom_text_t       text;    /* the answers so far */
    uint64_t                    tested;
    uint64_t                    answers[NGX_BLOOM_ANSWERS];
    ngx_pool_t                 *scratch; /* for a lookup */
} ngx_http_bloom_test_t;


static ngx_int_t ngx_http_bloom_test_begin(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_test_take(ngx_http_bloom_operation_t *op,
    ngx_str_t *key);
static ngx_int_t ngx_http_bloom_test_send(ngx_http_bloom_operation_t *op);
static void ngx_http_bloom_test_end(ngx_http_bloom_operation_t *op);


static const ngx_http_bloom_arg_t  ngx_http_bloom_test_args[] = {
    ngx_http_bloom_arg_decode,
    ngx_http_bloom_arg_serving,
    ngx_http_bloom_arg_end
};

const ngx_http_bloom_kind_t  ngx_http_bloom_post_test = {
    .size = sizeof(ngx_http_bloom_test_t),
    .args = ngx_http_bloom_test_args,
    .begin = ngx_http_bloom_test_begin,
    .take = ngx_http_bloom_test_take,
    .send = ngx_http_bloom_test_send,
    .end = ngx_http_bloom_test_end
};


static ngx_int_t
ngx_http_bloom_test_begin(ngx_http_bloom_operation_t *op)
{
    ngx_http_bloom_test_t  *test;

    test = (ngx_http_bloom_test_t *) op;

    ngx_http_bloom_text_init(&test->text, op->request->pool);

    bloom_json_put_object(&test->text.json, NULL);
    bloom_json_put_array(&test->text.json, "answers");

    test->scratch = ngx_create_pool(NGX_HTTP_BLOOM_TEST_BYTES,
                                    op->request->connection->log);

    return test->scratch != NULL ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_bloom_test_take(ngx_http_bloom_operation_t *op, ngx_str_t *key)
{
    u_char                  answer;
    ngx_http_bloom_test_t  *test;

    test = (ngx_http_bloom_test_t *) op;

    if (test->tested == NGX_HTTP_BLOOM_TEST_MAX) {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_TOO_LARGE,
                                    "the body has more than %d keys; send "
                                    "fewer at a time", NGX_HTTP_BLOOM_TEST_MAX);
    }

    /* a key that is too long may be only the beginning of one */

    answer = NGX_BLOOM_INVALID;

    if (key->len <= BLOOM_KEY_MAX) {
        ngx_bloom_lookup_list(op->zone, key, 1, &answer, test->scratch);
        ngx_reset_pool(test->scratch);
    }

    bloom_json_put_text(&test->text.json, NULL,
                        ngx_http_bloom_lookup_answers[answer]);

    test->answers[answer]++;
    test->tested++;

    if (test->text.busy) {
        ngx_http_bloom_error_busy(&op->error);
    }

    return test->text.failed ? NGX_ERROR : NGX_OK;
}


static ngx_int_t
ngx_http_bloom_test_send(ngx_http_bloom_operation_t *op)
{
    ngx_uint_t              i;
    bloom_json_writer_t    *json;
    ngx_http_bloom_test_t  *test;

    test = (ngx_http_bloom_test_t *) op;
    json = &test->text.json;

    bloom_json_put_end(json);
    bloom_json_put_count(json, "tested", test->tested);

    for (i = 0; i < NGX_BLOOM_ANSWERS; i++) {
        bloom_json_put_count(json, ngx_http_bloom_lookup_answers[i],
                             test->answers[i]);
    }

    bloom_json_put_end(json);

    return ngx_http_bloom_response_json(op->request, NGX_HTTP_OK, &test->text);
}


static void
ngx_http_bloom_test_end(ngx_http_bloom_operation_t *op)
{
    ngx_http_bloom_test_t  *test;

    test = (ngx_http_bloom_test_t *) op;

    if (test->scratch != NULL) {
        ngx_destroy_pool(test->scratch);
    }
}
