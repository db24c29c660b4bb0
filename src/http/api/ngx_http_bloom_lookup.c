/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file looks up a key for a client of the endpoint and explains the
 * answer.  That does not count as a check.
 */

#include "ngx_http_bloom_lookup.h"
#include "ngx_http_bloom.h"
#include "ngx_http_bloom_json.h"
#include "ngx_http_bloom_response.h"
#include "ngx_bloom_ring.h"
#include "bloom_key.h"


static void ngx_http_bloom_lookup_put_life(ngx_http_bloom_text_t *text,
    ngx_bloom_zone_t *zone, ngx_bloom_explain_t *lookup);
static void ngx_http_bloom_lookup_put_bits(ngx_http_bloom_text_t *text,
    ngx_bloom_explain_t *lookup);


/* by NGX_BLOOM_ABSENT, _PRESENT, _UNKNOWN, _INVALID */
static ngx_str_t  ngx_http_bloom_lookup_answers[] = {
    ngx_string("absent"),
    ngx_string("present"),
    ngx_string("unknown"),
    ngx_string("invalid")
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

    ngx_http_bloom_text_printf(&text, "{\"key\":");
    ngx_http_bloom_text_quote(&text, key.data, key.len);
    ngx_http_bloom_text_printf(&text, ",");
    ngx_http_bloom_lookup_put(&text, zone, answer, &lookup);
    ngx_http_bloom_lookup_put_bits(&text, &lookup);
    ngx_http_bloom_text_printf(&text, "}");

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


const char *
ngx_http_bloom_lookup_answer(ngx_uint_t answer)
{
    return (const char *) ngx_http_bloom_lookup_answers[answer].data;
}


void
ngx_http_bloom_lookup_put(ngx_http_bloom_text_t *text, ngx_bloom_zone_t *zone,
    ngx_uint_t answer, ngx_bloom_explain_t *lookup)
{
    u_char       *data;
    unsigned      i;
    bloom_key_t  *key;

    ngx_http_bloom_text_printf(text, "\"answer\":\"%V\"",
                               &ngx_http_bloom_lookup_answers[answer]);

    if (lookup->generation != 0) {
        ngx_http_bloom_text_printf(text, ",\"form\":\"%s\"",
                                   bloom_form_name(lookup->form));
    }

    if (lookup->why != NULL) {
        ngx_http_bloom_text_printf(text, ",\"reason\":\"%s\"", lookup->why);
    }

    if (lookup->keys.n != 0) {
        key = &lookup->keys.canonical;
        data = (u_char *) key->data;

        ngx_http_bloom_text_printf(text, ",\"canonical\":");
        ngx_http_bloom_text_quote(text, data, key->len);
    }

    ngx_http_bloom_text_printf(text, ",\"expressions\":[");

    for (i = 0; i < lookup->keys.n; i++) {
        key = &lookup->keys.expression[i];
        data = (u_char *) key->data;

        ngx_http_bloom_text_printf(text, "%s{\"key\":", i == 0 ? "" : ",");
        ngx_http_bloom_text_quote(text, data, key->len);
        ngx_http_bloom_text_printf(text, ",\"present\":%s,\"removed\":%s,"
                                   "\"excepted\":%s,\"image_excepted\":%s,"
                                   "\"whole\":%s}",
                                   (lookup->matches >> i) & 1
                                   ? "true" : "false",
                                   lookup->kinds[i] & BLOOM_EXCEPTION_REMOVED
                                   ? "true" : "false",
                                   lookup->kinds[i] & BLOOM_EXCEPTION_FEEDBACK
                                   ? "true" : "false",
                                   lookup->kinds[i] & BLOOM_EXCEPTION_BUILT
                                   ? "true" : "false",
                                   i == 0 || i == lookup->keys.second
                                   ? "true" : "false");
    }

    ngx_http_bloom_text_printf(text, "]");

    if (zone->expire != 0) {
        ngx_http_bloom_lookup_put_life(text, zone, lookup);
    }
}


/* Appends when a key expires: the latest times of its expressions. */
static void
ngx_http_bloom_lookup_put_life(ngx_http_bloom_text_t *text,
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

    ngx_http_bloom_text_printf(text, ",\"expires\":");

    if (until == 0) {
        ngx_http_bloom_text_printf(text, "null");
        return;
    }

    shift = ngx_bloom_zone_shift(zone);

    ngx_http_bloom_text_printf(text, "{\"from\":");
    ngx_http_bloom_json_time(text, ngx_bloom_zone_wall(from, shift));
    ngx_http_bloom_text_printf(text, ",\"until\":");
    ngx_http_bloom_json_time(text, ngx_bloom_zone_wall(until, shift));
    ngx_http_bloom_text_printf(text, "}");
}


/* Appends the bits of a key, and which of them are set. */
static void
ngx_http_bloom_lookup_put_bits(ngx_http_bloom_text_t *text,
    ngx_bloom_explain_t *lookup)
{
    unsigned  i;

    ngx_http_bloom_text_printf(text, ",\"bits\":[");

    for (i = 0; i < lookup->k; i++) {
        ngx_http_bloom_text_printf(text, "%s%uL", i == 0 ? "" : ",",
                                   lookup->bits[i]);
    }

    ngx_http_bloom_text_printf(text, "],\"set\":[");

    for (i = 0; i < lookup->k; i++) {
        ngx_http_bloom_text_printf(text, "%s%s", i == 0 ? "" : ",",
                                   lookup->set[i] ? "true" : "false");
    }

    ngx_http_bloom_text_printf(text, "]");
}
