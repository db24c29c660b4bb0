/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file says what a rule does about a key that was looked up, and why.
 */

#include "ngx_http_bloom_effect.h"
#include "ngx_http_bloom_endpoint.h"
#include "ngx_http_bloom_lookup.h"


static ngx_uint_t ngx_http_bloom_effect_answer(
    ngx_http_bloom_effect_zone_t *zones, ngx_http_bloom_rule_t *rule);
static ngx_uint_t ngx_http_bloom_effect_fires(
    ngx_http_bloom_rule_t *rule, ngx_uint_t answer);
static uint64_t ngx_http_bloom_effect_asked(ngx_bloom_explain_t *lookup,
    ngx_http_bloom_rule_t *rule);
static void ngx_http_bloom_effect_put_entry(bloom_json_writer_t *json,
    ngx_bloom_explain_t *lookup, uint64_t asked);
static ngx_uint_t ngx_http_bloom_effect_is_same(ngx_http_complex_value_t *one,
    ngx_http_complex_value_t *other);


void
ngx_http_bloom_effect_put(bloom_json_writer_t *json,
    ngx_http_bloom_endpoint_t *endpoint, ngx_http_bloom_effect_zone_t *zones,
    ngx_http_bloom_rule_t *first, ngx_http_bloom_rule_t *rule)
{
    ngx_uint_t              answer, decided;
    ngx_bloom_explain_t    *lookup;
    ngx_http_bloom_rule_t  *before;

    answer = ngx_http_bloom_effect_answer(zones, rule);

    bloom_json_put_text(json, "answer", ngx_http_bloom_lookup_answers[answer]);

    if (answer == NGX_BLOOM_PRESENT || answer == NGX_BLOOM_ABSENT) {
        lookup = &zones[rule->key.zone->number].lookup;

        ngx_http_bloom_effect_put_entry(json, lookup,
                                    ngx_http_bloom_effect_asked(lookup, rule));
    }

    bloom_json_put_text(json, "effect",
                        ngx_http_bloom_effect_fires(rule, answer) ? "fires"
                        : answer == NGX_BLOOM_UNKNOWN ? "unknown"
                        : "none");

    /* a rule with the same key, which stands before this one and is not on
     * trial, decides if it fires */

    decided = 0;

    for (before = first; before < rule && !decided; before++) {
        decided = !before->common.dry_run
                  && ngx_http_bloom_endpoint_has(endpoint, before->key.zone)
                  && ngx_http_bloom_effect_is_same(&before->key.value,
                                                   &rule->key.value)
                  && (before->filter == NULL
                      || (rule->filter != NULL
                          && ngx_http_bloom_effect_is_same(before->filter,
                                                           rule->filter)))
                  && ngx_http_bloom_effect_fires(before,
                                  ngx_http_bloom_effect_answer(zones, before));
    }

    bloom_json_put_bool(json, "decided", decided);
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


/* Writes the first of these expressions that is found, or else the first that
 * is an exception, if there is one. */
static void
ngx_http_bloom_effect_put_entry(bloom_json_writer_t *json,
    ngx_bloom_explain_t *lookup, uint64_t asked)
{
    u_char        kinds;
    unsigned      i;
    bloom_key_t  *key;

    if ((lookup->matches & asked) != 0) {
        asked &= lookup->matches;
    }

    for ( /* void */ ; asked != 0; asked &= asked - 1) {

        i = __builtin_ctzll(asked);

        key = &lookup->keys.expression[i];
        kinds = lookup->kinds[i];

        if (kinds == 0 && ((lookup->matches >> i) & 1) == 0) {
            continue;
        }

        bloom_json_put_bytes(json, "entry", key->data, key->len);

        if (kinds != 0) {
            bloom_json_put_text(json, "exception",
                                kinds & BLOOM_EXCEPTION_REMOVED ? "removed"
                                : kinds & BLOOM_EXCEPTION_FEEDBACK ? "excepted"
                                : "image_excepted");
        }

        return;
    }
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
