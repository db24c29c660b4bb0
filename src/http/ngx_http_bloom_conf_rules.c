/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads the directives with rules and lookups: bloom_pass,
 * bloom_reject, bloom_route, bloom_unknown, bloom_rules and bloom_lookup.
 */

#include "ngx_http_bloom_conf_rules.h"
#include "ngx_http_bloom_conf_key.h"
#include "ngx_http_bloom_route.h"
#include "ngx_http_bloom_variables.h"


static ngx_http_bloom_rule_t *ngx_http_bloom_conf_rules_push(ngx_conf_t *cf,
    ngx_http_bloom_loc_conf_t *blcf);
static char *ngx_http_bloom_conf_rules_read(ngx_conf_t *cf,
    ngx_http_bloom_rule_t *rule);
static char *ngx_http_bloom_conf_rules_how(
    ngx_http_bloom_conf_params_t *params, ngx_bloom_rule_t *rule);
static char *ngx_http_bloom_conf_rules_name(ngx_conf_t *cf,
    ngx_bloom_rule_t *rule);


char *
ngx_http_bloom_conf_rules_lookup(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                          *rc;
    ngx_str_t                     *value;
    ngx_http_variable_t           *var;
    ngx_http_bloom_asker_t        *asker, **slot;
    ngx_http_bloom_main_conf_t    *bmcf = conf;
    ngx_http_bloom_conf_params_t   params;

    value = cf->args->elts;

    asker = ngx_pcalloc(cf->pool, sizeof(ngx_http_bloom_asker_t));
    slot = ngx_array_push(&bmcf->askers);

    if (asker == NULL || slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = asker;

    asker->name = value[2];
    asker->conf_file = cf->conf_file->file.name.data;
    asker->conf_line = cf->conf_file->line;

    ngx_memzero(&params, sizeof(ngx_http_bloom_conf_params_t));

    rc = ngx_http_bloom_conf_key(cf, &value[1], 3, 0, &params, &asker->key);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    var = ngx_http_bloom_conf_add_variable(cf, &value[2]);
    if (var == NULL) {
        return NGX_CONF_ERROR;
    }

    var->get_handler = ngx_http_bloom_variables_lookup;
    var->data = (uintptr_t) &asker->key;

    return NGX_CONF_OK;
}


char *
ngx_http_bloom_conf_rules_rule(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t              *value;
    ngx_http_bloom_rule_t  *rule;

    rule = ngx_http_bloom_conf_rules_push(cf, conf);
    if (rule == NULL) {
        return NGX_CONF_ERROR;
    }

    rule->common.action = cmd->offset;
    rule->common.conf_file = cf->conf_file->file.name.data;
    rule->common.conf_line = cf->conf_file->line;

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "absent") == 0) {
        rule->common.fires = NGX_BLOOM_ABSENT;

    } else if (ngx_strcmp(value[1].data, "present") == 0) {
        rule->common.fires = NGX_BLOOM_PRESENT;

    } else {
        return ngx_http_bloom_conf_invalid(cf, "condition", &value[1],
                                           "\"absent\" or \"present\"");
    }

    return ngx_http_bloom_conf_rules_read(cf, rule);
}


/* Appends a rule to those of a location.  Returns NULL without memory. */
static ngx_http_bloom_rule_t *
ngx_http_bloom_conf_rules_push(ngx_conf_t *cf, ngx_http_bloom_loc_conf_t *blcf)
{
    ngx_array_t                 **list;
    ngx_http_bloom_rule_t        *rule;
    ngx_http_bloom_main_conf_t   *bmcf;

    if (blcf->rules == NGX_CONF_UNSET_PTR) {
        blcf->rules = ngx_array_create(cf->pool, 2,
                                       sizeof(ngx_http_bloom_rule_t));
        bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);

        list = ngx_array_push(&bmcf->rules);

        if (blcf->rules == NULL || list == NULL) {
            return NULL;
        }

        *list = blcf->rules;
    }

    rule = ngx_array_push(blcf->rules);
    if (rule == NULL) {
        return NULL;
    }

    ngx_memzero(rule, sizeof(ngx_http_bloom_rule_t));

    if (blcf->rules->nelts == 1) {
        rule->places = ngx_array_create(cf->pool, 2,
                                        sizeof(ngx_http_bloom_place_t));
        if (rule->places == NULL) {
            return NULL;
        }
    }

    return rule;
}


/*
 * Reads the key and the parameters of a rule.  By default, a rule that keeps
 * listed keys out fires on a key that cannot be looked up, and no rule fires on
 * an empty key.
 */
static char *
ngx_http_bloom_conf_rules_read(ngx_conf_t *cf, ngx_http_bloom_rule_t *rule)
{
    char                          *rc;
    ngx_str_t                     *value;
    ngx_http_bloom_main_conf_t    *bmcf;
    ngx_http_bloom_conf_params_t   params;

    static const ngx_uint_t  where[] = {
        0, NGX_HTTP_BLOOM_CONF_REJECT, NGX_HTTP_BLOOM_CONF_ROUTE
    };

    ngx_memzero(&params, sizeof(ngx_http_bloom_conf_params_t));

    params.status = (rule->common.fires == NGX_BLOOM_ABSENT)
                    ? NGX_HTTP_NOT_FOUND : NGX_HTTP_FORBIDDEN;
    params.all = NGX_CONF_UNSET_UINT;
    params.invalid = (rule->common.action != NGX_BLOOM_RULE_PASS
                      && rule->common.fires == NGX_BLOOM_PRESENT);

    value = cf->args->elts;

    rc = ngx_http_bloom_conf_key(cf, &value[2], 3,
                                 NGX_HTTP_BLOOM_CONF_RULE
                                 |where[rule->common.action],
                                 &params, &rule->key);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    rule->status = params.status;
    rule->filter = params.filter;
    rule->common.label = params.name;
    rule->common.invalid = params.invalid;
    rule->common.empty = params.empty;
    rule->common.dry_run = params.dry_run;

    rule->common.zone = rule->key.zone;

    rc = ngx_http_bloom_conf_rules_how(&params, &rule->common);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    rc = ngx_http_bloom_conf_rules_name(cf, &rule->common);

    if (rc != NGX_CONF_OK || rule->common.action != NGX_BLOOM_RULE_ROUTE) {
        return rc;
    }

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);
    bmcf->routes = 1;

    return ngx_http_bloom_route_conf(cf, &params.to, &rule->target);
}


/*
 * Applies "exact", "split=" and "match=".  By default, one part of a list is
 * enough to reject or route a request, but all parts are needed to pass it.  A
 * URL with two readings is not passed.
 */
static char *
ngx_http_bloom_conf_rules_how(ngx_http_bloom_conf_params_t *params,
    ngx_bloom_rule_t *rule)
{
    if (params->exact) {
        rule->lookup |= NGX_BLOOM_LOOKUP_EXACT;
    }

    if (rule->action == NGX_BLOOM_RULE_PASS
        && rule->fires == NGX_BLOOM_PRESENT)
    {
        rule->lookup |= NGX_BLOOM_LOOKUP_SOLE;
    }

    if (params->split != '\0') {
        rule->split = params->split;

    } else if (params->all != NGX_CONF_UNSET_UINT) {
        return "has \"match=\" without \"split=\"";
    }

    ngx_conf_init_uint_value(params->all,
                             rule->action == NGX_BLOOM_RULE_PASS);
    rule->all = params->all;

    return NGX_CONF_OK;
}


/*
 * Sets the name of a rule in metrics.  The rule keeps its counters over a
 * reload if its name, action, condition and zone stay the same; rules that
 * agree in all of these share their counters.
 */
static char *
ngx_http_bloom_conf_rules_name(ngx_conf_t *cf, ngx_bloom_rule_t *rule)
{
    size_t      len;
    u_char     *p;
    ngx_str_t  *file;

    if (rule->label.len == 0) {
        file = &cf->conf_file->file.name;

        p = ngx_pnalloc(cf->pool, file->len + 1 + NGX_INT_T_LEN);
        if (p == NULL) {
            return NGX_CONF_ERROR;
        }

        rule->label.data = p;
        rule->label.len = ngx_sprintf(p, "%V:%ui", file, rule->conf_line) - p;
    }

    /* the space in front tells it from a zone's name */

    len = sizeof(" 0 0  ") - 1 + rule->zone->name.len + rule->label.len;

    p = ngx_pnalloc(cf->pool, len);
    if (p == NULL) {
        return NGX_CONF_ERROR;
    }

    rule->identity.data = p;
    rule->identity.len = ngx_snprintf(p, len, " %ui %ui %V %V",
                                      (ngx_uint_t) rule->action, rule->fires,
                                      &rule->zone->name, &rule->label)
                         - p;

    return NGX_CONF_OK;
}


char *
ngx_http_bloom_conf_rules_unknown(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_bloom_loc_conf_t *blcf = conf;

    ngx_str_t                   *value, to;
    ngx_http_bloom_main_conf_t  *bmcf;

    if (blcf->policy.unknown != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "pass") == 0) {
        blcf->policy.unknown = NGX_BLOOM_RULE_PASS;
        return NGX_CONF_OK;
    }

    if (ngx_strcmp(value[1].data, "reject") == 0) {
        blcf->policy.unknown = NGX_BLOOM_RULE_REJECT;
        return NGX_CONF_OK;
    }

    if (ngx_strncmp(value[1].data, "to=", 3) != 0) {
        return ngx_http_bloom_conf_invalid(cf, "value", &value[1],
                                           "\"pass\", \"reject\", or where to "
                                           "route the request, such as "
                                           "\"to=@exact\"");
    }

    blcf->policy.unknown = NGX_BLOOM_RULE_ROUTE;

    blcf->unknown_to = ngx_pcalloc(cf->pool, sizeof(ngx_http_bloom_target_t));
    if (blcf->unknown_to == NULL) {
        return NGX_CONF_ERROR;
    }

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);
    bmcf->routes = 1;

    to.data = value[1].data + 3;
    to.len = value[1].len - 3;

    return ngx_http_bloom_route_conf(cf, &to, blcf->unknown_to);
}


char *
ngx_http_bloom_conf_rules_off(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_bloom_loc_conf_t *blcf = conf;

    ngx_str_t  *value;

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") != 0) {
        return ngx_http_bloom_conf_invalid(cf, "value", &value[1], "\"off\"");
    }

    if (blcf->alone) {
        return "is duplicate";
    }

    blcf->alone = 1;

    return NGX_CONF_OK;
}


char *
ngx_http_bloom_conf_rules_apply(ngx_conf_t *cf, ngx_http_bloom_loc_conf_t *conf)
{
    ngx_http_bloom_rule_t   *first;
    ngx_http_bloom_place_t  *place;

    first = conf->rules->elts;

    place = ngx_array_push(first->places);
    if (place == NULL) {
        return NGX_CONF_ERROR;
    }

    place->server = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);
    place->location = ngx_http_conf_get_module_loc_conf(cf,
                                                        ngx_http_core_module);
    place->conf = conf;

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_bloom_conf_rules_check_routes(ngx_conf_t *cf,
    ngx_http_bloom_main_conf_t *bmcf)
{
    ngx_uint_t                 i, j, k;
    ngx_array_t              **list;
    ngx_http_bloom_rule_t     *rule;
    ngx_http_bloom_place_t    *place;
    ngx_http_bloom_target_t   *target;

    list = bmcf->rules.elts;

    for (i = 0; i < bmcf->rules.nelts; i++) {

        rule = list[i]->elts;
        place = rule->places->elts;

        for (k = 0; k < rule->places->nelts; k++) {

            /* the rules' targets, and then that of bloom_unknown */

            for (j = 0; j <= list[i]->nelts; j++) {

                target = (j < list[i]->nelts) ? &rule[j].target
                                              : place[k].conf->unknown_to;

                if (target != NULL
                    && ngx_http_bloom_route_check(cf, target, place[k].server)
                       != NGX_OK)
                {
                    return NGX_ERROR;
                }
            }
        }
    }

    return NGX_OK;
}
