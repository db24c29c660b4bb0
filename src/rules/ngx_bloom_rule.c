/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file decodes keys, and asks the zones of rules with "exact" or "split=".
 */

#include "ngx_bloom_rule.h"
#include "ngx_bloom_lookup_list.h"


static ngx_uint_t ngx_bloom_rule_ask_parts(ngx_bloom_rule_t *rule,
    ngx_str_t *key, ngx_pool_t *pool);


const char  *ngx_bloom_rule_actions[] = {
    "pass",
    "reject",
    "route"
};


ngx_int_t
ngx_bloom_rule_decode(ngx_str_t *text, bloom_decode_e decode,
    ngx_bloom_rule_decoded_t *last, ngx_pool_t *pool)
{
    u_char     *p;
    ngx_str_t   from;

    if (last != NULL && last->decode == decode
        && last->from.data == text->data && last->from.len == text->len)
    {
        *text = last->text;
        return NGX_OK;
    }

    p = ngx_pnalloc(pool, text->len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    from = *text;

    text->len = bloom_key_decode(p, from.data, from.len, decode);
    text->data = p;

    if (last != NULL) {
        last->decode = decode;
        last->from = from;
        last->text = *text;
    }

    return NGX_OK;
}


ngx_uint_t
ngx_bloom_rule_ask_as(ngx_bloom_rule_t *rule, ngx_str_t *key, ngx_pool_t *pool)
{
    ngx_uint_t  answer;

    if (rule->split != 0) {
        return ngx_bloom_rule_ask_parts(rule, key, pool);
    }

    answer = ngx_bloom_lookup_as(rule->zone, key, rule->lookup, pool);

    ngx_bloom_count(rule->zone, (ngx_bloom_counter_e) answer, 1);

    return answer;
}


/*
 * Asks about the parts of a key.  Returns
 *
 *     the rule's condition    it holds for one part, or for all of them
 *                             (rule->all)
 *     NGX_BLOOM_UNKNOWN       it does not hold, but might if the unknown parts
 *                             were known
 *     NGX_BLOOM_INVALID       it does not hold, and a part is invalid; or it
 *                             holds only because invalid parts count
 *                             (rule->invalid)
 *     the other answer        it does not hold
 *     NGX_BLOOM_RULE_EMPTY    there are no parts
 */
static ngx_uint_t
ngx_bloom_rule_ask_parts(ngx_bloom_rule_t *rule, ngx_str_t *key,
    ngx_pool_t *pool)
{
    ngx_uint_t  i, parts, fires, holds, invalid;
    ngx_uint_t  tally[NGX_BLOOM_ANSWERS];

    ngx_bloom_lookup_list_parts(rule->zone, key, rule->split, rule->lookup,
                                tally, pool);

    for (parts = 0, i = 0; i < NGX_BLOOM_ANSWERS; i++) {
        parts += tally[i];
        ngx_bloom_count(rule->zone, (ngx_bloom_counter_e) i, tally[i]);
    }

    if (parts == 0) {
        return NGX_BLOOM_RULE_EMPTY;
    }

    fires = rule->fires;
    invalid = tally[NGX_BLOOM_INVALID];
    holds = tally[fires] + (rule->invalid ? invalid : 0);

    if (rule->all ? holds == parts : holds != 0) {

        /* invalid, if the rule would not fire without its invalid parts */

        return (rule->all ? invalid == 0 : tally[fires] != 0)
               ? fires : NGX_BLOOM_INVALID;
    }

    if (tally[NGX_BLOOM_UNKNOWN] != 0
        && !(rule->all && holds + tally[NGX_BLOOM_UNKNOWN] != parts))
    {
        return NGX_BLOOM_UNKNOWN;
    }

    if (invalid != 0 && !rule->invalid) {
        return NGX_BLOOM_INVALID;
    }

    return (fires == NGX_BLOOM_ABSENT) ? NGX_BLOOM_PRESENT : NGX_BLOOM_ABSENT;
}


ngx_uint_t
ngx_bloom_rule_invalid(ngx_bloom_zone_t *zone)
{
    ngx_bloom_count(zone, NGX_BLOOM_COUNTER_INVALID, 1);

    return NGX_BLOOM_INVALID;
}
