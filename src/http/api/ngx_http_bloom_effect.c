/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file says what a rule does about a key that was looked up, and why.
 */

#include "ngx_http_bloom_effect.h"


/* Bytes of an expression that a sentence has at most. */
#define NGX_HTTP_BLOOM_EFFECT_SHOWN  256


static ngx_uint_t ngx_http_bloom_effect_fires(
    ngx_http_bloom_effect_zone_t *zones, ngx_http_bloom_rule_t *rule);
static uint64_t ngx_http_bloom_effect_asked(ngx_bloom_explain_t *lookup,
    ngx_http_bloom_rule_t *rule);
static ngx_http_bloom_place_t *ngx_http_bloom_effect_enforcing(
    ngx_http_bloom_rule_t *first, ngx_http_bloom_effect_e effect);
static void ngx_http_bloom_effect_doing(ngx_http_bloom_text_t *text,
    ngx_http_bloom_rule_t *rule, ngx_http_bloom_effect_e effect,
    ngx_http_bloom_place_t *place);
static void ngx_http_bloom_effect_by(ngx_http_bloom_text_t *text,
    ngx_http_bloom_rule_t *rule);
static void ngx_http_bloom_effect_in(ngx_http_bloom_text_t *text,
    ngx_http_bloom_place_t *place);
static void ngx_http_bloom_effect_reason(ngx_http_bloom_text_t *text,
    ngx_http_bloom_effect_zone_t *zones, ngx_http_bloom_rule_t *rule);
static void ngx_http_bloom_effect_exception(ngx_http_bloom_text_t *text,
    ngx_bloom_explain_t *lookup, ngx_http_bloom_rule_t *rule);
static void ngx_http_bloom_effect_expression(ngx_http_bloom_text_t *text,
    ngx_bloom_explain_t *lookup, unsigned which);
static ngx_uint_t ngx_http_bloom_effect_is_same(ngx_http_complex_value_t *one,
    ngx_http_complex_value_t *other);
static ngx_uint_t ngx_http_bloom_effect_is_named(ngx_http_bloom_rule_t *rule);


ngx_uint_t
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


ngx_http_bloom_effect_e
ngx_http_bloom_effect_of(ngx_http_bloom_effect_zone_t *zones,
    ngx_http_bloom_rule_t *first, ngx_http_bloom_rule_t *rule)
{
    if (ngx_http_bloom_effect_fires(zones, rule)) {
        return NGX_HTTP_BLOOM_EFFECT_FIRES;
    }

    if (ngx_http_bloom_effect_answer(zones, rule) == NGX_BLOOM_UNKNOWN
        && ngx_http_bloom_effect_enforcing(first,
                                           NGX_HTTP_BLOOM_EFFECT_UNKNOWN)
           != NULL)
    {
        return NGX_HTTP_BLOOM_EFFECT_UNKNOWN;
    }

    return NGX_HTTP_BLOOM_EFFECT_NONE;
}


static ngx_uint_t
ngx_http_bloom_effect_fires(ngx_http_bloom_effect_zone_t *zones,
    ngx_http_bloom_rule_t *rule)
{
    ngx_uint_t  answer;

    answer = ngx_http_bloom_effect_answer(zones, rule);

    return answer == rule->common.fires
           || (answer == NGX_BLOOM_INVALID && rule->common.invalid);
}


/* Returns the first place of a list that is not in dry run; for
 * NGX_HTTP_BLOOM_EFFECT_UNKNOWN, one where unknown answers do not pass.
 * Returns NULL if no place of the list is like that. */
static ngx_http_bloom_place_t *
ngx_http_bloom_effect_enforcing(ngx_http_bloom_rule_t *first,
    ngx_http_bloom_effect_e effect)
{
    ngx_uint_t               i;
    ngx_http_bloom_place_t  *place;

    place = first->places->elts;

    for (i = 0; i < first->places->nelts; i++) {
        if (!place[i].conf->policy.dry_run
            && (effect == NGX_HTTP_BLOOM_EFFECT_FIRES
                || place[i].conf->policy.unknown
                   != NGX_BLOOM_RULE_PASS))
        {
            return &place[i];
        }
    }

    return NULL;
}


ngx_uint_t
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
            && ngx_http_bloom_effect_fires(zones, before))
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


void
ngx_http_bloom_effect_say(ngx_http_bloom_text_t *text,
    ngx_http_bloom_effect_zone_t *zones, ngx_http_bloom_rule_t *first,
    ngx_http_bloom_rule_t *rule)
{
    ngx_http_bloom_place_t   *place;
    ngx_http_bloom_effect_e   effect;

    effect = ngx_http_bloom_effect_of(zones, first, rule);
    place = ngx_http_bloom_effect_enforcing(first, effect);

    ngx_http_bloom_effect_doing(text, rule, effect, place);
    ngx_http_bloom_effect_by(text, rule);
    ngx_http_bloom_effect_in(text, place ? place : first->places->elts);

    if (first->places->nelts > 1) {
        ngx_http_bloom_text_printf(text, " and %ui more",
                                   first->places->nelts - 1);
    }

    ngx_http_bloom_text_printf(text, ", if ");
    ngx_http_bloom_text_append(text, &rule->key.value.value);
    ngx_http_bloom_text_printf(text, " is this key");

    if (rule->filter != NULL) {
        ngx_http_bloom_text_printf(text, " and if=");
        ngx_http_bloom_text_append(text, &rule->filter->value);
        ngx_http_bloom_text_printf(text, " holds");
    }

    ngx_http_bloom_text_printf(text, ": ");

    ngx_http_bloom_effect_reason(text, zones, rule);
}


static void
ngx_http_bloom_effect_doing(ngx_http_bloom_text_t *text,
    ngx_http_bloom_rule_t *rule, ngx_http_bloom_effect_e effect,
    ngx_http_bloom_place_t *place)
{
    ngx_http_bloom_text_printf(text, place == NULL || rule->common.dry_run
                                     ? "in dry run, " : "");

    if (effect == NGX_HTTP_BLOOM_EFFECT_UNKNOWN
        && place->conf->policy.unknown == NGX_BLOOM_RULE_ROUTE)
    {
        ngx_http_bloom_text_printf(text, "routed to ");
        ngx_http_bloom_text_append(text,
                                   &place->conf->unknown_to->to.value);

    } else if (effect == NGX_HTTP_BLOOM_EFFECT_UNKNOWN) {
        ngx_http_bloom_text_printf(text, "rejected with %d",
                                   NGX_HTTP_SERVICE_UNAVAILABLE);

    } else if (rule->common.action == NGX_BLOOM_RULE_REJECT) {
        ngx_http_bloom_text_printf(text, "rejected with %ui", rule->status);

    } else if (rule->common.action == NGX_BLOOM_RULE_ROUTE) {
        ngx_http_bloom_text_printf(text, "routed to ");
        ngx_http_bloom_text_append(text, &rule->target.to.value);

    } else {
        ngx_http_bloom_text_printf(text, "passed");
    }
}


static void
ngx_http_bloom_effect_by(ngx_http_bloom_text_t *text,
    ngx_http_bloom_rule_t *rule)
{
    if (ngx_http_bloom_effect_is_named(rule)) {
        ngx_http_bloom_text_printf(text, " by rule ");
        ngx_http_bloom_text_append(text, &rule->common.label);

    } else {
        ngx_http_bloom_text_printf(text, " by the rule");
    }

    ngx_http_bloom_text_printf(text, " at %s:%ui", rule->common.conf_file,
                               rule->common.conf_line);
}


static void
ngx_http_bloom_effect_in(ngx_http_bloom_text_t *text,
    ngx_http_bloom_place_t *place)
{
    ngx_http_core_srv_conf_t  *server;

    server = place->server;

    ngx_http_bloom_text_printf(text, " in ");

    if (place->location->name.len != 0) {
        ngx_http_bloom_text_printf(text, "location ");
        ngx_http_bloom_effect_location(text, place->location);
        ngx_http_bloom_text_printf(text, " of ");
    }

    if (server->server_name.len != 0) {
        ngx_http_bloom_text_printf(text, "server ");
        ngx_http_bloom_text_append(text, &server->server_name);

    } else {
        ngx_http_bloom_text_printf(text, "the server at %s:%ui",
                                   server->file_name,
                                   (ngx_uint_t) server->line);
    }
}


/* Appends why a rule does what it does. */
static void
ngx_http_bloom_effect_reason(ngx_http_bloom_text_t *text,
    ngx_http_bloom_effect_zone_t *zones, ngx_http_bloom_rule_t *rule)
{
    ngx_bloom_zone_t        *zone;
    ngx_bloom_explain_t     *lookup;
    ngx_http_bloom_stats_t   stats;

    zone = rule->key.zone;
    lookup = &zones[zone->number].lookup;

    ngx_http_bloom_text_printf(text, "zone ");
    ngx_http_bloom_text_append(text, &zone->name);

    if (zone->label.len != 0) {
        ngx_http_bloom_text_printf(text, " (%V)", &zone->label);
    }

    switch (ngx_http_bloom_effect_answer(zones, rule)) {

    case NGX_BLOOM_ABSENT:
        ngx_http_bloom_text_printf(text, " does not find it");

        ngx_http_bloom_effect_exception(text, lookup, rule);
        return;

    case NGX_BLOOM_PRESENT:
        ngx_http_bloom_text_printf(text, " finds ");
        ngx_http_bloom_effect_expression(text, lookup,
                 __builtin_ctzll(lookup->matches
                                 & ngx_http_bloom_effect_asked(lookup, rule)));
        return;

    case NGX_BLOOM_UNKNOWN:
        ngx_http_bloom_text_printf(text, " cannot tell, since its state is %V",
                                   ngx_http_bloom_effect_state(zone, &stats));
        return;

    default: /* NGX_BLOOM_INVALID */
        ngx_http_bloom_text_printf(text, " calls it invalid: it %s",
                                   lookup->why);
    }
}


/* Appends which expression is an exception, the first one, and why. */
static void
ngx_http_bloom_effect_exception(ngx_http_bloom_text_t *text,
    ngx_bloom_explain_t *lookup, ngx_http_bloom_rule_t *rule)
{
    uint64_t  asked;
    unsigned  i;

    for (asked = ngx_http_bloom_effect_asked(lookup, rule);
         asked != 0;
         asked &= asked - 1)
    {
        i = __builtin_ctzll(asked);

        if (lookup->kinds[i] == 0) {
            continue;
        }

        ngx_http_bloom_text_printf(text, ": ");
        ngx_http_bloom_effect_expression(text, lookup, i);
        ngx_http_bloom_text_printf(text,
                             lookup->kinds[i] & BLOOM_EXCEPTION_REMOVED
                             ? " was removed"
                             : lookup->kinds[i] & BLOOM_EXCEPTION_FEEDBACK
                             ? " is an excepted key: the backend did not know "
                               "it"
                             : " is an exception that the builder of the image "
                               "chose");
        return;
    }
}


/* Appends an expression, given its number. */
static void
ngx_http_bloom_effect_expression(ngx_http_bloom_text_t *text,
    ngx_bloom_explain_t *lookup, unsigned which)
{
    ngx_str_t     shown;
    bloom_key_t  *key;

    key = &lookup->keys.expression[which];

    shown.data = (u_char *) key->data;
    shown.len = ngx_min(key->len, NGX_HTTP_BLOOM_EFFECT_SHOWN);

    ngx_http_bloom_text_append(text, &shown);
    ngx_http_bloom_text_printf(text, shown.len < key->len ? "..." : "");
}


/* Returns 1 if the rule has "name=". */
static ngx_uint_t
ngx_http_bloom_effect_is_named(ngx_http_bloom_rule_t *rule)
{
    size_t  len;

    len = ngx_strlen(rule->common.conf_file);

    return rule->common.label.len <= len || rule->common.label.data[len] != ':'
           || ngx_strncmp(rule->common.label.data, rule->common.conf_file, len)
              != 0;
}


void
ngx_http_bloom_effect_location(ngx_http_bloom_text_t *text,
    ngx_http_core_loc_conf_t *location)
{
    char  *before;

    before = location->lmt_excpt ? "limit_except in "
             : location->noname ? "if in "
             : location->exact_match ? "= "
             : location->noregex ? "^~ "
             : "";

#if (NGX_PCRE)
    if (location->regex != NULL && !location->noname) {
        before = "~ ";
    }
#endif

    ngx_http_bloom_text_printf(text, before);
    ngx_http_bloom_text_append(text, &location->name);
}


ngx_str_t *
ngx_http_bloom_effect_state(ngx_bloom_zone_t *zone,
    ngx_http_bloom_stats_t *stats)
{
    ngx_bloom_info_t  info;

    ngx_bloom_info_get(zone, &info);
    ngx_http_bloom_stats_get(stats, zone, &info);

    return &stats->state;
}
