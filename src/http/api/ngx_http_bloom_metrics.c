
/*
 * GET metrics: all zones and rules for Prometheus, in its text format, from
 * tables: another metric is another line.
 *
 * Metrics of zones have the label "zone"; those of rules also "rule", its name
 * or place, "action" and "on".  There are at most as many rules as there are
 * series of counters (ngx_bloom_counters.h); those that found no room are one.
 */

#include "ngx_http_bloom_metrics.h"
#include "ngx_http_bloom.h"
#include "ngx_http_bloom_response.h"
#include "ngx_http_bloom_stats.h"

#include <math.h>


/* What a handler writes: "} ", a number, and the labels of an image. */
#define NGX_HTTP_BLOOM_SAMPLE_LEN  512

#define NGX_HTTP_BLOOM_LABEL_LEN(value)  (2 * (value)->len)


typedef struct ngx_http_bloom_metric_s  ngx_http_bloom_metric_t;

/*
 * Samples of one metric follow one another, and the first has the help.  The
 * handler writes further labels, if any, "}" and the value; NULL: the zone has
 * no such sample.
 */
struct ngx_http_bloom_metric_s {
    char                       *name;    /* behind "nginx_bloom_" */
    char                       *type;
    char                       *labels;  /* of this sample, or NULL */
    u_char                   *(*handler)(u_char *p,
                                         ngx_http_bloom_view_t *view,
                                         ngx_http_bloom_metric_t *metric);
    size_t                      offset;  /* of the value, in the view */
    char                       *help;
};


/* The same of rules. */
typedef struct {
    char                       *name;
    char                       *labels;
    ngx_uint_t                  counter; /* of the rule */
    char                       *help;
} ngx_http_bloom_rule_metric_t;


typedef struct {
    ngx_http_bloom_view_t       view;
    ngx_str_t                   label;   /* its name */
} ngx_http_bloom_shown_zone_t;

typedef struct {
    ngx_str_t                   labels;
    uint64_t                    counter[NGX_BLOOM_COUNTERS];
} ngx_http_bloom_shown_rule_t;


static void ngx_http_bloom_metrics_of_zones(ngx_http_bloom_text_t *text,
    ngx_http_bloom_main_conf_t *bmcf);
static void ngx_http_bloom_metrics_of_rules(ngx_http_bloom_text_t *text,
    ngx_http_bloom_main_conf_t *bmcf);
static ngx_int_t ngx_http_bloom_show_rule(ngx_array_t *shown,
    ngx_http_bloom_rule_t *rule, uint64_t *seen);
static void ngx_http_bloom_metric_head(ngx_http_bloom_text_t *text,
    char *name, char *type, char *help);
static u_char *ngx_http_bloom_label(u_char *p, ngx_str_t *value);
static u_char *ngx_http_bloom_metric_u64(u_char *p,
    ngx_http_bloom_view_t *view, ngx_http_bloom_metric_t *metric);
static u_char *ngx_http_bloom_metric_ms(u_char *p,
    ngx_http_bloom_view_t *view, ngx_http_bloom_metric_t *metric);
static u_char *ngx_http_bloom_metric_state(u_char *p,
    ngx_http_bloom_view_t *view, ngx_http_bloom_metric_t *metric);
static u_char *ngx_http_bloom_metric_info(u_char *p,
    ngx_http_bloom_view_t *view, ngx_http_bloom_metric_t *metric);
static u_char *ngx_http_bloom_metric_image_ms(u_char *p,
    ngx_http_bloom_view_t *view, ngx_http_bloom_metric_t *metric);
static u_char *ngx_http_bloom_metric_age(u_char *p,
    ngx_http_bloom_view_t *view, ngx_http_bloom_metric_t *metric);
static u_char *ngx_http_bloom_metric_max_age(u_char *p,
    ngx_http_bloom_view_t *view, ngx_http_bloom_metric_t *metric);
static u_char *ngx_http_bloom_metric_image_u64(u_char *p,
    ngx_http_bloom_view_t *view, ngx_http_bloom_metric_t *metric);
static u_char *ngx_http_bloom_metric_image_rate(u_char *p,
    ngx_http_bloom_view_t *view, ngx_http_bloom_metric_t *metric);
static u_char *ngx_http_bloom_metric_rate(u_char *p,
    ngx_http_bloom_view_t *view, ngx_http_bloom_metric_t *metric);
static u_char *ngx_http_bloom_metric_size(u_char *p,
    ngx_http_bloom_view_t *view, ngx_http_bloom_metric_t *metric);
static u_char *ngx_http_bloom_metric_journal_u64(u_char *p,
    ngx_http_bloom_view_t *view, ngx_http_bloom_metric_t *metric);
static u_char *ngx_http_bloom_metric_journal_error(u_char *p,
    ngx_http_bloom_view_t *view, ngx_http_bloom_metric_t *metric);
static u_char *ngx_http_bloom_metric_load_ok(u_char *p,
    ngx_http_bloom_view_t *view, ngx_http_bloom_metric_t *metric);
static u_char *ngx_http_bloom_metric_load_ms(u_char *p,
    ngx_http_bloom_view_t *view, ngx_http_bloom_metric_t *metric);


static ngx_http_bloom_metric_t  ngx_http_bloom_metrics[] = {

    { "checks_total", "counter", "answer=\"absent\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_ABSENT]),
      "Lookups of rules and variables, by what the zone answered." },
    { "checks_total", "counter", "answer=\"present\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_PRESENT]),
      NULL },
    { "checks_total", "counter", "answer=\"unknown\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_UNKNOWN]),
      NULL },

    { "unparsable_keys_total", "counter", NULL,
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_UNPARSABLE]),
      "Keys that were none in the image's key form, asked for or to be "
      "added." },

    { "requests_total", "counter", "decision=\"rejected\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_REJECTED]),
      "Requests, by what a rule decided; dry_run would have been either "
      "of the others." },
    { "requests_total", "counter", "decision=\"routed\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_ROUTED]),
      NULL },
    { "requests_total", "counter", "decision=\"dry_run\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_DRY_RUN]),
      NULL },

    { "additions_total", "counter", "result=\"added\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_ADDED]),
      "Keys that were to be added, by whether they changed the filter." },
    { "additions_total", "counter", "result=\"known\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_KNOWN]),
      NULL },

    { "feedback_requests_total", "counter", "result=\"absent\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_FEEDBACK_ABSENT]),
      "Requests under bloom_feedback for keys that are not there, by "
      "whether the filter noticed." },
    { "feedback_requests_total", "counter", "result=\"false_positive\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_FALSE_POSITIVE]),
      NULL },

    { "audited_requests_total", "counter", NULL,
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_AUDITED]),
      "Requests with an absent key that bloom_audit let through." },

    { "audit_results_total", "counter", "result=\"confirmed\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_CONFIRMED]),
      "What came of audited requests; wrong_absent: the filter lacks a "
      "key that is there." },
    { "audit_results_total", "counter", "result=\"wrong_absent\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_WRONG_ABSENT]),
      NULL },
    { "audit_results_total", "counter", "result=\"unanswered\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_UNANSWERED]),
      NULL },

    { "learned_keys_total", "counter", NULL,
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_LEARNED]),
      "Wrongly absent keys that bloom_audit added." },

    { "loads_total", "counter", "result=\"ok\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_LOAD_OK]),
      "Loads of images while nginx ran, by their result." },
    { "loads_total", "counter", "result=\"refused\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_LOAD_REFUSED]),
      NULL },
    { "loads_total", "counter", "result=\"no_room\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_LOAD_NO_ROOM]),
      NULL },
    { "loads_total", "counter", "result=\"failed\"",
      ngx_http_bloom_metric_u64,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_LOAD_FAILED]),
      NULL },

    { "load_seconds_total", "counter", NULL,
      ngx_http_bloom_metric_ms,
      ngx_http_bloom_of(info.counter[NGX_BLOOM_COUNT_LOAD_MS]),
      "Time that these loads took." },

    { "state", "gauge", "state=\"serving\"",
      ngx_http_bloom_metric_state, NGX_BLOOM_SURE,
      "1 for the state that the zone is in." },
    { "state", "gauge", "state=\"not_loaded\"",
      ngx_http_bloom_metric_state, NGX_BLOOM_NOT_LOADED,
      NULL },
    { "state", "gauge", "state=\"stale\"",
      ngx_http_bloom_metric_state, NGX_BLOOM_STALE,
      NULL },
    { "state", "gauge", "state=\"behind\"",
      ngx_http_bloom_metric_state, NGX_BLOOM_BEHIND,
      NULL },
    { "state", "gauge", "state=\"damaged\"",
      ngx_http_bloom_metric_state, NGX_BLOOM_DAMAGED,
      NULL },

    { "generation", "gauge", NULL,
      ngx_http_bloom_metric_u64, ngx_http_bloom_of(info.generation),
      "Images that have served since the zone's memory was made; 0: none "
      "does." },

    { "image_info", "gauge", NULL,
      ngx_http_bloom_metric_info, 0,
      "What the image that serves says of itself, as labels." },

    { "image_created_timestamp_seconds", "gauge", NULL,
      ngx_http_bloom_metric_image_ms, ngx_http_bloom_of(info.image.created),
      "When the image was built." },

    { "image_as_of_timestamp_seconds", "gauge", NULL,
      ngx_http_bloom_metric_image_ms, ngx_http_bloom_of(info.image.as_of),
      "Up to when its keys are complete, if it says so." },

    { "image_age_seconds", "gauge", NULL,
      ngx_http_bloom_metric_age, 0,
      "Time since then, or since it was built if it does not say so." },

    { "image_max_age_seconds", "gauge", NULL,
      ngx_http_bloom_metric_max_age, 0,
      "Age from which on the zone cannot tell (max_age)." },

    { "image_items", "gauge", NULL,
      ngx_http_bloom_metric_image_u64, ngx_http_bloom_of(info.image.items),
      "Keys that the image was built with." },

    { "capacity_items", "gauge", NULL,
      ngx_http_bloom_metric_image_u64, ngx_http_bloom_of(info.image.capacity),
      "Keys that the image was made for." },

    { "estimated_items", "gauge", NULL,
      ngx_http_bloom_metric_image_u64, ngx_http_bloom_of(estimated_items),
      "Keys in the filter, additions included, estimated from its bits." },

    { "fill_ratio", "gauge", NULL,
      ngx_http_bloom_metric_image_rate, ngx_http_bloom_of(fill_ratio),
      "Share of the filter's bits that are set." },

    { "estimated_false_positive_ratio", "gauge", NULL,
      ngx_http_bloom_metric_image_rate, ngx_http_bloom_of(estimated_fpr),
      "Expected share of absent keys that the filter takes for present." },

    { "target_false_positive_ratio", "gauge", NULL,
      ngx_http_bloom_metric_image_rate, ngx_http_bloom_of(info.image.fpr),
      "The same as the image was made for, at its capacity." },

    { "measured_false_positive_ratio", "gauge", NULL,
      ngx_http_bloom_metric_rate, ngx_http_bloom_of(measured_fpr),
      "The same as bloom_feedback measured it, of all requests so far." },

    { "filter_bytes", "gauge", NULL,
      ngx_http_bloom_metric_image_u64, ngx_http_bloom_of(filter_bytes),
      "Size of the filter that serves." },

    { "bank_bytes", "gauge", NULL,
      ngx_http_bloom_metric_size, ngx_http_bloom_of(info.bank_size),
      "Size of the largest filter that fits the zone." },

    { "zone_bytes", "gauge", NULL,
      ngx_http_bloom_metric_size, ngx_http_bloom_of(info.size),
      "Size of the zone's shared memory." },

    { "huge_page_bytes", "gauge", NULL,
      ngx_http_bloom_metric_size, ngx_http_bloom_of(info.huge),
      "Of the zone's memory in use, what lies on huge pages." },

    { "journal_bytes", "gauge", NULL,
      ngx_http_bloom_metric_journal_u64, ngx_http_bloom_of(info.journal_bytes),
      "Size of the journal, from its oldest segment to its end." },

    { "journal_unsynced_bytes", "gauge", NULL,
      ngx_http_bloom_metric_journal_u64,
      ngx_http_bloom_of(info.unsynced_bytes),
      "Of these, not known to be on disk yet." },

    { "journal_replay_bytes", "gauge", NULL,
      ngx_http_bloom_metric_journal_u64, ngx_http_bloom_of(info.replay_bytes),
      "Of these, behind the last checkpoint: a start has to replay them." },

    { "journal_error", "gauge", NULL,
      ngx_http_bloom_metric_journal_error, 0,
      "1 while the journal cannot be written or synchronised." },

    { "journal_kept_keys", "gauge", NULL,
      ngx_http_bloom_metric_u64, ngx_http_bloom_of(info.kept),
      "Keys of bloom_add that wait for the disk." },

    { "journal_lost_keys", "gauge", NULL,
      ngx_http_bloom_metric_u64, ngx_http_bloom_of(info.lost),
      "Keys of bloom_add that found no room to wait: they end with the "
      "generation." },

    { "last_load_success", "gauge", NULL,
      ngx_http_bloom_metric_load_ok, 0,
      "1 if the last load while nginx ran loaded its image, 0 if not." },

    { "last_load_timestamp_seconds", "gauge", NULL,
      ngx_http_bloom_metric_load_ms, ngx_http_bloom_of(info.loaded.when),
      "When it began." },

    { "last_load_duration_seconds", "gauge", NULL,
      ngx_http_bloom_metric_load_ms, ngx_http_bloom_of(info.loaded.took),
      "Time it took." },

    { "load_done_bytes", "gauge", NULL,
      ngx_http_bloom_metric_u64, ngx_http_bloom_of(info.load_done),
      "Of the load under way: read so far." },

    { "load_size_bytes", "gauge", NULL,
      ngx_http_bloom_metric_u64, ngx_http_bloom_of(info.load_total),
      "Of the load under way: size of the image; 0: none is." },

    { "helper_heartbeat_timestamp_seconds", "gauge", NULL,
      ngx_http_bloom_metric_ms, ngx_http_bloom_of(info.heartbeat),
      "When the helper process was last at work." },

    { NULL, NULL, NULL, NULL, 0, NULL }
};


static ngx_http_bloom_rule_metric_t  ngx_http_bloom_rule_metrics[] = {

    { "rule_checks_total", "answer=\"absent\"", NGX_BLOOM_ABSENT,
      "Requests that a rule looked at, by what its zone answered." },
    { "rule_checks_total", "answer=\"present\"", NGX_BLOOM_PRESENT, NULL },
    { "rule_checks_total", "answer=\"unknown\"", NGX_BLOOM_UNKNOWN, NULL },
    { "rule_checks_total", "answer=\"unparsable\"", NGX_BLOOM_UNPARSABLE,
      NULL },

    { "rule_requests_total", "decision=\"fired\"",
      NGX_HTTP_BLOOM_COUNT_FIRED,
      "Requests that a rule decided: fired, it did what it says; dry_run and "
      "audited, it would have; unavailable, it rejected what it could not "
      "tell." },
    { "rule_requests_total", "decision=\"dry_run\"",
      NGX_HTTP_BLOOM_COUNT_DRY_RUN, NULL },
    { "rule_requests_total", "decision=\"audited\"",
      NGX_HTTP_BLOOM_COUNT_AUDITED, NULL },
    { "rule_requests_total", "decision=\"unavailable\"",
      NGX_HTTP_BLOOM_COUNT_UNAVAILABLE, NULL },

    { NULL, NULL, 0, NULL }
};


/* by ngx_http_bloom_action_e */
static const char  *ngx_http_bloom_actions[] = {
    "pass",
    "reject",
    "route"
};


ngx_int_t
ngx_http_bloom_metrics_get(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    ngx_int_t                    rc;
    ngx_str_t                    type;
    ngx_http_bloom_text_t        text;
    ngx_http_bloom_main_conf_t  *bmcf;

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    bmcf = ngx_http_get_module_main_conf(r, ngx_http_bloom_module);

    ngx_http_bloom_text_init(&text, r->pool);

    ngx_http_bloom_metrics_of_zones(&text, bmcf);
    ngx_http_bloom_metrics_of_rules(&text, bmcf);

    ngx_str_set(&type, "text/plain; version=0.0.4; charset=utf-8");

    return ngx_http_bloom_response_text(r, NGX_HTTP_OK, &type, &text);
}


static void
ngx_http_bloom_metrics_of_zones(ngx_http_bloom_text_t *text,
    ngx_http_bloom_main_conf_t *bmcf)
{
    u_char                       *p, sample[NGX_HTTP_BLOOM_SAMPLE_LEN];
    ngx_uint_t                    i;
    ngx_bloom_info_t              info;
    ngx_bloom_zone_t            **zone;
    ngx_http_bloom_metric_t      *metric;
    ngx_http_bloom_shown_zone_t  *shown;

    zone = bmcf->zones.elts;

    shown = ngx_palloc(text->pool, bmcf->zones.nelts
                                   * sizeof(ngx_http_bloom_shown_zone_t));
    if (shown == NULL) {
        text->failed = 1;
        return;
    }

    for (i = 0; i < bmcf->zones.nelts; i++) {
        ngx_bloom_zone_info(zone[i], &info);
        ngx_http_bloom_view(&shown[i].view, zone[i], &info);

        p = ngx_pnalloc(text->pool, NGX_HTTP_BLOOM_LABEL_LEN(&zone[i]->name));
        if (p == NULL) {
            text->failed = 1;
            return;
        }

        shown[i].label.data = p;
        shown[i].label.len = ngx_http_bloom_label(p, &zone[i]->name) - p;
    }

    for (metric = ngx_http_bloom_metrics; metric->name != NULL; metric++) {

        if (metric->help != NULL) {
            ngx_http_bloom_metric_head(text, metric->name, metric->type,
                                       metric->help);
        }

        for (i = 0; i < bmcf->zones.nelts; i++) {

            p = metric->handler(sample, &shown[i].view, metric);

            if (p != NULL) {
                ngx_http_bloom_text_printf(text, "nginx_bloom_%s{zone=\"",
                                           metric->name);
                ngx_http_bloom_text_append(text, &shown[i].label);
                ngx_http_bloom_text_printf(text, "\"%s%s%*s\n",
                                           metric->labels ? "," : "",
                                           metric->labels ? metric->labels : "",
                                           (size_t) (p - sample), sample);
            }
        }
    }
}


static void
ngx_http_bloom_metrics_of_rules(ngx_http_bloom_text_t *text,
    ngx_http_bloom_main_conf_t *bmcf)
{
    uint64_t                       seen[NGX_BLOOM_SERIES / 64];
    ngx_uint_t                     i, j;
    ngx_array_t                  **list, shown;
    ngx_http_bloom_rule_t         *rule;
    ngx_http_bloom_shown_rule_t   *show;
    ngx_http_bloom_rule_metric_t  *metric;

    if (ngx_array_init(&shown, text->pool, 8,
                       sizeof(ngx_http_bloom_shown_rule_t))
        != NGX_OK)
    {
        text->failed = 1;
        return;
    }

    ngx_memzero(seen, sizeof(seen));

    list = bmcf->rules.elts;

    for (i = 0; i < bmcf->rules.nelts; i++) {
        rule = list[i]->elts;

        for (j = 0; j < list[i]->nelts; j++) {
            if (ngx_http_bloom_show_rule(&shown, &rule[j], seen) != NGX_OK) {
                text->failed = 1;
                return;
            }
        }
    }

    show = shown.elts;

    for (metric = ngx_http_bloom_rule_metrics; metric->name; metric++) {

        if (metric->help != NULL && shown.nelts != 0) {
            ngx_http_bloom_metric_head(text, metric->name, "counter",
                                       metric->help);
        }

        for (i = 0; i < shown.nelts; i++) {
            ngx_http_bloom_text_printf(text, "nginx_bloom_%s{", metric->name);
            ngx_http_bloom_text_append(text, &show[i].labels);
            ngx_http_bloom_text_printf(text, "%s} %uL\n", metric->labels,
                                       show[i].counter[metric->counter]);
        }
    }
}


/* Rules that are counted together are shown as one. */
static ngx_int_t
ngx_http_bloom_show_rule(ngx_array_t *shown, ngx_http_bloom_rule_t *rule,
    uint64_t *seen)
{
    u_char                       *p;
    uint64_t                      bit;
    ngx_str_t                     other, *label, *zone;
    ngx_uint_t                    is_other;
    ngx_http_bloom_shown_rule_t  *show;

    bit = (uint64_t) 1 << rule->series % 64;

    if (seen[rule->series / 64] & bit) {
        return NGX_OK;
    }

    seen[rule->series / 64] |= bit;

    is_other = (rule->series == NGX_BLOOM_SERIES_OTHER);

    ngx_str_set(&other, "other");

    label = is_other ? &other : &rule->label;
    zone = is_other ? &other : &rule->key.zone->name;

    show = ngx_array_push(shown);
    p = ngx_pnalloc(shown->pool,
                    sizeof("rule=\"\",zone=\"\",action=\"reject\","
                           "on=\"present\",")
                    + NGX_HTTP_BLOOM_LABEL_LEN(label)
                    + NGX_HTTP_BLOOM_LABEL_LEN(zone));

    if (show == NULL || p == NULL) {
        return NGX_ERROR;
    }

    show->labels.data = p;

    p = ngx_sprintf(p, "rule=\"");
    p = ngx_http_bloom_label(p, label);
    p = ngx_sprintf(p, "\",zone=\"");
    p = ngx_http_bloom_label(p, zone);
    p = ngx_sprintf(p, "\",action=\"%s\",on=\"%s\",",
                    is_other ? "other" : ngx_http_bloom_actions[rule->action],
                    is_other ? "other"
                    : rule->fires == NGX_BLOOM_ABSENT ? "absent" : "present");

    show->labels.len = p - show->labels.data;

    ngx_bloom_count_sums(rule->series, show->counter);

    return NGX_OK;
}


static void
ngx_http_bloom_metric_head(ngx_http_bloom_text_t *text, char *name,
    char *type, char *help)
{
    ngx_http_bloom_text_printf(text, "# HELP nginx_bloom_%s %s\n"
                               "# TYPE nginx_bloom_%s %s\n",
                               name, help, name, type);
}


/* The value of a label is UTF-8; bytes that are not become question marks. */
static u_char *
ngx_http_bloom_label(u_char *p, ngx_str_t *value)
{
    u_char    *c, *next, *end;
    uint32_t   code;

    c = value->data;
    end = value->data + value->len;

    while (c < end) {

        if (*c == '"' || *c == '\\') {
            *p++ = '\\';
            *p++ = *c++;

        } else if (*c == '\n') {
            *p++ = '\\';
            *p++ = 'n';
            c++;

        } else if (*c < 0x80) {
            *p++ = *c++;

        } else {
            next = c;

            code = ngx_utf8_decode(&next, end - c);

            if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
                *p++ = '?';
                c++;

            } else {
                p = ngx_cpymem(p, c, next - c);
                c = next;
            }
        }
    }

    return p;
}


static u_char *
ngx_http_bloom_metric_u64(u_char *p, ngx_http_bloom_view_t *view,
    ngx_http_bloom_metric_t *metric)
{
    return ngx_sprintf(p, "} %uL",
                       ngx_http_bloom_value(view, metric, uint64_t));
}


static u_char *
ngx_http_bloom_metric_size(u_char *p, ngx_http_bloom_view_t *view,
    ngx_http_bloom_metric_t *metric)
{
    return ngx_sprintf(p, "} %uz", ngx_http_bloom_value(view, metric, size_t));
}


static u_char *
ngx_http_bloom_metric_ms(u_char *p, ngx_http_bloom_view_t *view,
    ngx_http_bloom_metric_t *metric)
{
    uint64_t  ms;

    ms = ngx_http_bloom_value(view, metric, uint64_t);

    return ngx_sprintf(p, "} %uL.%03uL", ms / 1000, ms % 1000);
}


/* nginx's own formats know no exponents, and rates may be tiny. */
static u_char *
ngx_http_bloom_metric_rate(u_char *p, ngx_http_bloom_view_t *view,
    ngx_http_bloom_metric_t *metric)
{
    double  rate;

    rate = ngx_http_bloom_value(view, metric, double);

    if (isnan(rate)) {
        return NULL;
    }

    return p + snprintf((char *) p, NGX_HTTP_BLOOM_SAMPLE_LEN, "} %.6g", rate);
}


/* Of what serves, if anything does. */
static u_char *
ngx_http_bloom_metric_image_u64(u_char *p, ngx_http_bloom_view_t *view,
    ngx_http_bloom_metric_t *metric)
{
    return view->info.generation ? ngx_http_bloom_metric_u64(p, view, metric)
                                 : NULL;
}


static u_char *
ngx_http_bloom_metric_image_rate(u_char *p, ngx_http_bloom_view_t *view,
    ngx_http_bloom_metric_t *metric)
{
    return view->info.generation ? ngx_http_bloom_metric_rate(p, view, metric)
                                 : NULL;
}


static u_char *
ngx_http_bloom_metric_image_ms(u_char *p, ngx_http_bloom_view_t *view,
    ngx_http_bloom_metric_t *metric)
{
    if (view->info.generation == 0
        || ngx_http_bloom_value(view, metric, uint64_t) == 0)
    {
        return NULL;
    }

    return ngx_http_bloom_metric_ms(p, view, metric);
}


static u_char *
ngx_http_bloom_metric_age(u_char *p, ngx_http_bloom_view_t *view,
    ngx_http_bloom_metric_t *metric)
{
    uint64_t        now, since;
    bloom_image_t  *image;

    if (view->info.generation == 0) {
        return NULL;
    }

    image = &view->info.image;
    since = image->as_of ? image->as_of : image->created;

    now = (uint64_t) ngx_time() * 1000;

    return ngx_sprintf(p, "} %uL", (now - ngx_min(now, since)) / 1000);
}


static u_char *
ngx_http_bloom_metric_max_age(u_char *p, ngx_http_bloom_view_t *view,
    ngx_http_bloom_metric_t *metric)
{
    return view->zone->max_age ? ngx_sprintf(p, "} %T", view->zone->max_age)
                               : NULL;
}


static u_char *
ngx_http_bloom_metric_state(u_char *p, ngx_http_bloom_view_t *view,
    ngx_http_bloom_metric_t *metric)
{
    return ngx_sprintf(p, "} %d", view->info.unsure == metric->offset);
}


static u_char *
ngx_http_bloom_metric_info(u_char *p, ngx_http_bloom_view_t *view,
    ngx_http_bloom_metric_t *metric)
{
    u_char          hex[2 * BLOOM_IMAGE_BUILD_ID_LEN];
    bloom_image_t  *image;

    if (view->info.generation == 0) {
        return NULL;
    }

    image = &view->info.image;

    ngx_hex_dump(hex, image->build_id, BLOOM_IMAGE_BUILD_ID_LEN);

    return ngx_sprintf(p, ",build_id=\"%*s\",layout=\"%s\",hash=\"%s\","
                       "key_form=\"%s\",k=\"%uD\",uploaded=\"%s\"} 1",
                       sizeof(hex), hex,
                       bloom_layout_name(image->geometry.layout),
                       bloom_hash_name(image->hasher.kind),
                       bloom_key_form_name(image->key_form),
                       image->geometry.k,
                       view->info.uploaded ? "true" : "false");
}


static u_char *
ngx_http_bloom_metric_journal_u64(u_char *p, ngx_http_bloom_view_t *view,
    ngx_http_bloom_metric_t *metric)
{
    return view->info.journal ? ngx_http_bloom_metric_u64(p, view, metric)
                              : NULL;
}


static u_char *
ngx_http_bloom_metric_journal_error(u_char *p, ngx_http_bloom_view_t *view,
    ngx_http_bloom_metric_t *metric)
{
    return ngx_sprintf(p, "} %d", view->info.journal_error != NULL);
}


static u_char *
ngx_http_bloom_metric_load_ok(u_char *p, ngx_http_bloom_view_t *view,
    ngx_http_bloom_metric_t *metric)
{
    return view->info.loaded.when
           ? ngx_sprintf(p, "} %d",
                         view->info.loaded.outcome == NGX_BLOOM_DONE)
           : NULL;
}


static u_char *
ngx_http_bloom_metric_load_ms(u_char *p, ngx_http_bloom_view_t *view,
    ngx_http_bloom_metric_t *metric)
{
    return view->info.loaded.when ? ngx_http_bloom_metric_ms(p, view, metric)
                                  : NULL;
}
