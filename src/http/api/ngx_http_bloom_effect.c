/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file computes what a rule does about a key that was looked up, and why.
 */

#include "ngx_http_bloom_effect.h"


static ngx_uint_t ngx_http_bloom_effect_answer(
    ngx_http_bloom_effect_zone_t *zones, ngx_http_bloom_rule_t *rule);
static ngx_uint_t ngx_http_bloom_effect_fires(
    ngx_http_bloom_rule_t *rule, ngx_uint_t answer);
static uint64_t ngx_http_bloom_effect_asked(ngx_bloom_explain_t *lookup,
    ngx_http_bloom_rule_t *rule);
static void ngx_http_bloom_effect_entry(ngx_http_bloom_effect_t *effect,
    ngx_bloom_explain_t *lookup, ngx_http_bloom_rule_t *rule);
static ngx_uint_t ngx_http_bloom_effect_is_decided(
    ngx_http_bloom_effect_zone_t *zones, ngx_http_bloom_rule_t *first,
    ngx_http_bloom_rule_t *rule);
static ngx_uint_t ngx_http_bloom_effect_is_same(ngx_http_complex_value_t *one,
    ngx_http_complex_value_t *other);


void
ngx_http_bloom_effect_get(ngx_http_bloom_effect_t *effect,
    ngx_http_bloom_effect_zone_t *zones, ngx_http_bloom_rule_t *first,
    ngx_http_bloom_rule_t *rule)
{
    effect->answer = ngx_http_bloom_effect_answer(zones, rule);
    effect->fires = ngx_http_bloom_effect_fires(rule, effect->answer);
    effect->decided = ngx_http_bloom_effect_is_decided(zones, first, rule);
    effect->entry = NULL;
    effect->kinds = 0;

    if (effect->answer == NGX_BLOOM_PRESENT
        || effect->answer == NGX_BLOOM_ABSENT)
    {
        ngx_http_bloom_effect_entry(effect,
                                    &zones[rule->key.zone->number].lookup,
                                    rule);
    }
}


/* Returns the answer that a rule gets: NGX_BLOOM_ABSENT ... */
static ngx_uint_t
ngx_http_bloom_effect_answer(ngx_http_bloom_effect_zone_t *zones,
    ngx_http_bloom_rule_t *rule)
{
    ngx_http_bloom_effect_zone_t  *looked;

    looked = &zones[rule->key.zone->number];

    if (looked->answer == NGX_BLOOM_PRESENT
        && (looked->lookup.matches
            & ngx_http_bloom_effect_asked(&looked->lookup, rule))
           == 0)
    {
        /* this rule does not look up what was found */

        return looked->lookup.behind ? NGX_BLOOM_UNKNOWN : NGX_BLOOM_ABSENT;
    }

    return looked->answer;
}


static ngx_uint_t
ngx_http_bloom_effect_fires(ngx_http_bloom_rule_t *rule, ngx_uint_t answer)
{
    return answer == rule->common.fires
           || (answer == NGX_BLOOM_INVALID && rule->common.invalid);
}


/* Returns the expressions that a rule looks up, as bits. */
static uint64_t
ngx_http_bloom_effect_asked(ngx_bloom_explain_t *lookup,
    ngx_http_bloom_rule_t *rule)
{
    bloom_form_t  *keys;

    keys = &lookup->keys;

    if (keys->second != 0 && (rule->common.lookup & NGX_BLOOM_LOOKUP_SOLE)) {
        return 0;
    }

    return rule->common.lookup & NGX_BLOOM_LOOKUP_EXACT
           ? 1 | (uint64_t) 1 << keys->second
           : ((uint64_t) 1 << keys->n) - 1;
}


/* Finds the expression that gives the answer, if one does. */
static void
ngx_http_bloom_effect_entry(ngx_http_bloom_effect_t *effect,
    ngx_bloom_explain_t *lookup, ngx_http_bloom_rule_t *rule)
{
    uint64_t  asked;
    unsigned  i;

    asked = ngx_http_bloom_effect_asked(lookup, rule);

    if (effect->answer == NGX_BLOOM_PRESENT) {
        i = __builtin_ctzll(lookup->matches & asked);
        effect->entry = &lookup->keys.expression[i];
        return;
    }

    for ( /* void */ ; asked != 0; asked &= asked - 1) {

        i = __builtin_ctzll(asked);

        if (lookup->kinds[i] != 0) {
            effect->entry = &lookup->keys.expression[i];
            effect->kinds = lookup->kinds[i];
            return;
        }
    }
}


static ngx_uint_t
ngx_http_bloom_effect_is_decided(ngx_http_bloom_effect_zone_t *zones,
    ngx_http_bloom_rule_t *first, ngx_http_bloom_rule_t *rule)
{
    ngx_http_bloom_rule_t  *before;

    for (before = first; before < rule; before++) {

        if (!before->common.dry_run
            && ngx_http_bloom_effect_is_same(&before->key.value,
                                             &rule->key.value)
            && (before->filter == NULL
                || (rule->filter != NULL
                    && ngx_http_bloom_effect_is_same(before->filter,
                                                     rule->filter)))
            && ngx_http_bloom_effect_fires(before,
                                   ngx_http_bloom_effect_answer(zones, before)))
        {
            return 1;
        }
    }

    return 0;
}


/* Returns 1 if two texts are written alike in the configuration. */
static ngx_uint_t
ngx_http_bloom_effect_is_same(ngx_http_complex_value_t *one,
    ngx_http_complex_value_t *other)
{
    return one->value.len == other->value.len
           && ngx_strncmp(one->value.data, other->value.data, one->value.len)
              == 0;
}
