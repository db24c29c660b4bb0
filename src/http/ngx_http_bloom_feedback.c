/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file implements bloom_feedback: it counts keys that a rule let pass
 * although, as the backend says, they do not exist.
 */

#include "ngx_http_bloom_feedback.h"
#include "ngx_http_bloom_conf.h"


char *
ngx_http_bloom_feedback_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_bloom_loc_conf_t *blcf = conf;

    ngx_int_t                    status;
    ngx_str_t                   *value;
    ngx_uint_t                   i, *code;
    ngx_http_bloom_main_conf_t  *bmcf;

    if (blcf->feedback != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        blcf->feedback = NULL;
        return NGX_CONF_OK;
    }

    blcf->feedback = ngx_array_create(cf->pool, cf->args->nelts - 1,
                                      sizeof(ngx_uint_t));
    if (blcf->feedback == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < cf->args->nelts; i++) {
        status = ngx_atoi(value[i].data, value[i].len);

        if (status < 400 || status > 499) {
            return ngx_http_bloom_conf_invalid(cf, "status", &value[i],
                                               "a code from 400 to 499, such "
                                               "as 404, or \"off\" alone");
        }

        code = ngx_array_push(blcf->feedback);
        *code = status;
    }

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);
    bmcf->asks = 1;

    return NGX_CONF_OK;
}


void
ngx_http_bloom_feedback_note(ngx_http_bloom_ctx_t *ctx, ngx_array_t *statuses,
    ngx_http_bloom_rule_t *rule, ngx_uint_t answer)
{
    if (rule->fires != NGX_BLOOM_ABSENT
        || rule->action == NGX_HTTP_BLOOM_PASS)
    {
        return;
    }

    if (answer == NGX_BLOOM_ABSENT) {
        ngx_bloom_count(rule->key.zone, NGX_BLOOM_COUNTER_FEEDBACK_ABSENT, 1);
    }

    if (answer != NGX_BLOOM_PRESENT) {
        ctx->suspects += 2;              /* no false positive can be traced */
        return;
    }

    ctx->suspects++;
    ctx->suspect = rule->key.zone;
    ctx->feedback = statuses;
}


ngx_uint_t
ngx_http_bloom_feedback_denies(ngx_array_t *statuses, ngx_uint_t status)
{
    ngx_uint_t  i, *code;

    code = statuses->elts;

    for (i = 0; i < statuses->nelts; i++) {
        if (code[i] == status) {
            return 1;
        }
    }

    return 0;
}


void
ngx_http_bloom_feedback_response(ngx_http_bloom_ctx_t *ctx, ngx_uint_t status)
{
    if (ctx->suspects == 1
        && ngx_http_bloom_feedback_denies(ctx->feedback, status))
    {
        ngx_bloom_count(ctx->suspect, NGX_BLOOM_COUNTER_FALSE_POSITIVE, 1);
    }

    ctx->suspects = 0;                   /* counted at most once */
}
