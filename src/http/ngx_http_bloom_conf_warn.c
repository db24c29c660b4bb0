/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file warns of rules that do not do what they seem to do.
 */

#include "ngx_http_bloom_conf_warn.h"


/* Variables without a value when rules run. */
typedef struct {
    ngx_str_t   name;                    /* or how their names begin */
    ngx_uint_t  later;                   /* they have one in a location that
                                            only internal redirects lead to */
    char       *why;
} ngx_http_bloom_conf_warn_name_t;


static void ngx_http_bloom_conf_warn_variables(ngx_conf_t *cf,
    ngx_http_bloom_rule_t *first, ngx_http_bloom_rule_t *rule,
    ngx_uint_t *index, char *where);
static void ngx_http_bloom_conf_warn_variable(ngx_conf_t *cf,
    ngx_http_bloom_rule_t *first, ngx_http_bloom_rule_t *rule,
    ngx_str_t *name, char *where);
static ngx_uint_t ngx_http_bloom_conf_warn_is_internal(
    ngx_http_bloom_rule_t *first);
static uint32_t ngx_http_bloom_conf_warn_form(ngx_bloom_zone_t *zone);
static void ngx_http_bloom_conf_warn_pass(ngx_conf_t *cf,
    ngx_http_bloom_rule_t *pass, ngx_uint_t n);


static ngx_http_bloom_conf_warn_name_t  ngx_http_bloom_conf_warn_names[] = {

    { ngx_string("request_body"), 0,
      "nginx has not read the body, and no rule can have a key from it; take "
      "the key from the path, an argument, a cookie or a header" },

    { ngx_string("sent_"), 0,
      "no response has been sent; take the key from the request" },

    { ngx_string("upstream_"), 1,
      "no backend has answered, except in a location that \"X-Accel-Redirect\" "
      "or \"error_page\" leads to; mark that location \"internal\", or take "
      "the key from the request" },

    { ngx_null_string, 0, NULL }
};


void
ngx_http_bloom_conf_warn_dropped(ngx_conf_t *cf, ngx_array_t *rules,
    ngx_array_t *dropped)
{
    ngx_http_bloom_rule_t  *own, *lost;

    if (ngx_process == NGX_PROCESS_SIGNALLER) {
        return;
    }

    own = rules->elts;
    lost = dropped->elts;

    ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                  "the rules from %s:%ui on are not inherited where the rules "
                  "from %s:%ui on apply: repeat them there, or write "
                  "\"bloom_rules off\" beside the latter to confirm that",
                  lost->common.conf_file, lost->common.conf_line,
                  own->common.conf_file, own->common.conf_line);
}


void
ngx_http_bloom_conf_warn(ngx_conf_t *cf, ngx_http_bloom_main_conf_t *bmcf)
{
    ngx_uint_t               i, j;
    ngx_array_t            **list;
    ngx_http_bloom_rule_t   *rule;

    if (ngx_process == NGX_PROCESS_SIGNALLER) {
        return;                          /* it has not opened the images */
    }

    list = bmcf->rules.elts;

    for (i = 0; i < bmcf->rules.nelts; i++) {
        rule = list[i]->elts;

        for (j = 0; j < list[i]->nelts; j++) {
            if (rule[j].common.action == NGX_BLOOM_RULE_PASS
                && rule[j].common.fires == NGX_BLOOM_PRESENT
                && !rule[j].common.dry_run)
            {
                ngx_http_bloom_conf_warn_pass(cf, &rule[j],
                                              list[i]->nelts - j);
            }

            ngx_http_bloom_conf_warn_variables(cf, rule, &rule[j],
                                               rule[j].key.value.flushes,
                                               "the key");

            if (rule[j].filter != NULL) {
                ngx_http_bloom_conf_warn_variables(cf, rule, &rule[j],
                                                   rule[j].filter->flushes,
                                                   "\"if=\"");
            }
        }
    }
}


/* Warns of those of the variables with these indices, which end with -1, that
 * have no value when rules run; `first` is the first rule of the list. */
static void
ngx_http_bloom_conf_warn_variables(ngx_conf_t *cf, ngx_http_bloom_rule_t *first,
    ngx_http_bloom_rule_t *rule, ngx_uint_t *index, char *where)
{
    ngx_http_variable_t        *v;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    v = cmcf->variables.elts;

    for ( /* void */ ; index && *index != (ngx_uint_t) -1; index++) {
        ngx_http_bloom_conf_warn_variable(cf, first, rule, &v[*index].name,
                                          where);
    }
}


static void
ngx_http_bloom_conf_warn_variable(ngx_conf_t *cf, ngx_http_bloom_rule_t *first,
    ngx_http_bloom_rule_t *rule, ngx_str_t *name, char *where)
{
    ngx_http_bloom_conf_warn_name_t  *no;

    for (no = ngx_http_bloom_conf_warn_names; no->name.len; no++) {

        if (name->len < no->name.len
            || ngx_strncmp(name->data, no->name.data, no->name.len) != 0
            || (no->later && ngx_http_bloom_conf_warn_is_internal(first)))
        {
            continue;
        }

        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"$%V\" in %s of the rule in %s:%ui has no value "
                      "when rules run: %s", name, where, rule->common.conf_file,
                      rule->common.conf_line, no->why);
        return;
    }
}


/* Returns 1 if a list applies only where internal redirects lead to. */
static ngx_uint_t
ngx_http_bloom_conf_warn_is_internal(ngx_http_bloom_rule_t *first)
{
    ngx_uint_t               i;
    ngx_http_bloom_place_t  *place;

    place = first->places->elts;

    for (i = 0; i < first->places->nelts; i++) {

        /* a server applies its rules in locations that have none */

        if (place[i].location->name.len != 0 && !place[i].location->named
            && !place[i].location->internal)
        {
            return 0;
        }
    }

    return 1;
}


/* Returns the key form of the images of a zone, as far as the configuration
 * tells: an image may be missing. */
static uint32_t
ngx_http_bloom_conf_warn_form(ngx_bloom_zone_t *zone)
{
    return zone->key_form != -1 ? (uint32_t) zone->key_form
                                : zone->image.key_form;
}


/* Warns of a "bloom_pass present" that is the first of `n` rules. */
static void
ngx_http_bloom_conf_warn_pass(ngx_conf_t *cf, ngx_http_bloom_rule_t *pass,
    ngx_uint_t n)
{
    uint32_t                form;
    ngx_uint_t              i, below, search;
    ngx_http_bloom_rule_t  *block;

    form = ngx_http_bloom_conf_warn_form(pass->key.zone);

    below = !(pass->common.lookup & NGX_BLOOM_LOOKUP_EXACT)
            && (form == BLOOM_FORM_HOST || form == BLOOM_FORM_URL);

    /* not with the lowest rate, unless a key has several chances */

    search = below || pass->key.zone->image.fpr <= 0
             || pass->key.zone->image.fpr > BLOOM_FPR_MIN;

    for (i = 1; i < n && (below || search); i++) {

        block = &pass[i];

        if (block->common.fires != NGX_BLOOM_PRESENT
            || block->common.action == NGX_BLOOM_RULE_PASS)
        {
            continue;
        }

        if (below
            && ngx_http_bloom_conf_warn_form(block->key.zone)
               == BLOOM_FORM_URL)
        {
            below = 0;

            ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                          "listed URLs pass the rule in %s:%ui: \"bloom_pass "
                          "present\" in %s:%ui comes first and passes every "
                          "URL below an allowed host or directory; add "
                          "\"exact\" to it, or move it after that rule",
                          block->common.conf_file, block->common.conf_line,
                          pass->common.conf_file, pass->common.conf_line);
        }

        if (search) {
            search = 0;

            ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                          "clients can bypass the rule in %s:%ui: "
                          "\"bloom_pass present\" in %s:%ui comes first and "
                          "also passes the false positives of its filter, "
                          "which clients can search for; use an exact allow "
                          "list instead, such as a \"map\" that empties the "
                          "key, or \"exact\" and a filter with the rate 1e-9",
                          block->common.conf_file, block->common.conf_line,
                          pass->common.conf_file, pass->common.conf_line);
        }
    }
}
