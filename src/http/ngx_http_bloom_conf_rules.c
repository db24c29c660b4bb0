/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads the directives with rules and lookups: bloom_pass,
 * bloom_reject, bloom_route, bloom_unknown, bloom_rules and bloom_lookup.
 */

#include "ngx_http_bloom_conf_rules.h"
#include "ngx_http_bloom_conf.h"
#include "ngx_http_bloom_route.h"
#include "ngx_http_bloom_variables.h"


static char *ngx_http_bloom_conf_rules_how(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_rule_t *rule);
static char *ngx_http_bloom_conf_rules_fires(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_rule_t *rule);
static char *ngx_http_bloom_conf_rules_fire(ngx_conf_t *cf, char *name,
    ngx_str_t *value, ngx_uint_t *fire);
static char *ngx_http_bloom_conf_rules_name(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_rule_t *rule);


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

    rc = ngx_http_bloom_conf_params(cf, 3, NGX_HTTP_BLOOM_CONF_KEY, &params);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    asker = ngx_pcalloc(cf->pool, sizeof(ngx_http_bloom_asker_t));
    slot = ngx_array_push(&bmcf->askers);

    if (asker == NULL || slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = asker;

    asker->name = value[2];
    asker->conf_file = cf->conf_file->file.name.data;
    asker->conf_line = cf->conf_file->line;

    rc = ngx_http_bloom_conf_key(cf, &value[1], &params, &asker->key);
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
    ngx_http_bloom_loc_conf_t *blcf = conf;

    char                           *rc;
    ngx_int_t                       status;
    ngx_str_t                      *value;
    ngx_uint_t                      where;
    ngx_array_t                   **list;
    ngx_http_bloom_rule_t          *rule;
    ngx_http_bloom_conf_params_t    params;
    ngx_http_bloom_main_conf_t     *bmcf;

    if (blcf->rules == NGX_CONF_UNSET_PTR) {
        blcf->rules = ngx_array_create(cf->pool, 2,
                                       sizeof(ngx_http_bloom_rule_t));
        bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);

        list = ngx_array_push(&bmcf->rules);

        if (blcf->rules == NULL || list == NULL) {
            return NGX_CONF_ERROR;
        }

        *list = blcf->rules;
    }

    rule = ngx_array_push(blcf->rules);
    if (rule == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(rule, sizeof(ngx_http_bloom_rule_t));

    if (blcf->rules->nelts == 1) {
        rule->places = ngx_array_create(cf->pool, 2,
                                        sizeof(ngx_http_bloom_place_t));
        if (rule->places == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    rule->common.action = cmd->offset;
    rule->common.conf_file = cf->conf_file->file.name.data;
    rule->common.conf_line = cf->conf_file->line;

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "absent") == 0) {
        rule->common.fires = NGX_BLOOM_ABSENT;
        rule->status = NGX_HTTP_NOT_FOUND;

    } else if (ngx_strcmp(value[1].data, "present") == 0) {
        rule->common.fires = NGX_BLOOM_PRESENT;
        rule->status = NGX_HTTP_FORBIDDEN;

    } else {
        return ngx_http_bloom_conf_invalid(cf, "condition", &value[1],
                                           "\"absent\" or \"present\"");
    }

    where = NGX_HTTP_BLOOM_CONF_KEY|NGX_HTTP_BLOOM_CONF_RULE;

    if (rule->common.action == NGX_BLOOM_RULE_REJECT) {
        where |= NGX_HTTP_BLOOM_CONF_REJECT;

    } else if (rule->common.action == NGX_BLOOM_RULE_ROUTE) {
        where |= NGX_HTTP_BLOOM_CONF_ROUTE;
    }

    rc = ngx_http_bloom_conf_params(cf, 3, where, &params);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    rc = ngx_http_bloom_conf_key(cf, &value[2], &params, &rule->key);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    rule->common.zone = rule->key.zone;

    rc = ngx_http_bloom_conf_rules_how(cf, &params, &rule->common);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    rc = ngx_http_bloom_conf_rules_fires(cf, &params, &rule->common);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    rc = ngx_http_bloom_conf_condition(cf, &params, &rule->filter);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    rule->common.dry_run = (params.dry_run.data != NULL);

    rc = ngx_http_bloom_conf_rules_name(cf, &params, &rule->common);
    if (rc != NGX_CONF_OK) {
        return rc;
    }

    if (params.status.data != NULL) {
        status = ngx_atoi(params.status.data, params.status.len);

        if (status < 400 || status > 599) {
            return ngx_http_bloom_conf_invalid(cf, "status", &params.status,
                                               "a code from 400 to 599");
        }

        rule->status = (ngx_uint_t) status;
    }

    if (rule->common.action != NGX_BLOOM_RULE_ROUTE) {
        return NGX_CONF_OK;
    }

    if (params.to.data == NULL) {
        return "must have the \"to\" parameter";
    }

    bmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_bloom_module);
    bmcf->routes = 1;

    return ngx_http_bloom_route_conf(cf, &params.to, &rule->target);
}


/*
 * Reads "exact", "split=" and "match=".  By default, one part of a list is
 * enough to reject or route a request, but all parts are needed to pass it.  A URL
 * with two readings is not passed.
 */
static char *
ngx_http_bloom_conf_rules_how(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_rule_t *rule)
{
    rule->all = (rule->action == NGX_BLOOM_RULE_PASS);

    if (params->exact.data != NULL) {
        rule->lookup |= NGX_BLOOM_LOOKUP_EXACT;
    }

    if (rule->action == NGX_BLOOM_RULE_PASS
        && rule->fires == NGX_BLOOM_PRESENT)
    {
        rule->lookup |= NGX_BLOOM_LOOKUP_SOLE;
    }

    if (ngx_http_bloom_conf_split(cf, params, &rule->split) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    if (rule->split == '\0') {
        return params->match.data ? "has \"match=\" without \"split=\""
                                  : NGX_CONF_OK;
    }

    if (params->match.data == NULL) {
        return NGX_CONF_OK;
    }

    rule->all = (ngx_strcmp(params->match.data, "all") == 0);

    if (!rule->all && ngx_strcmp(params->match.data, "any") != 0) {
        return ngx_http_bloom_conf_invalid(cf, "match", &params->match,
                                           "\"any\" or \"all\"");
    }

    return NGX_CONF_OK;
}


/*
 * Reads "invalid=" and "empty=": whether a rule fires on such a key.  By
 * default, a rule that keeps listed keys out fires on a key that cannot be
 * looked up.  No rule fires on an empty key.
 */
static char *
ngx_http_bloom_conf_rules_fires(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_rule_t *rule)
{
    ngx_uint_t  invalid, empty;

    invalid = (rule->action != NGX_BLOOM_RULE_PASS
               && rule->fires == NGX_BLOOM_PRESENT);
    empty = 0;

    if (ngx_http_bloom_conf_rules_fire(cf, "value of \"invalid\"",
                                       &params->invalid, &invalid)
        != NGX_CONF_OK
        || ngx_http_bloom_conf_rules_fire(cf, "value of \"empty\"",
                                          &params->empty, &empty)
           != NGX_CONF_OK)
    {
        return NGX_CONF_ERROR;
    }

    rule->invalid = invalid;
    rule->empty = empty;

    return NGX_CONF_OK;
}


/* Reads "fire" or "pass".  Without the parameter, *fire stays as it is. */
static char *
ngx_http_bloom_conf_rules_fire(ngx_conf_t *cf, char *name, ngx_str_t *value,
    ngx_uint_t *fire)
{
    if (value->data == NULL) {
        return NGX_CONF_OK;
    }

    *fire = (ngx_strcmp(value->data, "fire") == 0);

    if (!*fire && ngx_strcmp(value->data, "pass") != 0) {
        return ngx_http_bloom_conf_invalid(cf, name, value,
                                           "\"fire\" or \"pass\"");
    }

    return NGX_CONF_OK;
}


/*
 * Sets the name of a rule in metrics.  The rule keeps its counters over a
 * reload if its name, action, condition and zone stay the same; rules that
 * agree in all of these share their counters.
 */
static char *
ngx_http_bloom_conf_rules_name(ngx_conf_t *cf,
    ngx_http_bloom_conf_params_t *params, ngx_bloom_rule_t *rule)
{
    size_t      len;
    u_char     *p;
    ngx_str_t  *file;

    rule->label = params->name;

    if (params->name.data != NULL && params->name.len == 0) {
        return ngx_http_bloom_conf_invalid(cf, "name", &params->name,
                                           "a name that is not empty");
    }

    if (params->name.data == NULL) {
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
    ngx_uint_t               i, j, k;
    ngx_array_t            **list;
    ngx_http_bloom_rule_t   *rule;
    ngx_http_bloom_place_t  *place;

    list = bmcf->rules.elts;

    for (i = 0; i < bmcf->rules.nelts; i++) {

        rule = list[i]->elts;

        place = rule->places->elts;

        for (j = 0; j < list[i]->nelts; j++) {

            for (k = 0; k < rule->places->nelts; k++) {

                if (rule[j].common.action == NGX_BLOOM_RULE_ROUTE
                    && ngx_http_bloom_route_check(cf, &rule[j].target,
                                                  place[k].server)
                       != NGX_OK)
                {
                    return NGX_ERROR;
                }
            }
        }

        for (k = 0; k < rule->places->nelts; k++) {

            if (place[k].conf->policy.unknown == NGX_BLOOM_RULE_ROUTE
                && ngx_http_bloom_route_check(cf,
                                              place[k].conf->unknown_to,
                                              place[k].server)
                   != NGX_OK)
            {
                return NGX_ERROR;
            }
        }
    }

    return NGX_OK;
}
