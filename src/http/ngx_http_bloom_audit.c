/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file implements bloom_audit: it lets some requests through that a rule
 * would reject, to find out whether the filter is right.
 */

#include "ngx_http_bloom_audit.h"
#include "ngx_http_bloom_conf.h"
#include "ngx_http_bloom_feedback.h"
#include "ngx_http_bloom_key.h"
#include "ngx_bloom_add_key.h"
#include "ngx_bloom_io.h"


/* Microseconds for each added key without "rate=". */
#define NGX_HTTP_BLOOM_AUDIT_INTERVAL  1000000


/* An audited request. */
typedef struct {
    ngx_bloom_zone_t          *zone;
    ngx_str_t                  key;      /* canonical */
    ngx_http_bloom_feedback_t *feedback; /* NULL: 404 and 410 */
    ngx_http_bloom_audit_t    *conf;
    unsigned                   trial:1;  /* by a rule on trial */
    unsigned                   settled:1;
} ngx_http_bloom_audited_t;


static void ngx_http_bloom_audit_warn(ngx_conf_t *cf,
    ngx_http_bloom_audit_t *audit, ngx_http_bloom_rule_t *rule);
static void ngx_http_bloom_audit_end(void *data);
static void ngx_http_bloom_audit_wrong(ngx_http_request_t *r,
    ngx_http_bloom_audited_t *audited, ngx_uint_t status);


static const ngx_http_bloom_conf_param_t  ngx_http_bloom_audit_table[] = {

    { ngx_string("add="), NGX_HTTP_BLOOM_CONF_AUDIT,
      ngx_http_bloom_conf_read_name, offsetof(ngx_http_bloom_audit_t, add),
      ngx_http_bloom_conf_on_off, NULL },

    { ngx_string("rate="), NGX_HTTP_BLOOM_CONF_AUDIT,
      ngx_http_bloom_conf_read_interval,
      offsetof(ngx_http_bloom_audit_t, interval), NULL,
      NGX_HTTP_BLOOM_CONF_RATE },

    /* gone */

    { ngx_string("learn="), NGX_HTTP_BLOOM_CONF_AUDIT, NULL, 0, NULL,
      "its name is \"add=\"" },

    { ngx_string("learn_rate="), NGX_HTTP_BLOOM_CONF_AUDIT, NULL, 0, NULL,
      "its name is \"rate=\"" },

    { ngx_null_string, 0, NULL, 0, NULL, NULL }
};


char *
ngx_http_bloom_audit_conf(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_bloom_loc_conf_t *blcf = conf;

    ngx_int_t                    rate;
    ngx_str_t                   *value;
    ngx_http_bloom_audit_t      *audit;
    ngx_http_bloom_main_conf_t  *bmcf;

    if (blcf->audit != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        blcf->audit = NULL;
        return NGX_CONF_OK;
    }

    /* in thousandths of a percent */

    rate = (value[1].len != 0 && value[1].data[value[1].len - 1] == '%')
           ? ngx_atofp(value[1].data, value[1].len - 1, 3) : NGX_ERROR;

    if (rate < 1 || rate > NGX_HTTP_BLOOM_AUDIT_ALL) {
        return ngx_http_bloom_conf_invalid(cf, "fraction", &value[1],
                                           "from 0.001% to 100%, with up to "
                                           "three decimals, or \"off\" alone");
    }

    audit = ngx_pcalloc(cf->pool, sizeof(ngx_http_bloom_audit_t));
    if (audit == NULL) {
        return NGX_CONF_ERROR;
    }

    audit->rate = rate;
    audit->share = value[1];
    audit->file = cf->conf_file->file.name;
    audit->line = cf->conf_file->line;

    if (ngx_http_bloom_conf_params(cf, 2, ngx_http_bloom_audit_table,
                                   NGX_HTTP_BLOOM_CONF_AUDIT, audit, NULL)
        != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (audit->interval == 0) {
        audit->interval = NGX_HTTP_BLOOM_AUDIT_INTERVAL;
    }

    blcf->audit = audit;

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);
    bmcf->asks = 1;

    return NGX_CONF_OK;
}


/* Returns 1 for rules that an audit applies to: those that reject an absent
 * key and have no "split=". */
static ngx_inline ngx_uint_t
ngx_http_bloom_audit_is_for(ngx_http_bloom_rule_t *rule)
{
    return rule->common.action == NGX_BLOOM_RULE_REJECT
           && rule->common.fires == NGX_BLOOM_ABSENT
           && rule->common.split == 0;
}


void
ngx_http_bloom_audit_merge(ngx_conf_t *cf, ngx_http_bloom_loc_conf_t *conf)
{
    ngx_uint_t               i;
    ngx_http_bloom_rule_t   *rule;
    ngx_http_bloom_audit_t  *audit;

    audit = conf->audit;

    if (audit == NULL || conf->rules == NULL) {
        return;
    }

    rule = conf->rules->elts;

    for (i = 0; i < conf->rules->nelts; i++) {

        if (!ngx_http_bloom_audit_is_for(&rule[i])) {
            continue;
        }

        if (audit->add) {
            rule[i].key.zone->adds = 1;
            rule[i].key.zone->changed_by = "\"add=on\" of bloom_audit";
        }

        if (!conf->policy.dry_run && !rule[i].common.dry_run) {
            ngx_http_bloom_audit_warn(cf, audit, &rule[i]);
        }
    }
}


/* Warns once of an audit that leaves much of a shield open, as one does that
 * was meant for a dry run. */
static void
ngx_http_bloom_audit_warn(ngx_conf_t *cf, ngx_http_bloom_audit_t *audit,
    ngx_http_bloom_rule_t *rule)
{
    if (audit->rate <= NGX_HTTP_BLOOM_AUDIT_MOST || audit->warned) {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                  "\"bloom_audit %V\" in %V:%ui lets this share of the "
                  "requests through that the rule in %s:%ui rejects: set it "
                  "to 10%% or less, such as \"bloom_audit 0.1%%\", or set "
                  "\"bloom_dry_run on\" there to try the rule",
                  &audit->share, &audit->file, audit->line,
                  rule->common.conf_file, rule->common.conf_line);

    audit->warned = 1;
}


ngx_uint_t
ngx_http_bloom_audit_takes(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_rule_t *rule, ngx_str_t *key)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_bloom_audited_t  *audited;

    /*
     * A request is audited once, and only if it changes nothing: a request
     * that creates a key does not tell whether the key existed before.  A rule
     * on trial must change nothing for the others, so an enforced one takes
     * the request over.
     */

    audited = ctx->audited;

    if ((audited != NULL && (rule->common.dry_run || !audited->trial))
        || !ngx_http_bloom_audit_is_for(rule)
        || (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD)) == 0
        || ngx_random() % NGX_HTTP_BLOOM_AUDIT_ALL
           >= (long) blcf->audit->rate)
    {
        return 0;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_bloom_audited_t));
    if (cln == NULL) {
        return 0;
    }

    cln->handler = ngx_http_bloom_audit_end;

    audited = cln->data;

    audited->zone = rule->key.zone;
    audited->key = *key;
    audited->feedback = blcf->feedback;
    audited->conf = blcf->audit;
    audited->trial = rule->common.dry_run;
    audited->settled = 0;

    ctx->audited = audited;

    ngx_bloom_count(audited->zone, NGX_BLOOM_COUNTER_AUDITED, 1);
    ngx_bloom_counters_count(rule->common.series, NGX_BLOOM_RULE_COUNT_AUDITED,
                             1);

    return !blcf->policy.dry_run && !rule->common.dry_run;
}


void
ngx_http_bloom_audit_response(ngx_http_request_t *r, ngx_http_bloom_ctx_t *ctx,
    ngx_uint_t status)
{
    ngx_uint_t                 none;
    ngx_http_bloom_audited_t  *audited;

    audited = ctx->audited;

    if (audited == NULL || audited->settled) {
        return;
    }

    if (status >= 200 && status <= 299) {
        audited->settled = 1;
        ngx_http_bloom_audit_wrong(r, audited, status);
        return;
    }

    none = audited->feedback
           ? ngx_http_bloom_feedback_denies(audited->feedback, status)
           : (status == 404 || status == 410);

    if (none) {
        audited->settled = 1;
        ngx_bloom_count(audited->zone, NGX_BLOOM_COUNTER_CONFIRMED, 1);
    }
}


static void
ngx_http_bloom_audit_wrong(ngx_http_request_t *r,
    ngx_http_bloom_audited_t *audited, ngx_uint_t status)
{
    u_char             buf[NGX_BLOOM_RULE_LOG_LEN], *last;
    ngx_uint_t         outcome;
    ngx_bloom_zone_t  *zone;

    enum { path_differs = NGX_BLOOM_AUDIT_FAST + 1 };

    /* by ngx_bloom_audit_e and path_differs */
    static const char  *const then[] = {
        "it was added now; put it into the next image, too",
        "add it, or load an image that has it",
        "it was not added, since the zone holds as many keys as its capacity; "
        "load an image that has the key and more capacity",
        "it was not added, since \"rate=\" is used up; load an image "
        "that has all such keys",
        "it was not added, since the client wrote the path in another way and "
        "the backend may have read another key; add it if it exists"
    };

    zone = audited->zone;

    ngx_bloom_count(zone, NGX_BLOOM_COUNTER_WRONG_ABSENT, 1);
    ngx_bloom_counters_set_wrong_at(zone->series, ngx_bloom_time());

    if (!audited->conf->add) {
        outcome = NGX_BLOOM_AUDIT_UNABLE;

    } else if (ngx_http_bloom_feedback_path_differs(r)) {
        ngx_bloom_count(zone, NGX_BLOOM_COUNTER_AUDIT_NOT_ADDED, 1);
        outcome = path_differs;

    } else {
        outcome = ngx_bloom_audit_add(zone, &audited->key,
                                  audited->conf->interval);
    }

    last = ngx_bloom_rule_log_key(buf, &audited->key);

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "wrong absent: bloom zone \"%V\" lacks key \"%*s\": %s; "
                  "the backend answered %ui",
                  &zone->name, (size_t) (last - buf), buf, then[outcome],
                  status);
}


/* Ends an audited request.  Counts it as unanswered if the backend has not
 * said whether the key exists. */
static void
ngx_http_bloom_audit_end(void *data)
{
    ngx_http_bloom_audited_t *audited = data;

    if (!audited->settled) {
        ngx_bloom_count(audited->zone, NGX_BLOOM_COUNTER_UNANSWERED, 1);
    }
}
