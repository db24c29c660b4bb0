/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file looks up a key for a client of the endpoint and explains the
 * answer.  That does not count as a check.
 */

#include "ngx_http_bloom_lookup.h"
#include "ngx_http_bloom.h"
#include "ngx_http_bloom_response.h"
#include "ngx_bloom_ring.h"
#include "bloom_key.h"


static void ngx_http_bloom_lookup_put_life(bloom_json_writer_t *json,
    ngx_bloom_zone_t *zone, ngx_bloom_explain_t *lookup);
static void ngx_http_bloom_lookup_put_bits(bloom_json_writer_t *json,
    ngx_bloom_explain_t *lookup);


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
               ? ngx_http_bloom_response_refuse(r, &error)
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
