/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file registers ngx_http_bloom_module, which decides about requests by
 * Bloom filters in shared memory: its directives, its configuration and its
 * handlers.
 *
 * src/http/ngx_http_bloom_rules.c decides about requests, src/http/api answers
 * requests to the endpoint, and src/zone, src/change, src/image and src/process
 * have the filters, what changes them, and who does the work.
 * docs/architecture.md describes how they work together.
 */

#include "ngx_http_bloom.h"
#include "ngx_http_bloom_api.h"
#include "ngx_http_bloom_audit.h"
#include "ngx_http_bloom_conf.h"
#include "ngx_http_bloom_conf_change.h"
#include "ngx_http_bloom_conf_rules.h"
#include "ngx_http_bloom_conf_warn.h"
#include "ngx_http_bloom_conf_zone.h"
#include "ngx_http_bloom_endpoint.h"
#include "ngx_http_bloom_feedback.h"
#include "ngx_http_bloom_ffi_zone.h"
#include "ngx_http_bloom_route.h"
#include "ngx_http_bloom_rules.h"
#include "ngx_http_bloom_value.h"
#include "ngx_http_bloom_variables.h"
#include "ngx_bloom_helper.h"
#include "ngx_bloom_owed.h"
#include "ngx_bloom_reload.h"
#include "ngx_bloom_shutdown.h"
#include "bloom_version.h"


static ngx_int_t ngx_http_bloom_add_handlers(ngx_conf_t *cf);
static ngx_int_t ngx_http_bloom_init_module(ngx_cycle_t *cycle);
static void ngx_http_bloom_attach(ngx_cycle_t *cycle,
    ngx_http_bloom_main_conf_t *bmcf);
static void ngx_http_bloom_claim(ngx_cycle_t *cycle,
    ngx_http_bloom_main_conf_t *bmcf);
static ngx_int_t ngx_http_bloom_init_process(ngx_cycle_t *cycle);
static void ngx_http_bloom_exit_process(ngx_cycle_t *cycle);
static void ngx_http_bloom_exit_master(ngx_cycle_t *cycle);
static void *ngx_http_bloom_create_main_conf(ngx_conf_t *cf);
static void *ngx_http_bloom_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_bloom_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_bloom_api(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


static ngx_conf_enum_t  ngx_http_bloom_log_levels[] = {
    { ngx_string("info"), NGX_LOG_INFO },
    { ngx_string("notice"), NGX_LOG_NOTICE },
    { ngx_string("warn"), NGX_LOG_WARN },
    { ngx_string("error"), NGX_LOG_ERR },
    { ngx_null_string, 0 }
};


static ngx_command_t  ngx_http_bloom_commands[] = {

    { ngx_string("bloom_state_path"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_bloom_conf_zone_state_path,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_bloom_conf_zone,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_guard"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_bloom_conf_zone_guard,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_source"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_bloom_conf_zone_source,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_arg"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE23,
      ngx_http_bloom_value_conf,
      NGX_HTTP_MAIN_CONF_OFFSET,
      NGX_HTTP_BLOOM_VALUE_ARG,
      NULL },

    { ngx_string("bloom_cookie"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE23,
      ngx_http_bloom_value_conf,
      NGX_HTTP_MAIN_CONF_OFFSET,
      NGX_HTTP_BLOOM_VALUE_COOKIE,
      NULL },

    { ngx_string("bloom_header"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE23,
      ngx_http_bloom_value_conf,
      NGX_HTTP_MAIN_CONF_OFFSET,
      NGX_HTTP_BLOOM_VALUE_HEADER,
      NULL },

    { ngx_string("bloom_lookup"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_2MORE,
      ngx_http_bloom_conf_rules_lookup,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_pass"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_2MORE,
      ngx_http_bloom_conf_rules_rule,
      NGX_HTTP_LOC_CONF_OFFSET,
      NGX_BLOOM_RULE_PASS,
      NULL },

    { ngx_string("bloom_reject"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_2MORE,
      ngx_http_bloom_conf_rules_rule,
      NGX_HTTP_LOC_CONF_OFFSET,
      NGX_BLOOM_RULE_REJECT,
      NULL },

    { ngx_string("bloom_route"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_2MORE,
      ngx_http_bloom_conf_rules_rule,
      NGX_HTTP_LOC_CONF_OFFSET,
      NGX_BLOOM_RULE_ROUTE,
      NULL },

    { ngx_string("bloom_rules"),
      NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_bloom_conf_rules_off,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_add"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_bloom_conf_change,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_bloom_loc_conf_t, adds),
      NULL },

    { ngx_string("bloom_remove"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_bloom_conf_change,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_bloom_loc_conf_t, removes),
      NULL },

    { ngx_string("bloom_feedback"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_bloom_feedback_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_audit"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE123,
      ngx_http_bloom_audit_conf,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_api"),
      NGX_HTTP_LOC_CONF|NGX_CONF_ANY,
      ngx_http_bloom_api,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_dry_run"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_bloom_loc_conf_t, policy.dry_run),
      NULL },

    { ngx_string("bloom_unknown"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_bloom_conf_rules_unknown,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("bloom_unavailable"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_ANY,
      ngx_http_bloom_conf_renamed,
      0,
      0,
      "bloom_unknown" },

    { ngx_string("bloom_log_level"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_bloom_conf_enum,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_bloom_loc_conf_t, policy.log_level),
      &ngx_http_bloom_log_levels },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_bloom_module_ctx = {
    ngx_http_bloom_variables_add,          /* preconfiguration */
    ngx_http_bloom_add_handlers,           /* postconfiguration */

    ngx_http_bloom_create_main_conf,       /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_bloom_create_loc_conf,        /* create location configuration */
    ngx_http_bloom_merge_loc_conf          /* merge location configuration */
};


ngx_module_t  ngx_http_bloom_module = {
    NGX_MODULE_V1,
    &ngx_http_bloom_module_ctx,            /* module context */
    ngx_http_bloom_commands,               /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_bloom_init_module,            /* init module */
    ngx_http_bloom_init_process,           /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_bloom_exit_process,           /* exit process */
    ngx_http_bloom_exit_master,            /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_bloom_add_handlers(ngx_conf_t *cf)
{
    ngx_http_handler_pt         *h;
    ngx_http_core_main_conf_t   *cmcf;
    ngx_http_bloom_main_conf_t  *bmcf;

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);

    if (bmcf->state_path.data == NULL) {
        ngx_str_set(&bmcf->state_path, NGX_BLOOM_STATE_PATH);

        if (ngx_http_bloom_conf_full_name(cf, &bmcf->state_path, 0) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (ngx_http_bloom_conf_zone_init(cf, bmcf) != NGX_OK
        || ngx_http_bloom_endpoint_init(cf, bmcf) != NGX_OK
        || ngx_bloom_declare_check(cf, &bmcf->zones) != NGX_OK
        || ngx_http_bloom_conf_rules_check_routes(cf, bmcf) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_bloom_conf_warn(cf, bmcf);

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_bloom_rules_handler;

    if (bmcf->routes) {
        h = ngx_array_push(&cmcf->phases[NGX_HTTP_PRECONTENT_PHASE].handlers);
        if (h == NULL) {
            return NGX_ERROR;
        }

        *h = ngx_http_bloom_route_handler;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_bloom_init_module(ngx_cycle_t *cycle)
{
    ngx_http_bloom_main_conf_t  *bmcf;

    bmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_bloom_module);

    if (bmcf != NULL) {
        ngx_http_bloom_claim(cycle, bmcf);
        ngx_bloom_reload_accepted(cycle, &bmcf->zones);
        ngx_http_bloom_attach(cycle, bmcf);
        (void) ngx_bloom_helper_init(cycle, &bmcf->zones);

        if (ngx_is_init_cycle(cycle->old_cycle) && !ngx_test_config) {
            ngx_log_error(NGX_LOG_NOTICE, cycle->log, 0,
                          "bloom module " BLOOM_VERSION " serves %ui zone%s",
                          bmcf->zones.nelts,
                          bmcf->zones.nelts == 1 ? "" : "s");
        }
    }

    return NGX_OK;
}


/*
 * Attaches the state directories in the single process of "master_process off".
 * With a master, only its children do that.
 */
static void
ngx_http_bloom_attach(ngx_cycle_t *cycle, ngx_http_bloom_main_conf_t *bmcf)
{
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (!ccf->master && !ngx_test_config) {
        ngx_bloom_zone_attach_states(&bmcf->zones);
        ngx_http_bloom_ffi_zone_open(cycle);
    }
}


/*
 * Claims the counters of this configuration's zones and rules.  A zone or rule
 * that the previous configuration also had keeps the values of its counters.
 * Finds which rules have a plain key.
 */
static void
ngx_http_bloom_claim(ngx_cycle_t *cycle, ngx_http_bloom_main_conf_t *bmcf)
{
    ngx_uint_t                   i, j;
    ngx_array_t                **list;
    ngx_bloom_zone_t           **zone;
    ngx_http_bloom_rule_t       *rule;
    ngx_http_core_main_conf_t   *cmcf;

    if (bmcf->zones.nelts == 0 || ngx_test_config) {
        return;
    }

    ngx_bloom_counters_begin();

    zone = bmcf->zones.elts;

    for (i = 0; i < bmcf->zones.nelts; i++) {
        zone[i]->series = ngx_bloom_counters_claim(&zone[i]->name);
    }

    list = bmcf->rules.elts;
    cmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module);

    for (i = 0; i < bmcf->rules.nelts; i++) {
        rule = list[i]->elts;

        for (j = 0; j < list[i]->nelts; j++) {
            rule[j].plain = ngx_http_bloom_variables_only_read(cmcf,
                                                               &rule[j].key);
            rule[j].common.series =
                          ngx_bloom_counters_claim(&rule[j].common.identity);
        }
    }
}


static ngx_int_t
ngx_http_bloom_init_process(ngx_cycle_t *cycle)
{
    ngx_http_bloom_main_conf_t  *bmcf;

    bmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_bloom_module);

    if (bmcf != NULL && bmcf->zones.nelts != 0) {
        ngx_bloom_counters_process();
        ngx_bloom_zone_attach_states(&bmcf->zones);
        ngx_bloom_shutdown_init(cycle, &bmcf->zones);
    }

    ngx_http_bloom_ffi_zone_open(cycle);

    return ngx_bloom_helper_process(cycle);
}


static void
ngx_http_bloom_exit_process(ngx_cycle_t *cycle)
{
    ngx_http_bloom_main_conf_t  *bmcf;

    bmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_bloom_module);

    ngx_http_bloom_ffi_zone_close();

    if (bmcf != NULL) {
        ngx_bloom_owed_end(&bmcf->zones);
        ngx_bloom_shutdown_end(cycle, &bmcf->zones);
    }
}


static void
ngx_http_bloom_exit_master(ngx_cycle_t *cycle)
{
    ngx_http_bloom_main_conf_t  *bmcf;

    bmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_bloom_module);

    if (bmcf != NULL) {
        ngx_bloom_shutdown_end_master(cycle, &bmcf->zones);
    }
}


static void *
ngx_http_bloom_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_bloom_main_conf_t  *bmcf;

    bmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_bloom_main_conf_t));
    if (bmcf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&bmcf->zones, cf->pool, 4, sizeof(ngx_bloom_zone_t *))
        != NGX_OK
        || ngx_array_init(&bmcf->askers, cf->pool, 4,
                          sizeof(ngx_http_bloom_asker_t *))
           != NGX_OK
        || ngx_array_init(&bmcf->endpoints, cf->pool, 4,
                          sizeof(ngx_http_bloom_endpoint_t *))
           != NGX_OK
        || ngx_array_init(&bmcf->rules, cf->pool, 4, sizeof(ngx_array_t *))
           != NGX_OK)
    {
        return NULL;
    }

    return bmcf;
}


static void *
ngx_http_bloom_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_bloom_loc_conf_t  *blcf;

    blcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_bloom_loc_conf_t));
    if (blcf == NULL) {
        return NULL;
    }

    blcf->rules = NGX_CONF_UNSET_PTR;
    blcf->adds = NGX_CONF_UNSET_PTR;
    blcf->removes = NGX_CONF_UNSET_PTR;
    blcf->feedback = NGX_CONF_UNSET_PTR;
    blcf->audit = NGX_CONF_UNSET_PTR;
    blcf->policy.dry_run = NGX_CONF_UNSET;
    blcf->policy.unknown = NGX_CONF_UNSET_UINT;
    blcf->policy.log_level = NGX_CONF_UNSET_UINT;
    blcf->policy.subject = "request";

    return blcf;
}


static char *
ngx_http_bloom_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_bloom_loc_conf_t *prev = parent;
    ngx_http_bloom_loc_conf_t *conf = child;

    ngx_http_core_loc_conf_t    *clcf;

    if (conf->rules == NGX_CONF_UNSET_PTR) {

        if (conf->alone) {
            conf->rules = NULL;
        }

    } else if (!conf->alone && prev->rules != NULL
               && prev->rules != NGX_CONF_UNSET_PTR)
    {
        ngx_http_bloom_conf_warn_dropped(cf, conf->rules, prev->rules);
    }

    ngx_conf_merge_ptr_value(conf->rules, prev->rules, NULL);
    ngx_conf_merge_ptr_value(conf->adds, prev->adds, NULL);
    ngx_conf_merge_ptr_value(conf->removes, prev->removes, NULL);
    ngx_conf_merge_ptr_value(conf->feedback, prev->feedback, NULL);
    ngx_conf_merge_ptr_value(conf->audit, prev->audit, NULL);
    ngx_conf_merge_value(conf->policy.dry_run, prev->policy.dry_run, 0);

    if (conf->policy.unknown == NGX_CONF_UNSET_UINT) {
        conf->unknown_to = prev->unknown_to;
    }

    ngx_conf_merge_uint_value(conf->policy.unknown, prev->policy.unknown,
                              NGX_BLOOM_RULE_PASS);
    ngx_conf_merge_uint_value(conf->policy.log_level, prev->policy.log_level,
                              NGX_LOG_INFO);

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->noname && conf->endpoint == NULL) {

        /* "if" and "limit_except" inherit the endpoint of their location */

        conf->endpoint = prev->endpoint;

        if (clcf->handler == NULL && conf->endpoint != NULL) {
            clcf->handler = ngx_http_bloom_api_handler;
        }
    }

    ngx_http_bloom_audit_merge(cf, conf);
    ngx_http_bloom_feedback_merge(conf);

    return conf->rules != NULL ? ngx_http_bloom_conf_rules_apply(cf, conf)
                               : NGX_CONF_OK;
}


static char *
ngx_http_bloom_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                      *rc;
    ngx_http_core_loc_conf_t  *clcf;

    rc = ngx_http_bloom_endpoint_conf(cf, cmd, conf);

    if (rc == NGX_CONF_OK) {
        clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
        clcf->handler = ngx_http_bloom_api_handler;
    }

    return rc;
}
