/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file decides about requests: it checks the rules of a location in the
 * PREACCESS phase.
 */

#include "ngx_http_bloom_rules.h"
#include "ngx_http_bloom_audit.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_debug.h"
#include "ngx_http_bloom_feedback.h"
#include "ngx_http_bloom_key.h"
#include "ngx_http_bloom_route.h"


static ngx_inline ngx_int_t ngx_http_bloom_rules_check(ngx_http_request_t *r,
    ngx_http_bloom_ctx_t *ctx, ngx_http_bloom_rule_t *rule, ngx_str_t *text,
    ngx_uint_t *answer);
static ngx_int_t ngx_http_bloom_rules_check_more(ngx_http_request_t *r,
    ngx_http_bloom_rule_t *rule, ngx_str_t *text);
static ngx_int_t ngx_http_bloom_rules_check_list(ngx_http_request_t *r,
    ngx_http_bloom_rule_t *rule, ngx_str_t *text);
static ngx_int_t ngx_http_bloom_rules_fire(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_rule_t *rule, ngx_uint_t answer, ngx_str_t *key);
static void ngx_http_bloom_rules_dry_run(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_rule_t *rule, ngx_uint_t answer, ngx_str_t *key);
static ngx_int_t ngx_http_bloom_rules_unknown(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_rule_t *rule, ngx_str_t *key);
static void ngx_http_bloom_rules_note(ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_status_e status, ngx_http_bloom_rule_t *rule,
    ngx_str_t *key);
static ngx_inline void ngx_http_bloom_rules_set(ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_status_e status, ngx_http_bloom_rule_t *rule,
    ngx_str_t *key);
static void ngx_http_bloom_rules_set_fired(ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_status_e status, ngx_http_bloom_rule_t *rule,
    ngx_uint_t answer, ngx_str_t *key, ngx_pool_t *pool);
static void ngx_http_bloom_rules_log_fired(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_rule_t *rule,
    ngx_uint_t answer, ngx_str_t *key);
static ngx_inline void ngx_http_bloom_rules_log(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_rule_t *rule,
    char *doing, char *finding, ngx_str_t *key);
static void ngx_http_bloom_rules_write_log(ngx_log_t *log,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_rule_t *rule,
    char *doing, char *finding, ngx_str_t *key);


const char  *ngx_http_bloom_rules_actions[] = {
    "pass",
    "reject",
    "route"
};


ngx_int_t
ngx_http_bloom_rules_handler(ngx_http_request_t *r)
{
    ngx_int_t                   rc;
    ngx_str_t                   key;
    ngx_uint_t                  i, answer;
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

    if (ctx->decided
        || ctx->nchecked == sizeof(ctx->checked) / sizeof(ctx->checked[0]))
    {
        return NGX_DECLINED;
    }

    for (i = 0; i < ctx->nchecked; i++) {
        if (ctx->checked[i] == blcf->rules) {
            return NGX_DECLINED;
        }
    }

    ctx->checked[ctx->nchecked++] = blcf->rules;

    rule = blcf->rules->elts;
    answer = NGX_BLOOM_UNKNOWN;

    for (i = 0; i < blcf->rules->nelts; i++) {

        if (blcf->feedback != NULL) {
            ngx_http_bloom_feedback_begin(blcf->feedback, &rule[i], &mark);
        }

        rc = ngx_http_bloom_rules_check(r, ctx, &rule[i], &key, &answer);

        if (rc != NGX_OK) {

            if (rc == NGX_ERROR) {
                return NGX_HTTP_INTERNAL_SERVER_ERROR;
            }

            continue;
        }

        ngx_bloom_counters_count(rule[i].series, answer, 1);

        if (answer == NGX_HTTP_BLOOM_EMPTY && !rule[i].empty) {
            ngx_http_bloom_debug_rule(r, &rule[i], &key, answer, "continue");
            continue;
        }

        if (blcf->feedback != NULL && !rule[i].dry_run) {
            ngx_http_bloom_feedback_note(r, ctx, blcf->feedback, &rule[i],
                                         answer, &key, &mark);
        }

        if (answer == rule[i].fires) {

            if (blcf->audit != NULL
                && ngx_http_bloom_audit_takes(r, blcf, ctx, &rule[i], &key)
                && !blcf->dry_run && !rule[i].dry_run)
            {
                ngx_http_bloom_debug_rule(r, &rule[i], &key, answer, "audit");
                ngx_http_bloom_rules_set(ctx, NGX_HTTP_BLOOM_AUDITED, &rule[i],
                                         &key);
                continue;
            }

        } else if (answer < NGX_BLOOM_UNKNOWN) {
            ngx_http_bloom_debug_rule(r, &rule[i], &key, answer, "continue");
            ngx_http_bloom_rules_note(ctx, NGX_HTTP_BLOOM_PASSED, &rule[i],
                                      &key);
            continue;

        } else if (answer == NGX_BLOOM_UNKNOWN) {

            rc = ngx_http_bloom_rules_unknown(r, blcf, ctx, &rule[i], &key);

            if (rc == NGX_OK) {
                continue;
            }

            return rc;

        } else if (answer == NGX_BLOOM_INVALID && !rule[i].invalid) {
            ngx_http_bloom_debug_rule(r, &rule[i], &key, answer, "continue");
            ngx_http_bloom_rules_log(r, blcf, &rule[i], "passing",
                                     "invalid for", &key);
            ngx_http_bloom_rules_note(ctx, NGX_HTTP_BLOOM_INVALID, &rule[i],
                                      &key);
            continue;
        }

        if (rule[i].dry_run) {
            ngx_http_bloom_rules_dry_run(r, blcf, ctx, &rule[i], answer, &key);
            continue;
        }

        return ngx_http_bloom_rules_fire(r, blcf, ctx, &rule[i], answer, &key);
    }

    return NGX_DECLINED;
}


/* Decides about an unknown answer.  Returns NGX_OK to continue with the next
 * rule, NGX_DECLINED if the request is going to be routed, or the status of a
 * rejection. */
static ngx_int_t
ngx_http_bloom_rules_unknown(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_rule_t *rule, ngx_str_t *key)
{
    ngx_uint_t  pass, route, dry_run;

    pass = (blcf->unknown == NGX_HTTP_BLOOM_UNKNOWN_PASS);
    route = (blcf->unknown == NGX_HTTP_BLOOM_UNKNOWN_ROUTE);
    dry_run = (blcf->dry_run || rule->dry_run);

    ngx_http_bloom_rules_log(r, blcf, rule, pass ? "passing"
                                            : route ? "routing" : "rejecting",
                             "unknown in", key);

    ngx_http_bloom_debug_rule(r, rule, key, NGX_BLOOM_UNKNOWN,
                              pass ? "continue"
                              : route ? dry_run ? "route in dry run" : "route"
                              : dry_run ? "reject in dry run" : "reject");

    if (pass || dry_run) {
        ngx_http_bloom_rules_note(ctx, NGX_HTTP_BLOOM_UNKNOWN, rule, key);
        return NGX_OK;
    }

    ngx_http_bloom_rules_set(ctx, NGX_HTTP_BLOOM_UNKNOWN, rule, key);

    ngx_bloom_counters_count(rule->series, NGX_HTTP_BLOOM_COUNT_UNKNOWN, 1);

    if (route) {
        ngx_bloom_lookup_second(key, &ctx->second, r->pool);
        ngx_http_bloom_route_plan(r, ctx, blcf->unknown_to);

        return NGX_DECLINED;
    }

    ngx_bloom_count(rule->key.zone, NGX_BLOOM_COUNTER_REJECTED, 1);
    ctx->decided = 1;

    return NGX_HTTP_SERVICE_UNAVAILABLE;
}


/* Notes the result of a rule that did not fire, unless an earlier result
 * matters more: see ngx_http_bloom_status_e. */
static void
ngx_http_bloom_rules_note(ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_status_e status, ngx_http_bloom_rule_t *rule,
    ngx_str_t *key)
{
    if (ctx->status <= status) {
        ngx_http_bloom_rules_set(ctx, status, rule, key);
    }
}


/* Sets the values of $bloom_status and the variables about it. */
static ngx_inline void
ngx_http_bloom_rules_set(ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_status_e status, ngx_http_bloom_rule_t *rule,
    ngx_str_t *key)
{
    ctx->status = status;
    ctx->zone = rule->key.zone;
    ctx->key = *key;
    ctx->second.len = 0;
    ctx->match.len = 0;
}


/* Notes that a rule has fired, and what it has found.  A backend that confirms
 * the key gets a canonical one, or none. */
static void
ngx_http_bloom_rules_set_fired(ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_status_e status, ngx_http_bloom_rule_t *rule,
    ngx_uint_t answer, ngx_str_t *key, ngx_pool_t *pool)
{
    static ngx_str_t  none = ngx_string("");

    ngx_http_bloom_rules_set(ctx, status, rule,
                             answer == rule->fires ? key : &none);

    if (answer == rule->fires && rule->split == 0) {
        ngx_bloom_lookup_second(key, &ctx->second, pool);
    }

    if (answer == NGX_BLOOM_PRESENT) {
        ngx_bloom_lookup_match(rule->key.zone,
                               rule->split != 0 ? NULL : key,
                               &ctx->match, pool);
    }
}


/*
 * Carries out the action of a rule.  Either its condition holds, or `answer` is
 * NGX_BLOOM_INVALID or NGX_HTTP_BLOOM_EMPTY and the rule fires on that, too.
 */
static ngx_int_t
ngx_http_bloom_rules_fire(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_rule_t *rule, ngx_uint_t answer, ngx_str_t *key)
{
    ngx_uint_t               reject;
    ngx_http_bloom_status_e  status;

    if (rule->action == NGX_HTTP_BLOOM_PASS) {
        ngx_http_bloom_debug_rule(r, rule, key, answer, "pass");
        ngx_bloom_counters_count(rule->series, NGX_HTTP_BLOOM_COUNT_FIRED, 1);

        status = (answer == NGX_BLOOM_INVALID) ? NGX_HTTP_BLOOM_INVALID
                                               : NGX_HTTP_BLOOM_PASSED;

        if (ctx->status < NGX_HTTP_BLOOM_REJECTED_DRY_RUN
            || ctx->status < status)
        {
            ngx_http_bloom_rules_set_fired(ctx, status, rule, answer, key,
                                           r->pool);
        }

        return NGX_DECLINED;
    }

    if (blcf->dry_run) {
        ngx_http_bloom_rules_dry_run(r, blcf, ctx, rule, answer, key);
        return NGX_DECLINED;
    }

    reject = (rule->action == NGX_HTTP_BLOOM_REJECT);

    ngx_http_bloom_debug_rule(r, rule, key, answer,
                              reject ? "reject" : "route");

    ngx_http_bloom_rules_log_fired(r, blcf, rule, answer, key);

    ngx_bloom_counters_count(rule->series, NGX_HTTP_BLOOM_COUNT_FIRED, 1);

    status = (answer == NGX_BLOOM_INVALID) ? NGX_HTTP_BLOOM_INVALID
             : reject ? NGX_HTTP_BLOOM_REJECTED
                      : NGX_HTTP_BLOOM_ROUTED;

    ngx_http_bloom_rules_set_fired(ctx, status, rule, answer, key, r->pool);

    if (!reject) {
        ngx_http_bloom_route_plan(r, ctx, &rule->target);
        return NGX_DECLINED;
    }

    /* what a rule passes or routes, and what is on trial, is decided for this
     * list only: try_files may lead to another location with rules */

    ctx->decided = 1;

    ngx_bloom_count(rule->key.zone, NGX_BLOOM_COUNTER_REJECTED, 1);

    return (ngx_int_t) rule->status;
}


/*
 * Counts and logs what a rule would have done: a rule on trial, or one under
 * bloom_dry_run.  A rule under bloom_dry_run ends its list, so its result is
 * final.  After a rule on trial, enforced rules decide.
 */
static void
ngx_http_bloom_rules_dry_run(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_rule_t *rule, ngx_uint_t answer, ngx_str_t *key)
{
    ngx_http_bloom_status_e  status;

    /* by ngx_http_bloom_action_e */

    static const ngx_http_bloom_status_e  statuses[] = {
        NGX_HTTP_BLOOM_PASSED,
        NGX_HTTP_BLOOM_REJECTED_DRY_RUN,
        NGX_HTTP_BLOOM_ROUTED_DRY_RUN
    };

#if (NGX_DEBUG)
    static const char  *decisions[] = {
        "pass in dry run", "reject in dry run", "route in dry run"
    };
#endif

    ngx_http_bloom_debug_rule(r, rule, key, answer, decisions[rule->action]);

    ngx_http_bloom_rules_log_fired(r, blcf, rule, answer, key);

    ngx_bloom_counters_count(rule->series, NGX_HTTP_BLOOM_COUNT_DRY_RUN, 1);

    status = statuses[rule->action];

    if (rule->action != NGX_HTTP_BLOOM_PASS) {
        ngx_bloom_count(rule->key.zone, NGX_BLOOM_COUNTER_DRY_RUN, 1);

    } else if (answer == NGX_BLOOM_INVALID) {
        status = NGX_HTTP_BLOOM_INVALID;
    }

    if (!rule->dry_run || ctx->status < NGX_HTTP_BLOOM_ROUTED) {
        ngx_http_bloom_rules_set_fired(ctx, status, rule, answer, key,
                                       r->pool);
    }
}


/*
 * Checks the condition and the key of a rule.  Returns
 *
 *     NGX_OK          *answer is the answer about the key *text, or
 *                     NGX_HTTP_BLOOM_EMPTY
 *     NGX_DECLINED    the rule is skipped, see "if="
 *     NGX_ERROR       memory is short
 */
static ngx_inline ngx_int_t
ngx_http_bloom_rules_check(ngx_http_request_t *r, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_rule_t *rule, ngx_str_t *text, ngx_uint_t *answer)
{
    ngx_int_t  rc;

    if (rule->filter != NULL) {
        rc = ngx_http_bloom_key_condition(r, rule->filter);

        if (rc == NGX_DECLINED) {
            ngx_http_bloom_debug_skip(r, rule);
        }

        if (rc != NGX_OK) {
            return rc;
        }
    }

    if ((rule->lookup | rule->split) == 0) {
        rc = ngx_http_bloom_key_check(r, &rule->key, text, answer);

    } else {
        rc = ngx_http_bloom_rules_check_more(r, rule, text);

        if (rc >= 0) {
            *answer = (ngx_uint_t) rc;
            return NGX_OK;
        }
    }

    if (rc == NGX_DECLINED) {
        ngx_str_set(text, "");
        *answer = (ctx->ambiguous && !rule->plain)
                  ? ngx_http_bloom_key_count_ambiguous(&rule->key)
                  : NGX_HTTP_BLOOM_EMPTY;
        rc = NGX_OK;
    }

    return rc;
}


/*
 * Checks the key of a rule with "exact" and the like or "split=", as
 * ngx_http_bloom_key_check() does, but returns the answer instead of NGX_OK.
 * Inline, it would slow down the rules that are.
 */
static ngx_int_t __attribute__((noinline))
ngx_http_bloom_rules_check_more(ngx_http_request_t *r,
    ngx_http_bloom_rule_t *rule, ngx_str_t *text)
{
    ngx_int_t   rc;
    ngx_uint_t  answer;

    if (rule->split != 0) {
        return ngx_http_bloom_rules_check_list(r, rule, text);
    }

    rc = ngx_http_bloom_key_check_as(r, &rule->key, rule->lookup, text,
                                     &answer);

    return rc == NGX_OK ? (ngx_int_t) answer : rc;
}


/*
 * Checks a key with "split=".  Returns
 *
 *     the rule's condition    it holds for one part, or for all of them
 *                             (rule->all)
 *     NGX_BLOOM_UNKNOWN       it does not hold, but might if the unknown parts
 *                             were known
 *     NGX_BLOOM_INVALID       it does not hold, and a part is invalid; or it
 *                             holds only because invalid parts count
 *                             (rule->invalid)
 *     the other answer        it does not hold
 *     NGX_DECLINED            there are no parts
 *     NGX_ERROR               memory is short
 */
static ngx_int_t
ngx_http_bloom_rules_check_list(ngx_http_request_t *r,
    ngx_http_bloom_rule_t *rule, ngx_str_t *text)
{
    ngx_int_t   rc;
    ngx_uint_t  i, parts, fires, other, holds, invalid;
    ngx_uint_t  tally[NGX_BLOOM_ANSWERS];

    rc = ngx_http_bloom_key_text(r, &rule->key, text);

    if (rc == NGX_HTTP_BLOOM_KEY_AMBIGUOUS) {
        return (ngx_int_t) ngx_http_bloom_key_count_ambiguous(&rule->key);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_bloom_lookup_parts(rule->key.zone, text, rule->split, rule->lookup,
                           tally, r->pool);

    for (parts = 0, i = 0; i < NGX_BLOOM_ANSWERS; i++) {
        parts += tally[i];
        ngx_bloom_count(rule->key.zone, (ngx_bloom_counter_e) i, tally[i]);
    }

    if (parts == 0) {
        return NGX_DECLINED;
    }

    fires = rule->fires;
    other = (fires == NGX_BLOOM_ABSENT) ? NGX_BLOOM_PRESENT
                                        : NGX_BLOOM_ABSENT;

    invalid = tally[NGX_BLOOM_INVALID];
    holds = tally[fires] + (rule->invalid ? invalid : 0);

    if (rule->all ? holds == parts : holds != 0) {

        /* invalid, if the rule would not fire without its invalid parts */

        return (rule->all ? invalid == 0 : tally[fires] != 0)
               ? (ngx_int_t) fires : NGX_BLOOM_INVALID;
    }

    if (tally[NGX_BLOOM_UNKNOWN] != 0
        && !(rule->all && holds + tally[NGX_BLOOM_UNKNOWN] != parts))
    {
        return NGX_BLOOM_UNKNOWN;
    }

    return (invalid != 0 && !rule->invalid) ? NGX_BLOOM_INVALID
                                            : (ngx_int_t) other;
}


/* Logs that a rule fires, or would have fired. */
static void
ngx_http_bloom_rules_log_fired(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_rule_t *rule,
    ngx_uint_t answer, ngx_str_t *key)
{
    /* by ngx_http_bloom_action_e */

    static char  *doings[] = { "passing", "rejecting", "routing" };

    /* by `answer` */

    static char  *findings[] = {
        "absent from", "maybe present in", NULL, "invalid for", "no key for"
    };

    ngx_http_bloom_rules_log(r, blcf, rule, doings[rule->action],
                             findings[answer],
                             answer == NGX_HTTP_BLOOM_EMPTY ? NULL : key);
}


static ngx_inline void
ngx_http_bloom_rules_log(ngx_http_request_t *r, ngx_http_bloom_loc_conf_t *blcf,
    ngx_http_bloom_rule_t *rule, char *doing, char *finding, ngx_str_t *key)
{
    ngx_log_t  *log;

    log = r->connection->log;

    if (log->log_level >= blcf->log_level) {
        ngx_http_bloom_rules_write_log(log, blcf, rule, doing, finding, key);
    }
}


static void
ngx_http_bloom_rules_write_log(ngx_log_t *log, ngx_http_bloom_loc_conf_t *blcf,
    ngx_http_bloom_rule_t *rule, char *doing, char *finding, ngx_str_t *key)
{
    char    *dry_run;
    u_char  *p, buf[NGX_HTTP_BLOOM_KEY_LOG_LEN];

    dry_run = (blcf->dry_run || rule->dry_run) ? ", dry run" : "";

    if (key == NULL) {
        ngx_log_error(blcf->log_level, log, 0,
                      "%s request%s: %s bloom zone \"%V\"",
                      doing, dry_run, finding,
                      &rule->key.zone->name);
        return;
    }

    p = ngx_http_bloom_key_log(buf, key);

    ngx_log_error(blcf->log_level, log, 0,
                  "%s request%s: key \"%*s\" %s bloom zone \"%V\"",
                  doing, dry_run,
                  (size_t) (p - buf), buf, finding, &rule->key.zone->name);
}
