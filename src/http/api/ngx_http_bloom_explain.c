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
#include "ngx_http_bloom_stats.h"
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
    ngx_uint_t                  j;       /* of a list: first its places, then
                                            its rules */
} ngx_http_bloom_explain_t;


static ngx_int_t ngx_http_bloom_explain_step(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns);
static ngx_int_t ngx_http_bloom_explain_done(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns);
static ngx_int_t ngx_http_bloom_explain_zones(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain);
static ngx_int_t ngx_http_bloom_explain_lists(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain);
static ngx_uint_t ngx_http_bloom_explain_is_shown(
    ngx_http_bloom_explain_t *explain, ngx_array_t *list);
static ngx_int_t ngx_http_bloom_explain_variables(
    ngx_http_bloom_turns_t *turns, ngx_http_bloom_explain_t *explain);

static void ngx_http_bloom_explain_put_place(bloom_json_writer_t *json,
    ngx_http_bloom_place_t *place);
static void ngx_http_bloom_explain_put_rule(bloom_json_writer_t *json,
    ngx_http_bloom_rule_t *rule);
static void ngx_http_bloom_explain_put_key(bloom_json_writer_t *json,
    ngx_http_bloom_key_t *key);
static void ngx_http_bloom_explain_put_at(bloom_json_writer_t *json,
    u_char *file, ngx_uint_t line);
static void ngx_http_bloom_explain_put_string(bloom_json_writer_t *json,
    const char *name, ngx_str_t *value);
static const char *ngx_http_bloom_explain_modifier(
    ngx_http_core_loc_conf_t *location);


/* The parts of the response, in this order: arrays.  A function takes one step,
 * and returns NGX_OK if its part is complete. */
static struct {
    const char                 *name;    /* of the array */
    ngx_int_t                 (*step)(ngx_http_bloom_turns_t *turns,
                                      ngx_http_bloom_explain_t *explain);
} ngx_http_bloom_explain_parts[] = {
    { "zones", ngx_http_bloom_explain_zones },
    { "lists", ngx_http_bloom_explain_lists },
    { "variables", ngx_http_bloom_explain_variables },
    { NULL, NULL }
};


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
        return ngx_http_bloom_response_refuse(r, &error);
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

    bloom_json_put_object(&turns->text.json, NULL);
    bloom_json_put_bytes(&turns->text.json, "key", key.data, key.len);

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

    bloom_json_put_array(&turns->text.json,
                         ngx_http_bloom_explain_parts[0].name);

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

    rc = ngx_http_bloom_explain_parts[explain->part].step(turns, explain);

    turns->left -= (turns->text.pos - turns->text.start - before)
                   / NGX_HTTP_BLOOM_EXPLAIN_WRITTEN;

    if (rc == NGX_AGAIN) {
        return NGX_AGAIN;
    }

    bloom_json_put_end(&turns->text.json);

    explain->part++;
    explain->i = 0;

    if (ngx_http_bloom_explain_parts[explain->part].step == NULL) {
        return NGX_OK;
    }

    bloom_json_put_array(&turns->text.json,
                         ngx_http_bloom_explain_parts[explain->part].name);

    return NGX_AGAIN;
}


static ngx_int_t
ngx_http_bloom_explain_done(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns)
{
    bloom_json_put_end(&turns->text.json);

    return ngx_http_bloom_response_json(r, NGX_HTTP_OK, &turns->text);
}


static ngx_int_t
ngx_http_bloom_explain_zones(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain)
{
    ngx_array_t                    *shown;
    ngx_bloom_info_t                info;
    ngx_bloom_zone_t              **zones, *zone;
    bloom_json_writer_t            *json;
    ngx_http_bloom_stats_t          stats;
    ngx_http_bloom_effect_zone_t   *looked;

    json = &turns->text.json;
    shown = explain->endpoint->zones;

    if (explain->i == shown->nelts) {
        return NGX_OK;
    }

    zones = shown->elts;
    zone = zones[explain->i++];
    looked = &explain->zone[zone->number];

    looked->answer = ngx_bloom_explain(zone, &explain->key, &looked->lookup,
                                       turns->text.pool);

    turns->left -= 1 + explain->key.len / NGX_HTTP_BLOOM_EXPLAIN_LOOKED;

    bloom_json_put_object(json, NULL);
    ngx_http_bloom_explain_put_string(json, "name", &zone->name);
    ngx_http_bloom_explain_put_string(json, "label", &zone->label);
    ngx_http_bloom_lookup_put(json, zone, looked->answer, &looked->lookup);

    if (looked->answer == NGX_BLOOM_UNKNOWN) {
        ngx_bloom_info_get(zone, &info);
        ngx_http_bloom_stats_get(&stats, zone, &info);

        bloom_json_put_text(json, "state",
                            stats.condition.names[stats.condition.number]);
    }

    bloom_json_put_end(json);

    return NGX_AGAIN;
}


/* Writes the next place or rule of the list.  Rules of zones that do not exist
 * at the endpoint, and lists of such rules alone, do not exist there either. */
static ngx_int_t
ngx_http_bloom_explain_lists(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain)
{
    ngx_uint_t                  rules, places;
    ngx_array_t               **list;
    bloom_json_writer_t        *json;
    ngx_http_bloom_rule_t      *first, *rule;
    ngx_http_bloom_place_t     *place;

    json = &turns->text.json;

    if (explain->i == explain->bmcf->rules.nelts) {
        return NGX_OK;
    }

    list = explain->bmcf->rules.elts;
    first = list[explain->i]->elts;
    place = first->places->elts;
    places = first->places->nelts;
    rules = list[explain->i]->nelts;

    if (explain->j == 0) {

        if (!ngx_http_bloom_explain_is_shown(explain, list[explain->i])) {
            explain->i++;
            return NGX_AGAIN;
        }

        bloom_json_put_object(json, NULL);
        bloom_json_put_array(json, "places");
    }

    if (explain->j < places) {
        ngx_http_bloom_explain_put_place(json, &place[explain->j++]);
        return NGX_AGAIN;
    }

    if (explain->j == places) {
        bloom_json_put_end(json);
        bloom_json_put_array(json, "rules");
    }

    rule = &first[explain->j++ - places];

    if (ngx_http_bloom_endpoint_has(explain->endpoint, rule->key.zone)) {
        bloom_json_put_object(json, NULL);
        ngx_http_bloom_explain_put_rule(json, rule);
        ngx_http_bloom_effect_put(json, explain->endpoint, explain->zone, first,
                                  rule);
        bloom_json_put_end(json);

        turns->left -= (rule - first) / NGX_HTTP_BLOOM_EXPLAIN_RULES;
    }

    if (explain->j == places + rules) {
        bloom_json_put_end(json);
        bloom_json_put_end(json);

        explain->i++;
        explain->j = 0;
    }

    return NGX_AGAIN;
}


/* Returns 1 if a rule of the list exists at the endpoint. */
static ngx_uint_t
ngx_http_bloom_explain_is_shown(ngx_http_bloom_explain_t *explain,
    ngx_array_t *list)
{
    ngx_uint_t              i;
    ngx_http_bloom_rule_t  *rule;

    rule = list->elts;

    for (i = 0; i < list->nelts; i++) {
        if (ngx_http_bloom_endpoint_has(explain->endpoint, rule[i].key.zone)) {
            return 1;
        }
    }

    return 0;
}


static void
ngx_http_bloom_explain_put_place(bloom_json_writer_t *json,
    ngx_http_bloom_place_t *place)
{
    const char  *modifier;

    bloom_json_put_object(json, NULL);
    ngx_http_bloom_explain_put_string(json, "server",
                                      &place->server->server_name);
    ngx_http_bloom_explain_put_at(json, place->server->file_name,
                                  place->server->line);
    ngx_http_bloom_explain_put_string(json, "location", &place->location->name);

    modifier = ngx_http_bloom_explain_modifier(place->location);

    if (modifier != NULL) {
        bloom_json_put_text(json, "modifier", modifier);
    }

    bloom_json_put_bool(json, "dry_run", place->conf->policy.dry_run);
    bloom_json_put_text(json, "unknown",
                        ngx_bloom_rule_actions[place->conf->policy.unknown]);

    if (place->conf->policy.unknown == NGX_BLOOM_RULE_ROUTE) {
        ngx_http_bloom_explain_put_string(json, "to",
                                          &place->conf->unknown_to->to.value);
    }

    bloom_json_put_end(json);
}


/* Returns what stands before a location's name in the configuration, or the
 * block in the location that it is; NULL: neither. */
static const char *
ngx_http_bloom_explain_modifier(ngx_http_core_loc_conf_t *location)
{
    if (location->lmt_excpt) {
        return "limit_except";
    }

    if (location->noname) {
        return "if";
    }

#if (NGX_PCRE)
    if (location->regex != NULL) {
        return "~";
    }
#endif

    return location->exact_match ? "="
           : location->noregex ? "^~"
           : NULL;
}


/* Writes how a rule is configured. */
static void
ngx_http_bloom_explain_put_rule(bloom_json_writer_t *json,
    ngx_http_bloom_rule_t *rule)
{
    ngx_http_bloom_explain_put_string(json, "rule", &rule->common.label);
    ngx_http_bloom_explain_put_at(json, rule->common.conf_file,
                                  rule->common.conf_line);
    bloom_json_put_text(json, "action",
                        ngx_bloom_rule_actions[rule->common.action]);
    bloom_json_put_text(json, "condition",
                        ngx_http_bloom_lookup_answers[rule->common.fires]);
    ngx_http_bloom_explain_put_key(json, &rule->key);

    if (rule->common.action == NGX_BLOOM_RULE_REJECT) {
        bloom_json_put_count(json, "status", rule->status);

    } else if (rule->common.action == NGX_BLOOM_RULE_ROUTE) {
        ngx_http_bloom_explain_put_string(json, "to", &rule->target.to.value);
    }

    if (rule->common.split != 0) {
        bloom_json_put_bytes(json, "split", &rule->common.split, 1);
        bloom_json_put_text(json, "match", rule->common.all ? "all" : "any");
    }

    if (rule->filter != NULL) {
        ngx_http_bloom_explain_put_string(json, "if", &rule->filter->value);
    }

    bloom_json_put_text(json, "invalid",
                        rule->common.invalid ? "fire" : "pass");
    bloom_json_put_text(json, "empty", rule->common.empty ? "fire" : "pass");
    bloom_json_put_bool(json, "exact",
                        (rule->common.lookup & NGX_BLOOM_LOOKUP_EXACT) != 0);
    bloom_json_put_bool(json, "dry_run", rule->common.dry_run);
}


static ngx_int_t
ngx_http_bloom_explain_variables(ngx_http_bloom_turns_t *turns,
    ngx_http_bloom_explain_t *explain)
{
    ngx_uint_t                answer;
    bloom_json_writer_t      *json;
    ngx_http_bloom_asker_t  **askers, *asker;

    json = &turns->text.json;

    if (explain->i == explain->bmcf->askers.nelts) {
        return NGX_OK;
    }

    askers = explain->bmcf->askers.elts;
    asker = askers[explain->i++];

    if (!ngx_http_bloom_endpoint_has(explain->endpoint, asker->key.zone)) {
        return NGX_AGAIN;
    }

    answer = explain->zone[asker->key.zone->number].answer;

    bloom_json_put_object(json, NULL);
    ngx_http_bloom_explain_put_string(json, "variable", &asker->name);
    ngx_http_bloom_explain_put_at(json, asker->conf_file, asker->conf_line);
    ngx_http_bloom_explain_put_key(json, &asker->key);
    bloom_json_put_text(json, "value", answer == NGX_BLOOM_PRESENT ? "1"
                                       : answer == NGX_BLOOM_ABSENT ? "0" : "");
    bloom_json_put_end(json);

    return NGX_AGAIN;
}


/* Writes where a rule or variable takes its key from, and its zone. */
static void
ngx_http_bloom_explain_put_key(bloom_json_writer_t *json,
    ngx_http_bloom_key_t *key)
{
    ngx_http_bloom_explain_put_string(json, "key", &key->value.value);

    if (key->decode != BLOOM_DECODE_OFF) {
        bloom_json_put_text(json, "decode",
                            key->decode == BLOOM_DECODE_URI ? "uri" : "form");
    }

    ngx_http_bloom_explain_put_string(json, "zone", &key->zone->name);
}


/* Writes a place in the configuration. */
static void
ngx_http_bloom_explain_put_at(bloom_json_writer_t *json, u_char *file,
    ngx_uint_t line)
{
    bloom_json_put_text(json, "file", (char *) file);
    bloom_json_put_count(json, "line", line);
}


/* Writes a string, or null if it is empty. */
static void
ngx_http_bloom_explain_put_string(bloom_json_writer_t *json, const char *name,
    ngx_str_t *value)
{
    if (value->len != 0) {
        bloom_json_put_bytes(json, name, value->data, value->len);

    } else {
        bloom_json_put_null(json, name);
    }
}
