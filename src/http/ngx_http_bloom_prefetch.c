/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file evaluates and hashes the keys of several rules together, so that
 * their cache lines come from memory at the same time.
 */

#include "ngx_http_bloom_prefetch.h"
#include "ngx_http_bloom_key.h"


typedef struct {
    ngx_str_t                    text;   /* decoded; len 0: the key is empty;
                                            data NULL: not evaluated yet */
    ngx_bloom_lookup_prefetch_t  lookup; /* valid if len is not 0 */
} ngx_http_bloom_prefetch_t;


static ngx_uint_t ngx_http_bloom_prefetch_is_plain_key(
    ngx_http_core_main_conf_t *cmcf, ngx_http_bloom_key_t *key);
static ngx_uint_t ngx_http_bloom_prefetch_is_plain(
    ngx_http_core_main_conf_t *cmcf, ngx_http_variable_t *v);
static void ngx_http_bloom_prefetch_take(ngx_http_request_t *r,
    ngx_http_bloom_rule_t *rule);


/* The keys of the list that is being checked.  One array is enough: no other
 * list is begun before this one has been decided. */
static ngx_http_bloom_prefetch_t
    ngx_http_bloom_prefetch_taken[NGX_HTTP_BLOOM_PREFETCH_MAX];


/* Variables whose evaluation only reads the request.  Variables that a
 * configuration can redefine, such as $args, are not among them. */
static ngx_str_t  ngx_http_bloom_prefetch_plain[] = {
    ngx_string("binary_remote_addr"),
    ngx_string("document_uri"),
    ngx_string("host"),
    ngx_string("http_host"),
    ngx_string("http_referer"),
    ngx_string("http_user_agent"),
    ngx_string("http_x_forwarded_for"),
    ngx_string("query_string"),
    ngx_string("remote_addr"),
    ngx_string("request_uri"),
    ngx_string("uri"),
    ngx_null_string
};


/* Prefixes of such variables.  A "map" may also define a variable with such a
 * name, so the handler is compared, too. */
static ngx_str_t  ngx_http_bloom_prefetch_families[] = {
    ngx_string("arg_"),
    ngx_string("cookie_"),
    ngx_string("http_"),
    ngx_null_string
};


void
ngx_http_bloom_prefetch_plan(ngx_http_core_main_conf_t *cmcf,
    ngx_http_bloom_main_conf_t *bmcf)
{
    ngx_uint_t              i, j, n;
    ngx_array_t           **list;
    ngx_http_bloom_rule_t  *rule;

    list = bmcf->rules.elts;

    for (i = 0; i < bmcf->rules.nelts; i++) {

        rule = list[i]->elts;

        for (j = 0; j < list[i]->nelts; j++) {
            rule[j].plain =
                       ngx_http_bloom_prefetch_is_plain_key(cmcf, &rule[j].key);
        }

        n = ngx_min(list[i]->nelts, NGX_HTTP_BLOOM_PREFETCH_MAX);

        for (j = 0; j < n; j++) {
            if (rule[j].how == NGX_HTTP_BLOOM_LIST
                || rule[j].filter != NULL
                || rule[j].key.index == NGX_ERROR)
            {
                break;
            }
        }

        if (j < 2) {
            continue;
        }

        rule[0].nprefetch = j;

        while (j-- != 0) {
            rule[j].how = NGX_HTTP_BLOOM_PREFETCH;
        }
    }
}


/* Returns 1 if all variables of a key only read the request. */
static ngx_uint_t
ngx_http_bloom_prefetch_is_plain_key(ngx_http_core_main_conf_t *cmcf,
    ngx_http_bloom_key_t *key)
{
    ngx_uint_t           *index;
    ngx_http_variable_t  *v;

    v = cmcf->variables.elts;

    if (key->index != NGX_ERROR) {
        return ngx_http_bloom_prefetch_is_plain(cmcf, &v[key->index]);
    }

    index = key->value.flushes;

    for ( /* void */ ; index && *index != (ngx_uint_t) -1; index++) {
        if (!ngx_http_bloom_prefetch_is_plain(cmcf, &v[*index])) {
            return 0;
        }
    }

    return 1;
}


static ngx_uint_t
ngx_http_bloom_prefetch_is_plain(ngx_http_core_main_conf_t *cmcf,
    ngx_http_variable_t *v)
{
    ngx_str_t            *name;
    ngx_uint_t            i;
    ngx_http_variable_t  *family;

    for (name = ngx_http_bloom_prefetch_plain; name->len; name++) {
        if (v->name.len == name->len
            && ngx_strncmp(v->name.data, name->data, name->len) == 0)
        {
            return 1;
        }
    }

    if (v->get_handler == ngx_http_bloom_value_variable) {
        return 1;
    }

    family = cmcf->prefix_variables.elts;

    for (name = ngx_http_bloom_prefetch_families; name->len; name++) {

        if (v->name.len <= name->len
            || ngx_strncmp(v->name.data, name->data, name->len) != 0)
        {
            continue;
        }

        for (i = 0; i < cmcf->prefix_variables.nelts; i++) {
            if (family[i].name.len == name->len
                && ngx_strncmp(family[i].name.data, name->data, name->len) == 0
                && family[i].get_handler == v->get_handler)
            {
                return 1;
            }
        }
    }

    return 0;
}


ngx_int_t
ngx_http_bloom_prefetch_check(ngx_http_request_t *r,
    ngx_http_bloom_rule_t *rule, ngx_uint_t i, ngx_str_t *text)
{
    ngx_int_t                   rc;
    ngx_uint_t                  answer;
    ngx_http_bloom_prefetch_t  *taken;

    if (i == 0) {
        ngx_http_bloom_prefetch_take(r, rule);
    }

    taken = &ngx_http_bloom_prefetch_taken[i];

    if (taken->text.data == NULL) {
        rc = ngx_http_bloom_key_check_as(r, &rule->key, rule->lookup, text,
                                         &answer);

        return rc == NGX_OK ? (ngx_int_t) answer : rc;
    }

    if (taken->text.len == 0) {
        return NGX_DECLINED;
    }

    *text = taken->text;

    answer = ngx_bloom_lookup_prefetched(rule->key.zone, text, &taken->lookup,
                                         rule->lookup, r->pool);

    ngx_bloom_count(rule->key.zone, (ngx_bloom_counter_e) answer, 1);

    return (ngx_int_t) answer;
}


static void
ngx_http_bloom_prefetch_take(ngx_http_request_t *r, ngx_http_bloom_rule_t *rule)
{
    ngx_int_t                   rc;
    ngx_uint_t                  i, j, n;
    ngx_http_bloom_prefetch_t  *taken;
    ngx_http_variable_value_t  *v;

    n = rule->nprefetch;
    taken = ngx_http_bloom_prefetch_taken;

    for (i = 0; i < n; i++) {

        v = &r->variables[rule[i].key.index];

        if (!rule[i].plain
            && (v->no_cacheable || (!v->valid && !v->not_found)))
        {
            break;
        }

        if (rule[i].key.zone->form > BLOOM_FORM_LOWER) {
            ngx_str_null(&taken[i].text);        /* it has many lines itself */
            continue;
        }

        rc = ngx_http_bloom_key_text(r, &rule[i].key, &taken[i].text);

        if (rc != NGX_OK && rc != NGX_DECLINED) {
            break;
        }

        if (rc == NGX_DECLINED) {
            ngx_str_set(&taken[i].text, "");
            continue;
        }

        ngx_bloom_lookup_hash(rule[i].key.zone, &taken[i].text,
                              &taken[i].lookup, r->pool);
    }

    for (j = 0; j < i; j++) {
        if (taken[j].text.len != 0) {
            ngx_bloom_lookup_prefetch(rule[j].key.zone, &taken[j].lookup);
        }
    }

    for ( /* void */ ; i < n; i++) {
        ngx_str_null(&taken[i].text);
    }
}
