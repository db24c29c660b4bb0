/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file looks up the keys of a request's body in groups, while they arrive.
 * That does not count as a check.
 */

#include "ngx_http_bloom_test.h"
#include "ngx_http_bloom_lookup.h"
#include "ngx_http_bloom_response.h"
#include "ngx_bloom_lookup_list.h"


#define NGX_HTTP_BLOOM_TEST_MAX  1000000

/* Keys are looked up in groups of up to so many keys and about so many bytes,
 * which takes a millisecond at most.  A key that may need libidn2 ends its
 * group, since it may take as long alone. */
#define NGX_HTTP_BLOOM_TEST_KEYS   32
#define NGX_HTTP_BLOOM_TEST_BYTES  (4 * 1024)


typedef struct {
    ngx_http_bloom_operation_t  op;
    ngx_http_bloom_text_t       text;    /* the answers so far */
    uint64_t                    tested;
    uint64_t                    answers[NGX_BLOOM_ANSWERS];

    ngx_str_t                   key[NGX_HTTP_BLOOM_TEST_KEYS];
    ngx_uint_t                  keys;    /* number of keys in the group */
    size_t                      bytes;   /* of these keys */
    ngx_pool_t                 *scratch; /* of these keys */
} ngx_http_bloom_test_t;


static ngx_int_t ngx_http_bloom_test_begin(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_test_take(ngx_http_bloom_operation_t *op,
    ngx_str_t *key);
static ngx_uint_t ngx_http_bloom_test_is_costly(ngx_bloom_zone_t *zone,
    ngx_str_t *key);
static ngx_int_t ngx_http_bloom_test_flush(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_test_send(ngx_http_bloom_operation_t *op);
static void ngx_http_bloom_test_end(ngx_http_bloom_operation_t *op);


const ngx_http_bloom_kind_t  ngx_http_bloom_post_test = {
    .size = sizeof(ngx_http_bloom_test_t),
    .begin = ngx_http_bloom_test_begin,
    .take = ngx_http_bloom_test_take,
    .run = ngx_http_bloom_test_flush,
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
    ngx_str_t              *slot;
    ngx_http_bloom_test_t  *test;

    test = (ngx_http_bloom_test_t *) op;

    if (test->tested + test->keys == NGX_HTTP_BLOOM_TEST_MAX) {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_TOO_LARGE,
                                    "the body has more than %d keys; send "
                                    "fewer at a time", NGX_HTTP_BLOOM_TEST_MAX);
    }

    slot = &test->key[test->keys];

    slot->len = key->len;
    slot->data = ngx_pnalloc(test->scratch, key->len + 1);

    if (slot->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(slot->data, key->data, key->len);

    test->keys++;
    test->bytes += key->len;

    if (test->keys < NGX_HTTP_BLOOM_TEST_KEYS
        && test->bytes < NGX_HTTP_BLOOM_TEST_BYTES
        && !ngx_http_bloom_test_is_costly(op->zone, key))
    {
        return NGX_OK;
    }

    return ngx_http_bloom_test_flush(op);
}


/* Returns 1 if libidn2 may have to convert the key: if it has a byte above
 * 0x7f, or an escape. */
static ngx_uint_t
ngx_http_bloom_test_is_costly(ngx_bloom_zone_t *zone, ngx_str_t *key)
{
    size_t  i;

    if (zone->form == BLOOM_FORM_RAW || zone->form == BLOOM_FORM_LOWER) {
        return 0;
    }

    for (i = 0; i < key->len; i++) {
        if (key->data[i] >= 0x80 || key->data[i] == '%') {
            return 1;
        }
    }

    return 0;
}


/* Looks up the keys of the group. */
static ngx_int_t
ngx_http_bloom_test_flush(ngx_http_bloom_operation_t *op)
{
    u_char                  answer[NGX_HTTP_BLOOM_TEST_KEYS];
    ngx_uint_t              i;
    ngx_http_bloom_test_t  *test;

    test = (ngx_http_bloom_test_t *) op;

    ngx_bloom_lookup_list(op->zone, test->key, test->keys, answer,
                          test->scratch);

    for (i = 0; i < test->keys; i++) {

        /* it may be only the beginning of the key */

        if (test->key[i].len > BLOOM_KEY_MAX) {
            answer[i] = NGX_BLOOM_INVALID;
        }

        bloom_json_put_text(&test->text.json, NULL,
                            ngx_http_bloom_lookup_answers[answer[i]]);

        test->answers[answer[i]]++;
    }

    if (test->text.busy) {
        ngx_http_bloom_error_busy(&op->error);
    }

    test->tested += test->keys;
    test->keys = 0;
    test->bytes = 0;

    ngx_reset_pool(test->scratch);

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
