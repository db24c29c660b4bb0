/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file decides by the answers of zones, and counts and logs the decisions.
 */

#include "ngx_bloom_rule_decide.h"
#include "ngx_bloom_lookup_list.h"


static ngx_bloom_verdict_e ngx_bloom_rule_unknown(ngx_bloom_rule_t *rule,
    ngx_str_t *key, ngx_bloom_policy_t *policy, ngx_bloom_decision_t *decision,
    ngx_pool_t *pool);
static ngx_bloom_verdict_e ngx_bloom_rule_fire(ngx_bloom_rule_t *rule,
    ngx_uint_t answer, ngx_str_t *key, ngx_bloom_policy_t *policy,
    ngx_bloom_decision_t *decision, ngx_pool_t *pool);
static ngx_bloom_verdict_e ngx_bloom_rule_try(ngx_bloom_rule_t *rule,
    ngx_uint_t answer, ngx_str_t *key, ngx_bloom_policy_t *policy,
    ngx_bloom_decision_t *decision, ngx_pool_t *pool);
static void ngx_bloom_rule_set_fired(ngx_bloom_decision_t *decision,
    ngx_bloom_status_e status, ngx_bloom_rule_t *rule, ngx_uint_t answer,
    ngx_str_t *key, ngx_pool_t *pool);
static ngx_inline void ngx_bloom_rule_tell(ngx_bloom_policy_t *policy,
    ngx_bloom_rule_t *rule, ngx_uint_t action, ngx_uint_t answer,
    ngx_str_t *key, ngx_log_t *log);


/* by ngx_bloom_status_e */
static ngx_str_t  ngx_bloom_rule_statuses[] = {
    ngx_null_string,
    ngx_string("PASSED"),
    ngx_string("UNKNOWN"),
    ngx_string("ROUTED"),
    ngx_string("REJECTED_DRY_RUN"),
    ngx_string("ROUTED_DRY_RUN"),
    ngx_string("INVALID"),
    ngx_string("AUDITED"),
    ngx_string("REJECTED")
};


/* the part of a decision that a variable returns */
enum {
    NGX_BLOOM_RULE_STATUS = 0,
    NGX_BLOOM_RULE_ZONE,
    NGX_BLOOM_RULE_LABEL,
    NGX_BLOOM_RULE_KEY,
    NGX_BLOOM_RULE_SECOND,
    NGX_BLOOM_RULE_MATCH
};


ngx_bloom_rule_variable_t  ngx_bloom_rule_variables[] = {
    { ngx_string("bloom_status"), NGX_BLOOM_RULE_STATUS },
    { ngx_string("bloom_zone"), NGX_BLOOM_RULE_ZONE },
    { ngx_string("bloom_label"), NGX_BLOOM_RULE_LABEL },
    { ngx_string("bloom_key"), NGX_BLOOM_RULE_KEY },
    { ngx_string("bloom_second_key"), NGX_BLOOM_RULE_SECOND },
    { ngx_string("bloom_match"), NGX_BLOOM_RULE_MATCH },
    { ngx_null_string, 0 }
};


/* What an action is called and leads to, by ngx_bloom_rule_action_e. */
static const struct {
    const char          *doing;          /* for the log */
    const char          *tried;          /* for the debug log */
    ngx_bloom_status_e   status;         /* in dry run */
    ngx_bloom_status_e   fired;          /* the status otherwise */
    ngx_bloom_verdict_e  verdict;
} ngx_bloom_rule_acts[] = {
    { "passing", "pass in dry run", NGX_BLOOM_STATUS_PASSED,
      NGX_BLOOM_STATUS_PASSED, NGX_BLOOM_VERDICT_PASS },
    { "rejecting", "reject in dry run", NGX_BLOOM_STATUS_REJECTED_DRY_RUN,
      NGX_BLOOM_STATUS_REJECTED, NGX_BLOOM_VERDICT_REJECT },
    { "routing", "route in dry run", NGX_BLOOM_STATUS_ROUTED_DRY_RUN,
      NGX_BLOOM_STATUS_ROUTED, NGX_BLOOM_VERDICT_ROUTE }
};


ngx_bloom_verdict_e
ngx_bloom_rule_decide_more(ngx_bloom_rule_t *rule, ngx_uint_t answer,
    ngx_str_t *key, ngx_bloom_policy_t *policy, ngx_bloom_decision_t *decision,
    ngx_pool_t *pool)
{
    if (answer == NGX_BLOOM_UNKNOWN) {
        return ngx_bloom_rule_unknown(rule, key, policy, decision, pool);
    }

    if (answer == NGX_BLOOM_INVALID && !rule->invalid) {
        ngx_bloom_rule_debug(pool->log, rule, key, answer, "continue");
        ngx_bloom_rule_tell(policy, rule, NGX_BLOOM_RULE_PASS, answer, key,
                            pool->log);
        ngx_bloom_rule_note(decision, NGX_BLOOM_STATUS_INVALID, rule, key);
        return NGX_BLOOM_VERDICT_NEXT;
    }

    if (answer == NGX_BLOOM_RULE_EMPTY && !rule->empty) {
        ngx_bloom_rule_debug(pool->log, rule, key, answer, "continue");
        return NGX_BLOOM_VERDICT_NEXT;
    }

    if (rule->dry_run
        || (policy->dry_run && rule->action != NGX_BLOOM_RULE_PASS))
    {
        return ngx_bloom_rule_try(rule, answer, key, policy, decision, pool);
    }

    return ngx_bloom_rule_fire(rule, answer, key, policy, decision, pool);
}


static ngx_bloom_verdict_e
ngx_bloom_rule_unknown(ngx_bloom_rule_t *rule, ngx_str_t *key,
    ngx_bloom_policy_t *policy, ngx_bloom_decision_t *decision,
    ngx_pool_t *pool)
{
    ngx_uint_t  action, dry_run;

    action = policy->unknown;
    dry_run = (policy->dry_run || rule->dry_run);

    ngx_bloom_rule_tell(policy, rule, action, NGX_BLOOM_UNKNOWN, key,
                        pool->log);

    ngx_bloom_rule_debug(pool->log, rule, key, NGX_BLOOM_UNKNOWN,
                         action == NGX_BLOOM_RULE_PASS ? "continue"
                         : dry_run ? ngx_bloom_rule_acts[action].tried
                                   : ngx_bloom_rule_actions[action]);

    if (action == NGX_BLOOM_RULE_PASS || dry_run) {
        ngx_bloom_rule_note(decision, NGX_BLOOM_STATUS_UNKNOWN, rule, key);
        return NGX_BLOOM_VERDICT_NEXT;
    }

    ngx_bloom_rule_set(decision, NGX_BLOOM_STATUS_UNKNOWN, rule, key);

    ngx_bloom_counters_count(rule->series, NGX_BLOOM_RULE_COUNT_UNKNOWN, 1);

    if (action == NGX_BLOOM_RULE_ROUTE) {
        ngx_bloom_lookup_second(key, &decision->second, pool);
        return NGX_BLOOM_VERDICT_ROUTE_UNKNOWN;
    }

    ngx_bloom_count(rule->zone, NGX_BLOOM_COUNTER_REJECTED, 1);

    return NGX_BLOOM_VERDICT_REJECT_UNKNOWN;
}


/*
 * Carries out the action of a rule.  Either its condition holds, or `answer` is
 * NGX_BLOOM_INVALID or NGX_BLOOM_RULE_EMPTY and the rule fires on that, too.
 */
static ngx_bloom_verdict_e
ngx_bloom_rule_fire(ngx_bloom_rule_t *rule, ngx_uint_t answer, ngx_str_t *key,
    ngx_bloom_policy_t *policy, ngx_bloom_decision_t *decision,
    ngx_pool_t *pool)
{
    ngx_bloom_status_e  status;

    ngx_bloom_rule_debug(pool->log, rule, key, answer,
                         ngx_bloom_rule_actions[rule->action]);

    ngx_bloom_counters_count(rule->series, NGX_BLOOM_RULE_COUNT_FIRED, 1);

    status = (answer == NGX_BLOOM_INVALID)
             ? NGX_BLOOM_STATUS_INVALID
             : ngx_bloom_rule_acts[rule->action].fired;

    if (rule->action == NGX_BLOOM_RULE_PASS) {

        /* what a rule on trial would have done remains */

        if (decision->status < NGX_BLOOM_STATUS_REJECTED_DRY_RUN
            || decision->status < status)
        {
            ngx_bloom_rule_set_fired(decision, status, rule, answer, key, pool);
        }

        return NGX_BLOOM_VERDICT_PASS;
    }

    ngx_bloom_rule_tell(policy, rule, rule->action, answer, key, pool->log);

    ngx_bloom_rule_set_fired(decision, status, rule, answer, key, pool);

    if (rule->action == NGX_BLOOM_RULE_REJECT) {
        ngx_bloom_count(rule->zone, NGX_BLOOM_COUNTER_REJECTED, 1);
    }

    return ngx_bloom_rule_acts[rule->action].verdict;
}


/*
 * Counts and logs what a rule would have done: a rule on trial, or one under
 * bloom_dry_run.  A rule under bloom_dry_run ends its list, so its result is
 * final.  After a rule on trial, enforced rules decide.
 */
static ngx_bloom_verdict_e
ngx_bloom_rule_try(ngx_bloom_rule_t *rule, ngx_uint_t answer, ngx_str_t *key,
    ngx_bloom_policy_t *policy, ngx_bloom_decision_t *decision,
    ngx_pool_t *pool)
{
    ngx_bloom_status_e  status;

    ngx_bloom_rule_debug(pool->log, rule, key, answer,
                         ngx_bloom_rule_acts[rule->action].tried);

    ngx_bloom_rule_tell(policy, rule, rule->action, answer, key, pool->log);

    ngx_bloom_counters_count(rule->series, NGX_BLOOM_RULE_COUNT_DRY_RUN, 1);

    status = ngx_bloom_rule_acts[rule->action].status;

    if (rule->action != NGX_BLOOM_RULE_PASS) {
        ngx_bloom_count(rule->zone, NGX_BLOOM_COUNTER_DRY_RUN, 1);

    } else if (answer == NGX_BLOOM_INVALID) {
        status = NGX_BLOOM_STATUS_INVALID;
    }

    if (!rule->dry_run || decision->status < NGX_BLOOM_STATUS_ROUTED) {
        ngx_bloom_rule_set_fired(decision, status, rule, answer, key, pool);
    }

    return rule->dry_run ? NGX_BLOOM_VERDICT_NEXT : NGX_BLOOM_VERDICT_PASS;
}


void
ngx_bloom_rule_audit(ngx_bloom_rule_t *rule, ngx_uint_t answer, ngx_str_t *key,
    ngx_bloom_decision_t *decision, ngx_log_t *log)
{
    ngx_bloom_counters_count(rule->series, answer, 1);
    ngx_bloom_rule_debug(log, rule, key, answer, "audit");
    ngx_bloom_rule_set(decision, NGX_BLOOM_STATUS_AUDITED, rule, key);
}


/* Notes that a rule has fired, and what it has found.  A backend that confirms
 * the key gets a canonical one, or none. */
static void
ngx_bloom_rule_set_fired(ngx_bloom_decision_t *decision,
    ngx_bloom_status_e status, ngx_bloom_rule_t *rule, ngx_uint_t answer,
    ngx_str_t *key, ngx_pool_t *pool)
{
    static ngx_str_t  none = ngx_string("");

    ngx_bloom_rule_set(decision, status, rule,
                       answer == rule->fires ? key : &none);

    if (answer == rule->fires && rule->split == 0) {
        ngx_bloom_lookup_second(key, &decision->second, pool);
    }

    if (answer == NGX_BLOOM_PRESENT) {
        if (rule->split != 0) {
            ngx_bloom_lookup_list_match(rule->zone, &decision->match, pool);

        } else {
            ngx_bloom_lookup_match(rule->zone, key, &decision->match, pool);
        }
    }
}


/* Logs a decision, unless the level of bloom_log_level is not logged. */
static ngx_inline void
ngx_bloom_rule_tell(ngx_bloom_policy_t *policy, ngx_bloom_rule_t *rule,
    ngx_uint_t action, ngx_uint_t answer, ngx_str_t *key, ngx_log_t *log)
{
    if (log->log_level >= policy->log_level) {
        ngx_bloom_rule_log(log, policy->log_level, rule,
                           ngx_bloom_rule_acts[action].doing, policy->subject,
                           policy->dry_run || rule->dry_run, answer, key);
    }
}


ngx_str_t *
ngx_bloom_rule_value(ngx_bloom_decision_t *decision, ngx_uint_t what)
{
    ngx_bloom_zone_t  *zone;

    if (decision->status == NGX_BLOOM_STATUS_UNCHECKED) {
        return NULL;
    }

    zone = decision->zone;

    switch (what) {

    case NGX_BLOOM_RULE_ZONE:
        return &zone->name;

    case NGX_BLOOM_RULE_LABEL:
        return zone->label.len != 0 ? &zone->label : &zone->name;

    case NGX_BLOOM_RULE_KEY:
        return &decision->key;

    case NGX_BLOOM_RULE_SECOND:
        return &decision->second;

    case NGX_BLOOM_RULE_MATCH:
        return &decision->match;

    default: /* NGX_BLOOM_RULE_STATUS */
        return &ngx_bloom_rule_statuses[decision->status];
    }
}
