/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares a rule, and how the zone of a rule is asked about a key.
 *
 * The files of this layer know neither requests nor connections.  For each
 * rule, their caller evaluates the condition and the key, asks the rule for an
 * answer, lets ngx_bloom_rule_decide() decide about it, and carries out the
 * verdict:
 *
 *     key ------> ngx_bloom_rule_ask() -----> answer, counted for the zone
 *     answer,
 *     policy ---> ngx_bloom_rule_decide() --> verdict, counted for the rule,
 *                                             logged, noted for the variables
 */

#ifndef _NGX_BLOOM_RULE_H_INCLUDED_
#define _NGX_BLOOM_RULE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_counters.h"
#include "ngx_bloom_lookup.h"
#include "ngx_bloom_zone.h"
#include "bloom_key.h"

#pragma GCC visibility push(hidden)


/* What a rule does when it fires. */
typedef enum {
    NGX_BLOOM_RULE_PASS = 0,
    NGX_BLOOM_RULE_REJECT,
    NGX_BLOOM_RULE_ROUTE
} ngx_bloom_rule_action_e;

/* The names of the actions, such as "reject". */
extern const char  *ngx_bloom_rule_actions[];


/* A rule: one bloom_pass, bloom_reject or bloom_route directive, without what
 * its caller evaluates. */
typedef struct {
    ngx_bloom_zone_t          *zone;
    ngx_bloom_rule_action_e    action;
    ngx_uint_t                 fires;    /* on NGX_BLOOM_ABSENT or _PRESENT */
    ngx_uint_t                 lookup;   /* NGX_BLOOM_LOOKUP_... */
    u_char                     split;    /* the byte that separates the parts
                                            of the key; 0: it has no parts */
    unsigned                   all:1;    /* the condition must hold for all
                                            parts; 0: for one of them */
    unsigned                   invalid:1;  /* fires on an invalid key */
    unsigned                   empty:1;  /* fires on an empty key */
    unsigned                   dry_run:1;  /* on trial: decides and counts, and
                                            the request goes on */

    ngx_str_t                  label;    /* "name=", or FILE:LINE */
    ngx_str_t                  identity; /* finds its counters after a reload */
    ngx_uint_t                 series;   /* of its counters */

    u_char                    *conf_file;
    ngx_uint_t                 conf_line;
} ngx_bloom_rule_t;


/* Stands for the answer (NGX_BLOOM_ABSENT ...) of a rule whose key is empty:
 * its zone is not asked. */
#define NGX_BLOOM_RULE_EMPTY  NGX_BLOOM_ANSWERS

/*
 * Counters of a rule.  The counters with lower numbers count what the rule has
 * checked by answer: NGX_BLOOM_ABSENT ... and NGX_BLOOM_RULE_EMPTY.
 */
typedef enum {
    NGX_BLOOM_RULE_COUNT_FIRED = NGX_BLOOM_RULE_EMPTY + 1,
    NGX_BLOOM_RULE_COUNT_DRY_RUN,        /* the rule would have fired */
    NGX_BLOOM_RULE_COUNT_AUDITED,        /* it let the request through, see
                                            bloom_audit */
    NGX_BLOOM_RULE_COUNT_UNKNOWN         /* it rejected or routed a request
                                            with an unknown key */
} ngx_bloom_rule_count_e;


/* The last text that was decoded for a request: several rules often have the
 * same key. */
typedef struct {
    bloom_decode_e             decode;   /* BLOOM_DECODE_OFF: no text was */
    ngx_str_t                  from;
    ngx_str_t                  text;
} ngx_bloom_rule_decoded_t;

/*
 * Decodes a text into memory of `pool`, unless it is the text that was decoded
 * last.  That text must not have changed since; `last` may be NULL.  Returns
 * NGX_OK, or NGX_ERROR if memory is short.
 */
ngx_int_t ngx_bloom_rule_decode(ngx_str_t *text, bloom_decode_e decode,
    ngx_bloom_rule_decoded_t *last, ngx_pool_t *pool);

/*
 * Looks up a key that is not empty in the zone of a rule, or the parts of a key
 * with "split=", and counts the answer for the zone.  Returns
 *
 *     NGX_BLOOM_ABSENT ... _INVALID   the answer; *key is the canonical key,
 *                                     unless it is invalid or has parts
 *     NGX_BLOOM_RULE_EMPTY            the key has no parts
 */
static ngx_inline ngx_uint_t ngx_bloom_rule_ask(ngx_bloom_rule_t *rule,
    ngx_str_t *key, ngx_pool_t *pool);

/* Counts a key that is invalid for another reason than its zone's key form.
 * Returns NGX_BLOOM_INVALID. */
ngx_uint_t ngx_bloom_rule_invalid(ngx_bloom_zone_t *zone);


/* ---- inline, because every check of a rule needs it ---- */

/* Asks the zone of a rule with "exact" and the like, or with "split=". */
ngx_uint_t ngx_bloom_rule_ask_as(ngx_bloom_rule_t *rule, ngx_str_t *key,
    ngx_pool_t *pool);


static ngx_inline ngx_uint_t
ngx_bloom_rule_ask(ngx_bloom_rule_t *rule, ngx_str_t *key, ngx_pool_t *pool)
{
    ngx_uint_t  answer;

    if ((rule->lookup | rule->split) != 0) {
        return ngx_bloom_rule_ask_as(rule, key, pool);
    }

    answer = ngx_bloom_lookup(rule->zone, key, pool);

    ngx_bloom_count(rule->zone, (ngx_bloom_counter_e) answer, 1);

    return answer;
}


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_RULE_H_INCLUDED_ */
