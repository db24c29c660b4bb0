/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file answers "Why is this blocked?": it looks up a key in all zones of
 * the endpoint and says what each rule that asks them does about it.
 */

#include "ngx_http_bloom_explain.h"
#include "ngx_http_bloom_effect.h"
#include "ngx_http_bloom_endpoint.h"
#include "ngx_http_bloom_lookup.h"
#include "ngx_http_bloom_response.h"
#include "ngx_http_bloom_rules.h"
#include "ngx_http_bloom_turns.h"


/* A lookup takes one step more for so many bytes of the key, and a response for
 * so many bytes written. */
#define NGX_HTTP_BLOOM_EXPLAIN_LOOKED   512
#define NGX_HTTP_BLOOM_EXPLAIN_WRITTEN  4096

/* The search for the rule that decides takes one step more for so many
 * rules. */
#define NGX_HTTP_BLOOM_EXPLAIN_RULES    64


typedef struct {
    ngx_str_t                   key;
    ngx_http_bloom_effect_zone_t  *zone;  /* by the number of the zone */
    ngx_http_bloom_endpoint_t  *endpoint;
    ngx_http_bloom_main_conf_t *bmcf;

    ngx_uint_t                  part;    /* of the response, see below */
    ngx_uint_t                  i;       /* what the part writes next: a zone,
                                            a list of rules ... */
    ngx_uint_t                  j;       /* a rule of the list */
    ngx_uint_t                  k;       /* a place of the list */
    ngx_uint_t                  lists;   /* number of lists written so far */
    ngx_uint_t                  members; /* number of rules of the list, or of
                                            variables, written so far */

    ngx_uint_t                  sentences;  /* in the summary so far */
    ngx_http_bloom_text_t       scratch; /* a string that is not quoted yet */
} ngx_http_bloom_explain_t;


static ngx_int_t ngx_http_bloom_explain_step(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns);
static ngx_int_t ngx_http_bloom_explain_done(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns);
static ngx_int_t ngx_http_bloom_explain_look_up(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain);
static ngx_int_t ngx_http_bloom_explain_present(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain);
static ngx_int_t ngx_http_bloom_explain_others(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain);
static ngx_int_t ngx_http_bloom_explain_zones(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain);
static ngx_int_t ngx_http_bloom_explain_lists(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain);
static ngx_int_t ngx_http_bloom_explain_variables(
    ngx_http_bloom_turns_t *turns, ngx_http_bloom_explain_t *explain);

static ngx_int_t ngx_http_bloom_explain_summary(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain, ngx_uint_t present);
static void ngx_http_bloom_explain_put_place(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain, ngx_http_bloom_place_t *place);
static void ngx_http_bloom_explain_put_rule(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain, ngx_http_bloom_rule_t *first,
    ngx_http_bloom_rule_t *rule);
static void ngx_http_bloom_explain_put_key(ngx_http_bloom_text_t *text,
    ngx_http_bloom_key_t *key);
static void ngx_http_bloom_explain_string(ngx_http_bloom_text_t *text,
    const char *before, ngx_str_t *value);
static void ngx_http_bloom_explain_at(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain, const char *before, u_char *file,
    ngx_uint_t line);


/* The parts of the work, in this order.  Each function takes one step: it
 * returns NGX_AGAIN if its part has more, else NGX_OK. */
static ngx_int_t  (*ngx_http_bloom_explain_parts[])(
    ngx_http_bloom_turns_t *turns, ngx_http_bloom_explain_t *explain) =
{
    ngx_http_bloom_explain_look_up,
    ngx_http_bloom_explain_present,
    ngx_http_bloom_explain_others,
    ngx_http_bloom_explain_zones,
    ngx_http_bloom_explain_lists,
    ngx_http_bloom_explain_variables
};

#define NGX_HTTP_BLOOM_EXPLAIN_PARTS                                          \
    (sizeof(ngx_http_bloom_explain_parts)                                     \
     / sizeof(ngx_http_bloom_explain_parts[0]))


ngx_int_t
ngx_http_bloom_explain_get(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    size_t                     size;
    ngx_int_t                  rc;
    ngx_str_t                  key;
    ngx_http_bloom_error_t     error;
    ngx_http_bloom_turns_t    *turns;
    ngx_http_bloom_explain_t  *explain;

    rc = ngx_http_bloom_lookup_key(r, &key, &error);

    if (rc == NGX_DECLINED) {
        return ngx_http_bloom_response_refuse_error(r, &error);
    }

    explain = ngx_pcalloc(r->pool, sizeof(ngx_http_bloom_explain_t));
    turns = ngx_http_bloom_turns_create(r, ngx_http_bloom_explain_step,
                                        ngx_http_bloom_explain_done);

    if (rc != NGX_OK || explain == NULL || turns == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    turns->data = explain;

    explain->key = key;
    explain->endpoint = ngx_http_bloom_endpoint_get(r);
    explain->bmcf = ngx_http_get_module_main_conf(r, ngx_http_bloom_module);

    ngx_http_bloom_text_init(&explain->scratch, r->pool);

    /* the lookups, and the expressions that they point to */

    size = explain->bmcf->zones.nelts
           * (sizeof(ngx_http_bloom_effect_zone_t)
              + bloom_form_room(BLOOM_FORM_URL, key.len));

    if (ngx_http_bloom_text_take(&turns->text, size) == NGX_OK) {

        explain->zone = ngx_palloc(r->pool, explain->bmcf->zones.nelts
                                   * sizeof(ngx_http_bloom_effect_zone_t));
        if (explain->zone == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    return ngx_http_bloom_turns_run(r, turns);
}


static ngx_int_t
ngx_http_bloom_explain_step(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns)
{
    size_t                     before;
    ngx_int_t                  rc;
    ngx_http_bloom_explain_t  *explain;

    explain = turns->data;

    before = turns->text.pos - turns->text.start;

    rc = ngx_http_bloom_explain_parts[explain->part](turns, explain);

    turns->left -= (turns->text.pos - turns->text.start - before)
                   / NGX_HTTP_BLOOM_EXPLAIN_WRITTEN;

    if (rc == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    explain->part++;
    explain->i = 0;

    return explain->part < NGX_HTTP_BLOOM_EXPLAIN_PARTS ? NGX_AGAIN : NGX_OK;
}


static ngx_int_t
ngx_http_bloom_explain_done(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns)
{
    ngx_http_bloom_explain_t  *explain;

    explain = turns->data;

    turns->text.failed |= explain->scratch.failed;

    ngx_http_bloom_text_printf(&turns->text, "}");

    return ngx_http_bloom_response_json(r, NGX_HTTP_OK, &turns->text);
}


static ngx_int_t
ngx_http_bloom_explain_look_up(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain)
{
    ngx_bloom_zone_t              **zones, *zone;
    ngx_http_bloom_effect_zone_t   *looked;

    if (explain->i == explain->bmcf->zones.nelts) {
        ngx_http_bloom_text_printf(&turns->text, "{\"key\":");
        ngx_http_bloom_text_quote(&turns->text, explain->key.data,
                                  explain->key.len);
        ngx_http_bloom_text_printf(&turns->text, ",\"summary\":[");

        return NGX_OK;
    }

    zones = explain->bmcf->zones.elts;
    zone = zones[explain->i];
    looked = &explain->zone[explain->i];

    explain->i++;

    if (!ngx_http_bloom_endpoint_has(explain->endpoint, zone)) {

        /* no rule fires on this */

        looked->answer = NGX_BLOOM_RULE_EMPTY;

        return NGX_AGAIN;
    }

    looked->answer = ngx_bloom_explain(zone, &explain->key, &looked->lookup,
                                       turns->text.pool);

    turns->left -= explain->key.len / NGX_HTTP_BLOOM_EXPLAIN_LOOKED;

    return NGX_AGAIN;
}


/* ---- the summary: a sentence for each rule that does something ---- */

/* Writes the sentences about rules that find the key.  They come first, since a
 * rule on "absent" fires on every key that is meant for another rule. */
static ngx_int_t
ngx_http_bloom_explain_present(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain)
{
    return ngx_http_bloom_explain_summary(turns, explain, 1);
}


static ngx_int_t
ngx_http_bloom_explain_others(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain)
{
    if (ngx_http_bloom_explain_summary(turns, explain, 0) == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    if (explain->sentences == 0) {
        ngx_http_bloom_text_printf(&turns->text,
                                   "\"no rule fires on this key\"");
    }

    ngx_http_bloom_text_printf(&turns->text, "],\"zones\":[");

    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_explain_summary(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain, ngx_uint_t present)
{
    ngx_array_t             **list;
    ngx_http_bloom_text_t    *scratch;
    ngx_http_bloom_rule_t    *first, *rule;

    if (explain->i == explain->bmcf->rules.nelts) {
        return NGX_OK;
    }

    list = explain->bmcf->rules.elts;
    first = list[explain->i]->elts;
    rule = &first[explain->j];

    if (explain->j + 1 == list[explain->i]->nelts) {
        explain->i++;
        explain->j = 0;

    } else {
        explain->j++;
    }

    turns->left -= (rule - first) / NGX_HTTP_BLOOM_EXPLAIN_RULES;

    if (first->places->nelts == 0
        || (ngx_http_bloom_effect_answer(explain->zone, rule)
            == NGX_BLOOM_PRESENT) != present
        || ngx_http_bloom_effect_of(explain->zone, first, rule)
           == NGX_HTTP_BLOOM_EFFECT_NONE
        || ngx_http_bloom_effect_is_decided(explain->zone, first, rule))
    {
        return NGX_AGAIN;
    }

    scratch = &explain->scratch;
    scratch->pos = scratch->start;

    ngx_http_bloom_effect_say(scratch, explain->zone, first, rule);

    ngx_http_bloom_text_printf(&turns->text,
                               explain->sentences++ == 0 ? "" : ",");
    ngx_http_bloom_text_quote(&turns->text, scratch->start,
                              scratch->pos - scratch->start);

    return NGX_AGAIN;
}


/* ---- the other members of the response ---- */

static ngx_int_t
ngx_http_bloom_explain_zones(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain)
{
    ngx_array_t                    *shown;
    ngx_bloom_zone_t              **zones, *zone;
    ngx_http_bloom_stats_t          stats;
    ngx_http_bloom_effect_zone_t   *looked;

    shown = explain->endpoint->zones;

    if (explain->i == shown->nelts) {
        ngx_http_bloom_text_printf(&turns->text, "],\"lists\":[");
        return NGX_OK;
    }

    zones = shown->elts;
    zone = zones[explain->i];
    looked = &explain->zone[zone->number];

    ngx_http_bloom_explain_string(&turns->text,
                                  explain->i == 0 ? "{\"name\":"
                                                  : ",{\"name\":",
                                  &zone->name);
    ngx_http_bloom_explain_string(&turns->text, ",\"label\":", &zone->label);
    ngx_http_bloom_text_printf(&turns->text, ",");
    ngx_http_bloom_lookup_put(&turns->text, zone, looked->answer,
                              &looked->lookup);

    if (looked->answer == NGX_BLOOM_UNKNOWN) {
        ngx_http_bloom_text_printf(&turns->text, ",\"state\":\"%V\"",
                                   ngx_http_bloom_effect_state(zone, &stats));
    }

    ngx_http_bloom_text_printf(&turns->text, "}");

    explain->i++;

    return NGX_AGAIN;
}


/* Writes the next place or rule of the list.  Rules of zones that do not exist
 * at the endpoint, and lists of such rules alone, do not exist there either. */
static ngx_int_t
ngx_http_bloom_explain_lists(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain)
{
    ngx_array_t             **list;
    ngx_http_bloom_rule_t    *first, *rule;
    ngx_http_bloom_place_t   *place;

    if (explain->i == explain->bmcf->rules.nelts) {
        ngx_http_bloom_text_printf(&turns->text, "],\"variables\":[");
        return NGX_OK;
    }

    list = explain->bmcf->rules.elts;
    first = list[explain->i]->elts;

    rule = &first[explain->j];

    if (ngx_http_bloom_endpoint_has(explain->endpoint, rule->key.zone)) {

        if (explain->members == 0 && explain->k == 0) {
            ngx_http_bloom_text_printf(&turns->text, "%s{\"places\":[",
                                       explain->lists++ == 0 ? "" : ",");
        }

        if (explain->k < first->places->nelts) {
            place = first->places->elts;

            ngx_http_bloom_text_printf(&turns->text,
                                       explain->k == 0 ? "" : ",");
            ngx_http_bloom_explain_put_place(turns, explain,
                                             &place[explain->k++]);

            return NGX_AGAIN;
        }

        ngx_http_bloom_text_printf(&turns->text, explain->members++ == 0
                                                 ? "],\"rules\":[" : ",");
        ngx_http_bloom_explain_put_rule(turns, explain, first, rule);
    }

    explain->j++;

    if (explain->j == list[explain->i]->nelts) {
        ngx_http_bloom_text_printf(&turns->text,
                                   explain->members == 0 ? "" : "]}");
        explain->i++;
        explain->j = 0;
        explain->k = 0;
        explain->members = 0;
    }

    return NGX_AGAIN;
}


static void
ngx_http_bloom_explain_put_place(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain, ngx_http_bloom_place_t *place)
{
    ngx_str_t               location;
    ngx_http_bloom_text_t  *text, *scratch;

    text = &turns->text;
    scratch = &explain->scratch;

    ngx_http_bloom_explain_string(text, "{\"server\":",
                                  &place->server->server_name);
    ngx_http_bloom_explain_at(turns, explain, ",\"server_at\":",
                              place->server->file_name,
                              (ngx_uint_t) place->server->line);

    scratch->pos = scratch->start;
    ngx_http_bloom_effect_location(scratch, place->location);

    location.data = scratch->start;
    location.len = scratch->pos - scratch->start;

    ngx_http_bloom_explain_string(text, ",\"location\":", &location);

    ngx_http_bloom_text_printf(text, ",\"dry_run\":%s,\"unknown\":\"%s\"",
                               place->conf->policy.dry_run ? "true" : "false",
                               ngx_bloom_rule_actions[
                                                place->conf->policy.unknown]);

    if (place->conf->policy.unknown == NGX_BLOOM_RULE_ROUTE) {
        ngx_http_bloom_explain_string(text, ",\"to\":",
                                      &place->conf->unknown_to->to.value);
    }

    ngx_http_bloom_text_printf(text, "}");
}


static void
ngx_http_bloom_explain_put_rule(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain, ngx_http_bloom_rule_t *first,
    ngx_http_bloom_rule_t *rule)
{
    ngx_str_t               split;
    ngx_uint_t              fires, decides;
    ngx_http_bloom_text_t  *text;

    text = &turns->text;

    turns->left -= (rule - first) / NGX_HTTP_BLOOM_EXPLAIN_RULES;

    fires = (ngx_http_bloom_effect_of(explain->zone, first, rule)
             == NGX_HTTP_BLOOM_EFFECT_FIRES);

    decides = fires && !rule->common.dry_run
              && !ngx_http_bloom_effect_is_decided(explain->zone, first, rule);

    ngx_http_bloom_explain_string(text, "{\"rule\":", &rule->common.label);
    ngx_http_bloom_explain_at(turns, explain, ",\"at\":",
                              rule->common.conf_file, rule->common.conf_line);
    ngx_http_bloom_text_printf(text, ",\"action\":\"%s\",\"condition\":\"%s\"",
                               ngx_bloom_rule_actions[rule->common.action],
                               rule->common.fires == NGX_BLOOM_ABSENT ? "absent"
                                                               : "present");
    ngx_http_bloom_explain_put_key(text, &rule->key);

    if (rule->common.action == NGX_BLOOM_RULE_REJECT) {
        ngx_http_bloom_text_printf(text, ",\"status\":%ui", rule->status);

    } else if (rule->common.action == NGX_BLOOM_RULE_ROUTE) {
        ngx_http_bloom_explain_string(text, ",\"to\":",
                                      &rule->target.to.value);
    }

    if (rule->common.split != 0) {
        split.data = &rule->common.split;
        split.len = 1;

        ngx_http_bloom_explain_string(text, ",\"split\":", &split);
        ngx_http_bloom_text_printf(text, ",\"match\":\"%s\"",
                                   rule->common.all ? "all" : "any");
    }

    if (rule->filter != NULL) {
        ngx_http_bloom_explain_string(text, ",\"if\":", &rule->filter->value);
    }

    ngx_http_bloom_text_printf(text, ",\"invalid\":\"%s\",\"empty\":\"%s\","
                               "\"exact\":%s,\"dry_run\":%s,"
                               "\"fires\":%s,\"decides\":%s}",
                               rule->common.invalid ? "fire" : "pass",
                               rule->common.empty ? "fire" : "pass",
                               rule->common.lookup & NGX_BLOOM_LOOKUP_EXACT
                               ? "true" : "false",
                               rule->common.dry_run ? "true" : "false",
                               fires ? "true" : "false",
                               decides ? "true" : "false");
}


static ngx_int_t
ngx_http_bloom_explain_variables(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain)
{
    ngx_uint_t                answer;
    ngx_http_bloom_asker_t  **askers, *asker;

    if (explain->i == explain->bmcf->askers.nelts) {
        ngx_http_bloom_text_printf(&turns->text, "]");
        return NGX_OK;
    }

    askers = explain->bmcf->askers.elts;
    asker = askers[explain->i++];

    if (!ngx_http_bloom_endpoint_has(explain->endpoint, asker->key.zone)) {
        return NGX_AGAIN;
    }

    ngx_http_bloom_explain_string(&turns->text,
                                  explain->members++ == 0
                                  ? "{\"variable\":" : ",{\"variable\":",
                                  &asker->name);
    ngx_http_bloom_explain_at(turns, explain, ",\"at\":", asker->conf_file,
                              asker->conf_line);
    ngx_http_bloom_explain_put_key(&turns->text, &asker->key);

    answer = explain->zone[asker->key.zone->number].answer;

    ngx_http_bloom_text_printf(&turns->text, ",\"value\":\"%s\"}",
                               answer == NGX_BLOOM_PRESENT ? "1"
                               : answer == NGX_BLOOM_ABSENT ? "0" : "");

    return NGX_AGAIN;
}


/* Writes where a rule or variable takes its key from, and its zone. */
static void
ngx_http_bloom_explain_put_key(ngx_http_bloom_text_t *text,
    ngx_http_bloom_key_t *key)
{
    ngx_http_bloom_explain_string(text, ",\"key\":", &key->value.value);

    if (key->decode != BLOOM_DECODE_OFF) {
        ngx_http_bloom_text_printf(text, ",\"decode\":\"%s\"",
                                   key->decode == BLOOM_DECODE_URI ? "uri"
                                                                   : "form");
    }

    ngx_http_bloom_explain_string(text, ",\"zone\":", &key->zone->name);
}


/* Appends a string with quotes, or null if it is empty. */
static void
ngx_http_bloom_explain_string(ngx_http_bloom_text_t *text, const char *before,
    ngx_str_t *value)
{
    ngx_http_bloom_text_printf(text, before);

    if (value->len != 0) {
        ngx_http_bloom_text_quote(text, value->data, value->len);

    } else {
        ngx_http_bloom_text_printf(text, "null");
    }
}


/* Appends FILE:LINE. */
static void
ngx_http_bloom_explain_at(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain, const char *before, u_char *file,
    ngx_uint_t line)
{
    ngx_http_bloom_text_t  *scratch;

    scratch = &explain->scratch;
    scratch->pos = scratch->start;

    ngx_http_bloom_text_printf(scratch, "%s:%ui", file, line);
    ngx_http_bloom_text_printf(&turns->text, before);
    ngx_http_bloom_text_quote(&turns->text, scratch->start,
                              scratch->pos - scratch->start);
}
