/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file looks up keys for clients of the endpoint: one key, with an
 * explanation of the answer, or many keys.  Neither counts as a check.
 */

#include "ngx_http_bloom_lookup.h"
#include "ngx_http_bloom_body.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_response.h"
#include "ngx_http_bloom_resume.h"
#include "ngx_bloom_lookup_list.h"
#include "ngx_bloom_ring.h"
#include "bloom_key.h"


#define NGX_HTTP_BLOOM_LOOKUP_MAX  1000000

/* Keys are looked up in groups of up to so many keys and about so many bytes,
 * which takes a millisecond at most.  A key that may need libidn2 ends its
 * group, since it may take as long alone. */
#define NGX_HTTP_BLOOM_LOOKUP_KEYS    32
#define NGX_HTTP_BLOOM_LOOKUP_BYTES   (4 * 1024)


typedef struct {
    ngx_http_bloom_body_t       body;
    ngx_http_bloom_resume_t     resume;
    ngx_http_bloom_text_t       text;
    ngx_bloom_zone_t           *zone;
    uint64_t                    tested;
    uint64_t                    answers[NGX_BLOOM_ANSWERS];

    ngx_str_t                   key[NGX_HTTP_BLOOM_LOOKUP_KEYS];
    ngx_uint_t                  keys;    /* number of keys in the group */
    size_t                      bytes;   /* of these keys */
    ngx_pool_t                 *scratch; /* of these keys */
} ngx_http_bloom_lookup_t;


static void ngx_http_bloom_lookup_put_life(bloom_json_writer_t *json,
    ngx_bloom_zone_t *zone, ngx_bloom_explain_t *lookup);
static void ngx_http_bloom_lookup_put_bits(bloom_json_writer_t *json,
    ngx_bloom_explain_t *lookup);
static void ngx_http_bloom_lookup_cleanup(void *data);
static void ngx_http_bloom_lookup_run(ngx_http_request_t *r);
static ngx_int_t ngx_http_bloom_lookup_fail(ngx_http_request_t *r,
    ngx_http_bloom_lookup_t *lookups);
static ngx_int_t ngx_http_bloom_lookup_take(void *data, ngx_str_t *key);
static ngx_uint_t ngx_http_bloom_lookup_is_costly(ngx_bloom_zone_t *zone,
    ngx_str_t *key);
static ngx_int_t ngx_http_bloom_lookup_flush(
    ngx_http_bloom_lookup_t *lookups);
static void ngx_http_bloom_lookup_respond(ngx_http_request_t *r,
    ngx_http_bloom_lookup_t *lookups);


/* by NGX_BLOOM_ABSENT, _PRESENT, _UNKNOWN, _INVALID */
const char  *ngx_http_bloom_lookup_answers[] = {
    "absent",
    "present",
    "unknown",
    "invalid"
};


ngx_int_t
ngx_http_bloom_lookup_get(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    ngx_int_t                   rc;
    ngx_str_t                   key;
    ngx_uint_t                  answer;
    ngx_bloom_explain_t         lookup;
    ngx_http_bloom_text_t       text;
    ngx_http_bloom_error_t      error;
    ngx_http_bloom_loc_conf_t  *blcf;

    rc = ngx_http_bloom_lookup_key(r, &key, &error);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED
               ? ngx_http_bloom_response_refuse_error(r, &error)
               : NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    answer = ngx_bloom_explain(zone, &key, &lookup, r->pool);

    blcf = ngx_http_get_module_loc_conf(r, ngx_http_bloom_module);

    if (!blcf->endpoint->image) {

        /* a client that knows the bits of enough keys can compose a key whose
         * bits are all set, without the secret */

        lookup.k = 0;
    }

    ngx_http_bloom_text_init(&text, r->pool);

    bloom_json_put_object(&text.json, NULL);
    bloom_json_put_bytes(&text.json, "key", key.data, key.len);
    ngx_http_bloom_lookup_put(&text.json, zone, answer, &lookup);
    ngx_http_bloom_lookup_put_bits(&text.json, &lookup);
    bloom_json_put_end(&text.json);

    return ngx_http_bloom_response_json(r, NGX_HTTP_OK, &text);
}


ngx_int_t
ngx_http_bloom_lookup_key(ngx_http_request_t *r, ngx_str_t *key,
    ngx_http_bloom_error_t *error)
{
    u_char  *p;

    if (ngx_http_arg(r, (u_char *) "key", sizeof("key") - 1, key) != NGX_OK
        || key->len == 0)
    {
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                             "the query has no key; write \"%V?key=K\", with K "
                             "percent-encoded", &r->uri);
        return NGX_DECLINED;
    }

    p = ngx_pnalloc(r->pool, key->len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    key->len = bloom_key_decode(p, key->data, key->len, BLOOM_DECODE_FORM);
    key->data = p;

    if (key->len > BLOOM_KEY_MAX) {
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_KEY,
                             "the key has more than %d bytes",
                             BLOOM_KEY_MAX);
        return NGX_DECLINED;
    }

    return NGX_OK;
}


void
ngx_http_bloom_lookup_put(bloom_json_writer_t *json, ngx_bloom_zone_t *zone,
    ngx_uint_t answer, ngx_bloom_explain_t *lookup)
{
    u_char        kinds;
    unsigned      i;
    bloom_key_t  *key;

    bloom_json_put_text(json, "answer", ngx_http_bloom_lookup_answers[answer]);

    if (lookup->generation != 0) {
        bloom_json_put_text(json, "form", bloom_form_name(lookup->form));
    }

    if (lookup->why != NULL) {
        bloom_json_put_text(json, "reason", lookup->why);
    }

    if (lookup->keys.n != 0) {
        key = &lookup->keys.canonical;
        bloom_json_put_bytes(json, "canonical", key->data, key->len);
    }

    bloom_json_put_array(json, "expressions");

    for (i = 0; i < lookup->keys.n; i++) {
        key = &lookup->keys.expression[i];
        kinds = lookup->kinds[i];

        bloom_json_put_object(json, NULL);
        bloom_json_put_bytes(json, "key", key->data, key->len);
        bloom_json_put_bool(json, "present", (lookup->matches >> i) & 1);
        bloom_json_put_bool(json, "removed", kinds & BLOOM_EXCEPTION_REMOVED);
        bloom_json_put_bool(json, "excepted", kinds & BLOOM_EXCEPTION_FEEDBACK);
        bloom_json_put_bool(json, "image_excepted",
                            kinds & BLOOM_EXCEPTION_BUILT);
        bloom_json_put_bool(json, "whole", i == 0 || i == lookup->keys.second);
        bloom_json_put_end(json);
    }

    bloom_json_put_end(json);

    if (zone->expire != 0) {
        ngx_http_bloom_lookup_put_life(json, zone, lookup);
    }
}


/* Writes when a key expires: the latest times of its expressions. */
static void
ngx_http_bloom_lookup_put_life(bloom_json_writer_t *json,
    ngx_bloom_zone_t *zone, ngx_bloom_explain_t *lookup)
{
    int64_t                shift;
    uint64_t               from, until;
    unsigned               i;
    ngx_bloom_ring_life_t  life;

    from = 0;
    until = 0;

    for (i = 0; i < lookup->keys.n; i++) {

        if (((lookup->matches >> i) & 1)
            && ngx_bloom_ring_life(zone, &lookup->keys.expression[i], &life))
        {
            from = ngx_max(from, life.from);
            until = ngx_max(until, life.until);
        }
    }

    if (until == 0) {
        bloom_json_put_null(json, "expires");
        return;
    }

    shift = ngx_bloom_zone_shift(zone);

    bloom_json_put_object(json, "expires");
    bloom_json_put_time(json, "from", ngx_bloom_zone_wall(from, shift));
    bloom_json_put_time(json, "until", ngx_bloom_zone_wall(until, shift));
    bloom_json_put_end(json);
}


/* Writes the bits of a key, and which of them are set. */
static void
ngx_http_bloom_lookup_put_bits(bloom_json_writer_t *json,
    ngx_bloom_explain_t *lookup)
{
    unsigned  i;

    bloom_json_put_array(json, "bits");

    for (i = 0; i < lookup->k; i++) {
        bloom_json_put_count(json, NULL, lookup->bits[i]);
    }

    bloom_json_put_end(json);
    bloom_json_put_array(json, "set");

    for (i = 0; i < lookup->k; i++) {
        bloom_json_put_bool(json, NULL, lookup->set[i]);
    }

    bloom_json_put_end(json);
}


ngx_int_t
ngx_http_bloom_lookup_post(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    ngx_int_t                 rc;
    ngx_pool_cleanup_t       *cln;
    ngx_http_bloom_lookup_t  *lookups;

    lookups = ngx_pcalloc(r->pool, sizeof(ngx_http_bloom_lookup_t));
    if (lookups == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    lookups->zone = zone;

    rc = ngx_http_bloom_body_init(&lookups->body, r,
                                  ngx_http_bloom_lookup_take, lookups);

    if (rc == NGX_DECLINED) {
        return ngx_http_bloom_response_refuse_error(r, &lookups->body.error);
    }

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    lookups->scratch = ngx_create_pool(NGX_HTTP_BLOOM_LOOKUP_BYTES,
                                       r->connection->log);

    cln->handler = ngx_http_bloom_lookup_cleanup;
    cln->data = lookups;

    if (rc != NGX_OK || lookups->scratch == NULL
        || ngx_http_bloom_ctx_set_operation(r, lookups) != NGX_OK
        || ngx_http_bloom_resume_init(&lookups->resume, r,
                                      ngx_http_bloom_lookup_run)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_bloom_text_init(&lookups->text, r->pool);
    bloom_json_put_object(&lookups->text.json, NULL);
    bloom_json_put_array(&lookups->text.json, "answers");

    return ngx_http_bloom_body_start(&lookups->body,
                                     ngx_http_bloom_lookup_run);
}


static void
ngx_http_bloom_lookup_cleanup(void *data)
{
    ngx_http_bloom_lookup_t *lookups = data;

    if (lookups->scratch != NULL) {
        ngx_destroy_pool(lookups->scratch);
    }
}


static void
ngx_http_bloom_lookup_run(ngx_http_request_t *r)
{
    ngx_http_bloom_lookup_t  *lookups;

    lookups = ngx_http_bloom_ctx_operation(r);

    r->read_event_handler = ngx_http_bloom_lookup_run;

    switch (ngx_http_bloom_body_read(&lookups->body)) {

    case NGX_AGAIN:
        return;

    case NGX_DONE:
        ngx_http_bloom_resume_soon(&lookups->resume);
        return;

    case NGX_OK:

        if (ngx_http_bloom_lookup_flush(lookups) == NGX_OK) {
            ngx_http_bloom_lookup_respond(r, lookups);
            return;
        }

        /* fall through */

    default: /* NGX_ABORT, NGX_ERROR */

        r->read_event_handler = ngx_http_block_reading;

        ngx_http_finalize_request(r, ngx_http_bloom_lookup_fail(r, lookups));
    }
}


static ngx_int_t
ngx_http_bloom_lookup_fail(ngx_http_request_t *r,
    ngx_http_bloom_lookup_t *lookups)
{
    ngx_http_bloom_resume_stop(&lookups->resume);

    if (lookups->body.gone) {
        return NGX_HTTP_CLIENT_CLOSED_REQUEST;
    }

    return ngx_http_bloom_response_error(r, &lookups->body.error);
}


static ngx_int_t
ngx_http_bloom_lookup_take(void *data, ngx_str_t *key)
{
    ngx_http_bloom_lookup_t *lookups = data;

    u_char     *p;
    ngx_str_t  *slot;

    if (lookups->tested + lookups->keys == NGX_HTTP_BLOOM_LOOKUP_MAX) {
        ngx_http_bloom_error(&lookups->body.error, NGX_HTTP_BLOOM_E_TOO_LARGE,
                             "the body has more than %d keys; send fewer at a "
                             "time", NGX_HTTP_BLOOM_LOOKUP_MAX);
        return NGX_ERROR;
    }

    p = ngx_pnalloc(lookups->scratch, key->len + 1);

    if (p == NULL) {
        ngx_http_bloom_error(&lookups->body.error, NGX_HTTP_BLOOM_E_FAILED,
                             "nginx has no memory for the keys; try again "
                             "later");
        return NGX_ERROR;
    }

    ngx_memcpy(p, key->data, key->len);

    slot = &lookups->key[lookups->keys++];
    slot->data = p;
    slot->len = key->len;

    lookups->bytes += key->len;

    if (lookups->keys < NGX_HTTP_BLOOM_LOOKUP_KEYS
        && lookups->bytes < NGX_HTTP_BLOOM_LOOKUP_BYTES
        && !ngx_http_bloom_lookup_is_costly(lookups->zone, key))
    {
        return NGX_OK;
    }

    return ngx_http_bloom_lookup_flush(lookups);
}


/* Returns 1 if libidn2 may have to convert the key: if it has a byte above
 * 0x7f, or an escape. */
static ngx_uint_t
ngx_http_bloom_lookup_is_costly(ngx_bloom_zone_t *zone, ngx_str_t *key)
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


/* Looks up the keys of the group.  Returns NGX_OK, or NGX_ERROR with
 * body.error. */
static ngx_int_t
ngx_http_bloom_lookup_flush(ngx_http_bloom_lookup_t *lookups)
{
    u_char      answer[NGX_HTTP_BLOOM_LOOKUP_KEYS];
    ngx_uint_t  i;

    ngx_bloom_lookup_list(lookups->zone, lookups->key, lookups->keys,
                          answer, lookups->scratch);

    for (i = 0; i < lookups->keys; i++) {

        /* it may be only the beginning of the key */

        if (lookups->key[i].len > BLOOM_KEY_MAX) {
            answer[i] = NGX_BLOOM_INVALID;
        }

        bloom_json_put_text(&lookups->text.json, NULL,
                            ngx_http_bloom_lookup_answers[answer[i]]);

        lookups->answers[answer[i]]++;
        lookups->tested++;
    }

    if (lookups->text.failed) {

        if (lookups->text.busy) {
            ngx_http_bloom_error_busy(&lookups->body.error);

        } else {
            ngx_http_bloom_error(&lookups->body.error, NGX_HTTP_BLOOM_E_FAILED,
                                 "nginx has no memory for the answers; try "
                                 "again later");
        }

        return NGX_ERROR;
    }

    lookups->keys = 0;
    lookups->bytes = 0;

    ngx_reset_pool(lookups->scratch);

    return NGX_OK;
}


static void
ngx_http_bloom_lookup_respond(ngx_http_request_t *r,
    ngx_http_bloom_lookup_t *lookups)
{
    ngx_uint_t            i;
    bloom_json_writer_t  *json;

    r->read_event_handler = ngx_http_block_reading;

    ngx_http_bloom_resume_stop(&lookups->resume);

    json = &lookups->text.json;

    bloom_json_put_end(json);
    bloom_json_put_count(json, "tested", lookups->tested);

    for (i = 0; i < NGX_BLOOM_ANSWERS; i++) {
        bloom_json_put_count(json, ngx_http_bloom_lookup_answers[i],
                             lookups->answers[i]);
    }

    bloom_json_put_end(json);

    ngx_http_finalize_request(r,
                              ngx_http_bloom_response_json(r, NGX_HTTP_OK,
                                                           &lookups->text));
}
