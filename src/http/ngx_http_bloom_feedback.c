/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file implements bloom_feedback: it counts keys that a rule let pass
 * although, as the backend says, they do not exist, and lets the zone except
 * them.
 */

#include "ngx_http_bloom_feedback.h"
#include "ngx_http_bloom_conf.h"


/* Without "rate=" and "after=": microseconds for each excepted key,
 * and ms. */
#define NGX_HTTP_BLOOM_FEEDBACK_INTERVAL  100000
#define NGX_HTTP_BLOOM_FEEDBACK_AFTER     60000


static const ngx_http_bloom_conf_param_t  ngx_http_bloom_feedback_table[] = {

    { ngx_string("except="), NGX_HTTP_BLOOM_CONF_FEEDBACK,
      ngx_http_bloom_conf_read_name,
      offsetof(ngx_http_bloom_feedback_t, except), ngx_http_bloom_conf_on_off,
      NULL },

    { ngx_string("rate="), NGX_HTTP_BLOOM_CONF_FEEDBACK,
      ngx_http_bloom_conf_read_interval,
      offsetof(ngx_http_bloom_feedback_t, interval), NULL,
      NGX_HTTP_BLOOM_CONF_RATE },

    { ngx_string("after="), NGX_HTTP_BLOOM_CONF_FEEDBACK,
      ngx_http_bloom_conf_read_time,
      offsetof(ngx_http_bloom_feedback_t, after),
      ngx_http_bloom_conf_range(1000, NGX_BLOOM_ADAPT_AFTER, 0),
      "a time from 1s to 10m" },

    /* gone */

    { ngx_string("learn="), NGX_HTTP_BLOOM_CONF_FEEDBACK, NULL, 0, NULL,
      "its name is \"except=\"" },

    { ngx_string("learn_rate="), NGX_HTTP_BLOOM_CONF_FEEDBACK, NULL, 0, NULL,
      "its name is \"rate=\"" },

    { ngx_string("learn_after="), NGX_HTTP_BLOOM_CONF_FEEDBACK, NULL, 0, NULL,
      "its name is \"after=\"" },

    { ngx_null_string, 0, NULL, 0, NULL, NULL }
};


char *
ngx_http_bloom_feedback_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_bloom_loc_conf_t *blcf = conf;

    ngx_int_t                    status;
    ngx_str_t                   *value;
    ngx_uint_t                   i, *code;
    ngx_http_bloom_feedback_t   *feedback;
    ngx_http_bloom_main_conf_t  *bmcf;

    if (blcf->feedback != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        blcf->feedback = NULL;
        return NGX_CONF_OK;
    }

    feedback = ngx_pcalloc(cf->pool, sizeof(ngx_http_bloom_feedback_t));

    if (feedback == NULL
        || ngx_array_init(&feedback->statuses, cf->pool, cf->args->nelts - 1,
                          sizeof(ngx_uint_t))
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    for (i = 1;
         i < cf->args->nelts && ngx_strchr(value[i].data, '=') == NULL;
         i++)
    {
        status = ngx_atoi(value[i].data, value[i].len);

        if (status < 400 || status > 499) {
            return ngx_http_bloom_conf_invalid(cf, "status", &value[i],
                                               "from 400 to 499, such as 404, "
                                               "or \"off\" alone");
        }

        code = ngx_array_push(&feedback->statuses);
        if (code == NULL) {
            return NGX_CONF_ERROR;
        }

        *code = status;
    }

    if (ngx_http_bloom_conf_params(cf, i, ngx_http_bloom_feedback_table,
                                   NGX_HTTP_BLOOM_CONF_FEEDBACK, feedback,
                                   NULL)
        != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (feedback->statuses.nelts == 0) {
        return "needs at least one status, such as 404";
    }

    if (feedback->interval == 0) {
        feedback->interval = NGX_HTTP_BLOOM_FEEDBACK_INTERVAL;
    }

    if (feedback->after == 0) {
        feedback->after = NGX_HTTP_BLOOM_FEEDBACK_AFTER;
    }

    blcf->feedback = feedback;

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);
    bmcf->asks = 1;

    return NGX_CONF_OK;
}


/* Returns 1 for rules whose false positives are known: those that let only
 * present keys pass. */
static ngx_inline ngx_uint_t
ngx_http_bloom_feedback_is_for(ngx_http_bloom_rule_t *rule)
{
    return rule->common.fires == NGX_BLOOM_ABSENT
           && rule->common.action != NGX_BLOOM_RULE_PASS;
}


void
ngx_http_bloom_feedback_merge(ngx_http_bloom_loc_conf_t *conf)
{
    ngx_uint_t              i;
    ngx_http_bloom_rule_t  *rule;

    if (conf->feedback == NULL || !conf->feedback->except
        || conf->rules == NULL)
    {
        return;
    }

    rule = conf->rules->elts;

    for (i = 0; i < conf->rules->nelts; i++) {
        if (ngx_http_bloom_feedback_is_for(&rule[i])) {
            rule[i].key.zone->adapts = 1;
            rule[i].key.zone->changed_by = "\"except=on\" of bloom_feedback";
        }
    }
}


void
ngx_http_bloom_feedback_note(ngx_http_request_t *r, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_feedback_t *feedback, ngx_http_bloom_rule_t *rule,
    ngx_uint_t answer, ngx_str_t *key, ngx_bloom_adapt_mark_t *mark)
{
    if (!ngx_http_bloom_feedback_is_for(rule) || rule->common.dry_run
        || (answer == NGX_BLOOM_RULE_EMPTY && !rule->common.empty))
    {
        return;
    }

    if (answer == NGX_BLOOM_ABSENT) {
        ngx_bloom_count(rule->key.zone, NGX_BLOOM_COUNTER_FEEDBACK_ABSENT, 1);

        if (ngx_bloom_lookup_excepted == rule->key.zone) {
            ngx_bloom_count(rule->key.zone, NGX_BLOOM_COUNTER_EXCEPTED_REJECTED,
                            1);
        }
    }

    if (answer != NGX_BLOOM_PRESENT) {
        ctx->suspects += 2;              /* no false positive can be traced */
        return;
    }

    ctx->suspects++;
    ctx->suspect = rule->key.zone;
    ctx->feedback = feedback;
    ctx->suspect_key.data = NULL;

    /* a request that creates a key does not tell whether it existed before, and
     * one with several keys does not tell which of them does not exist */

    if (feedback->except && ctx->suspects == 1
        && rule->common.split == 0
        && (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD)))
    {
        ctx->suspect_key.len = key->len;
        ctx->suspect_key.data = ngx_pstrdup(r->pool, key);
        ctx->asked = *mark;
    }
}


ngx_uint_t
ngx_http_bloom_feedback_denies(ngx_http_bloom_feedback_t *feedback,
    ngx_uint_t status)
{
    ngx_uint_t  i, *code;

    code = feedback->statuses.elts;

    for (i = 0; i < feedback->statuses.nelts; i++) {
        if (code[i] == status) {
            return 1;
        }
    }

    return 0;
}


ngx_uint_t
ngx_http_bloom_feedback_path_differs(ngx_http_request_t *r)
{
    u_char     *p, *last;
    ngx_str_t   raw, *sent;

    /* nginx has neither decoded the path nor resolved anything in it */

    if (!r->quoted_uri && !r->complex_uri) {
        return 0;
    }

    /* only proxy_pass says what it has sent; the others send $request_uri */

    if (r->upstream == NULL || r->upstream->uri.len == 0) {
        return 1;
    }

    raw = r->unparsed_uri;

    p = ngx_strlchr(raw.data, raw.data + raw.len, '?');

    if (p != NULL) {
        raw.len = p - raw.data;
    }

    sent = &r->upstream->uri;

    if (sent->len < raw.len) {
        return 0;
    }

    last = sent->data + sent->len - raw.len;

    for (p = sent->data; p <= last; p++) {
        if (ngx_memcmp(p, raw.data, raw.len) == 0) {
            return 1;
        }
    }

    return 0;
}


void
ngx_http_bloom_feedback_response(ngx_http_request_t *r,
    ngx_http_bloom_ctx_t *ctx, ngx_uint_t status)
{
    ngx_uint_t  suspects;

    suspects = ctx->suspects;
    ctx->suspects = 0;                   /* counted at most once */

    if (suspects != 1 || !ngx_http_bloom_feedback_denies(ctx->feedback, status))
    {
        return;
    }

    ngx_bloom_count(ctx->suspect, NGX_BLOOM_COUNTER_FALSE_POSITIVE, 1);

    if (ctx->suspect_key.data == NULL) {
        return;
    }

    if (ngx_http_bloom_feedback_path_differs(r)) {
        ngx_bloom_count(ctx->suspect, NGX_BLOOM_COUNTER_FEEDBACK_DOUBT, 1);
        return;
    }

    (void) ngx_bloom_adapt(ctx->suspect, &ctx->suspect_key, &ctx->asked,
                           ctx->feedback->interval, ctx->feedback->after);
}
