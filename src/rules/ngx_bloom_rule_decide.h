/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how a rule decides by the answer of its zone, and what
 * is known afterwards about the decision.
 */

#ifndef _NGX_BLOOM_RULE_DECIDE_H_INCLUDED_
#define _NGX_BLOOM_RULE_DECIDE_H_INCLUDED_

#include "ngx_bloom_rule.h"
#include "ngx_bloom_rule_log.h"

#pragma GCC visibility push(hidden)


/* What the directives of a location or server say about all its rules. */
typedef struct {
    ngx_flag_t                 dry_run;
    ngx_uint_t                 unknown;  /* the action for unknown answers,
                                            NGX_BLOOM_RULE_... */
    ngx_uint_t                 log_level;
    const char                *subject;  /* of a decision, for the log, such as
                                            "request" */
} ngx_bloom_policy_t;


/*
 * Values of $bloom_status.  A rule that does not fire may replace a value only
 * by one that stands later here.  What a rule on trial would have done replaces
 * neither ROUTED nor what stands later.
 */
typedef enum {
    NGX_BLOOM_STATUS_UNCHECKED = 0,
    NGX_BLOOM_STATUS_PASSED,
    NGX_BLOOM_STATUS_UNKNOWN,
    NGX_BLOOM_STATUS_ROUTED,
    NGX_BLOOM_STATUS_REJECTED_DRY_RUN,
    NGX_BLOOM_STATUS_ROUTED_DRY_RUN,
    NGX_BLOOM_STATUS_INVALID,
    NGX_BLOOM_STATUS_AUDITED,
    NGX_BLOOM_STATUS_REJECTED
} ngx_bloom_status_e;

/* What was decided about a request or a connection, for its variables. */
typedef struct {
    ngx_bloom_status_e         status;   /* initially 0 */

    /* valid if `status` is set: */

    ngx_bloom_zone_t          *zone;
    ngx_str_t                  key;      /* decoded, canonical */
    ngx_str_t                  second;   /* the key of a URL's second reading;
                                            empty: it has none, or no rule has
                                            fired */
    ngx_str_t                  match;    /* of a rule that fired on "present";
                                            empty: of no such rule */
} ngx_bloom_decision_t;


/* What the caller has to do. */
typedef enum {
    NGX_BLOOM_VERDICT_NEXT = 0,          /* ask the next rule of the list */
    NGX_BLOOM_VERDICT_PASS,              /* ask no more rules of the list */
    NGX_BLOOM_VERDICT_REJECT,            /* ask no more rules at all */
    NGX_BLOOM_VERDICT_ROUTE,
    NGX_BLOOM_VERDICT_REJECT_UNKNOWN,    /* by the policy, not by the rule */
    NGX_BLOOM_VERDICT_ROUTE_UNKNOWN
} ngx_bloom_verdict_e;

/*
 * Decides about an answer that ngx_bloom_rule_ask() has given about a key:
 * counts it for the rule, logs what was decided to the log of `pool`, and sets
 * *decision.  Returns what the caller has to do.
 */
static ngx_inline ngx_bloom_verdict_e ngx_bloom_rule_decide(
    ngx_bloom_rule_t *rule, ngx_uint_t answer, ngx_str_t *key,
    ngx_bloom_policy_t *policy, ngx_bloom_decision_t *decision,
    ngx_pool_t *pool);

/* Counts an answer on which the rule would have fired, and notes that the
 * request is audited instead. */
void ngx_bloom_rule_audit(ngx_bloom_rule_t *rule, ngx_uint_t answer,
    ngx_str_t *key, ngx_bloom_decision_t *decision, ngx_log_t *log);


/* A variable about decisions, without the "$". */
typedef struct {
    ngx_str_t                  name;
    ngx_uint_t                 what;     /* for ngx_bloom_rule_value() */
} ngx_bloom_rule_variable_t;

/* All of them; the name of the last one is empty. */
extern ngx_bloom_rule_variable_t  ngx_bloom_rule_variables[];

/* Returns the value of a variable, or NULL if nothing was decided. */
ngx_str_t *ngx_bloom_rule_value(ngx_bloom_decision_t *decision,
    ngx_uint_t what);


/* ---- inline, because every check of a rule needs it ---- */

/* Decides about an answer on which the rule fires, and about an answer that is
 * neither "absent" nor "present". */
ngx_bloom_verdict_e ngx_bloom_rule_decide_more(ngx_bloom_rule_t *rule,
    ngx_uint_t answer, ngx_str_t *key, ngx_bloom_policy_t *policy,
    ngx_bloom_decision_t *decision, ngx_pool_t *pool);


/* Sets a decision that no rule has carried out. */
static ngx_inline void
ngx_bloom_rule_set(ngx_bloom_decision_t *decision, ngx_bloom_status_e status,
    ngx_bloom_rule_t *rule, ngx_str_t *key)
{
    decision->status = status;
    decision->zone = rule->zone;
    decision->key = *key;
    decision->second.len = 0;
    decision->match.len = 0;
}


/* Sets a decision, unless an earlier one matters more: see
 * ngx_bloom_status_e. */
static ngx_inline void
ngx_bloom_rule_note(ngx_bloom_decision_t *decision, ngx_bloom_status_e status,
    ngx_bloom_rule_t *rule, ngx_str_t *key)
{
    if (decision->status <= status) {
        ngx_bloom_rule_set(decision, status, rule, key);
    }
}


static ngx_inline ngx_bloom_verdict_e
ngx_bloom_rule_decide(ngx_bloom_rule_t *rule, ngx_uint_t answer,
    ngx_str_t *key, ngx_bloom_policy_t *policy, ngx_bloom_decision_t *decision,
    ngx_pool_t *pool)
{
    ngx_bloom_counters_count(rule->series, answer, 1);

    if (answer == rule->fires || answer >= NGX_BLOOM_UNKNOWN) {
        return ngx_bloom_rule_decide_more(rule, answer, key, policy, decision,
                                          pool);
    }

    ngx_bloom_rule_debug(pool->log, rule, key, answer, "continue");
    ngx_bloom_rule_note(decision, NGX_BLOOM_STATUS_PASSED, rule, key);

    return NGX_BLOOM_VERDICT_NEXT;
}


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_RULE_DECIDE_H_INCLUDED_ */
