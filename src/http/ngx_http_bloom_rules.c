/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file checks the rules of a location in the PREACCESS phase: it evaluates
 * their conditions and keys, and carries out what they decide.
 */

#include "ngx_http_bloom_rules.h"
#include "ngx_http_bloom_audit.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_feedback.h"
#include "ngx_http_bloom_key.h"
#include "ngx_http_bloom_route.h"


static ngx_uint_t ngx_http_bloom_rules_is_new(ngx_http_bloom_ctx_t *ctx,
    ngx_array_t *rules);
static ngx_inline ngx_int_t ngx_http_bloom_rules_ask(ngx_http_request_t *r,
    ngx_http_bloom_ctx_t *ctx, ngx_http_bloom_rule_t *rule, ngx_str_t *key,
    ngx_uint_t *answer);
static ngx_int_t ngx_http_bloom_rules_carry_out(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_rule_t *rule, ngx_bloom_verdict_e verdict);


ngx_int_t
ngx_http_bloom_rules_handler(ngx_http_request_t *r)
{
    ngx_int_t                   rc;
    ngx_str_t                   key;
    ngx_uint_t                  i, answer;
    ngx_bloom_verdict_e         verdict;
    ngx_http_bloom_ctx_t       *ctx;
    ngx_http_bloom_rule_t      *rule;
    ngx_bloom_adapt_mark_t      mark;
    ngx_http_bloom_loc_conf_t  *blcf;

    blcf = ngx_http_get_module_loc_conf(r, ngx_http_bloom_module);

    if (blcf->rules == NULL || r != r->main) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_bloom_ctx_obtain(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (!ngx_http_bloom_rules_is_new(ctx, blcf->rules)) {
        return NGX_DECLINED;
    }

    rule = blcf->rules->elts;
    answer = NGX_BLOOM_UNKNOWN;

    for (i = 0; i < blcf->rules->nelts; i++) {

        if (blcf->feedback != NULL) {
            ngx_http_bloom_feedback_begin(blcf->feedback, &rule[i], &mark);
        }

        rc = ngx_http_bloom_rules_ask(r, ctx, &rule[i], &key, &answer);

        if (rc == NGX_DECLINED) {
            continue;
        }

        if (rc != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (blcf->feedback != NULL) {
            ngx_http_bloom_feedback_note(r, ctx, blcf->feedback, &rule[i],
                                         answer, &key, &mark);
        }

        if (blcf->audit != NULL && answer == rule[i].common.fires
            && ngx_http_bloom_audit_takes(r, blcf, ctx, &rule[i], &key))
        {
            ngx_bloom_rule_audit(&rule[i].common, answer, &key, &ctx->decision,
                                 r->connection->log);
            continue;
        }

        verdict = ngx_bloom_rule_decide(&rule[i].common, answer, &key,
                                        &blcf->policy, &ctx->decision, r->pool);

        if (verdict != NGX_BLOOM_VERDICT_NEXT) {
            return ngx_http_bloom_rules_carry_out(r, blcf, ctx, &rule[i],
                                                  verdict);
        }
    }

    return NGX_DECLINED;
}


/* Notes that a list is checked.  Returns 0 if it was checked before, or if no
 * more lists are checked. */
static ngx_uint_t
ngx_http_bloom_rules_is_new(ngx_http_bloom_ctx_t *ctx, ngx_array_t *rules)
{
    ngx_uint_t  i;

    if (ctx->decided
        || ctx->nchecked == sizeof(ctx->checked) / sizeof(ctx->checked[0]))
    {
        return 0;
    }

    for (i = 0; i < ctx->nchecked; i++) {
        if (ctx->checked[i] == rules) {
            return 0;
        }
    }

    ctx->checked[ctx->nchecked++] = rules;

    return 1;
}


/*
 * Checks the condition and the key of a rule.  Returns
 *
 *     NGX_OK          *answer is the answer about the key *key, or
 *                     NGX_BLOOM_RULE_EMPTY
 *     NGX_DECLINED    the rule is skipped, see "if="
 *     NGX_ERROR       memory is short
 */
static ngx_inline ngx_int_t
ngx_http_bloom_rules_ask(ngx_http_request_t *r, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_rule_t *rule, ngx_str_t *key, ngx_uint_t *answer)
{
    ngx_int_t  rc;

    if (rule->filter != NULL) {
        rc = ngx_http_bloom_key_condition(r, rule->filter);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    rc = ngx_http_bloom_key_text(r, &rule->key, key);

    if (rc == NGX_OK) {
        *answer = ngx_bloom_rule_ask(&rule->common, key, r->pool);

        if (*answer != NGX_BLOOM_RULE_EMPTY) {
            return NGX_OK;
        }

    } else if (rc == NGX_HTTP_BLOOM_KEY_AMBIGUOUS) {
        *answer = ngx_bloom_rule_invalid(rule->key.zone);
        return NGX_OK;

    } else if (rc != NGX_DECLINED) {
        return NGX_ERROR;
    }

    ngx_str_set(key, "");

    *answer = (ctx->ambiguous && !rule->plain)
              ? ngx_bloom_rule_invalid(rule->key.zone) : NGX_BLOOM_RULE_EMPTY;

    return NGX_OK;
}


/* Carries out a verdict that ends the list.  Returns the status of a rejection,
 * or NGX_DECLINED. */
static ngx_int_t
ngx_http_bloom_rules_carry_out(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_rule_t *rule, ngx_bloom_verdict_e verdict)
{
    switch (verdict) {

    case NGX_BLOOM_VERDICT_REJECT:
        ctx->decided = 1;
        return (ngx_int_t) rule->status;

    case NGX_BLOOM_VERDICT_REJECT_UNKNOWN:
        ctx->decided = 1;
        return NGX_HTTP_SERVICE_UNAVAILABLE;

    case NGX_BLOOM_VERDICT_ROUTE:
        ngx_http_bloom_route_plan(r, ctx, &rule->target);
        return NGX_DECLINED;

    case NGX_BLOOM_VERDICT_ROUTE_UNKNOWN:
        ngx_http_bloom_route_plan(r, ctx, blcf->unknown_to);
        return NGX_DECLINED;

    default: /* NGX_BLOOM_VERDICT_PASS */

        /* for this list only: try_files may lead to another location with
         * rules */

        return NGX_DECLINED;
    }
}
