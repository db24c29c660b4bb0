/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file writes the metrics of an endpoint's zones, and of the rules that
 * ask them, in the text format of Prometheus.  The metrics of zones are in the
 * table of stats (ngx_http_bloom_stats_table.c), those of rules in the table
 * below.
 *
 * Every sample has the label "zone".  Samples of rules also have the labels
 * "rule" (its name, or FILE:LINE), "action" and "condition".  The number of
 * rules is bounded by the series of counters (ngx_bloom_counters.h); rules that
 * found none are one rule "other", which an endpoint shows only if all zones
 * exist there.
 */

#include "ngx_http_bloom_metrics.h"
#include "ngx_http_bloom_endpoint.h"
#include "ngx_http_bloom_response.h"
#include "ngx_http_bloom_rules.h"
#include "ngx_http_bloom_stats_table.h"
#include "ngx_http_bloom_turns.h"
#include "bloom_version.h"


/* The number of samples that are written in one step. */
#define NGX_HTTP_BLOOM_METRICS_STEP          64


typedef struct {
    const char                 *name;
    const char                 *labels;
    ngx_uint_t                  counter; /* of the rule */
    const char                 *help;    /* of the metric's first sample */
} ngx_http_bloom_metrics_counter_t;


/* A response that is being written. */
typedef struct {
    ngx_http_bloom_stats_t     *stats;   /* of each zone */
    ngx_uint_t                  looked;  /* number of zones that are looked
                                            at */
    ngx_uint_t                  written; /* number of zones whose sample of
                                            `field` is written */
    const ngx_http_bloom_stats_field_t  *field;
} ngx_http_bloom_metrics_t;

typedef struct {
    ngx_http_bloom_rule_t      *rule;
    uint64_t                    counter[NGX_BLOOM_COUNTERS];
} ngx_http_bloom_metrics_rule_t;


static ngx_int_t ngx_http_bloom_metrics_step(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns);
static ngx_int_t ngx_http_bloom_metrics_done(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns);
static void ngx_http_bloom_metrics_sample(ngx_http_bloom_text_t *text,
    ngx_http_bloom_stats_t *stats, const ngx_http_bloom_stats_field_t *field);
static void ngx_http_bloom_metrics_of_rules(ngx_http_bloom_text_t *text,
    ngx_array_t *shown);
static ngx_int_t ngx_http_bloom_metrics_rules(
    ngx_http_bloom_endpoint_t *endpoint, ngx_array_t *rules,
    ngx_array_t *shown);
static void ngx_http_bloom_metrics_head(ngx_http_bloom_text_t *text,
    const char *name, const char *help);
static void ngx_http_bloom_metrics_rule_labels(ngx_http_bloom_text_t *text,
    ngx_http_bloom_rule_t *rule);
static void ngx_http_bloom_metrics_label(ngx_http_bloom_text_t *text,
    const char *name, ngx_str_t *value);


static const ngx_http_bloom_metrics_counter_t
    ngx_http_bloom_metrics_counters[] = {

    { "rule_checks_total", "answer=\"absent\"", NGX_BLOOM_ABSENT,
      "Number of requests that a rule checked, by its zone's answer; empty: "
      "the request had no key." },
    { "rule_checks_total", "answer=\"present\"", NGX_BLOOM_PRESENT, NULL },
    { "rule_checks_total", "answer=\"unknown\"", NGX_BLOOM_UNKNOWN, NULL },
    { "rule_checks_total", "answer=\"invalid\"", NGX_BLOOM_INVALID, NULL },
    { "rule_checks_total", "answer=\"empty\"", NGX_BLOOM_RULE_EMPTY, NULL },

    { "rule_requests_total", "decision=\"fired\"",
      NGX_BLOOM_RULE_COUNT_FIRED,
      "Number of requests that a rule decided; fired: the rule decided to "
      "pass, reject or route the request; dry_run and audited: the rule "
      "would have done so; unknown: the rule decided to reject or route the "
      "request because the answer was unknown." },
    { "rule_requests_total", "decision=\"dry_run\"",
      NGX_BLOOM_RULE_COUNT_DRY_RUN, NULL },
    { "rule_requests_total", "decision=\"audited\"",
      NGX_BLOOM_RULE_COUNT_AUDITED, NULL },
    { "rule_requests_total", "decision=\"unknown\"",
      NGX_BLOOM_RULE_COUNT_UNKNOWN, NULL },

    { NULL, NULL, 0, NULL }
};


ngx_int_t
ngx_http_bloom_metrics_get(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    size_t                       size;
    ngx_http_bloom_turns_t      *turns;
    ngx_http_bloom_metrics_t    *metrics;

    metrics = ngx_pcalloc(r->pool, sizeof(ngx_http_bloom_metrics_t));
    turns = ngx_http_bloom_turns_create(r, ngx_http_bloom_metrics_step,
                                        ngx_http_bloom_metrics_done);

    if (metrics == NULL || turns == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    turns->data = metrics;

    metrics->field = ngx_http_bloom_stats_fields;

    size = ngx_http_bloom_endpoint_get(r)->zones->nelts
           * sizeof(ngx_http_bloom_stats_t);

    if (ngx_http_bloom_text_take(&turns->text, size) == NGX_OK) {

        metrics->stats = ngx_palloc(r->pool, size);

        if (metrics->stats == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    return ngx_http_bloom_turns_run(r, turns);
}


/*
 * Takes one step: looks at the next zone or, once all have been looked at,
 * writes some samples.  All samples of a metric must stand together.
 */
static ngx_int_t
ngx_http_bloom_metrics_step(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns)
{
    ngx_uint_t                  last;
    ngx_array_t                *zones;
    ngx_bloom_info_t            info;
    ngx_bloom_zone_t          **zone;
    ngx_http_bloom_metrics_t   *metrics;
    ngx_http_bloom_endpoint_t  *endpoint;

    endpoint = ngx_http_bloom_endpoint_get(r);
    zones = endpoint->zones;

    metrics = turns->data;

    if (metrics->looked < zones->nelts) {
        zone = zones->elts;

        ngx_http_bloom_endpoint_info(endpoint, zone[metrics->looked], &info);
        ngx_http_bloom_stats_get(&metrics->stats[metrics->looked],
                                 zone[metrics->looked], &info);
        metrics->looked++;

        return NGX_AGAIN;
    }

    if (metrics->field->type == NGX_HTTP_BLOOM_STATS_END) {
        return NGX_OK;
    }

    if (metrics->field->metric != NULL) {

        if (metrics->written == 0 && metrics->field->help != NULL) {
            ngx_http_bloom_metrics_head(&turns->text, metrics->field->metric,
                                        metrics->field->help);
        }

        last = ngx_min(metrics->written + NGX_HTTP_BLOOM_METRICS_STEP,
                       zones->nelts);

        while (metrics->written < last) {
            ngx_http_bloom_metrics_sample(&turns->text,
                                          &metrics->stats[metrics->written++],
                                          metrics->field);
        }

        if (metrics->written < zones->nelts) {
            return NGX_AGAIN;
        }
    }

    metrics->field++;
    metrics->written = 0;

    return NGX_AGAIN;
}


static ngx_int_t
ngx_http_bloom_metrics_done(ngx_http_request_t *r,
    ngx_http_bloom_turns_t *turns)
{
    ngx_str_t                    type;
    ngx_array_t                  shown;
    ngx_http_bloom_main_conf_t  *bmcf;

    bmcf = ngx_http_get_module_main_conf(r, ngx_http_bloom_module);

    if (ngx_array_init(&shown, r->pool, 8,
                       sizeof(ngx_http_bloom_metrics_rule_t))
        != NGX_OK
        || ngx_http_bloom_metrics_rules(ngx_http_bloom_endpoint_get(r),
                                        &bmcf->rules, &shown)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_http_bloom_metrics_of_rules(&turns->text, &shown);

    ngx_http_bloom_metrics_head(&turns->text, "build_info",
                                "The version of the module, as a label; the "
                                "value is always 1.");
    ngx_http_bloom_text_printf(&turns->text, "nginx_bloom_build_info{version=\""
                               BLOOM_VERSION "\"} 1\n");

    ngx_str_set(&type, "text/plain; version=0.0.4; charset=utf-8");

    return ngx_http_bloom_response_text(r, NGX_HTTP_OK, &type, &turns->text);
}


static void
ngx_http_bloom_metrics_sample(ngx_http_bloom_text_t *text,
    ngx_http_bloom_stats_t *stats, const ngx_http_bloom_stats_field_t *field)
{
    char                           rate[32];
    uint64_t                       n, i;
    ngx_http_bloom_stats_state_t  *state;

    if (!ngx_http_bloom_stats_has(stats, field)) {
        return;
    }

    state = ngx_http_bloom_stats_state(stats, field);
    i = 0;

    do {
        ngx_http_bloom_text_printf(text, "nginx_bloom_%s{", field->metric);
        ngx_http_bloom_metrics_label(text, "zone", &stats->zone->name);

        if (field->labels != NULL) {
            ngx_http_bloom_text_printf(text, ",%s", field->labels);
        }

        switch (field->type) {

        case NGX_HTTP_BLOOM_STATS_STATE:
            ngx_http_bloom_text_printf(text, ",state=\"%s\"} %d\n",
                                       state->names[i], i == state->number);
            break;

        case NGX_HTTP_BLOOM_STATS_RATE:

            /* nginx's formats have no exponents */

            (void) snprintf(rate, sizeof(rate), "%.6g",
                            ngx_http_bloom_stats_rate(stats, field));
            ngx_http_bloom_text_printf(text, "} %s\n", rate);
            break;

        case NGX_HTTP_BLOOM_STATS_TIME:
        case NGX_HTTP_BLOOM_STATS_MS:
        case NGX_HTTP_BLOOM_STATS_SECONDS:
            n = ngx_http_bloom_stats_number(stats, field);
            ngx_http_bloom_text_printf(text, "} %uL.%03uL\n", n / 1000,
                                       n % 1000);
            break;

        case NGX_HTTP_BLOOM_STATS_TEXT:
            ngx_http_bloom_text_printf(text, "} %d\n",
                       ngx_http_bloom_stats_text(stats, field)[0] != '\0');
            break;

        case NGX_HTTP_BLOOM_STATS_LABELS:
            ngx_http_bloom_text_printf(text, ",%s} 1\n",
                                     ngx_http_bloom_stats_text(stats, field));
            break;

        default: /* NGX_HTTP_BLOOM_STATS_NUMBER, NGX_HTTP_BLOOM_STATS_BOOL */
            ngx_http_bloom_text_printf(text, "} %uL\n",
                                   ngx_http_bloom_stats_number(stats, field));
        }

    } while (field->type == NGX_HTTP_BLOOM_STATS_STATE
             && state->names[++i] != NULL);
}


/* Finds the rules that the endpoint shows, with their counters; of rules that
 * share their counters the first. */
static ngx_int_t
ngx_http_bloom_metrics_rules(ngx_http_bloom_endpoint_t *endpoint,
    ngx_array_t *rules, ngx_array_t *shown)
{
    u_char                           seen[NGX_BLOOM_SERIES];
    ngx_uint_t                       i, j;
    ngx_array_t                    **list;
    ngx_http_bloom_rule_t           *rule;
    ngx_http_bloom_metrics_rule_t   *show;

    ngx_memzero(seen, sizeof(seen));

    list = rules->elts;

    for (i = 0; i < rules->nelts; i++) {
        rule = list[i]->elts;

        for (j = 0; j < list[i]->nelts; j++) {

            if (seen[rule[j].common.series]
                || !ngx_http_bloom_endpoint_has(endpoint, rule[j].key.zone)
                || (rule[j].common.series == NGX_BLOOM_SERIES_OTHER
                    && !endpoint->all))
            {
                continue;
            }

            seen[rule[j].common.series] = 1;

            show = ngx_array_push(shown);
            if (show == NULL) {
                return NGX_ERROR;
            }

            show->rule = &rule[j];
            ngx_bloom_counters_sums(rule[j].common.series, show->counter);
        }
    }

    return NGX_OK;
}


static void
ngx_http_bloom_metrics_of_rules(ngx_http_bloom_text_t *text, ngx_array_t *shown)
{
    ngx_uint_t                               i;
    ngx_http_bloom_metrics_rule_t           *show;
    const ngx_http_bloom_metrics_counter_t  *metric;

    show = shown->elts;

    for (metric = ngx_http_bloom_metrics_counters; metric->name; metric++) {

        if (metric->help != NULL && shown->nelts != 0) {
            ngx_http_bloom_metrics_head(text, metric->name, metric->help);
        }

        for (i = 0; i < shown->nelts; i++) {
            ngx_http_bloom_text_printf(text, "nginx_bloom_%s{", metric->name);
            ngx_http_bloom_metrics_rule_labels(text, show[i].rule);
            ngx_http_bloom_text_printf(text, ",%s} %uL\n", metric->labels,
                                       show[i].counter[metric->counter]);
        }
    }
}


static void
ngx_http_bloom_metrics_head(ngx_http_bloom_text_t *text, const char *name,
    const char *help)
{
    size_t       len;
    const char  *type;

    len = ngx_strlen(name);
    type = len > 6 && ngx_strcmp(name + len - 6, "_total") == 0
           ? "counter" : "gauge";

    ngx_http_bloom_text_printf(text, "# HELP nginx_bloom_%s %s\n"
                               "# TYPE nginx_bloom_%s %s\n",
                               name, help, name, type);
}


static void
ngx_http_bloom_metrics_rule_labels(ngx_http_bloom_text_t *text,
    ngx_http_bloom_rule_t *rule)
{
    if (rule->common.series == NGX_BLOOM_SERIES_OTHER) {
        ngx_http_bloom_text_printf(text, "rule=\"other\",zone=\"other\","
                                   "action=\"other\",condition=\"other\"");
        return;
    }

    ngx_http_bloom_metrics_label(text, "rule", &rule->common.label);
    ngx_http_bloom_text_printf(text, ",");
    ngx_http_bloom_metrics_label(text, "zone", &rule->key.zone->name);
    ngx_http_bloom_text_printf(text, ",action=\"%s\",condition=\"%s\"",
                               ngx_bloom_rule_actions[rule->common.action],
                               rule->common.fires == NGX_BLOOM_ABSENT
                               ? "absent" : "present");
}


/* Writes a label, in UTF-8, with "?" for each byte that is not UTF-8. */
static void
ngx_http_bloom_metrics_label(ngx_http_bloom_text_t *text, const char *name,
    ngx_str_t *value)
{
    u_char    *p, *c, *next, *end;
    uint32_t   code;

    ngx_http_bloom_text_printf(text, "%s=\"", name);

    p = ngx_http_bloom_text_room(text, 2 * value->len + 1);
    if (p == NULL) {
        return;
    }

    c = value->data;
    end = value->data + value->len;

    while (c < end) {

        if (*c == '"' || *c == '\\' || *c == '\n') {
            *p++ = '\\';
            *p++ = (*c == '\n') ? 'n' : *c;
            c++;
            continue;
        }

        next = c;

        code = (*c < 0x80) ? *next++ : ngx_utf8_decode(&next, end - c);

        if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
            *p++ = '?';
            c++;

        } else {
            p = ngx_cpymem(p, c, next - c);
            c = next;
        }
    }

    *p++ = '"';

    text->pos = p;
}
